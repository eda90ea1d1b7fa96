//! Worker nodes: the view through the API server, and the backend behind a node.

mod backend;
mod changes;
mod error;
mod proxy;
mod readiness;
mod worker;

pub(crate) use backend::available_memory;
pub use backend::{ExternalNode, NodeBackend, PressureForbidden};
pub use error::{ConfigureError, NodeError};
pub use proxy::KubeletProxy;
pub(crate) use readiness::{API_READ_TIMEOUT, wait_until_ready};
pub use readiness::{is_ready, last_heartbeat};
pub use worker::Node;
