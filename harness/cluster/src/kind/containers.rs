//! The node containers of a cluster.

use crate::docker::{Container, Docker, DockerError};

/// Label that kind puts on the containers of a cluster; its value is the name of the cluster.
pub const KIND_LABEL: &str = "io.x-k8s.kind.cluster";
/// Label that kind puts on the containers of a cluster; its value is one of the roles, or that of a
/// load balancer.
const ROLE_LABEL: &str = "io.x-k8s.kind.role";
/// Roles of nodes.
const CONTROL_PLANE: &str = "control-plane";
const WORKER: &str = "worker";

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

/// Returns whether a container is a control plane.
pub(super) fn is_control_plane(container: &Container) -> bool {
    has_role(container, CONTROL_PLANE)
}

/// Returns whether a container is a worker.
pub(super) fn is_worker(container: &Container) -> bool {
    has_role(container, WORKER)
}

fn has_role(container: &Container, role: &str) -> bool {
    container.labels.get(ROLE_LABEL).is_some_and(|own| own == role)
}
