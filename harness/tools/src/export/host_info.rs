//! The host for which an export is computed.

use std::path::Path;

use evictlab_cluster::{Docker, DockerError, cgroup_version};
use evictlab_rules::CgroupVersion;

/// Properties of the host that kind nodes share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostInfo {
    /// `MemTotal` in bytes: the capacity of every node.
    pub memory: u64,
    /// cgroup version of the host. v1 needs additional kubelet configuration.
    pub cgroup: CgroupVersion,
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
            cgroup: cgroup_version(&info),
        })
    }

    /// Returns this machine, for use without Docker.
    pub fn local() -> Self {
        let system = rustix::system::sysinfo();
        let is_v2 = Path::new("/sys/fs/cgroup/cgroup.controllers").exists();
        Self {
            memory: u64::from(system.mem_unit) * system.totalram as u64,
            cgroup: if is_v2 { CgroupVersion::V2 } else { CgroupVersion::V1 },
        }
    }
}
