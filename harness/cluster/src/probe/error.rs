//! Errors of probe pods.

use crate::watch::WatchDenied;
use crate::workload::StageError;

/// A probe pod has no result.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// A node could not pull an image.
    #[error(
        "failed to pull image {image} on node {node}: {reason}\nhelp: give the node access to the registry, load the image into it, or name another image in an --image-lock"
    )]
    Image {
        /// Name of the node.
        node: String,
        /// Name of the image.
        image: String,
        /// Message of the kubelet.
        reason: String,
    },
    /// A node could not run a pod.
    #[error("failed to run pod {name} on node {node}: {reason}")]
    Pod {
        /// Name of the node.
        node: String,
        /// Name of the pod.
        name: String,
        /// Status of the pod.
        reason: String,
    },
    /// The API server rejected the pod.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// The API server denies the watch of the pods.
    #[error(transparent)]
    Watch(#[from] WatchDenied),
}
