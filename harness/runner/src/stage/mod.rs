//! Putting a case on its node: how much pressure, which pods, where.

mod manifest;
mod namespace;
mod pressure;

pub use manifest::{Placement, manifest, place};
pub use namespace::{Marked, Namespace, StageError};
pub use pressure::{Ramp, Way, over, ramp, ramp_time, threshold, way};
