//! Reports for GitHub Actions: job summary and annotations.

mod annotations;
mod job_summary;

pub use annotations::Annotations;
pub use job_summary::JobSummary;
