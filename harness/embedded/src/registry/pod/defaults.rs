//! What the API fills in: `pkg/apis/core/v1/defaults.go`.

use evictlab_rules::KubeletVersion;
use evictlab_rules::pod::Pod;
use evictlab_rules::quantity::Quantity;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::CONTAINERS;

/// Fills in a pod. Pod-level resources are known since 1.34 (`PodLevelResources`, KEP-2837); before, they are dropped.
pub(in super::super) fn set(pod: &mut Value, control_plane: &KubeletVersion) {
    template(pod);
    let spec = &mut pod["spec"];
    default(spec, "enableServiceLinks", json!(true));
    for list in ["containers", "initContainers"] {
        spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten().for_each(requests_from_limits);
    }
    if control_plane.at_least(34) {
        pod_level_requests(pod);
    } else if let Some(spec) = spec.as_object_mut() {
        spec.shift_remove("resources");
    }
}

/// Fills in a pod's template: what is filled in of a pod's spec wherever it is (`SetDefaults_PodSpec` and those of its parts).
pub(in super::super) fn template(template: &mut Value) {
    let spec = &mut template["spec"];
    tidy(spec);
    for (field, value) in [
        ("restartPolicy", json!("Always")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("dnsPolicy", json!("ClusterFirst")),
        ("securityContext", json!({})),
        ("schedulerName", json!("default-scheduler")),
    ] {
        default(spec, field, value);
    }
    // The old name of the same field.
    if spec["serviceAccountName"].is_null() && spec["serviceAccount"].is_string() {
        spec["serviceAccountName"] = spec["serviceAccount"].clone();
    }
    let host_network = spec["hostNetwork"] == true;
    for list in CONTAINERS {
        for one in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            container(one);
            if list != "ephemeralContainers" && host_network {
                host_ports(one);
            }
        }
    }
    spec.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten().for_each(volume);
}

/// Fills in an ephemeral container.
pub(super) fn container(container: &mut Value) {
    let policy =
        if is_latest(container["image"].as_str().unwrap_or_default()) { "Always" } else { "IfNotPresent" };
    for (field, value) in [
        ("resources", json!({})),
        ("terminationMessagePath", json!("/dev/termination-log")),
        ("terminationMessagePolicy", json!("File")),
        ("imagePullPolicy", json!(policy)),
    ] {
        default(container, field, value);
    }
    for port in list(container, "ports") {
        default(port, "protocol", json!("TCP"));
    }
    for variable in list(container, "env") {
        variable.get_mut("valueFrom").into_iter().for_each(references);
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(name) {
            for (field, value) in [
                ("timeoutSeconds", 1),
                ("periodSeconds", 10),
                ("successThreshold", 1),
                ("failureThreshold", 3),
            ] {
                if probe[field].as_i64().unwrap_or(0) == 0 {
                    probe[field] = json!(value);
                }
            }
            handler(probe);
        }
    }
    for hook in ["postStart", "preStop"] {
        if let Some(hook) = container.get_mut("lifecycle").and_then(|lifecycle| lifecycle.get_mut(hook)) {
            handler(hook);
        }
    }
}

fn handler(handler: &mut Value) {
    if let Some(get) = handler.get_mut("httpGet") {
        default(get, "path", json!("/"));
        default(get, "scheme", json!("HTTP"));
    }
    if let Some(grpc) = handler.get_mut("grpc") {
        default(grpc, "service", json!(""));
    }
}

/// Whether an image has the tag `latest`, which it has if it has neither tag nor digest.
fn is_latest(image: &str) -> bool {
    let last = image.rsplit('/').next().unwrap_or_default();
    match last.split_once('@') {
        Some((named, _)) => named.ends_with(":latest"),
        None => last.split_once(':').is_none_or(|(_, tag)| tag == "latest"),
    }
}

fn requests_from_limits(container: &mut Value) {
    let limits = match &container["resources"]["limits"] {
        Value::Object(limits) => limits.clone(),
        _ => return,
    };
    let requests = &mut container["resources"]["requests"];
    for (name, limit) in limits {
        default(requests, &name, limit);
    }
}

