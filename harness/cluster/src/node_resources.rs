//! Resources that a node gets for a case, and loses after it: file systems apart from nodefs, and
//! huge pages. Each change restarts the kubelet.

use evictlab_rules::quantity::Quantity;

use crate::kubelet_config;
use crate::node::{ConfigureError, FileSystemsError, Node, NodeFileSystems};

/// The huge pages of 2 MiB in the capacity of a node.
const HUGE_PAGES: &str = "hugepages-2Mi";

/// Gives a node file systems apart from nodefs, with all images and writable layers. Returns when
/// the kubelet answers, which was restarted.
///
/// # Errors
/// The node or its host does not support them, or the kubelet does not start again.
pub async fn set_up_file_systems(node: &Node, file_systems: NodeFileSystems) -> Result<(), FileSystemsError> {
    node.backend().set_up_file_systems(file_systems).await?;
    Ok(kubelet_config::wait_until_running(node).await?)
}

/// Restores the original file systems of a node, with their images and layers. Returns `false` if
/// it has no others.
///
/// # Errors
/// The node cannot be reached, or the kubelet does not start again.
pub async fn restore_file_systems(node: &Node) -> Result<bool, ConfigureError> {
    if !node.backend().restore_file_systems().await? {
        return Ok(false);
    }
    kubelet_config::wait_until_running(node).await?;
    Ok(true)
}

/// Reserves memory for huge pages of 2 MiB, in bytes, on a node that can have its own: a node of
/// the embedded cluster. Returns the huge pages that the node has, in bytes.
///
/// # Errors
/// The node cannot be reached, or the kubelet does not start again.
pub async fn reserve_huge_pages(node: &Node, bytes: u64) -> Result<u64, ConfigureError> {
    if node.backend().has_own_huge_pages() {
        node.backend().reserve_huge_pages(bytes)?;
        kubelet_config::wait_until_running(node).await?;
    }
    let capacity = node.object().await?.status.and_then(|status| status.capacity).unwrap_or_default();
    let has = capacity.get(HUGE_PAGES).and_then(|amount| amount.0.parse::<Quantity>().ok());
    Ok(has.and_then(|amount| u64::try_from(amount.value()).ok()).unwrap_or(0))
}
