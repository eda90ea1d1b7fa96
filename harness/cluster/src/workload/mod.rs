//! Namespaces, pods and other objects that a run creates.

mod default_limits;
mod expiry;
mod grace_period;
mod manifest;
mod namespace;
mod objects;

pub use default_limits::add_default_limits;
pub use grace_period::GracePeriod;
pub use manifest::{
    Placement, container_manifest, has_pod_template, object_manifest, pod_manifest, static_pod_manifest,
};
pub use namespace::{Namespace, NamespaceGuards, NamespacePurpose, NamespaceRecord, StageError};
pub(crate) use namespace::{OWNER_ANNOTATION, RUN_LABEL};
pub use objects::{api_resource, kind_and_name, without_managed_fields};
pub(crate) use objects::{has_not_ended, uid_of};
