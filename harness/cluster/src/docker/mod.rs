//! The Docker API: containers, files in containers, images, resource limits.

mod client;
mod error;
#[cfg(test)]
mod fake_docker;
mod files;
mod resources;

pub(crate) use client::SCRATCH_LABEL;
pub use client::{Container, Docker, ExecOutput, cgroup_version, docker_host};
pub use error::DockerError;
#[cfg(test)]
pub(crate) use fake_docker::{ContainerState, FakeDocker};
