//! Worker nodes: the view through the API server, and the backend behind a node.

mod backend;
mod changes;
mod disk_room;
mod error;
mod external;
mod file_systems;
mod limits;
mod metrics;
mod other_pods;
mod proxy;
mod readiness;
mod revert;
mod taints;
mod worker;

pub use backend::NodeBackend;
pub(crate) use backend::{EmbeddedNode, ExistingNode, KindNode};
pub use error::{ConfigureError, NodeError};
pub use external::{ExternalNode, PressureForbidden};
pub use file_systems::{FileSystemsError, NodeFileSystems};
pub use limits::MAX_KUBELET_LOG_LINES;
pub use metrics::MetricLine;
pub(crate) use other_pods::{is_static_pod, names_of_other_pods};
pub use proxy::KubeletProxy;
pub use readiness::{is_ready, last_heartbeat};
pub(crate) use readiness::{ready_messages, wait_until_ready};
pub use revert::NodeReversal;
pub(crate) use taints::SYSTEM_TAINT_PREFIX;
pub use taints::{CORDONED, system_taints, taints};
pub use worker::Node;
