//! Limits of operations on a node.

use std::time::Duration;

/// Maximum number of lines of the kubelet log to read: the last ones.
pub const MAX_KUBELET_LOG_LINES: usize = 50_000;
/// Time limit of a command in a container.
pub(super) const EXEC_TIMEOUT: Duration = Duration::from_secs(60);
