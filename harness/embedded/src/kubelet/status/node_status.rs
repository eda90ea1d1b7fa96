//! State of the updates of the node status.

use crate::kubelet::identity::Identity;
use crate::kubelet::images::Images;
use crate::sim::Time;

/// Images, huge pages, and the times of the last and the next updates of the node status.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeStatusUpdates {
    /// Images on the node.
    pub images: Images,
    /// Memory that huge pages reserved at the start of the kubelet, in bytes.
    pub huge_pages: u64,
    /// Time of the last status write.
    pub(super) written: Option<Time>,
    pub(super) update_due: Option<Time>,
    pub(super) lease_due: Option<Time>,
    pub(in crate::kubelet) image_gc_due: Option<Time>,
    pub(in crate::kubelet) detection_due: Option<Time>,
}

impl NodeStatusUpdates {
    /// Returns the state before the first update.
    pub(crate) fn new(identity: &Identity) -> Self {
        Self { images: Images::of_kind_node(&identity.version), ..Self::default() }
    }
}
