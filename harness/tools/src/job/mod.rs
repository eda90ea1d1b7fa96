//! Runs of a selection as a Kubernetes Job in the cluster that is tested: one shard for each index.
//!
//! [`manifest`] describes the objects, [`apply`] creates them, and [`JobWorker`] is the program of
//! the pods. The results of an index are at the end of its pod's log, see [`archive`]: the log
//! outlives the container, and needs neither a volume nor a program in the image that reads files.
//! [`collect`] reads them, [`JobView`] shows the progress, and [`delete`] removes everything.

mod apply;
pub mod archive;
mod collect;
mod delete;
mod error;
mod gone;
mod labels;
mod namespace;
mod node_affinity;
mod objects;
mod options;
mod status;
mod worker;

pub use apply::apply;
#[cfg(test)]
pub(crate) use collect::PodResultsError;
pub use collect::{Collected, collect};
pub use delete::delete;
pub use error::JobError;
pub use node_affinity::{NodeSelector, NodeSelectorError};
pub use objects::{manifest, to_yaml};
pub use options::{JobOptions, Toleration, TolerationError};
pub use status::{IndexState, IndexStatus, JobPhase, JobView, follow_status, read_status};
pub use worker::{IndexReport, JobWorker, JobWorkerError};
