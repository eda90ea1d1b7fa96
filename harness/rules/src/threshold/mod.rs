//! Eviction signals, their observations and the thresholds on them.
//!
//! [`parse_threshold_config`] turns a kubelet configuration into [`Threshold`]s,
//! [`Observation::from_node_stats`] reads a [`Signal`] from the node's Summary, and
//! [`Threshold::is_met`] compares the two. [`reclaim_actions`] lists what the kubelet deletes
//! before it evicts a pod.

mod config;
mod containerfs;
mod eviction_threshold;
mod fs_layout;
mod missing_defaults;
mod observation;
mod reclaim;
mod signal;
mod value;

pub use config::{
    GracePeriodError, ThresholdConfig, ThresholdConfigError, parse_grace_period, parse_threshold_config,
    parse_threshold_config_of,
};
pub use containerfs::{ContainerfsThresholds, update_containerfs_thresholds};
pub use eviction_threshold::{Threshold, sort_by_eviction_priority};
pub use fs_layout::FsLayout;
pub use missing_defaults::MissingDefaults;
pub use observation::Observation;
pub use reclaim::{ReclaimAction, reclaim_actions};
pub use signal::{FileSystem, NodeCondition, Resource, Signal, UnknownSignalError};
pub use value::{ThresholdValue, ThresholdValueError};
