//! The host for which an export is computed.

use std::path::Path;

use evictlab_cluster::{Docker, DockerError, has_cgroup_v1};

/// Properties of the host that kind nodes share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostInfo {
    /// `MemTotal` in bytes: the capacity of every node.
    pub memory: u64,
    /// True if the host has cgroup v1, which needs additional kubelet configuration.
    pub cgroup_v1: bool,
}

impl HostInfo {
    /// Returns the host of a Docker daemon.
    ///
    /// # Errors
    ///
    /// The daemon does not answer.
    pub async fn of_docker(docker: &Docker) -> Result<Self, DockerError> {
        let info = docker.info().await?;
        Ok(Self {
            memory: info.mem_total.and_then(|bytes| bytes.try_into().ok()).unwrap_or(0),
            cgroup_v1: has_cgroup_v1(&info),
        })
    }

    /// Returns this machine, for use without Docker.
    pub fn local() -> Self {
        let system = rustix::system::sysinfo();
        Self {
            memory: u64::from(system.mem_unit) * system.totalram as u64,
            cgroup_v1: !Path::new("/sys/fs/cgroup/cgroup.controllers").exists(),
        }
    }
}
