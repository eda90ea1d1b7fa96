//! Errors of the Docker API.

use std::io::ErrorKind;

use crate::api_error::first_cause;

/// A request to Docker failed.
#[derive(Debug, thiserror::Error)]
pub enum DockerError {
    /// The daemon does not answer.
    #[error(
        "failed to connect to the Docker daemon at {host}: {}\nhelp: start Docker, or set DOCKER_HOST; `evictlab doctor` shows details",
        first_cause(source)
    )]
    Unreachable {
        /// Address of the daemon.
        host: String,
        /// Error of the connection.
        source: Box<bollard::errors::Error>,
    },
    /// The socket of the daemon does not exist.
    #[error(
        "failed to connect to the Docker daemon at {host}: the socket does not exist\nhelp: start or install Docker, or set DOCKER_HOST (`docker context ls` lists the known addresses)"
    )]
    NoSocket {
        /// Address of the daemon.
        host: String,
    },
    /// The user has no permission to use the socket.
    #[error(
        "failed to connect to the Docker daemon at {host}: permission denied\nhelp: add the user to the group `docker` and log in again, or run rootless Docker"
    )]
    NotPermitted {
        /// Address of the daemon.
        host: String,
    },
    /// The daemon refused or aborted a request.
    #[error("failed to {operation}: {source}")]
    Request {
        /// Verb phrase of the request.
        operation: String,
        /// Error of the Docker API.
        source: Box<bollard::errors::Error>,
    },
    /// A command in a container failed.
    #[error("failed to run `{command}` in container {container}: exit status {code}: {stderr}")]
    Command {
        /// Command line.
        command: String,
        /// Name or id of the container.
        container: String,
        /// Exit status.
        code: i64,
        /// Standard error, or standard output if standard error is empty.
        stderr: String,
    },
    /// A command in a container printed too much.
    #[error("failed to run `{command}` in container {container}: its output exceeds {max} MiB")]
    TooMuchOutput {
        /// Command line.
        command: String,
        /// Name or id of the container.
        container: String,
        /// Limit in MiB.
        max: usize,
    },
    /// A file could not be packed for, or unpacked from, a container.
    #[error("failed to transfer {path} of container {container}: {source}")]
    File {
        /// Path in the container.
        path: String,
        /// Name or id of the container.
        container: String,
        /// Error of the archive.
        source: std::io::Error,
    },
}

impl DockerError {
    pub(super) fn request(operation: impl Into<String>, source: bollard::errors::Error) -> Self {
        Self::Request { operation: operation.into(), source: Box::new(source) }
    }

    /// Classifies a failed connection: missing socket, missing permission, or no listener.
    pub(super) fn connection(host: String, source: bollard::errors::Error) -> Self {
        if matches!(source, bollard::errors::Error::SocketNotFoundError(_)) {
            return Self::NoSocket { host };
        }
        let mut cause: Option<&(dyn std::error::Error + 'static)> = match &source {
            // bollard displays this inner error as its own text and does not return it as a source.
            bollard::errors::Error::IOError { err } => Some(err),
            other => Some(other),
        };
        while let Some(error) = cause {
            match error.downcast_ref::<std::io::Error>().map(std::io::Error::kind) {
                Some(ErrorKind::PermissionDenied) => return Self::NotPermitted { host },
                Some(ErrorKind::NotFound) => return Self::NoSocket { host },
                _ => cause = error.source(),
            }
        }
        Self::Unreachable { host, source: Box::new(source) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classifies_failed_connections() {
        let io = |kind: ErrorKind| bollard::errors::Error::from(std::io::Error::from(kind));
        let missing = bollard::errors::Error::SocketNotFoundError("/run/docker.sock".to_owned());
        for (source, cause) in [
            (missing, "the socket does not exist"),
            (io(ErrorKind::NotFound), "the socket does not exist"),
            (io(ErrorKind::PermissionDenied), "permission denied\nhelp: add the user"),
            (io(ErrorKind::ConnectionRefused), "connection refused\nhelp: start Docker"),
        ] {
            let error = DockerError::connection("unix:///run/docker.sock".to_owned(), source).to_string();
            let start = "failed to connect to the Docker daemon at unix:///run/docker.sock: ";
            assert!(error.starts_with(&format!("{start}{cause}")), "{error}");
        }
    }
}
