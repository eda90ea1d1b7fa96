//! Defaults of pods: `pkg/apis/core/v1/defaults.go`, without those of probes, ports, references to
//! fields, and sources of volumes, which the model does not read.

use std::collections::BTreeMap;

use evictlab_api_types::{ImageReference, read};
use evictlab_rules::KubeletVersion;
use evictlab_rules::pod::Pod;
use serde_json::{Map, Value, json};

use crate::resource::{ALL_CONTAINER_LISTS, ObjectExt, RESOURCE_CONTAINER_LISTS};

/// Sets the defaults of a pod. Pod-level resources exist since 1.34 (`PodLevelResources`,
/// KEP-2837); older versions drop them.
pub(in crate::apiserver) fn set_defaults(pod: &mut Value, control_plane: &KubeletVersion) {
    set_template_defaults(pod);
    let spec = pod.spec_mut();
    spec.set_default("enableServiceLinks", json!(true));
    // Not of templates (`Convert_v1_Pod_To_core_Pod` in pkg/apis/core/v1/conversion.go).
    if spec.integer("terminationGracePeriodSeconds") < 0 {
        spec.write("terminationGracePeriodSeconds", 1);
    }
    for list in RESOURCE_CONTAINER_LISTS {
        spec.items_mut(list).for_each(set_requests_from_limits);
    }
    if control_plane.at_least(34) {
        set_pod_level_requests(pod);
    } else {
        spec.remove("resources");
    }
}

/// Sets the defaults that pods and pod templates share (`SetDefaults_PodSpec` and those of its
/// parts).
pub(in crate::apiserver) fn set_template_defaults(template: &mut Value) {
    let spec = template.spec_mut();
    remove_empty(spec);
    for (field, value) in [
        ("restartPolicy", json!("Always")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("dnsPolicy", json!("ClusterFirst")),
        ("securityContext", json!({})),
        ("schedulerName", json!("default-scheduler")),
    ] {
        spec.set_default(field, value);
    }
    // `serviceAccount` is the deprecated name of the field.
    if let Some(account) = spec.get("serviceAccount").cloned() {
        spec.set_default("serviceAccountName", account);
    }
    for list in ALL_CONTAINER_LISTS {
        spec.items_mut(list).for_each(set_container_defaults);
    }
    for volume in spec.items_mut("volumes").filter_map(Value::as_object_mut) {
        if volume.keys().all(|field| field == "name") {
            volume.insert("emptyDir".to_owned(), json!({}));
        }
    }
}

/// Sets the defaults of a container.
pub(super) fn set_container_defaults(container: &mut Value) {
    let policy = ImageReference::parse(container.text("image")).default_pull_policy();
    for (field, value) in [
        ("resources", json!({})),
        ("terminationMessagePath", json!("/dev/termination-log")),
        ("terminationMessagePolicy", json!("File")),
        ("imagePullPolicy", json!(policy)),
    ] {
        container.set_default(field, value);
    }
}

fn set_requests_from_limits(container: &mut Value) {
    let Some(resources) = container.get_mut("resources") else { return };
    for (name, limit) in resources.read::<BTreeMap<String, Value>>("limits") {
        resources["requests"].set_default(&name, limit);
    }
}

/// Sets pod-level requests: the sum of the containers' requests, else the pod's limit
/// (`defaultPodRequests`).
pub(super) fn set_pod_level_requests(pod: &mut Value) {
    const SUPPORTED: [&str; 2] = ["cpu", "memory"];
    let is_supported = |name: &str| SUPPORTED.contains(&name) || name.starts_with("hugepages-");
    let limits: BTreeMap<String, Value> = pod.spec()["resources"].read("limits");
    if limits.is_empty() {
        return;
    }
    let Ok(whole) = read::<Pod>(pod) else { return };
    let is_requested = |name: &str| {
        let spec = &whole.spec;
        spec.containers.iter().chain(&spec.init_containers).any(|one| one.request(name).is_some())
    };
    let resources = &mut pod.spec_mut()["resources"];
    // Resources without a pod-level limit are summed as well.
    for name in SUPPORTED.into_iter().filter(|name| is_requested(name)) {
        resources["requests"].set_default(name, json!(whole.container_requests(name)));
    }
    for (name, limit) in limits.into_iter().filter(|(name, _)| is_supported(name)) {
        resources["requests"].set_default(&name, limit);
    }
}

/// Removes empty lists, and maps that Go omits when they are empty (`omitempty`).
fn remove_empty(value: &mut Value) {
    const MAPS: [&str; 5] = ["nodeSelector", "requests", "limits", "overhead", "annotations"];
    let is_empty = |name: &str, value: &Value| match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty() && MAPS.contains(&name),
        _ => false,
    };
    let keep = |fields: &mut Map<String, Value>| fields.retain(|name, value| !is_empty(name, value));
    match value {
        Value::Object(fields) => {
            keep(fields);
            fields.values_mut().for_each(remove_empty);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_empty),
        _ => {}
    }
}
