//! Namespaces, pods and other objects that a run creates.

mod manifest;
mod namespace;
mod objects;

pub use manifest::{Placement, object_manifest, place_container, pod_manifest, static_pod_manifest};
pub use namespace::{Namespace, NamespaceRecord, StageError};
pub use objects::without_managed_fields;
