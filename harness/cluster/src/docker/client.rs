//! Connection to the Docker daemon, containers and commands in them.

use std::collections::HashMap;
use std::time::Duration;

use bollard::container::LogOutput;
use bollard::exec::{CreateExecOptions, StartExecOptions, StartExecResults};
use bollard::models::{
    ContainerCreateBody, ContainerSummary, ContainerSummaryStateEnum, SystemInfo, SystemInfoCgroupVersionEnum,
};
use bollard::query_parameters::{
    CreateContainerOptions, ListContainersOptionsBuilder, ListImagesOptionsBuilder, LogsOptionsBuilder,
    RemoveContainerOptionsBuilder, StartContainerOptions, StopContainerOptionsBuilder,
};
use evictlab_rules::CgroupVersion;
use evictlab_rules::quantity::MIB;
use futures::StreamExt;

use super::error::DockerError;
use crate::owner::Owner;

/// Timeout of a request. Importing a node image takes minutes on a slow host.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(900);

/// Maximum size of the output of a command, and of a file, in bytes.
pub(super) const MAX_OUTPUT: usize = 64 * MIB as usize;

/// Label of short-lived containers that do not belong to a cluster; its value is the owner as JSON.
pub(crate) const SCRATCH_LABEL: &str = "dev.evictlab.scratch";

/// Output and exit status of a command in a container.
#[derive(Clone, Debug)]
pub struct ExecOutput {
    /// Exit status.
    pub code: i64,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// A container as Docker lists it.
#[derive(Clone, Debug)]
pub struct Container {
    /// Container id.
    pub id: String,
    /// Name without the leading slash.
    pub name: String,
    /// Labels.
    pub labels: HashMap<String, String>,
    /// True if the container is running, also while it is paused.
    pub running: bool,
    /// True if the processes of the container are paused.
    pub paused: bool,
    /// Creation time in seconds since 1970, if Docker reports it.
    pub created: Option<i64>,
}

impl From<ContainerSummary> for Container {
    fn from(summary: ContainerSummary) -> Self {
        let name = summary.names.and_then(|names| names.into_iter().next()).unwrap_or_default();
        let paused = summary.state == Some(ContainerSummaryStateEnum::PAUSED);
        Self {
            id: summary.id.unwrap_or_default(),
            name: name.trim_start_matches('/').to_owned(),
            labels: summary.labels.unwrap_or_default(),
            running: paused || summary.state == Some(ContainerSummaryStateEnum::RUNNING),
            paused,
            created: summary.created,
        }
    }
}

/// Returns the cgroup version of the host of a daemon; v2 if the daemon does not report it.
pub fn cgroup_version(info: &SystemInfo) -> CgroupVersion {
    match info.cgroup_version {
        Some(SystemInfoCgroupVersionEnum::_1) => CgroupVersion::V1,
        _ => CgroupVersion::V2,
    }
}

/// Address of the Docker daemon: `DOCKER_HOST`, or the local socket.
pub fn docker_host() -> String {
    std::env::var("DOCKER_HOST").unwrap_or_else(|_| "unix:///var/run/docker.sock".to_owned())
}

/// A connection to the Docker daemon at [`docker_host`]. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Docker {
    api: bollard::Docker,
    id: String,
}

impl Docker {
    /// Connects and negotiates the API version.
    pub async fn connect() -> Result<Self, DockerError> {
        let host = docker_host();
        let failed = |source| DockerError::connection(host.clone(), source);
        let api = bollard::Docker::connect_with_defaults().map_err(failed)?.with_timeout(REQUEST_TIMEOUT);
        let api = api.negotiate_version().await.map_err(failed)?;
        let id = api.info().await.map_err(failed)?.id.unwrap_or_default();
        Ok(Self { api, id })
    }

    /// Creates a connection to the daemon of a test at this address. Sends no request.
    #[cfg(test)]
    pub(crate) fn of_test(address: &str) -> Self {
        let timeout = REQUEST_TIMEOUT.as_secs();
        let api = bollard::Docker::connect_with_http(address, timeout, bollard::API_DEFAULT_VERSION).unwrap();
        Self { api, id: "daemon".to_owned() }
    }

    /// Id of the daemon; empty if it does not have one.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The underlying API client, for requests without a method here.
    pub fn api(&self) -> &bollard::Docker {
        &self.api
    }

    /// Runs a command in a container and returns its output, whatever the exit status.
    ///
    /// # Errors
    /// Docker fails, or the output exceeds 64 MiB.
    pub async fn exec(&self, container: &str, command: &[&str]) -> Result<ExecOutput, DockerError> {
        let failed =
            |source| DockerError::request(format!("run `{}` in {container}", shortened(command)), source);
        let options = CreateExecOptions {
            cmd: Some(command.to_vec()),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            ..Default::default()
        };
        let created = self.api.create_exec(container, options).await.map_err(failed)?;
        let started = self.api.start_exec(&created.id, None::<StartExecOptions>).await.map_err(failed)?;
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        if let StartExecResults::Attached { mut output, .. } = started {
            while let Some(chunk) = output.next().await {
                match chunk.map_err(failed)? {
                    LogOutput::StdErr { message } => stderr.extend_from_slice(&message),
                    other => stdout.extend_from_slice(other.as_ref()),
                }
                if stdout.len() + stderr.len() > MAX_OUTPUT {
                    let (command, container) = (shortened(command), container.to_owned());
                    return Err(DockerError::TooMuchOutput { command, container, max: MAX_OUTPUT >> 20 });
                }
            }
        }
        let exited = self.api.inspect_exec(&created.id).await.map_err(failed)?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(ExecOutput { code: exited.exit_code.unwrap_or(-1), stdout: text(stdout), stderr: text(stderr) })
    }

