//! Tests of whole clusters.

mod evictions;
mod file_systems;
mod kubelet_config;
mod recordings;

pub(crate) use recordings::{RULES, read_recordings};
