//! Errors of creating, opening and deleting clusters, of all backends.

mod cluster;
mod existing;
mod kind;
mod start_cause;
mod start_problem;

pub use cluster::ClusterError;
pub use existing::ExistingError;
pub(crate) use existing::listed;
pub use kind::{ConfigError, KindError, OLDEST_KIND, StateError};
pub(crate) use start_cause::StartCause;
pub use start_problem::StartProblem;
pub(crate) use start_problem::StartState;
