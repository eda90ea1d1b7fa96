//! State of the updates of the node status.

use evictlab_rules::KubeletVersion;

use crate::kubelet::images::Images;
use crate::sim::SimTime;

/// Images, huge pages, and the times of the last and the next updates of the node status.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeStatusUpdates {
    /// Images on the node.
    pub images: Images,
    /// Memory that huge pages reserved at the start of the kubelet, in bytes.
    pub huge_pages: u64,
    /// Time of the last status write.
    pub(super) written: Option<SimTime>,
    pub(super) update_due: Option<SimTime>,
    pub(super) lease_due: Option<SimTime>,
    pub(in crate::kubelet) image_gc_due: Option<SimTime>,
    /// True if the last deletion of unused images failed.
    pub(in crate::kubelet) image_gc_failed: bool,
    pub(in crate::kubelet) detection_due: Option<SimTime>,
}

impl NodeStatusUpdates {
    /// Returns the state before the first update.
    pub(crate) fn new(version: &KubeletVersion) -> Self {
        Self { images: Images::of_kind_node(version), ..Self::default() }
    }
}
