//! Ephemeral containers: added by their subresource, immutable afterwards.

use serde_json::Value;

use super::{defaults, validation};
use crate::apiserver::field_errors::{FieldErrors, FieldPath};
use crate::apiserver::metadata;
use crate::resource::ObjectExt;

/// Returns the old pod with the ephemeral containers of the new one, defaults applied.
pub(in crate::apiserver) fn with_ephemeral_containers(old: &Value, new: &Value) -> Value {
    let mut pod = old.clone();
    let mut all = new["spec"]["ephemeralContainers"].clone();
    all.as_array_mut().into_iter().flatten().for_each(defaults::set_container_defaults);
    if all.as_array().is_none_or(Vec::is_empty) {
        pod["spec"].remove("ephemeralContainers");
    } else {
        pod["spec"]["ephemeralContainers"] = all;
    }
    pod
}

/// Validates an update of ephemeral containers.
pub(in crate::apiserver) fn validate_ephemeral_update(new: &Value, old: &Value) -> FieldErrors {
    if metadata::is_mirror_pod(old) {
        let mut errors = FieldErrors::default();
        errors.forbidden(&FieldPath::new(""), "static pods do not support ephemeral containers");
        return errors;
    }
    let path = FieldPath::new("spec").child("ephemeralContainers");
    let mut errors = validation::validate(new);
    for before in old["spec"].items("ephemeralContainers") {
        let name = before.text("name");
        let change = match new["spec"].items("ephemeralContainers").find(|after| after["name"] == name) {
            Some(after) if after == before => continue,
            Some(_) => "changed",
            None => "removed",
        };
        errors.forbidden(&path, &format!("existing ephemeral containers {name:?} may not be {change}\n"));
    }
    errors
}
