//! Defaults of pods: `pkg/apis/core/v1/defaults.go`.

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
    let host_network: bool = spec.read("hostNetwork");
    for list in ALL_CONTAINER_LISTS {
        for container in spec.items_mut(list) {
            set_container_defaults(container);
            if list != "ephemeralContainers" && host_network {
                set_host_ports(container);
            }
        }
    }
    spec.items_mut("volumes").for_each(set_volume_defaults);
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
    for port in container.items_mut("ports") {
        port.set_default("protocol", json!("TCP"));
    }
    for variable in container.items_mut("env") {
        variable.get_mut("valueFrom").into_iter().for_each(set_reference_defaults);
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(name) {
            for (field, value) in [
                ("timeoutSeconds", 1),
                ("periodSeconds", 10),
                ("successThreshold", 1),
                ("failureThreshold", 3),
            ] {
                if probe.integer(field) == 0 {
                    probe.write(field, value);
                }
            }
            set_handler_defaults(probe);
        }
    }
    for hook in ["postStart", "preStop"] {
        if let Some(hook) = container.get_mut("lifecycle").and_then(|lifecycle| lifecycle.get_mut(hook)) {
            set_handler_defaults(hook);
        }
    }
}

fn set_handler_defaults(handler: &mut Value) {
    if let Some(get) = handler.get_mut("httpGet") {
        get.set_default("path", json!("/"));
        get.set_default("scheme", json!("HTTP"));
    }
    if let Some(grpc) = handler.get_mut("grpc") {
        grpc.set_default("service", json!(""));
    }
}

fn set_requests_from_limits(container: &mut Value) {
    let Some(resources) = container.get_mut("resources") else { return };
    for (name, limit) in resources.read::<BTreeMap<String, Value>>("limits") {
        resources["requests"].set_default(&name, limit);
    }
}

fn set_host_ports(container: &mut Value) {
    for port in container.items_mut("ports") {
        if let Some(same) = port.get("containerPort").cloned() {
            port.set_default("hostPort", same);
        }
    }
}

fn set_volume_defaults(volume: &mut Value) {
    let Some(fields) = volume.as_object_mut() else { return };
    if fields.keys().all(|field| field == "name") {
        fields.insert("emptyDir".to_owned(), json!({}));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = fields.get_mut(source) {
            source.set_default("defaultMode", json!(0o644));
        }
    }
    if let Some(path) = fields.get_mut("hostPath") {
        path.set_default("type", json!(""));
    }
    if let Some(downward) = fields.get_mut("downwardAPI") {
        downward.items_mut("items").for_each(set_reference_defaults);
    }
    for source in fields.get_mut("projected").into_iter().flat_map(|projected| projected.items_mut("sources"))
    {
        if let Some(token) = source.get_mut("serviceAccountToken") {
            token.set_default("expirationSeconds", json!(3600));
        }
        if let Some(downward) = source.get_mut("downwardAPI") {
            downward.items_mut("items").for_each(set_reference_defaults);
        }
    }
}

/// Sets the defaults of a reference to a field of the pod or to a resource of a container.
fn set_reference_defaults(from: &mut Value) {
    if let Some(field) = from.get_mut("fieldRef") {
        field.set_default("apiVersion", json!("v1"));
    }
    if let Some(resource) = from.get_mut("resourceFieldRef") {
        resource.set_default("divisor", json!("0"));
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
