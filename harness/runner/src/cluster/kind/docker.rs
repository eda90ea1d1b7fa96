//! The Docker API as the harness needs it: everything done to a node goes through here.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use bollard::container::LogOutput;
use bollard::exec::{CreateExecOptions, StartExecOptions, StartExecResults};
use bollard::models::{ContainerCreateBody, SystemInfo, SystemInfoCgroupVersionEnum};
use bollard::query_parameters::{
    CreateContainerOptions, DownloadFromContainerOptionsBuilder, ListContainersOptionsBuilder,
    ListImagesOptionsBuilder, RemoveContainerOptionsBuilder, UploadToContainerOptionsBuilder,
};
use futures::{StreamExt, stream};
use tokio_util::bytes::Bytes;
use tokio_util::io::ReaderStream;

/// A request to Docker failed.
#[derive(Debug, thiserror::Error)]
pub enum DockerError {
    /// No daemon answers.
    #[error(
        "no Docker daemon answers at {host}: {}\nStart Docker, or say where it is with DOCKER_HOST; `evictlab doctor` tells more.",
        first_cause(source)
    )]
    Unreachable {
        /// Where it was looked for.
        host: String,
        /// What the connection said.
        source: Box<bollard::errors::Error>,
    },
    /// There is no socket where the daemon should listen.
    #[error(
        "there is no Docker socket at {host}\nStart or install Docker, or say where it is with DOCKER_HOST (`docker context ls` lists what the docker command knows)."
    )]
    NoSocket {
        /// Where it was looked for.
        host: String,
    },
    /// The daemon is there but this user may not speak to it.
    #[error(
        "this user may not use the Docker daemon at {host}\nAdd the user to the group `docker` and log in again, or run rootless Docker."
    )]
    NotPermitted {
        /// Where it is.
        host: String,
    },
    /// The daemon refused or broke off a request.
    #[error("Docker could not {doing}: {source}")]
    Request {
        /// What was asked, as a verb phrase.
        doing: String,
        /// What Docker said.
        source: Box<bollard::errors::Error>,
    },
    /// A command in a container failed.
    #[error("`{command}` in {container} ended with {code}: {stderr}")]
    Command {
        /// The command line.
        command: String,
        /// The container.
        container: String,
        /// Its exit status.
        code: i64,
        /// What it printed on standard error, or on standard output where that is empty.
        stderr: String,
    },
    /// A file in a container could not be read as an archive.
    #[error("{path} in {container} could not be read: {source}")]
    File {
        /// The path.
        path: String,
        /// The container.
        container: String,
        /// What went wrong.
        source: std::io::Error,
    },
}

/// What a command in a container printed, and how it ended.
#[derive(Clone, Debug)]
pub struct Output {
    /// The exit status.
    pub code: i64,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// A container as Docker lists it.
#[derive(Clone, Debug)]
pub struct Container {
    /// Its id.
    pub id: String,
    /// Its name, without the leading slash.
    pub name: String,
    /// Its labels.
    pub labels: HashMap<String, String>,
    /// Whether it runs.
    pub running: bool,
}

/// Whether a daemon says that its host has cgroup v1.
pub fn has_cgroup_v1(info: &SystemInfo) -> bool {
    info.cgroup_version == Some(SystemInfoCgroupVersionEnum::_1)
}

/// A connection to the Docker daemon that `DOCKER_HOST` names, or the local one. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Docker {
    api: bollard::Docker,
}

impl Docker {
    /// Connects, and settles on an API version that both sides speak.
    pub async fn connect() -> Result<Self, DockerError> {
        let host = host();
        let unreachable = |source| unreached(host.clone(), source);
        let api = bollard::Docker::connect_with_defaults()
            .map_err(unreachable)?
            // A slow host takes minutes to import a node image.
            .with_timeout(Duration::from_secs(900));
        let api = api.negotiate_version().await.map_err(unreachable)?;
        Ok(Self { api })
    }

    /// The API itself, for what has no method here.
    pub fn api(&self) -> &bollard::Docker {
        &self.api
    }

    /// Runs a command in a container, whatever its exit status.
    pub async fn exec(&self, container: &str, command: &[&str]) -> Result<Output, DockerError> {
        let doing = || format!("run `{}` in {container}", command.join(" "));
        let request = |source| request(doing(), source);
        let created = self
            .api
            .create_exec(
                container,
                CreateExecOptions {
                    cmd: Some(command.to_vec()),
                    attach_stdout: Some(true),
                    attach_stderr: Some(true),
                    ..Default::default()
                },
            )
            .await
            .map_err(request)?;
        let started = self.api.start_exec(&created.id, None::<StartExecOptions>).await.map_err(request)?;
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        if let StartExecResults::Attached { mut output, .. } = started {
            while let Some(chunk) = output.next().await {
                match chunk.map_err(request)? {
                    LogOutput::StdErr { message } => stderr.extend_from_slice(&message),
                    other => stdout.extend_from_slice(other.as_ref()),
                }
            }
        }
        let ended = self.api.inspect_exec(&created.id).await.map_err(request)?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(Output { code: ended.exit_code.unwrap_or(-1), stdout: text(stdout), stderr: text(stderr) })
    }

