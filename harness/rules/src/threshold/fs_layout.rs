//! The layout of a node's file systems.

use crate::summary::{FsStats, NodeStats};

/// Layout of the file systems of the kubelet (nodefs), of images (imagefs) and of writable layers
/// (containerfs).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FsLayout {
    /// One file system for all three, as on kind nodes.
    #[default]
    Single,
    /// A second file system for images and writable layers.
    DedicatedImagefs,
    /// Different file systems for images and writable layers (1.29 and newer).
    SplitImagefs,
}

impl FsLayout {
    /// Returns whether the kubelet regards the imagefs as dedicated: images are not on nodefs
    /// (`HasDedicatedImageFs`). A container's own limit then excludes the writable layer, also with
    /// a split layout, where the layer is on nodefs (`containerEphemeralStorageLimitEviction`).
    pub fn has_dedicated_imagefs(self) -> bool {
        self != Self::Single
    }

    /// Derives the layout from a Summary.
    ///
    /// The kubelet compares devices, which a Summary does not contain. File systems with equal
    /// total bytes and equal total inodes count as the same.
    ///
    /// Only the statistics of CRI-O can tell images and layers apart: with containerd, the kubelet
    /// reports the file system of images twice (`ImageFsStats` of `cri_stats_provider.go`), and
    /// `HasDedicatedContainerFs` fails. Images on nodefs with layers elsewhere are a dedicated
    /// imagefs, too (`HasDedicatedImageFs` of `pkg/kubelet/stats/provider.go`).
    pub fn from_node_stats(node: &NodeStats) -> Self {
        let size = |fs: &FsStats| (fs.capacity_bytes, fs.inodes);
        let runtime = node.runtime.as_ref();
        let images = runtime.and_then(|runtime| runtime.image_fs.as_ref()).map(size);
        let containers = runtime.and_then(|runtime| runtime.container_fs.as_ref()).map(size);
        match (node.fs.as_ref().map(size), images, containers) {
            (_, Some(images), Some(containers)) if containers != images => Self::SplitImagefs,
            (Some(nodefs), Some(images), _) if images != nodefs => Self::DedicatedImagefs,
            _ => Self::Single,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn distinguishes_file_systems_by_size() {
        let fs = |capacity: i64, inodes: i64| json!({"capacityBytes": capacity, "inodes": inodes, "availableBytes": 1});
        let (node, other, third) = (fs(100, 10), fs(100, 20), fs(50, 10));
        let rows = [
            (json!({"fs": node, "runtime": {"imageFs": node, "containerFs": node}}), FsLayout::Single),
            (
                json!({"fs": node, "runtime": {"imageFs": other, "containerFs": other}}),
                FsLayout::DedicatedImagefs,
            ),
            (json!({"fs": node, "runtime": {"imageFs": third}}), FsLayout::DedicatedImagefs),
            (json!({"fs": node, "runtime": {"imageFs": third, "containerFs": node}}), FsLayout::SplitImagefs),
            (json!({"fs": node, "runtime": {"imageFs": node, "containerFs": other}}), FsLayout::SplitImagefs),
            (json!({"fs": node}), FsLayout::Single),
            (json!({}), FsLayout::Single),
        ];
        for (summary, layout) in rows {
            let node: NodeStats = serde_json::from_value(summary.clone()).unwrap();
            assert_eq!(FsLayout::from_node_stats(&node), layout, "{summary}");
        }
    }
}
