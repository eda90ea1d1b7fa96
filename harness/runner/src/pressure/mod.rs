//! Eviction thresholds, the ramp that crosses them, and the limits of the host.

pub(crate) mod host_budget;
pub(crate) mod plan;
pub(crate) mod ramp;
pub(crate) mod room;
pub(crate) mod signal_status;
pub(crate) mod thresholds;

pub use ramp::{Ramp, RampTarget, ramp, ramp_duration, ramp_target, ramp_to};
pub use signal_status::SignalStatus;
pub use thresholds::{eviction_threshold, format_amount, hard_eviction_threshold, kube_reservation};
