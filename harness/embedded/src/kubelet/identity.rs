//! Identity of a kubelet.

use evictlab_rules::KubeletVersion;

use crate::options::{CgroupVersion, NodeOptions};

/// Identity and environment of a kubelet.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// Name of the node.
    pub node: String,
    /// Options of the node.
    pub options: NodeOptions,
    /// Version of the kubelet.
    pub version: KubeletVersion,
    /// Version of the kernel's control groups.
    pub cgroup: CgroupVersion,
    /// Process id; grows with each restart.
    pub pid: u64,
}
