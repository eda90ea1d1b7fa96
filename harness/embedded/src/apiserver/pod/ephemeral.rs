//! Ephemeral containers: added by their subresource, immutable afterwards.

use serde_json::Value;

use super::{defaults, validation};
use crate::apiserver::field_errors::{FieldErrors, FieldPath};
use crate::apiserver::metadata;
use crate::resource::ObjectExt;

/// Returns the old pod with the ephemeral containers of the new one, defaults applied.
pub(in crate::apiserver) fn with_ephemeral_containers(old: &Value, new: &Value) -> Value {
    let mut pod = old.clone();
    let mut all: Vec<Value> = new.spec().read("ephemeralContainers");
    all.iter_mut().for_each(defaults::set_container_defaults);
    if all.is_empty() {
        pod.spec_mut().remove("ephemeralContainers");
    } else {
        pod.spec_mut().write("ephemeralContainers", all);
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
    for before in old.spec().items("ephemeralContainers") {
        let name = before.text("name");
        let change = match new.spec().items("ephemeralContainers").find(|after| after.text("name") == name) {
            Some(after) if after == before => continue,
            Some(_) => "changed",
            None => "removed",
        };
        errors.forbidden(&path, &format!("existing ephemeral containers {name:?} may not be {change}\n"));
    }
    errors
}
