//! One run out of several: shards, machines and attempts.
//!
//! Cases and kubelets of all runs become the plan. Attempts of a case on a kubelet are numbered on,
//! in the order in which the runs started. `skipped` gives way to a verdict of another run. A case
//! of a run without an end, or of a shard that is missing, is `error` unless another run has its
//! verdict.

mod attempts;
mod error;
mod events;
mod evidence;
mod plan;
mod run;
mod source;

pub use error::MergeError;
pub use run::Merge;
