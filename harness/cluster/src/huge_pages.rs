//! Huge pages of nodes.

use evictlab_rules::quantity::Quantity;

use crate::kubelet_config;
use crate::node::{ConfigureError, Node};

/// The huge pages of 2 MiB in the capacity of a node.
const RESOURCE: &str = "hugepages-2Mi";

/// Reserves memory for huge pages of 2 MiB, in bytes, on a node that can have its own: a node of
/// the embedded cluster. Returns the huge pages that the node has, in bytes.
///
/// # Errors
/// The node cannot be reached, or the kubelet does not start again.
pub async fn set_up(node: &Node, bytes: u64) -> Result<u64, ConfigureError> {
    if node.backend().has_own_huge_pages() {
        node.backend().reserve_huge_pages(bytes)?;
        kubelet_config::wait_until_running(node).await?;
    }
    let capacity = node.object().await?.status.and_then(|status| status.capacity).unwrap_or_default();
    let has = capacity.get(RESOURCE).and_then(|amount| amount.0.parse::<Quantity>().ok());
    Ok(has.and_then(|amount| u64::try_from(amount.value()).ok()).unwrap_or(0))
}
