//! Validation of requests and limits of containers and pods.

use std::collections::BTreeMap;

use evictlab_rules::pod::Pod;
use evictlab_rules::quantity::Quantity;
use serde::Deserialize;
use serde_json::Value;

use crate::apiserver::field_errors::{FieldErrors, FieldPath};
use crate::resource::ObjectExt;

type Quantities = BTreeMap<String, Quantity>;

/// Validates requests and limits: non-negative, and no request above its limit.
pub(super) fn validate(resources: &Value, path: &FieldPath, errors: &mut FieldErrors) {
    let (limits_path, requests_path) = (path.child("limits"), path.child("requests"));
    let limits: Quantities = resources.read("limits");
    for (name, limit) in &limits {
        check_non_negative(limit, &limits_path.key(name), errors);
    }
    for (name, request) in resources.read::<Quantities>("requests") {
        check_non_negative(&request, &requests_path.key(&name), errors);
        if let Some(limit) = limits.get(&name).filter(|limit| request > **limit) {
            let detail = format!("must be less than or equal to {name} limit of {limit}");
            errors.invalid(&requests_path, request.to_string(), &detail);
        }
    }
}

/// Validates pod-level requests and limits, also against the sum of the containers' requests.
pub(super) fn validate_pod_level(pod: &Value, path: &FieldPath, errors: &mut FieldErrors) {
    let resources = &pod.spec()["resources"];
    if !resources.is_object() {
        return;
    }
    let path = path.child("resources");
    validate(resources, &path, errors);
    let Ok(pod) = Pod::deserialize(pod) else { return };
    for (name, request) in resources.read::<Quantities>("requests") {
        let sum = pod.container_requests(&name);
        if sum > request {
            let detail = format!("must be greater than or equal to aggregate container requests of {sum}");
            errors.invalid(&path.child("requests").key(&name), request.to_string(), &detail);
        }
    }
}

fn check_non_negative(quantity: &Quantity, path: &FieldPath, errors: &mut FieldErrors) {
    if quantity.is_negative() {
        errors.invalid(path, quantity.to_string(), "must be greater than or equal to 0");
    }
}
