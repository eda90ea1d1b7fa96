//! The node containers of a cluster.

use super::config::ROLE_LABEL;
use crate::docker::{Container, Docker, DockerError};

/// Label that kind puts on node containers; its value is the name of the cluster.
pub const KIND_LABEL: &str = "io.x-k8s.kind.cluster";

/// Lists the containers of a cluster, also those that do not run.
///
/// # Errors
/// Docker fails.
pub async fn containers(docker: &Docker, name: &str) -> Result<Vec<Container>, DockerError> {
    docker.containers(&format!("{KIND_LABEL}={name}")).await
}

/// Returns whether a cluster has nodes and none of them runs.
pub(super) fn are_stopped(nodes: &[Container]) -> bool {
    !nodes.is_empty() && !nodes.iter().any(|node| node.running)
}

/// Returns whether a node is a control plane.
pub(super) fn is_control_plane(node: &Container) -> bool {
    node.labels.get(ROLE_LABEL).is_some_and(|role| role == "control-plane")
}