    /// Runs a command in a container and returns its standard output; an exit status other than 0 is an error.
    pub async fn run(&self, container: &str, command: &[&str]) -> Result<String, DockerError> {
        let output = self.exec(container, command).await?;
        if output.code == 0 {
            return Ok(output.stdout);
        }
        let said = if output.stderr.trim().is_empty() { &output.stdout } else { &output.stderr };
        Err(DockerError::Command {
            command: command.join(" "),
            container: container.to_owned(),
            code: output.code,
            stderr: said.trim().to_owned(),
        })
    }

    /// A file of a container, whole; `None` where there is none.
    pub async fn read_file(&self, container: &str, path: &str) -> Result<Option<Vec<u8>>, DockerError> {
        let options = DownloadFromContainerOptionsBuilder::default().path(path).build();
        let mut stream = Box::pin(self.api.download_from_container(container, Some(options)));
        let mut archive = Vec::new();
        while let Some(chunk) = stream.next().await {
            match chunk {
                Ok(chunk) => archive.extend_from_slice(&chunk),
                Err(bollard::errors::Error::DockerResponseServerError { status_code: 404, .. }) => {
                    return Ok(None);
                }
                Err(source) => return Err(request(format!("read {path} in {container}"), source)),
            }
        }
        let unpack = || -> std::io::Result<Vec<u8>> {
            let mut archive = tar::Archive::new(archive.as_slice());
            let mut bytes = Vec::new();
            for entry in archive.entries()? {
                entry?.read_to_end(&mut bytes)?;
            }
            Ok(bytes)
        };
        unpack().map(Some).map_err(|source| DockerError::File {
            path: path.to_owned(),
            container: container.to_owned(),
            source,
        })
    }

    /// Puts a file into a container, in a folder that exists there.
    pub async fn write_file(
        &self,
        container: &str,
        path: &str,
        mode: u32,
        bytes: &[u8],
    ) -> Result<(), DockerError> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let pack = || -> std::io::Result<Vec<u8>> {
            let mut archive = tar::Builder::new(Vec::with_capacity(bytes.len() + 2048));
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(mode);
            archive.append_data(&mut header, name, bytes)?;
            archive.into_inner()
        };
        let archive = pack().map_err(|source| DockerError::File {
            path: path.to_owned(),
            container: container.to_owned(),
            source,
        })?;
        let folder = if folder.is_empty() { "/" } else { folder };
        let options = UploadToContainerOptionsBuilder::default().path(folder).build();
        self.api
            .upload_to_container(container, Some(options), bollard::body_full(archive.into()))
            .await
            .map_err(|source| request(format!("write {path} in {container}"), source))
    }

    /// Puts a file of this machine into a container, in a folder that exists there. Never held whole: images are larger than what is spare.
    pub async fn send_file(
        &self,
        container: &str,
        path: &str,
        mode: u32,
        from: &Path,
    ) -> Result<(), DockerError> {
        let failed =
            |source| DockerError::File { path: path.to_owned(), container: container.to_owned(), source };
        let file = tokio::fs::File::open(from).await.map_err(failed)?;
        let size = file.metadata().await.map_err(failed)?.len();
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let mut header = tar::Header::new_gnu();
        header.set_path(name).map_err(failed)?;
        header.set_size(size);
        header.set_mode(mode);
        header.set_cksum();
        // An archive of one file, written by hand because `tar::Builder` cannot be a stream: a header, the file filled up to whole
        // blocks of 512 bytes, and two empty blocks.
        let filling = size.next_multiple_of(512) - size;
        let head = stream::iter([Ok(Bytes::copy_from_slice(header.as_bytes()))]);
        let tail = stream::iter([Ok(Bytes::from(vec![0; filling as usize + 1024]))]);
        let archive = head.chain(ReaderStream::with_capacity(file, 1 << 18)).chain(tail);
        let folder = if folder.is_empty() { "/" } else { folder };
        let options = UploadToContainerOptionsBuilder::default().path(folder).build();
        self.api
            .upload_to_container(container, Some(options), bollard::body_try_stream(archive))
            .await
            .map_err(|source| request(format!("write {path} in {container}"), source))
    }

    /// All containers, running or not, that carry this label (`KEY` or `KEY=VALUE`).
    pub async fn containers(&self, label: &str) -> Result<Vec<Container>, DockerError> {
        let filters = HashMap::from([("label", vec![label])]);
        let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
        let listed = self
            .api
            .list_containers(Some(options))
            .await
            .map_err(|source| request("list containers".to_owned(), source))?;
        Ok(listed
            .into_iter()
            .map(|container| Container {
                id: container.id.unwrap_or_default(),
                name: container
                    .names
                    .and_then(|names| names.into_iter().next())
                    .map(|name| name.trim_start_matches('/').to_owned())
                    .unwrap_or_default(),
                labels: container.labels.unwrap_or_default(),
                running: container.state == Some(bollard::models::ContainerSummaryStateEnum::RUNNING),
            })
            .collect())
    }

    /// The names (`repository:tag`) of the local images of a repository.
    pub async fn images(&self, repository: &str) -> Result<Vec<String>, DockerError> {
        let filters = HashMap::from([("reference", vec![repository])]);
        let options = ListImagesOptionsBuilder::default().filters(&filters).build();
        let listed = self
            .api
            .list_images(Some(options))
            .await
            .map_err(|source| request("list images".to_owned(), source))?;
        Ok(listed.into_iter().flat_map(|image| image.repo_tags).collect())
    }

    /// What the daemon tells about itself and its host.
    pub async fn info(&self) -> Result<SystemInfo, DockerError> {
        self.api.info().await.map_err(|source| request("tell about itself".to_owned(), source))
    }

    /// Whether its host has cgroup v1.
    pub async fn cgroup_v1(&self) -> Result<bool, DockerError> {
        Ok(has_cgroup_v1(&self.info().await?))
    }

    /// The CPU that containers run on, as images name it: `amd64`, `arm64`.
    pub async fn architecture(&self) -> Result<String, DockerError> {
        let version = self.api.version().await;
        let version = version.map_err(|source| request("tell its version".to_owned(), source))?;
        Ok(version.arch.unwrap_or_default())
    }

    /// Makes a container of an image without starting it, labelled so that `gc` finds it; returns its id.
    pub async fn make(&self, image: &str) -> Result<String, DockerError> {
        let body = ContainerCreateBody {
            image: Some(image.to_owned()),
            labels: Some(scratch()),
            ..Default::default()
        };
        let made = self
            .api
            .create_container(None::<CreateContainerOptions>, body)
            .await
            .map_err(|source| request(format!("make a container of {image}"), source))?;
        Ok(made.id)
    }

    /// Removes a container with its anonymous volumes, running or not. One that is gone or going already is no error.
    pub async fn remove(&self, container: &str) -> Result<(), DockerError> {
        let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
        match self.api.remove_container(container, Some(options)).await {
            // 409: somebody else is removing it.
            Ok(())
            | Err(bollard::errors::Error::DockerResponseServerError { status_code: 404 | 409, .. }) => Ok(()),
            Err(source) => Err(request(format!("remove {container}"), source)),
        }
    }
}

