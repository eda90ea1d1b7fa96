//! Worker nodes: the view through the API server, and the backend behind a node.

mod backend;
mod changes;
mod disk_room;
mod error;
mod external;
mod file_systems;
mod metrics;
mod other_pods;
mod proxy;
mod readiness;
mod revert;
mod worker;

pub(crate) use backend::{EmbeddedNode, ExistingNode, KindNode};
pub use backend::{MAX_KUBELET_LOG_LINES, NodeBackend};
pub(crate) use changes::SYSTEM_TAINT_PREFIX;
pub use changes::{CORDONED, system_taints, taints};
pub use error::{ConfigureError, NodeError};
pub use external::{ExternalNode, PressureForbidden};
pub use file_systems::{FileSystemsError, NodeFileSystems};
pub use metrics::MetricLine;
pub(crate) use other_pods::{is_static_pod, names_of_other_pods};
pub use proxy::KubeletProxy;
pub use readiness::{has_condition, is_ready, last_heartbeat};
pub(crate) use readiness::{ready_messages, wait_until_ready};
pub use revert::NodeReversal;
pub use worker::Node;
