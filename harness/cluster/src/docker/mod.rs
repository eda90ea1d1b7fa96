//! The Docker API: containers, files in containers, images, resource limits.

mod client;
mod error;
mod files;
mod resources;
#[cfg(test)]
mod stand_in;

pub(crate) use client::SCRATCH_LABEL;
pub use client::{Container, Docker, ExecOutput, cgroup_version, docker_host};
pub use error::DockerError;
#[cfg(test)]
pub(crate) use stand_in::{ContainerState, StandIn};
