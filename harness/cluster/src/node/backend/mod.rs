//! Operations on a node that bypass its API server.

mod embedded;
mod existing;
mod kind;
mod kind_exec;
mod kind_imagefs;
mod node_backend;

pub(crate) use embedded::EmbeddedNode;
pub(crate) use existing::ExistingNode;
pub(crate) use kind::KindNode;
pub use kind::MAX_KUBELET_LOG_LINES;
pub use node_backend::NodeBackend;
