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

impl FromStr for JobName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
                Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
            }
            _ => Err(format!("{text:?} is not NAMESPACE/NAME of a Job")),
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
    pub fn of_this_pod() -> Result<Self, String> {
        let read = |name: &str| env::var(name).map_err(|_| format!("{name} is not set"));
        let job = read(JOB_VARIABLE)?.parse()?;
        let index = read(INDEX_VARIABLE)?;
        let index = index.parse().map_err(|_| format!("{INDEX_VARIABLE} is not an index: {index:?}"))?;
        Ok(Self { job, index })
    }
}
