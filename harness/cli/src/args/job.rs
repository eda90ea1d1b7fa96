//! Arguments and errors of the commands of `evictlab job`.

use evictlab_cluster::JobName;
use evictlab_tools::job::JobError;

use crate::failure::Failure;

/// Name of a Job.
#[derive(clap::Args)]
pub(crate) struct JobNameArgs {
    /// Name of the Job
    #[arg(long, value_name = "NAME", default_value = "evictlab", value_parser = label)]
    name: String,
    /// Existing namespace for the Job [default: evictlab, which the manifest contains]
    #[arg(long, value_name = "NAME", value_parser = label)]
    namespace: Option<String>,
}

/// Parses a DNS label; a suffix, as of a pod, fits after it.
fn label(text: &str) -> Result<String, String> {
    const MAX_LENGTH: usize = 50;
    let is_valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_label = !text.is_empty()
        && text.len() <= MAX_LENGTH
        && text.chars().all(is_valid)
        && !text.starts_with('-')
        && !text.ends_with('-');
    if is_label {
        Ok(text.to_owned())
    } else {
        Err(format!("a name has at most {MAX_LENGTH} characters of a-z, 0-9 and -"))
    }
}

impl JobNameArgs {
    /// Returns the name, and whether the namespace is the default one.
    pub(crate) fn job(&self) -> (JobName, bool) {
        let namespace = self.namespace.clone().unwrap_or_else(|| "evictlab".to_owned());
        (JobName { namespace, name: self.name.clone() }, self.namespace.is_none())
    }
}

/// Returns exit status 2 for invalid input, else 4.
pub(crate) fn job_failure(error: JobError) -> Failure {
    Failure::input_or_infrastructure(error.is_input(), error)
}
