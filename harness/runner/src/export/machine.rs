//! The machine that a folder's numbers are reckoned for.

use std::path::Path;

use crate::cluster::{Docker, DockerError, has_cgroup_v1};

/// What a kind node has of its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// `MemTotal`, in bytes: the capacity of every node.
    pub memory: u64,
    /// Whether it has cgroup v1, where kubelets need to be told more.
    pub cgroup_v1: bool,
}

impl Machine {
    /// The host of a Docker daemon.
    ///
    /// # Errors
    /// The daemon does not tell about itself.
    pub async fn of_docker(docker: &Docker) -> Result<Self, DockerError> {
        let info = docker.info().await?;
        Ok(Self {
            memory: info.mem_total.and_then(|bytes| bytes.try_into().ok()).unwrap_or(0),
            cgroup_v1: has_cgroup_v1(&info),
        })
    }

    /// This machine, where no Docker daemon answers.
    pub fn here() -> Self {
        let system = rustix::system::sysinfo();
        Self {
            memory: u64::from(system.mem_unit) * system.totalram as u64,
            cgroup_v1: !Path::new("/sys/fs/cgroup/cgroup.controllers").exists(),
        }
    }
}
