//! Gives nodes file systems apart from nodefs, and takes them away.

use crate::kubelet_config;
use crate::node::{ConfigureError, FileSystemsError, Node, NodeFileSystems};

/// Gives a node file systems apart from nodefs, with all images and writable layers. Returns when
/// the kubelet answers, which was restarted.
///
/// # Errors
/// The node or its host does not support them, or the kubelet does not start again.
pub async fn set_up(node: &Node, file_systems: NodeFileSystems) -> Result<(), FileSystemsError> {
    node.backend().set_up_file_systems(file_systems).await?;
    Ok(kubelet_config::wait_until_running(node).await?)
}

/// Restores the original file systems of a node, with their images and layers. Returns `false` if
/// it has no others.
///
/// # Errors
/// The node cannot be reached, or the kubelet does not start again.
pub async fn restore(node: &Node) -> Result<bool, ConfigureError> {
    if !node.backend().restore_file_systems().await? {
        return Ok(false);
    }
    kubelet_config::wait_until_running(node).await?;
    Ok(true)
}