/// The label on containers that are no cluster's and soon removed; its value is the owner, as JSON.
pub const SCRATCH_LABEL: &str = "dev.evictlab.scratch";

/// Labels by which `evictlab gc` knows a container that this process made for a moment.
pub fn scratch() -> HashMap<String, String> {
    let owner = serde_json::to_string(&super::Owner::this()).unwrap_or_default();
    HashMap::from([(SCRATCH_LABEL.to_owned(), owner)])
}

/// Where the daemon is looked for.
pub fn host() -> String {
    std::env::var("DOCKER_HOST").unwrap_or_else(|_| "unix:///var/run/docker.sock".to_owned())
}

fn request(doing: String, source: bollard::errors::Error) -> DockerError {
    DockerError::Request { doing, source: Box::new(source) }
}

/// What began it, such as "Connection refused": the errors around it only say that something failed.
pub(in crate::cluster) fn first_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause: &(dyn std::error::Error + 'static) = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// Tells apart why nobody answers: no socket, no permission, or nobody behind it.
fn unreached(host: String, source: bollard::errors::Error) -> DockerError {
    if matches!(source, bollard::errors::Error::SocketNotFoundError(_)) {
        return DockerError::NoSocket { host };
    }
    let mut cause: Option<&(dyn std::error::Error + 'static)> = match &source {
        // It passes its cause off as its own text, and shows it nowhere else.
        bollard::errors::Error::IOError { err } => Some(err),
        other => Some(other),
    };
    while let Some(error) = cause {
        match error.downcast_ref::<std::io::Error>().map(std::io::Error::kind) {
            Some(std::io::ErrorKind::PermissionDenied) => return DockerError::NotPermitted { host },
            Some(std::io::ErrorKind::NotFound) => return DockerError::NoSocket { host },
            _ => cause = error.source(),
        }
    }
    DockerError::Unreachable { host, source: Box::new(source) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;

    #[test]
    fn why_nobody_answers_is_told_apart() {
        let io = |kind: ErrorKind| bollard::errors::Error::from(std::io::Error::from(kind));
        let missing = bollard::errors::Error::SocketNotFoundError("/run/docker.sock".to_owned());
        for (source, says) in [
            (missing, "there is no Docker socket at"),
            (io(ErrorKind::NotFound), "there is no Docker socket at"),
            (io(ErrorKind::PermissionDenied), "this user may not use the Docker daemon"),
            (io(ErrorKind::ConnectionRefused), "no Docker daemon answers"),
        ] {
            let error = unreached("unix:///run/docker.sock".to_owned(), source).to_string();
            assert!(error.starts_with(says) && error.contains("unix:///run/docker.sock"), "{error}");
        }
    }
}
