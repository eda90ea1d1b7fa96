//! State of the node status.

use super::images::Images;
use crate::kubelet::identity::Identity;
use crate::sim::Time;

/// Images, and times of the last and next updates.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeStatus {
    /// Images on the node.
    pub images: Images,
    /// Memory that huge pages reserved at the start of the kubelet, in bytes.
    pub huge_pages: u64,
    /// Time of the last status write.
    pub(super) written: Option<Time>,
    pub(super) update_due: Option<Time>,
    pub(super) lease_due: Option<Time>,
    pub(super) image_gc_due: Option<Time>,
    pub(super) detection_due: Option<Time>,
}

impl NodeStatus {
    /// Returns the state before the first update.
    pub(crate) fn new(identity: &Identity) -> Self {
        Self { images: Images::of_kind(&identity.version), ..Self::default() }
    }
}
