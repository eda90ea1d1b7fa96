//! Reports for GitHub Actions: the log of the step, annotations, and the job summary.

mod annotations;
mod job_summary;
mod log;

pub use annotations::Annotations;
pub use job_summary::JobSummary;
pub use log::GithubLog;
