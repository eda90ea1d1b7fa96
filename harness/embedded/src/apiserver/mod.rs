//! The API server behind HTTP: defaulting, validation, admission, graceful deletion and
//! subresources.
//!
//! The HTTP API and the controllers write objects by these functions; kubelets write the statuses
//! of their own objects directly.

mod create;
mod decode;
mod delete;
mod field_errors;
pub(crate) mod int_or_percent;
mod metadata;
mod names;
mod namespace;
mod objects;
mod options;
mod pod;
mod priority_class;
mod quota;
mod runtime_class;
mod status;
#[cfg(test)]
mod tests;
mod update;
mod workload;

pub(crate) use create::{create, create_event, default_and_validate_pod, store_event};
pub(crate) use decode::parse;
pub(crate) use delete::{delete, remove_finalizer};
pub(crate) use metadata::FOREGROUND_FINALIZER;
pub(crate) use names::is_extended_resource;
pub(crate) use names::{label_value, qualified_name};
pub(crate) use objects::control_plane_version;
pub(crate) use options::{
    DeleteOptions, DeleteResult, FieldValidation, ObjectPath, Preconditions, StoredObject,
};
pub(crate) use pod::{evict, finish_pod_deletion};
pub(crate) use status::{Status, StatusReason};
pub(crate) use update::{resize, update, update_ephemeral_containers, update_status};
