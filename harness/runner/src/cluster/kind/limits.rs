//! What Docker does to a node's container as a whole.

use bollard::models::ContainerUpdateBody;

use super::Docker;
use super::docker::DockerError;

/// What the kernel takes for no bound: the largest number of whole pages. Docker's own word for it, -1, is refused for memory and dropped for swap.
const UNBOUND: i64 = i64::MAX / 4096 * 4096;

impl Docker {
    /// Bounds a container's memory, swap included, or takes the bound away.
    pub async fn limit_memory(&self, container: &str, bytes: Option<u64>) -> Result<(), DockerError> {
        let bound = bytes.map_or(UNBOUND, |bytes| i64::try_from(bytes).unwrap_or(UNBOUND));
        let body =
            ContainerUpdateBody { memory: Some(bound), memory_swap: Some(bound), ..Default::default() };
        let done = self.api().update_container(container, body).await;
        done.map(drop).map_err(|source| request(format!("bound the memory of {container}"), source))
    }

    /// Stops all processes of a container, or lets them go on. Either may be so already.
    pub async fn pause(&self, container: &str, paused: bool) -> Result<(), DockerError> {
        let doing = format!("{} {container}", if paused { "pause" } else { "resume" });
        let is = self.api().inspect_container(container, None).await;
        let is = is.map_err(|source| request(doing.clone(), source))?;
        if is.state.and_then(|state| state.paused).unwrap_or(false) == paused {
            return Ok(());
        }
        let done = match paused {
            true => self.api().pause_container(container).await,
            false => self.api().unpause_container(container).await,
        };
        done.map_err(|source| request(doing, source))
    }
}

fn request(doing: String, source: bollard::errors::Error) -> DockerError {
    DockerError::Request { doing, source: Box::new(source) }
}
