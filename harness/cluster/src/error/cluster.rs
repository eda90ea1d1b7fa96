//! Errors of creating, opening and deleting clusters.

use std::path::PathBuf;

use evictlab_rules::{KubeletVersion, VersionError};

use super::existing::ExistingError;
use super::kind::{ConfigError, KindError, StateError};
use super::start_problem::StartProblem;
use crate::api_error::api_error_message;
use crate::docker::DockerError;
use crate::images::ImageLoadError;
use crate::kubelet_config::ConfigureError;
use crate::wait::StalledError;

/// A cluster could not be created, opened or deleted.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// kind failed.
    #[error(transparent)]
    Kind(#[from] KindError),
    /// Docker failed.
    #[error(transparent)]
    Docker(#[from] DockerError),
    /// An existing cluster cannot be used.
    #[error(transparent)]
    Existing(#[from] ExistingError),
    /// Images could not be loaded into the nodes.
    #[error(transparent)]
    Images(#[from] ImageLoadError),
    /// The kind configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A kubelet did not start.
    #[error(transparent)]
    Kubelet(#[from] ConfigureError),
    /// The state directory failed.
    #[error(transparent)]
    State(#[from] StateError),
    /// A cluster with this name exists.
    #[error(
        "failed to create cluster {0}: a cluster with this name exists\nhelp: use it with --cluster {0} (if evictlab created it), delete it with `evictlab cluster delete {0}`, or choose another name"
    )]
    Exists(String),
    /// No cluster with this name is known.
    #[error("failed to find cluster {0}\nhelp: list the known clusters with `evictlab cluster list`")]
    Unknown(String),
    /// The nodes of the cluster do not run.
    #[error(
        "failed to open cluster {0}: its nodes do not run\nhelp: start them with `evictlab cluster start {0}`"
    )]
    Stopped(String),
    /// The kubeconfig is invalid.
    #[error(
        "failed to use the kubeconfig of cluster {cluster}: {problem}\nhelp: write it again with `kind export kubeconfig --name {cluster} --kubeconfig {}`",
        path.display()
    )]
    Kubeconfig {
        /// Name of the cluster.
        cluster: String,
        /// Path of the kubeconfig.
        path: PathBuf,
        /// Problem of the kubeconfig.
        problem: String,
    },
    /// The workers could not be listed.
    #[error("failed to list the workers of cluster {cluster}: {}", api_error_message(source))]
    Workers {
        /// Name of the cluster.
        cluster: String,
        /// Error of the client.
        source: Box<kube::Error>,
    },
    /// A kubelet reports a version that cannot be parsed.
    #[error("failed to read the kubelet version of node {node}: {source}")]
    NodeVersion {
        /// Name of the node.
        node: String,
        /// Error of the parser.
        source: VersionError,
    },
    /// The label of a worker could not be changed.
    #[error("failed to label node {node}: {}", api_error_message(source))]
    Label {
        /// Name of the node.
        node: String,
        /// Error of the client.
        source: Box<kube::Error>,
    },
    /// The nodes do not become ready.
    #[error("failed to wait for the nodes of cluster {cluster}: {stalled}")]
    NotReady {
        /// Name of the cluster.
        cluster: String,
        /// Last observation.
        #[source]
        stalled: StalledError,
    },
    /// The nodes do not become ready, and their logs state why.
    #[error("{error}\n{}", lines(problems))]
    NotStarted {
        /// Failure of kind or of waiting for the nodes.
        error: Box<ClusterError>,
        /// Problems of the nodes.
        problems: Vec<StartProblem>,
    },
    /// A kubelet reports another version than expected.
    #[error(
        "failed to verify the kubelet of node {node}: its version is {found}, expected {claimed}\nhelp: the image or binary has another version than its name; correct --kubelet or --node-image"
    )]
    VersionMismatch {
        /// Name of the node.
        node: String,
        /// Version that the kubelet reports.
        found: String,
        /// Expected version.
        claimed: KubeletVersion,
    },
    /// The cluster has no worker with a kubelet.
    #[error(
        "failed to find a worker with kubelet {kubelet} in cluster {cluster}; it has {available}\nhelp: name one of these with --kubelet, or omit --cluster to create a cluster"
    )]
    NoWorker {
        /// Name of the cluster.
        cluster: String,
        /// Label of the requested kubelet.
        kubelet: String,
        /// Labels of the kubelets in the cluster.
        available: String,
    },
    /// An installed kubelet binary does not start.
    #[error("failed to start kubelet {binary} on node {node}: {stalled}\nlast log lines:\n{log}")]
    KubeletNotStarted {
        /// Path of the binary.
        binary: PathBuf,
        /// Name of the node.
        node: String,
        /// Last observation.
        #[source]
        stalled: StalledError,
        /// End of the kubelet log.
        log: String,
    },
    /// A kubelet binary could not be read.
    #[error("failed to read kubelet {path}: {source}")]
    Binary {
        /// Path of the binary.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// Another process uses the cluster.
    #[error(
        "failed to use cluster {cluster}: process {pid} uses it\nhelp: wait for the process, or create another cluster with `evictlab cluster create`"
    )]
    InUse {
        /// Name of the cluster.
        cluster: String,
        /// Process id.
        pid: u32,
    },
    /// Leftovers of a run could not be removed.
    #[error(
        "failed to clean up cluster {cluster}: {problem}\nhelp: delete the cluster with `evictlab cluster delete {cluster}`"
    )]
    CleanUp {
        /// Name of the cluster.
        cluster: String,
        /// Error of the failed step.
        problem: String,
    },
    /// Containers remain after the deletion.
    #[error(
        "failed to delete cluster {cluster}: these containers remain: {containers}\nhelp: remove them with `docker rm -f -v`"
    )]
    ContainersRemain {
        /// Name of the cluster.
        cluster: String,
        /// Names of the containers.
        containers: String,
    },
    /// The operation was cancelled.
    #[error("interrupted")]
    Interrupted,
}

impl ClusterError {
    /// Adds the problems of the nodes to a failure to start them.
    pub(crate) fn with_problems(self, problems: Vec<StartProblem>) -> Self {
        match self {
            Self::Kind(KindError::Failed { .. }) | Self::NotReady { .. } if !problems.is_empty() => {
                Self::NotStarted { error: Box::new(self), problems }
            }
            other => other,
        }
    }

    /// Returns whether the binary of a kubelet cannot be read, or does not start.
    pub fn is_kubelet_binary(&self) -> bool {
        match self {
            Self::KubeletNotStarted { .. } | Self::Binary { .. } => true,
            Self::NotStarted { error, .. } => error.is_kubelet_binary(),
            _ => false,
        }
    }

    /// Returns whether kind timed out for no other reason than a slow host.
    pub(crate) fn is_slow_host(&self) -> bool {
        match self {
            Self::Kind(error) => error.is_slow_host(),
            Self::NotStarted { error, problems } => {
                error.is_slow_host() && !problems.iter().any(StartProblem::is_known)
            }
            _ => false,
        }
    }
}

fn lines(problems: &[StartProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
