//! Resource limits and the freezer of containers.

use bollard::models::ContainerUpdateBody;

use super::client::Docker;
use super::error::DockerError;

/// Memory limit that the kernel treats as unlimited: the largest number of whole pages. Docker
/// rejects its own value -1 for memory and ignores it for swap.
const UNLIMITED: i64 = i64::MAX / 4096 * 4096;

impl Docker {
    /// Sets the memory limit of a container in bytes, swap included; `None` removes the limit, and
    /// does nothing if the container has none.
    pub async fn limit_memory(&self, container: &str, bytes: Option<u64>) -> Result<(), DockerError> {
        let failed = |source| DockerError::request(format!("limit the memory of {container}"), source);
        if bytes.is_none() {
            let inspected = self.api().inspect_container(container, None).await.map_err(failed)?;
            let limit = inspected.host_config.and_then(|config| config.memory).unwrap_or(0);
            if limit == 0 || limit == UNLIMITED {
                return Ok(());
            }
        }
        let limit = bytes.map_or(UNLIMITED, |bytes| i64::try_from(bytes).unwrap_or(UNLIMITED));
        let body =
            ContainerUpdateBody { memory: Some(limit), memory_swap: Some(limit), ..Default::default() };
        self.api().update_container(container, body).await.map(drop).map_err(failed)
    }

    /// Pauses or resumes all processes of a container. Does nothing if the container already is in
    /// the requested state.
    pub async fn set_paused(&self, container: &str, paused: bool) -> Result<(), DockerError> {
        let operation = format!("{} {container}", if paused { "pause" } else { "resume" });
        let inspected = self.api().inspect_container(container, None).await;
        let inspected = inspected.map_err(|source| DockerError::request(operation.clone(), source))?;
        if inspected.state.and_then(|state| state.paused).unwrap_or(false) == paused {
            return Ok(());
        }
        let done = if paused {
            self.api().pause_container(container).await
        } else {
            self.api().unpause_container(container).await
        };
        done.map_err(|source| DockerError::request(operation, source))
    }
}
