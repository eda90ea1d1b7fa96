//! What can go wrong with a cluster, and what to do about it.

use std::path::PathBuf;

use evictlab_rules::KubeletVersion;

use super::ExistingError;
use super::kind::{ConfigError, DockerError, KindError, StateError};
use crate::images::BringError;
use crate::wait;

/// A cluster could not be made, opened or deleted.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// kind failed.
    #[error(transparent)]
    Kind(#[from] KindError),
    /// Docker failed.
    #[error(transparent)]
    Docker(#[from] DockerError),
    /// A cluster that was there before cannot be used.
    #[error(transparent)]
    Existing(#[from] ExistingError),
    /// Its nodes cannot have an image.
    #[error(transparent)]
    Bring(#[from] BringError),
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The state folder failed.
    #[error(transparent)]
    State(#[from] StateError),
    /// A file could not be written.
    #[error("the cluster's configuration could not be written: {0}")]
    File(#[from] std::io::Error),
    /// A cluster of this name is there.
    #[error(
        "there is a cluster named {0} already\nUse it with --cluster {0} (if evictlab made it), delete it with `evictlab cluster delete {0}`, or choose another name."
    )]
    Exists(String),
    /// No cluster of this name is there.
    #[error("evictlab knows no cluster named {0}; `evictlab cluster list` shows those it knows")]
    Unknown(String),
    /// Its kubeconfig cannot be used.
    #[error("the kubeconfig of cluster {cluster} cannot be used: {problem}")]
    Kubeconfig {
        /// The cluster.
        cluster: String,
        /// Why not.
        problem: String,
    },
    /// The nodes do not become ready.
    #[error("cluster {cluster} does not become ready: {stalled}")]
    NotReady {
        /// The cluster.
        cluster: String,
        /// What was last seen.
        stalled: wait::Stalled,
    },
    /// A node's kubelet is not what it was said to be.
    #[error(
        "the kubelet on node {node} says that it is {found}, but {claimed} was claimed\nThe image or binary is of another version than its name: correct --kubelet or --node-image."
    )]
    NotAsClaimed {
        /// The node.
        node: String,
        /// What it reports.
        found: String,
        /// What was claimed.
        claimed: KubeletVersion,
    },
    /// The cluster has no worker for a kubelet.
    #[error(
        "cluster {cluster} has no worker with kubelet {kubelet}; it has {has}\nName one of those with --kubelet, or leave --cluster out for a new cluster."
    )]
    NoWorker {
        /// The cluster.
        cluster: String,
        /// The kubelet asked for.
        kubelet: String,
        /// Those that it has.
        has: String,
    },
    /// A put-in kubelet does not come up.
    #[error("the kubelet {binary} does not come up on node {node}: {stalled}\nIts last words:\n{log}")]
    BinaryDead {
        /// The binary.
        binary: PathBuf,
        /// The node.
        node: String,
        /// What was last seen.
        stalled: wait::Stalled,
        /// The end of its log.
        log: String,
    },
    /// The kubelet binary cannot be read.
    #[error("the kubelet binary {path} cannot be read: {source}")]
    Binary {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Another process uses it.
    #[error(
        "cluster {cluster} is in use by the process {pid}; wait for it, or make another with `evictlab cluster create`"
    )]
    InUse {
        /// The cluster.
        cluster: String,
        /// The process.
        pid: u32,
    },
    /// What a run left in it could not be removed.
    #[error(
        "what a run left in cluster {cluster} could not be removed: {problem}\nDelete the cluster with `evictlab cluster delete {cluster}`."
    )]
    Sweep {
        /// The cluster.
        cluster: String,
        /// Why not.
        problem: String,
    },
    /// Containers of it are still there after everything was tried.
    #[error(
        "these containers of cluster {cluster} could not be removed: {left}\nRemove them with `docker rm -f -v`."
    )]
    Left {
        /// The cluster.
        cluster: String,
        /// Their names.
        left: String,
    },
    /// Interrupted.
    #[error("interrupted")]
    Interrupted,
}
