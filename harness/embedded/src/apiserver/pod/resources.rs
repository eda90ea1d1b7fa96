//! Validation of requests and limits of containers and pods.

use evictlab_rules::pod::Pod;
use evictlab_rules::quantity::Quantity;
use serde::Deserialize;
use serde_json::Value;

use super::defaults::container_requests;
use crate::apiserver::field_errors::{FieldErrors, FieldPath};

/// Validates requests and limits: non-negative, and no request above its limit.
pub(super) fn validate(resources: &Value, path: &FieldPath, errors: &mut FieldErrors) {
    let (limits, requests) = (path.child("limits"), path.child("requests"));
    for (name, limit) in quantities(&resources["limits"]) {
        check_non_negative(&limit, &limits.key(name), errors);
    }
    for (name, request) in quantities(&resources["requests"]) {
        check_non_negative(&request, &requests.key(name), errors);
        let limit = quantities(&resources["limits"]).find(|(other, _)| *other == name);
        if let Some((_, limit)) = limit.filter(|(_, limit)| request > *limit) {
            let detail = format!("must be less than or equal to {name} limit of {limit}");
            errors.invalid(&requests, request.to_string(), &detail);
        }
    }
}

/// Validates pod-level requests and limits, also against the sum of the containers' requests.
pub(super) fn validate_pod_level(pod: &Value, path: &FieldPath, errors: &mut FieldErrors) {
    let resources = &pod["spec"]["resources"];
    if !resources.is_object() {
        return;
    }
    let path = path.child("resources");
    validate(resources, &path, errors);
    let Ok(pod) = Pod::deserialize(pod) else { return };
    for (name, request) in quantities(&resources["requests"]) {
        let sum = container_requests(&pod, name);
        if sum > request {
            let detail = format!("must be greater than or equal to aggregate container requests of {sum}");
            errors.invalid(&path.child("requests").key(name), request.to_string(), &detail);
        }
    }
}

fn check_non_negative(quantity: &Quantity, path: &FieldPath, errors: &mut FieldErrors) {
    if quantity.is_negative() {
        errors.invalid(path, quantity.to_string(), "must be greater than or equal to 0");
    }
}

fn quantities(list: &Value) -> impl Iterator<Item = (&str, Quantity)> {
    let all = list.as_object().into_iter().flatten();
    all.filter_map(|(name, quantity)| Some((name.as_str(), quantity.as_str()?.parse().ok()?)))
}
