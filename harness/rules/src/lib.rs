//! The kubelet's eviction rules as pure functions, by kubelet version: no I/O, no async, no clock.
//!
//! - [`quantity`]: amounts, read, printed and calculated as Kubernetes does
//! - [`pod`]: what the rules know of a pod and of a node's Summary
//! - [`threshold`]: signals, observations, thresholds
//! - [`message`]: what a kubelet says when it evicts, written and read
//! - [`ranking`]: who is evicted first, who is admitted under pressure
//! - [`invariant`]: what holds for every eviction, as named checks

pub mod invariant;
pub mod message;
pub mod pod;
pub mod quantity;
pub mod ranking;
pub mod threshold;
mod version;

pub use version::{KubeletVersion, VersionError};
