//! What GitHub Actions shows of a run: a summary of the job, and annotations.

mod annotations;
mod job_summary;

pub use annotations::Annotations;
pub use job_summary::JobSummary;
