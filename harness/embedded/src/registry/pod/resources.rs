//! What may be asked for: requests, limits, of containers and of whole pods.

use evictlab_rules::pod::Pod;
use evictlab_rules::quantity::Quantity;
use serde::Deserialize;
use serde_json::Value;

use super::super::field::{Errors, Path};
use super::super::names;
use super::{containers, defaults};

/// Checks a container's requests and limits.
pub(super) fn container(resources: &Value, path: &Path, errors: &mut Errors) {
    requirements(resources, path, container_resource, errors);
}

/// Checks a pod's own requests and limits, also against those of its containers.
pub(super) fn pod_level(pod: &Value, path: &Path, errors: &mut Errors) {
    let resources = &pod["spec"]["resources"];
    if !resources.is_object() {
        return;
    }
    let own = path.child("resources");
    requirements(resources, &own, pod_resource, errors);
    let Ok(whole) = Pod::deserialize(pod) else { return };
    for (name, request) in amounts(&resources["requests"]) {
        let together = defaults::aggregate(&whole, name);
        if together > request {
            let why = format!("must be greater than or equal to aggregate container requests of {together}");
            errors.invalid(&own.child("requests").key(name), request.to_string(), &why);
        }
    }
    for (index, container) in containers(pod, "containers").enumerate() {
        for (name, limit) in amounts(&container["resources"]["limits"]) {
            let whole = amounts(&resources["limits"]).find(|(other, _)| *other == name);
            if let Some((_, whole)) = whole.filter(|(_, whole)| limit > *whole) {
                // A path that exists nowhere, as a real server tells it.
                let path = own.child("containers").index(index).key(name).child("limits");
                let why = format!("must be less than or equal to pod limits of {whole}");
                errors.invalid(&path, limit.to_string(), &why);
            }
        }
    }
}

fn requirements(
    resources: &Value,
    path: &Path,
    check_name: fn(&str, &Path, &mut Errors),
    errors: &mut Errors,
) {
    let (limits, requests) = (path.child("limits"), path.child("requests"));
    for (name, limit) in amounts(&resources["limits"]) {
        check_name(name, &limits.key(name), errors);
        amount(name, &limit, &limits.key(name), errors);
    }
    for (name, request) in amounts(&resources["requests"]) {
        check_name(name, &requests.key(name), errors);
        amount(name, &request, &requests.key(name), errors);
        let overcommitted = !name.contains('/') && !name.starts_with("hugepages-");
        match amounts(&resources["limits"]).find(|(other, _)| *other == name) {
            Some((_, limit)) if request != limit && !overcommitted => {
                let why = format!("must be equal to {name} limit of {limit}");
                errors.invalid(&requests, request.to_string(), &why);
            }
            Some((_, limit)) if request > limit => {
                let why = format!("must be less than or equal to {name} limit of {limit}");
                errors.invalid(&requests, request.to_string(), &why);
            }
            None if !overcommitted => {
                errors.required(&limits, "Limit must be set for non overcommitable resources")
            }
            _ => {}
        }
    }
}

fn amount(name: &str, amount: &Quantity, path: &Path, errors: &mut Errors) {
    if amount.is_negative() {
        errors.invalid(path, amount.to_string(), "must be greater than or equal to 0");
    }
    if name.contains('/') && Quantity::from_count(amount.value()) != *amount {
        errors.invalid(path, amount.to_string(), "must be an integer");
    }
}

fn container_resource(name: &str, path: &Path, errors: &mut Errors) {
    const STANDARD: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
    if !is_resource(name, path, errors) {
        return;
    }
    if !name.contains('/') && !STANDARD.contains(&name) && !name.starts_with("hugepages-") {
        errors.invalid(path, name, "must be a standard resource for containers");
    }
}

fn pod_resource(name: &str, path: &Path, errors: &mut Errors) {
    const SUPPORTED: [&str; 3] = ["cpu", "hugepages-", "memory"];
    let supported = SUPPORTED.contains(&name) || name.starts_with("hugepages-");
    if is_resource(name, path, errors) && !supported {
        errors.not_supported(path, name, &SUPPORTED);
    }
}

/// Whether a name can be a resource's at all.
fn is_resource(name: &str, path: &Path, errors: &mut Errors) -> bool {
    // `IsStandardResourceName`: those of quotas too.
    const STANDARD: [&str; 7] =
        ["cpu", "memory", "ephemeral-storage", "storage", "pods", "services", "persistentvolumeclaims"];
    let wrong = names::qualified(name);
    wrong.iter().for_each(|wrong| errors.invalid(path, name, wrong));
    let known = name.contains('/')
        || STANDARD.contains(&name)
        || ["hugepages-", "requests.", "limits."].iter().any(|prefix| name.starts_with(prefix));
    if wrong.is_empty() && !known {
        errors.invalid(path, name, "must be a standard resource type or fully qualified");
        // What is no standard resource is none for containers either; both are told.
    }
    wrong.is_empty()
}

fn amounts(list: &Value) -> impl Iterator<Item = (&str, Quantity)> {
    let all = list.as_object().into_iter().flatten();
    all.filter_map(|(name, amount)| Some((name.as_str(), amount.as_str()?.parse().ok()?)))
}
