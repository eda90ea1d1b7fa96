//! Errors of the kind backend.

use std::io;
use std::path::PathBuf;

/// Oldest supported version of kind: it writes kubeadm v1beta4 for Kubernetes 1.36 and merges
/// map-style patches into it.
pub const OLDEST_KIND: semver::Version = semver::Version::new(0, 32, 0);

/// `kind` failed.
#[derive(Debug, thiserror::Error)]
pub enum KindError {
    /// The command is not on the PATH.
    #[error(
        "failed to run `kind`: it is not on the PATH\nhelp: install it: https://kind.sigs.k8s.io/docs/user/quick-start/"
    )]
    Missing,
    /// The version is too old.
    #[error(
        "failed to use kind {found}: {OLDEST_KIND} or newer is required\nhelp: install a newer version: https://kind.sigs.k8s.io/docs/user/quick-start/"
    )]
    TooOld {
        /// Installed version.
        found: semver::Version,
    },
    /// The version could not be parsed.
    #[error("failed to parse the output of `kind version`: {0:?}")]
    UnknownVersion(String),
    /// The command failed.
    #[error("failed to run `kind {command}`:\n{output}")]
    Failed {
        /// Arguments of the command.
        command: String,
        /// Last lines of its output.
        output: String,
    },
    /// The command could not be started, or its output could not be read.
    #[error("failed to run `kind {command}`: {source}")]
    Run {
        /// Arguments of the command.
        command: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A cluster with this name exists.
    #[error("failed to create a kind cluster: the name is taken\nhelp: choose another name")]
    NameTaken,
    /// The command was cancelled.
    #[error("interrupted")]
    Interrupted,
}

impl KindError {
    /// Returns whether kind or kubeadm timed out on a slow host. kind waits 30 s for the systemd
    /// log of a node; kubeadm before v1beta4 waits a minute for the API server and some minutes
    /// for a kubelet. These timeouts cannot be configured.
    pub fn is_slow_host(&self) -> bool {
        const TIMEOUTS: [&str; 3] =
            ["could not find a log line", "timed out waiting for the condition", "context deadline exceeded"];
        matches!(self, Self::Failed { output, .. } if TIMEOUTS.iter().any(|text| output.contains(text)))
    }
}

/// The kind configuration is invalid.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file could not be read.
    #[error("failed to read kind configuration {path}: {source}")]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The file is not a kind configuration.
    #[error("failed to parse kind configuration {file}: {problem}")]
    Parse {
        /// Path of the file.
        file: String,
        /// Problem of the file.
        problem: String,
    },
}

/// The state directory could not be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// A file could not be written.
    #[error(
        "failed to write state in {path}: {source}\nhelp: set EVICTLAB_STATE_DIR to a writable directory with free space"
    )]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Others may write to the directory, and the kubeconfigs in it.
    #[error(
        "failed to use the state directory {path}: {problem}\nhelp: set EVICTLAB_STATE_DIR to a directory that only you can write to"
    )]
    NotPrivate {
        /// Path of the directory.
        path: PathBuf,
        /// Owner or mode of the directory.
        problem: String,
    },
    /// The directory for the state of the user is unknown.
    #[error("failed to find a state directory: HOME is not set\nhelp: set HOME or EVICTLAB_STATE_DIR")]
    NoHome,
}
