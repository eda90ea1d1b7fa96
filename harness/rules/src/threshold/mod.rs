//! Eviction signals, what the kubelet observes of them, and the thresholds that it holds them against.

mod config;
mod grace;
mod observation;
mod rule;
mod signal;

pub use config::{ThresholdConfig, ThresholdError, parse_config};
pub use grace::{GraceError, parse_grace};
pub use observation::Observation;
pub use rule::{Amount, AmountError, PercentageError, Threshold, sort_for_eviction};
pub use signal::{NodeCondition, Resource, Signal, UnknownSignal};
