//! Eviction signals, what the kubelet observes of them, and the thresholds that it holds them against.

mod config;
mod containerfs;
mod grace;
mod observation;
mod reclaim;
mod rule;
mod signal;

pub use config::{ThresholdConfig, ThresholdError, parse_config};
pub use containerfs::with_containerfs;
pub use grace::{GraceError, parse_grace};
pub use observation::Observation;
pub use reclaim::{Reclaim, node_level_reclaim};
pub use rule::{Amount, AmountError, PercentageError, Threshold, sort_for_eviction};
pub use signal::{NodeCondition, Resource, Signal, UnknownSignal};
