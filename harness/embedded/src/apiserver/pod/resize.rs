//! In-place resizes (`pods/resize`, KEP-1287): the CPU and memory of running containers.

use std::collections::BTreeMap;

use evictlab_rules::KubeletVersion;
use evictlab_rules::pod::Pod;
use evictlab_rules::quantity::Quantity;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{defaults, validation};
use crate::apiserver::field_errors::{FieldErrors, FieldPath};
use crate::apiserver::metadata;
use crate::resource::{ObjectExt, RESOURCE_CONTAINER_LISTS, amount};

/// Resources that can be resized.
const RESIZABLE: [&str; 2] = ["cpu", "memory"];

/// Returns the old pod with the resources of the new one and of its containers
/// (`dropNonResizeUpdates`), defaults applied.
pub(in crate::apiserver) fn with_all_resources(old: &Value, new: &Value) -> Value {
    let mut pod = with_resources(old, new);
    pod.spec_mut().set_or_remove("resources", new.spec().get("resources"));
    defaults::set_pod_level_requests(&mut pod);
    pod
}

/// Returns the old pod with the resources of the new one's containers, as before 1.36, when
/// pod-level resources cannot be resized (`InPlacePodLevelResourcesVerticalScaling`).
pub(in crate::apiserver) fn with_resources(old: &Value, new: &Value) -> Value {
    let mut pod = old.clone();
    for list in RESOURCE_CONTAINER_LISTS {
        let resources: Vec<_> = new
            .spec()
            .items(list)
            .map(|container| (container.text("name").to_owned(), container.get("resources").cloned()))
            .collect();
        for container in pod.spec_mut().items_mut(list) {
            let name = container.text("name");
            if let Some((_, resources)) = resources.iter().find(|(other, _)| other == name) {
                container.set_or_remove("resources", resources.as_ref());
                defaults::set_container_defaults(container);
            }
        }
    }
    pod
}

/// Validates a resize on a control plane (`ValidatePodResize`).
pub(in crate::apiserver) fn validate_resize(
    new: &Value,
    old: &Value,
    control_plane: &KubeletVersion,
) -> FieldErrors {
    if metadata::is_mirror_pod(old) {
        let mut errors = FieldErrors::default();
        errors.forbidden(&FieldPath::new(""), "static pods cannot be resized");
        return errors;
    }
    let mut errors = validation::validate(new);
    let spec = FieldPath::new("spec");
    let class = |pod: &Value| Pod::deserialize(pod).map(|pod| pod.qos_class()).ok();
    if class(new) != class(old) {
        let class = old.status().text("qosClass").to_owned();
        errors.invalid(&spec, class, "Pod QOS Class may not change as a result of resizing");
    }
    if has_pod_level_resources(new) || has_pod_level_resources(old) {
        if !control_plane.at_least(36) {
            let detail = if control_plane.at_least(35) {
                "resize of pods with pod-level resources is forbidden when \
                     InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled"
            } else {
                "pods with pod-level resources cannot be resized"
            };
            errors.forbidden(&FieldPath::new(""), detail);
            return errors;
        }
        validate_pod_level_resize(new.spec(), old.spec(), &mut errors);
    }
    for list in RESOURCE_CONTAINER_LISTS {
        for (at, (after, before)) in new.spec().items(list).zip(old.spec().items(list)).enumerate() {
            if list == "initContainers" && before.text("restartPolicy") != "Always" {
                if resources(after) != resources(before) {
                    errors.forbidden(&spec, "resources for non-sidecar init containers are immutable");
                }
                continue;
            }
            let path = spec.child(list).index(at).child("resources");
            for field in ["requests", "limits"] {
                if !keys(before, field).all(|name| keys(after, field).any(|other| other == name)) {
                    errors.forbidden(&path.child(field), &format!("resource {field} cannot be removed"));
                }
            }
            if others(after) != others(before) {
                errors.forbidden(&spec, "only cpu and memory resources are mutable");
            }
        }
    }
    errors
}

/// Returns why a node can never have a resized pod; `None` if its resources suffice for the pod
/// alone (`PodResizeValidator`, since 1.36).
pub(in crate::apiserver) fn excess(pod: &Value, node: &Value) -> Option<String> {
    let pod = Pod::deserialize(pod).ok()?;
    let allocatable: BTreeMap<String, Quantity> = node.status().read("allocatable");
    let newest = KubeletVersion::from_minor(KubeletVersion::NEWEST_MINOR);
    let excesses: Vec<String> = RESIZABLE
        .iter()
        .filter_map(|resource| {
            let requested = amount(resource, &pod.request(&newest, resource));
            let available = allocatable.get(*resource).map_or(0, |quantity| amount(resource, quantity));
            (requested > available)
                .then(|| format!("{resource}, requested: {requested}, allocatable: {available}"))
        })
        .collect();
    let text = || format!("node didn't have enough allocatable resources: {}", excesses.join("; "));
    (!excesses.is_empty()).then(text)
}

fn has_pod_level_resources(pod: &Value) -> bool {
    ["requests", "limits"].iter().any(|field| keys(pod.spec(), field).next().is_some())
}

/// Validates the change of pod-level resources (`validatePodLevelResourcesResize`).
fn validate_pod_level_resize(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let spec = FieldPath::new("spec");
    let path = spec.child("resources");
    if new.get("resources").is_none() {
        errors.forbidden(&path, "pod-level resources cannot be removed");
        return;
    }
    for field in ["requests", "limits"] {
        if !keys(old, field).all(|name| keys(new, field).any(|other| other == name)) {
            errors.forbidden(&path.child(field), &format!("pod-level resource {field} cannot be removed"));
        }
    }
    if others(new) != others(old) {
        errors.forbidden(&spec, "only cpu and memory resources are mutable at pod-level");
    }
}

fn resources(container: &Value) -> Map<String, Value> {
    container.read("resources")
}

fn keys<'a>(container: &'a Value, field: &str) -> impl Iterator<Item = &'a String> {
    container["resources"][field].as_object().into_iter().flat_map(Map::keys)
}

/// Returns the resources that cannot be resized.
fn others(container: &Value) -> Map<String, Value> {
    let mut resources = resources(container);
    for field in ["requests", "limits"] {
        if let Some(quantities) = resources.get_mut(field).and_then(Value::as_object_mut) {
            quantities.retain(|name, _| !RESIZABLE.contains(&name.as_str()));
        }
    }
    resources.retain(|_, value| value.as_object().is_none_or(|quantities| !quantities.is_empty()));
    resources
}
