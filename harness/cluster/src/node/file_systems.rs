//! File systems of a node apart from nodefs.

use super::error::{ConfigureError, NodeError};

/// File systems of a node apart from nodefs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeFileSystems {
    /// Size of the file system of images, in bytes.
    pub imagefs: u64,
    /// Inodes of that file system; `None` for the default of ext4.
    pub imagefs_inodes: Option<u64>,
    /// True if writable layers are on nodefs, and only images on the new file system.
    pub has_split_layers: bool,
}

/// A node did not get its file systems.
#[derive(Debug, thiserror::Error)]
pub enum FileSystemsError {
    /// The node or its host does not support them. The node is as before.
    #[error("failed to create an imagefs on node {node}: {}", .reason.trim_end())]
    Unsupported {
        /// Name of the node.
        node: String,
        /// Reason.
        reason: String,
    },
    /// The node could not be changed.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The kubelet does not start with them.
    #[error(transparent)]
    Configure(#[from] ConfigureError),
}
