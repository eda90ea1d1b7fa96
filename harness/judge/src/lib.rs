//! The verdict on a case: [`judge`] compares the evidence with what the case expects.
//!
//! Judging is pure: it reads nothing but its arguments, and the same evidence gives the same
//! result.
//!
//! ```
//! use evictlab_case::Case;
//! use evictlab_evidence::{Observations, RecordedPod};
//! use evictlab_judge::{Verdict, judge};
//! use serde_json::json;
//!
//! let case: Case = serde_json::from_value(json!({
//!     "name": "idle-pod-survives",
//!     "about": "A pod without usage is not evicted.",
//!     "pods": [{"metadata": {"name": "idle"}}],
//!     "expect": {"evicted": []},
//! }))?;
//! let idle = json!({"metadata": {"name": "idle"}, "status": {"phase": "Running"}});
//! let idle = RecordedPod::decode(idle)?;
//! let observations = Observations {
//!     kubelet_version: "v1.33.1".to_owned(),
//!     pods_created: vec![idle.clone()],
//!     pods_final: vec![idle],
//!     ..Observations::default()
//! };
//! let result = judge(&case, &"v1.33.1".parse().unwrap(), &observations);
//! assert_eq!(result.verdict, Verdict::Passed);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unreachable_pub)]

mod assertions;
mod case_evidence;
mod case_result;
mod check;
mod decide;
mod deletion;
mod inconclusive;
mod invariants;
mod known_bug;
mod message_diff;
mod rate;
mod termination_time;
mod verdict;

pub use case_result::{CaseResult, Check, EarlierTry, EvictionRecord, Phase, Rate};
pub use decide::judge;
pub use known_bug::known_bug;
pub use rate::over_runs;
pub use verdict::{InconclusiveReason, Verdict};

#[cfg(test)]
mod evidence_tests;
#[cfg(test)]
mod recordings_tests;
