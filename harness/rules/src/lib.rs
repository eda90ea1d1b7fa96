//! The kubelet's eviction rules as pure functions, by kubelet version.
//!
//! The crate does not do any I/O, does not read a clock and is not async. Functions take the
//! [`KubeletVersion`] where versions differ and cite the kubelet function that they reproduce.
//!
//! | module | contents |
//! | --- | --- |
//! | [`quantity`] | Kubernetes quantities |
//! | [`pod`] | pods: requests, limits, QoS class |
//! | [`summary`] | statistics of nodes and pods (Summary API) |
//! | [`threshold`] | signals, observations, thresholds, node-level reclaim |
//! | [`message`] | eviction messages and annotations, composed and parsed |
//! | [`ranking`] | eviction order, admission under pressure |
//! | [`invariant`] | statements that hold for every eviction, as named checks |
//!
//! Each module only uses the modules above it.
//!
//! # Example
//!
//! A node under memory pressure: the thresholds of a configuration, the pod to evict, the message
//! of the eviction, and the message parsed again.
//!
//! ```
//! use evictlab_rules::KubeletVersion;
//! use evictlab_rules::message::{EvictionMessage, ThresholdClause, pressure_eviction};
//! use evictlab_rules::pod::Pod;
//! use evictlab_rules::ranking::{RankedPod, rank_pods};
//! use evictlab_rules::summary::Sample;
//! use evictlab_rules::threshold::{FsLayout, Observation, ThresholdConfig, parse_threshold_config};
//! use serde_json::{from_value, json};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let version: KubeletVersion = "v1.32.13".parse()?;
//! let config: ThresholdConfig =
//!     from_value(json!({"evictionHard": {"memory.available": "100Mi"}}))?;
//! let pods: Vec<Pod> = from_value(json!([
//!     {"metadata": {"name": "web", "uid": "1"}, "spec": {"containers": [{"name": "nginx"}]}},
//!     {"metadata": {"name": "db", "uid": "2"}, "spec": {"containers": [
//!         {"name": "postgres", "resources": {"requests": {"memory": "64Mi"}}}]}},
//! ]))?;
//! let sample: Sample = from_value(json!({
//!     "node": {"memory": {"availableBytes": 52428800, "workingSetBytes": 1021313024}},
//!     "pods": [
//!         {"podRef": {"uid": "1"}, "memory": {"workingSetBytes": 16777216},
//!          "containers": [{"name": "nginx", "memory": {"workingSetBytes": 16777216}}]},
//!         {"podRef": {"uid": "2"}, "memory": {"workingSetBytes": 134217728},
//!          "containers": [{"name": "postgres", "memory": {"workingSetBytes": 134217728}}]},
//!     ],
//! }))?;
//!
//! // Is a threshold met?
//! let threshold = parse_threshold_config(&config)?.remove(0);
//! let observation =
//!     Observation::from_node_stats(threshold.signal, &sample.node).ok_or("no memory")?;
//! assert!(threshold.is_met(&observation, false));
//!
//! // Both pods are over their request, and db by more: 64Mi against 16Mi.
//! let mut ranked: Vec<_> =
//!     pods.iter().map(|pod| RankedPod { pod, stats: sample.pod(&pod.metadata.uid) }).collect();
//! rank_pods(&version, threshold.signal, FsLayout::Single, &mut ranked);
//! let RankedPod { pod, stats } = ranked[0];
//! assert_eq!(pod.metadata.name, "db");
//!
//! // The message of the eviction.
//! let quantity = threshold.value.resolve(observation.capacity.as_ref()).ok_or("no capacity")?;
//! let clause = ThresholdClause { quantity, available: observation.available };
//! let resource = threshold.signal.resource();
//! let eviction = pressure_eviction(&version, pod, stats, resource, Some(clause));
//! let text = eviction.message.to_string();
//! assert_eq!(
//!     text,
//!     "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. \
//!      Container postgres was using 128Mi, request is 64Mi, has larger consumption of memory. ",
//! );
//!
//! // The message parsed again.
//! assert_eq!(text.parse(), Ok(EvictionMessage::NodePressure(eviction.message)));
//! # Ok(())
//! # }
//! ```

#![deny(unreachable_pub)]

mod cgroup;
mod evicted_event;
mod go_duration;
pub mod invariant;
pub mod message;
pub mod pod;
pub mod quantity;
pub mod ranking;
pub mod summary;
pub mod threshold;
mod version;

#[cfg(test)]
mod error_texts;

pub use cgroup::{CgroupVersion, CgroupVersionError};
pub use evicted_event::{EvictedEvent, event_time, evicted_events};
pub use go_duration::{GoDurationError, format_go_duration, parse_go_duration};
pub use version::{KubeletVersion, VersionError};
