//! Pod statuses: computed from the containers, cached by the kubelet, written to the API.

mod builder;
mod compute_phase;
mod conditions;
mod containers;
pub(super) mod defective;
mod resources;

pub(super) use builder::{StatusBuilder, end, report};
