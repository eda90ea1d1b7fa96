//! The index of a Job, in whose pod this process runs.

use std::env;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Environment variable with namespace and name of the Job, as `NAMESPACE/NAME`, which the manifest
/// of the Job sets.
pub const JOB_VARIABLE: &str = "EVICTLAB_JOB";
/// Environment variable with the index, which Kubernetes sets in the pods of an Indexed Job.
const INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";

/// Namespace and name of a Job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobName {
    /// Namespace of the Job.
    pub namespace: String,
    /// Name of the Job.
    pub name: String,
}

impl fmt::Display for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The environment of this process is not that of a pod of a Job.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobIndexError {
    /// A variable is not set.
    #[error("failed to read the index of the Job: {0} is not set")]
    NotSet(&'static str),
    /// A variable has an invalid value.
    #[error("failed to read the index of the Job: {variable} is {value:?}, expected {expected}")]
    Invalid {
        /// Name of the variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// Form of a valid value.
        expected: &'static str,
    },
}

impl FromStr for JobName {
    type Err = JobIndexError;

    fn from_str(text: &str) -> Result<Self, JobIndexError> {
        match text.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
                Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
            }
            _ => Err(JobIndexError::Invalid {
                variable: JOB_VARIABLE,
                value: text.to_owned(),
                expected: "NAMESPACE/NAME",
            }),
        }
    }
}

/// An index of a Job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobIndex {
    /// The Job.
    pub job: JobName,
    /// The index, from 0.
    pub index: usize,
}

impl JobIndex {
    /// The index of this process, by its environment.
    ///
    /// # Errors
    /// A variable is missing or invalid.
    pub fn of_this_pod() -> Result<Self, JobIndexError> {
        let read = |name: &'static str| env::var(name).map_err(|_| JobIndexError::NotSet(name));
        let job = read(JOB_VARIABLE)?.parse()?;
        let value = read(INDEX_VARIABLE)?;
        match value.parse() {
            Ok(index) => Ok(Self { job, index }),
            Err(_) => {
                let (variable, expected) = (INDEX_VARIABLE, "a number");
                Err(JobIndexError::Invalid { variable, value, expected })
            }
        }
    }
}
