//! Updates of pods.

use serde_json::Value;

use super::{defaults, validation};
use crate::apiserver::field_errors::{FieldErrors, FieldPath};
use crate::apiserver::objects::control_plane_version;
use crate::context::SimContext;
use crate::resource::{ObjectExt, RESOURCE_CONTAINER_LISTS};

const MUTABLE_FIELDS: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Applies defaults to an updated pod and validates the update.
pub(in crate::apiserver) fn prepare_update(ctx: &SimContext, new: &mut Value, old: &Value) -> FieldErrors {
    defaults::set_defaults(new, &control_plane_version(ctx));
    // Values set by admission are kept.
    for field in ["priority", "preemptionPolicy"] {
        if let Some(value) = old.spec().get(field) {
            new.spec_mut().set_default(field, value.clone());
        }
    }
    // `serviceAccount` is the deprecated name of `serviceAccountName`.
    if let Some(account) = new.spec().get("serviceAccountName").cloned() {
        new.spec_mut().write("serviceAccount", account);
    }
    validate_update(new, old)
}

fn validate_update(new: &Value, old: &Value) -> FieldErrors {
    let mut errors = validation::validate(new);
    let spec = FieldPath::new("spec");
    for list in RESOURCE_CONTAINER_LISTS {
        if new.spec().items(list).count() != old.spec().items(list).count() {
            errors.forbidden(&spec.child(list), "pod updates may not add or remove containers");
            return errors;
        }
    }
    let after = tolerations_without_seconds(new);
    if tolerations_without_seconds(old).iter().any(|before| !after.contains(before)) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        errors.forbidden(&spec.child("tolerations"), detail);
    }
    if with_mutable_fields_of(new, old) != *old.spec() {
        let detail = format!("pod updates may not change fields other than {MUTABLE_FIELDS}\n");
        errors.forbidden(&spec, &detail);
    }
    errors
}

fn tolerations_without_seconds(pod: &Value) -> Vec<Value> {
    let mut tolerations: Vec<Value> = pod.spec().items("tolerations").cloned().collect();
    tolerations.iter_mut().for_each(|toleration| toleration.remove("tolerationSeconds"));
    tolerations
}

/// Returns the new spec with the old values of all mutable fields.
fn with_mutable_fields_of(new: &Value, old: &Value) -> Value {
    let mut spec = new.spec().clone();
    for list in RESOURCE_CONTAINER_LISTS {
        let images = old.spec().items(list).map(|container| container.get("image"));
        spec.items_mut(list)
            .zip(images)
            .for_each(|(container, image)| container.set_or_remove("image", image));
    }
    let mut fields = vec!["activeDeadlineSeconds", "tolerations"];
    let grace = |pod: &Value| pod.spec().read::<Option<i64>>("terminationGracePeriodSeconds");
    if grace(old).is_some_and(|before| before < 0) && grace(new) == Some(1) {
        fields.push("terminationGracePeriodSeconds");
    }
    for field in fields {
        spec.set_or_remove(field, old.spec().get(field));
    }
    spec
}
