//! The node of a case: changes made before the pods are created, and the placement of the pods.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::values::QuantityText;

/// Changes to the node, made before the pods are created and reverted after the case.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct NodeSetup {
    /// Memory limit of the whole node, as set by Docker on the container of a kind node; the
    /// kubelet is not aware of it.
    #[serde(default)]
    pub memory: Option<QuantityText>,
    /// Memory that huge pages of 2Mi reserve on the node. The embedded cluster reserves it; other
    /// nodes have the huge pages of their host, and the case is skipped where it has fewer.
    #[serde(default)]
    pub huge_pages: Option<QuantityText>,
    /// Swap space that the node has at least; the case is skipped where the host has less. The
    /// embedded cluster has none.
    #[serde(default)]
    pub swap: Option<QuantityText>,
    /// Extended resources of the node, such as `evictlab.dev/slots: "2"`.
    #[serde(default)]
    pub capacity: BTreeMap<String, QuantityText>,
    /// Size of an image that no container uses, which the node has before the kubelet starts with
    /// the case's configuration.
    #[serde(default)]
    pub unused_image: Option<QuantityText>,
    /// File systems apart from nodefs. The kubelet is restarted, and detects them.
    #[serde(default)]
    pub file_systems: Option<FileSystems>,
}

/// File systems of a node apart from nodefs, which has volumes and logs.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FileSystems {
    /// Size of a new file system for images and writable layers (a dedicated imagefs). The images
    /// of a kind node take about 1Gi of it.
    pub imagefs: QuantityText,
    /// Inodes of that file system; one per 16Ki of its size by default, as of ext4.
    #[serde(default)]
    pub imagefs_inodes: Option<u64>,
    /// File system of the writable layers.
    #[serde(default)]
    pub containerfs: ContainerfsPlacement,
}

/// File system of the writable layers (containerfs) beside a new imagefs.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ContainerfsPlacement {
    /// imagefs.
    #[default]
    Imagefs,
    /// nodefs: a split image file system (KEP-4191). containerd does not report it to the kubelet,
    /// so that only the model has it.
    Nodefs,
}

/// Assignment of the pods of a case to the node.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PodPlacement {
    /// By `spec.nodeName`, bypassing the scheduler; the pods tolerate all taints.
    #[default]
    Bound,
    /// By the scheduler, restricted to this node; taints apply.
    Scheduled,
}