    /// Runs a command in a container and returns its standard output.
    ///
    /// # Errors
    /// The exit status is not 0.
    pub async fn run(&self, container: &str, command: &[&str]) -> Result<String, DockerError> {
        let output = self.exec(container, command).await?;
        if output.code == 0 {
            return Ok(output.stdout);
        }
        let message = if output.stderr.trim().is_empty() { &output.stdout } else { &output.stderr };
        Err(DockerError::Command {
            command: shortened(command),
            container: container.to_owned(),
            code: output.code,
            stderr: message.trim().to_owned(),
        })
    }

    /// Returns the last lines that the first process of a container has printed, also after its
    /// end.
    pub async fn log_tail(&self, container: &str, lines: &str) -> Result<String, DockerError> {
        let options = LogsOptionsBuilder::default().stdout(true).stderr(true).tail(lines).build();
        let mut output = self.api.logs(container, Some(options));
        let mut log = Vec::new();
        while let Some(chunk) = output.next().await {
            let failed = |source| DockerError::request(format!("read the log of {container}"), source);
            log.extend_from_slice(chunk.map_err(failed)?.as_ref());
        }
        Ok(String::from_utf8_lossy(&log).into_owned())
    }

    /// Lists all containers with a label (`KEY` or `KEY=VALUE`), including stopped ones.
    pub async fn containers(&self, label: &str) -> Result<Vec<Container>, DockerError> {
        let filters = HashMap::from([("label", vec![label])]);
        let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
        let listed = self.api.list_containers(Some(options)).await;
        let listed = listed.map_err(|source| DockerError::request("list containers", source))?;
        Ok(listed.into_iter().map(Container::from).collect())
    }

    /// Names (`repository:tag`) of the local images of a repository.
    pub async fn images(&self, repository: &str) -> Result<Vec<String>, DockerError> {
        let filters = HashMap::from([("reference", vec![repository])]);
        let options = ListImagesOptionsBuilder::default().filters(&filters).build();
        let listed = self.api.list_images(Some(options)).await;
        let listed = listed.map_err(|source| DockerError::request("list images", source))?;
        Ok(listed.into_iter().flat_map(|image| image.repo_tags).collect())
    }

    /// System information of the daemon and its host.
    pub async fn info(&self) -> Result<SystemInfo, DockerError> {
        let info = self.api.info().await;
        info.map_err(|source| DockerError::request("read the system information of Docker", source))
    }

    /// Returns the cgroup version of the host of the daemon.
    pub async fn cgroup_version(&self) -> Result<CgroupVersion, DockerError> {
        Ok(cgroup_version(&self.info().await?))
    }

    /// CPU architecture of containers in image notation: `amd64`, `arm64`.
    pub async fn architecture(&self) -> Result<String, DockerError> {
        let version = self.api.version().await;
        let version = version.map_err(|source| DockerError::request("read the version of Docker", source))?;
        Ok(version.arch.unwrap_or_default())
    }

    /// Creates a container without starting it and returns its id. The container has the scratch
    /// label, so `evictlab gc` finds it if this process dies.
    pub async fn create_scratch(&self, image: &str) -> Result<String, DockerError> {
        let body = ContainerCreateBody {
            image: Some(image.to_owned()),
            labels: Some(HashMap::from([(SCRATCH_LABEL.to_owned(), Owner::current().to_json())])),
            ..Default::default()
        };
        let created = self.api.create_container(None::<CreateContainerOptions>, body).await;
        let failed = |source| DockerError::request(format!("create a container of {image}"), source);
        Ok(created.map_err(failed)?.id)
    }

    /// Starts a container. One that is running is not an error.
    pub async fn start(&self, container: &str) -> Result<(), DockerError> {
        let started = self.api.start_container(container, None::<StartContainerOptions>).await;
        started.map_err(|source| DockerError::request(format!("start {container}"), source))
    }

    /// Stops a container: kills its processes if they do not end within a time in whole seconds.
    /// One that is not running is not an error.
    pub async fn stop(&self, container: &str, timeout: Duration) -> Result<(), DockerError> {
        let seconds = timeout.as_secs().try_into().unwrap_or(i32::MAX);
        let options = StopContainerOptionsBuilder::default().t(seconds).build();
        let stopped = self.api.stop_container(container, Some(options)).await;
        stopped.map_err(|source| DockerError::request(format!("stop {container}"), source))
    }

    /// Removes a container, running or not, with its anonymous volumes. A container that does not
    /// exist or is being removed is not an error.
    pub async fn remove(&self, container: &str) -> Result<(), DockerError> {
        let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
        match self.api.remove_container(container, Some(options)).await {
            // 409: another process is removing the container.
            Ok(())
            | Err(bollard::errors::Error::DockerResponseServerError { status_code: 404 | 409, .. }) => Ok(()),
            Err(source) => Err(DockerError::request(format!("remove {container}"), source)),
        }
    }
}

/// Returns a command as it is written in errors: of a script, and of a long command, the start.
fn shortened(command: &[&str]) -> String {
    const MAX_CHARS: usize = 160;
    let whole = command.join(" ");
    let start: String = whole.lines().next().unwrap_or_default().chars().take(MAX_CHARS).collect();
    if start.len() < whole.len() { format!("{start}…") } else { whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_contain_the_start_of_a_script() {
        assert_eq!(shortened(&["cat", "/proc/meminfo"]), "cat /proc/meminfo");
        assert_eq!(shortened(&["sh", "-ec", "[ -e /a ]\nmv /b /c", "sh", "text"]), "sh -ec [ -e /a ]…");
        assert_eq!(shortened(&["echo", &"é".repeat(500)]).chars().count(), 161);
    }
}
