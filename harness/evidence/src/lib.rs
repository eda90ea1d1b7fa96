//! The evidence of a case: everything that was observed of it on one node, and CEL expressions over
//! it.
//!
//! [`Observations`] is the recorded evidence. [`LiveState`] holds the pods, events and the node
//! while a case runs, and decides when observation ends. [`Scope`] makes either available to the
//! expressions of a case. [`PodView`], [`EventView`] and their parts read recorded Kubernetes
//! objects.
//!
//! ```
//! use evictlab_case::expression::Expression;
//! use evictlab_evidence::{Observations, PodView, Scope};
//! use serde_json::json;
//!
//! let status = json!({"phase": "Failed", "reason": "Evicted"});
//! let hog = json!({"metadata": {"name": "hog"}, "status": status});
//! let observations = Observations { pods_final: vec![hog], ..Observations::default() };
//! assert!(PodView::new(&observations.pods_final[0]).is_evicted());
//!
//! let expression: Expression = "evicted(pods.hog)".parse()?;
//! assert!(expression.holds(&Scope::of(&observations)));
//! # Ok::<(), evictlab_case::expression::ExpressionError>(())
//! ```
#![deny(unreachable_pub)]

mod cel_value;
mod history;
mod live_state;
mod missing;
mod observation_end;
mod observations;
mod sample;
mod samples;
mod scope;
mod views;

pub use live_state::{LiveState, WatchedKind};
pub use missing::{EvidenceSource, MissingEvidence, UnknownSource};
pub use observation_end::{EndInputs, EndLimits, ExpectedOutcome, ObservationEnd};
pub use observations::{ApiAnswer, Observations, thresholds};
pub use sample::sample;
pub use samples::Samples;
pub use scope::Scope;
pub use views::{
    CONTAINER_STATUS_FIELDS, ConditionView, ContainerStatusView, EventView, PodView, TerminatedView,
    WaitingView, container_statuses, kubelet_termination_condition, pod_name,
};