fn host_ports(container: &mut Value) {
    for port in list(container, "ports") {
        let same = port["containerPort"].clone();
        default(port, "hostPort", same);
    }
}

fn volume(volume: &mut Value) {
    let Some(fields) = volume.as_object_mut() else { return };
    if fields.keys().all(|field| field == "name") {
        fields.insert("emptyDir".to_owned(), json!({}));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = fields.get_mut(source) {
            default(source, "defaultMode", json!(0o644));
        }
    }
    if let Some(path) = fields.get_mut("hostPath")
        && path["type"].is_null()
    {
        path["type"] = json!("");
    }
    if let Some(downward) = fields.get_mut("downwardAPI") {
        list(downward, "items").for_each(references);
    }
    for source in fields.get_mut("projected").into_iter().flat_map(|projected| list(projected, "sources")) {
        if let Some(token) = source.get_mut("serviceAccountToken") {
            default(token, "expirationSeconds", json!(3600));
        }
        if let Some(downward) = source.get_mut("downwardAPI") {
            list(downward, "items").for_each(references);
        }
    }
}

/// What names a field of the pod or a resource of a container.
fn references(from: &mut Value) {
    if let Some(field) = from.get_mut("fieldRef") {
        default(field, "apiVersion", json!("v1"));
    }
    if let Some(resource) = from.get_mut("resourceFieldRef") {
        default(resource, "divisor", json!("0"));
    }
}

/// Pod-level requests: the containers' sum where they ask for the resource, else the pod's limit (`defaultPodRequests`).
fn pod_level_requests(pod: &mut Value) {
    const SUPPORTED: [&str; 2] = ["cpu", "memory"];
    let supported = |name: &str| SUPPORTED.contains(&name) || name.starts_with("hugepages-");
    let Some(limits) = pod["spec"]["resources"]["limits"].as_object().filter(|limits| !limits.is_empty())
    else {
        return;
    };
    let limits = limits.clone();
    let Ok(whole) = Pod::deserialize(&*pod) else { return };
    let asked = |name: &str| {
        let spec = &whole.spec;
        spec.containers.iter().chain(&spec.init_containers).any(|one| one.request(name).is_some())
    };
    let resources = &mut pod["spec"]["resources"];
    // A resource that only the containers ask for is summed up too.
    for name in SUPPORTED.into_iter().filter(|name| asked(name)) {
        default(&mut resources["requests"], name, json!(aggregate(&whole, name)));
    }
    for (name, limit) in limits.into_iter().filter(|(name, _)| supported(name)) {
        default(&mut resources["requests"], &name, limit);
    }
}

/// What a pod's containers ask for together, whatever the pod itself states.
pub(crate) fn aggregate(pod: &Pod, resource: &str) -> Quantity {
    let mut alone = pod.clone();
    alone.spec.resources = None;
    alone.spec.overhead.clear();
    // The sum with sidecars is that of kubelets since 1.34.
    alone.request(&KubeletVersion::minor(34), resource)
}

/// Sets a field that is missing or an empty text.
fn default(value: &mut Value, field: &str, to: Value) {
    let unset = match &value[field] {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        _ => false,
    };
    if unset {
        value[field] = to;
    }
}

fn list<'a>(value: &'a mut Value, field: &str) -> impl Iterator<Item = &'a mut Value> {
    value.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten()
}

/// Drops empty lists, and maps that mean nothing when empty, as Go's `omitempty` does.
fn tidy(value: &mut Value) {
    const MAPS: [&str; 5] = ["nodeSelector", "requests", "limits", "overhead", "annotations"];
    let empty = |name: &str, value: &Value| match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty() && MAPS.contains(&name),
        _ => false,
    };
    let keep = |fields: &mut Map<String, Value>| fields.retain(|name, value| !empty(name, value));
    match value {
        Value::Object(fields) => {
            keep(fields);
            fields.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}
