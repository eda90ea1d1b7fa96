//! Existing clusters, reached by any kubeconfig. A run creates namespaces in them, removes these,
//! and changes nothing else.

mod access;
mod backend;
mod client;
mod gc;
mod job_runs;
mod nodes;
mod permissions;
mod request_limit;

pub use access::ClusterAccess;
pub(crate) use backend::ExistingHandle;
pub use backend::{ExistingBackend, ExistingOptions, NodePermissions};
pub use client::ClusterClient;
pub use gc::{Leftover, collect_leftovers, leftovers};
pub use permissions::{
    CASE_PERMISSIONS, OPTIONAL_PERMISSIONS, Permission, READ_PERMISSIONS, RUN_PERMISSIONS, WATCH_PERMISSIONS,
};
