//! The evidence of a case: everything that was observed of it on one node, and CEL expressions over
//! it.
//!
//! [`Observations`] is the recorded evidence. [`LiveState`] holds the pods, events and the node
//! while a case runs, and decides when observation ends. [`Scope`] makes either available to the
//! expressions of a case. A [`Recorded`] object is kept as the API returned it, beside its decoded
//! form.
//!
//! ```
//! use evictlab_case::expression::Expression;
//! use evictlab_evidence::{Observations, Recorded, Scope};
//! use serde_json::json;
//!
//! let status = json!({"phase": "Failed", "reason": "Evicted"});
//! let hog = Recorded::decode(json!({"metadata": {"name": "hog"}, "status": status}))?;
//! let observations = Observations { pods_final: vec![hog], ..Observations::default() };
//! assert!(observations.pods_final[0].is_evicted());
//!
//! let expression: Expression = "evicted(pods.hog)".parse()?;
//! assert_eq!(expression.holds(&Scope::of(&observations)), Ok(true));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unreachable_pub)]

mod cel_value;
mod history;
mod kubelet_config;
mod kubernetes_schema;
mod live_state;
mod metric;
mod missing;
mod objects;
mod observation_end;
mod observations;
mod recorded;
mod sample;
mod sample_text;
mod samples;
mod scope;
mod undecodable_pod;
mod yaml;

#[cfg(test)]
mod error_texts;

pub use history::{ConditionEntry, ContainerEntry, NodeHistoryEntry, NodeImage, PodHistoryEntry};
pub use kubelet_config::{KubeletConfig, missing_defaults, thresholds};
pub use live_state::{ListedPods, LiveState, WatchedKind};
pub use metric::Metric;
pub use missing::{EvidenceSource, MissingEvidence, UnknownSource};
pub use objects::{ContainerStatusExt, RecordedEvent, RecordedNode, RecordedPod};
pub use observation_end::ObservationEnd;
pub use observations::{ApiAnswer, CommandOutput, NodeState, Observations, StepAnswer};
pub use recorded::{DecodeError, Recorded};
pub use sample::{SampleDocument, reduce_summary};
pub use samples::Samples;
pub use scope::Scope;
pub use undecodable_pod::UndecodablePod;
pub use yaml::{YamlError, yaml_documents, yaml_documents_as};
