//! Pods: defaults, admission, validation, eviction, deletion.

mod admission;
mod defaults;
mod deletion;
mod ephemeral;
mod eviction;
mod resize;
mod resources;
mod update;
mod validation;
mod volumes;

pub(super) use admission::prepare;
pub(super) use defaults::{set_defaults, set_template_defaults};
pub(super) use deletion::delete;
pub(crate) use deletion::finish_pod_deletion;
pub(super) use ephemeral::{validate_ephemeral_update, with_ephemeral_containers};
pub(crate) use eviction::evict;
pub(super) use resize::{excess, validate_resize, with_all_resources, with_resources};
pub(super) use update::prepare_update;
pub(super) use validation::{validate_new, validate_template};
