//! Putting a case on its node: how much pressure, which pods, where.

mod manifest;
mod namespace;
mod objects;
mod pressure;

pub use manifest::{Placement, manifest, object, place, static_pod};
pub use namespace::{Marked, Namespace, StageError};
pub use pressure::{
    Ramp, Supply, Way, amount, hard_threshold, over, ramp, ramp_time, reservation, threshold, way,
};
