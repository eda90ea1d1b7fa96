//! What is demanded of pods: `pkg/apis/core/validation`, of which the parts are here that a test of eviction can meet.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::field::{Errors, Path};
use super::super::{meta, names};
use super::{containers, resources, volumes};

/// Checks a new pod.
pub(in super::super) fn create(pod: &Value) -> Errors {
    let mut errors = whole(pod);
    let spec = Path::new("spec");
    if containers(pod, "ephemeralContainers").next().is_some() {
        errors.forbidden(&spec.child("ephemeralContainers"), "cannot be set on create");
    }
    let gated = pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty());
    if gated && pod["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty()) {
        errors
            .forbidden(&spec.child("nodeName"), "cannot be set until all schedulingGates have been cleared");
    }
    errors
}

/// Checks metadata and spec of a pod.
pub(super) fn whole(pod: &Value) -> Errors {
    let mut errors = meta::validate(pod, names::subdomain);
    spec(pod, &Path::new("spec"), &mut errors);
    errors
}

/// Checks a pod's template: labels, annotations and spec (`ValidatePodTemplateSpec`).
pub(in super::super) fn template(template: &Value, path: &Path, errors: &mut Errors) {
    let metadata = path.child("metadata");
    meta::labels(&template["metadata"]["labels"], &metadata.child("labels"), errors);
    meta::annotations(template, &metadata.child("annotations"), errors);
    let path = path.child("spec");
    spec(template, &path, errors);
    if containers(template, "ephemeralContainers").next().is_some() {
        errors.forbidden(
            &path.child("ephemeralContainers"),
            "ephemeral containers not allowed in pod template",
        );
    }
}

/// Checks the spec of a pod or a template, which is at a path.
fn spec(pod: &Value, path: &Path, errors: &mut Errors) {
    let spec = &pod["spec"];
    let volumes = volumes::check(spec, &path.child("volumes"), errors);
    regular(pod, &volumes, &path.child("containers"), errors);
    init(pod, &volumes, &path.child("initContainers"), errors);
    super::ephemeral::check(pod, &volumes, &path.child("ephemeralContainers"), errors);
    resources::pod_level(pod, path, errors);
    host_ports(spec, &path.child("containers"), errors);
    one_of(spec, path, "restartPolicy", &["Always", "OnFailure", "Never"], errors);
    one_of(spec, path, "dnsPolicy", &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"], errors);
    meta::labels(&spec["nodeSelector"], &path.child("nodeSelector"), errors);
    security_context(&spec["securityContext"], &path.child("securityContext"), errors);
    for (field, rule) in [
        ("serviceAccountName", names::subdomain as fn(&str) -> Vec<String>),
        ("nodeName", names::subdomain),
        ("hostname", names::label),
        ("subdomain", names::label),
        ("priorityClassName", names::subdomain),
        ("runtimeClassName", names::subdomain),
    ] {
        if let Some(name) = spec[field].as_str().filter(|name| !name.is_empty()) {
            rule(name).iter().for_each(|wrong| errors.invalid(&path.child(field), name, wrong));
        }
    }
    if let Some(deadline) = spec["activeDeadlineSeconds"].as_i64()
        && !(1..=i64::from(i32::MAX)).contains(&deadline)
    {
        let range = "must be between 1 and 2147483647, inclusive";
        errors.invalid(&path.child("activeDeadlineSeconds"), deadline, range);
    }
    tolerations(spec, &path.child("tolerations"), errors);
    one_of(spec, path, "preemptionPolicy", &["PreemptLowerPriority", "Never"], errors);
    // Whitespace around an image is looked for after everything else.
    for list in ["containers", "initContainers"] {
        for (index, container) in containers(pod, list).enumerate() {
            image_space(container, &path.child(list).index(index), errors);
        }
    }
}

/// What is demanded of containers of every kind.
pub(super) fn common(container: &Value, volumes: &BTreeSet<&str>, path: &Path, errors: &mut Errors) {
    let name = container["name"].as_str().unwrap_or_default();
    match name {
        "" => errors.required(&path.child("name"), ""),
        name => names::label(name).iter().for_each(|wrong| errors.invalid(&path.child("name"), name, wrong)),
    }
    if container["image"].as_str().unwrap_or_default().is_empty() {
        errors.required(&path.child("image"), "");
    }
    one_of(container, path, "terminationMessagePolicy", &["File", "FallbackToLogsOnError"], errors);
    ports(container, &path.child("ports"), errors);
    for (index, variable) in list(container, "env").enumerate() {
        let path = path.child("env").index(index);
        match variable["name"].as_str().unwrap_or_default() {
            "" => errors.required(&path.child("name"), ""),
            name => names::variable(name)
                .into_iter()
                .for_each(|wrong| errors.invalid(&path.child("name"), name, wrong)),
        }
        let valued = variable["value"].as_str().is_some_and(|value| !value.is_empty());
        if valued && variable["valueFrom"].is_object() {
            errors.invalid(&path.child("valueFrom"), "", "may not be specified when `value` is not empty");
        }
    }
    mounts(container, volumes, &path.child("volumeMounts"), errors);
    one_of(container, path, "imagePullPolicy", &["Always", "IfNotPresent", "Never"], errors);
    resources::container(&container["resources"], &path.child("resources"), errors);
}

/// Whitespace around an image.
pub(super) fn image_space(container: &Value, path: &Path, errors: &mut Errors) {
    let image = container["image"].as_str().unwrap_or_default();
    if image.trim() != image {
        errors.invalid(&path.child("image"), image, "must not have leading or trailing whitespace");
    }
}

fn regular(pod: &Value, volumes: &BTreeSet<&str>, path: &Path, errors: &mut Errors) {
    if containers(pod, "containers").next().is_none() {
        errors.required(path, "");
    }
    let mut taken = BTreeSet::new();
    for (index, container) in containers(pod, "containers").enumerate() {
        let path = path.index(index);
        common(container, volumes, &path, errors);
        let name = container["name"].as_str().unwrap_or_default();
        if !taken.insert(name) {
            errors.duplicate(&path.child("name"), name);
        }
        probes(container, &path, errors);
        let rules = container["restartPolicyRules"].is_array();
        if container["restartPolicy"].is_string() && !rules {
            errors.forbidden(&path.child("restartPolicy"), "may not be set for non-init containers");
        }
    }
}

fn init(pod: &Value, volumes: &BTreeSet<&str>, path: &Path, errors: &mut Errors) {
    let name = |container: &'_ Value| container["name"].as_str().unwrap_or_default().to_owned();
    let mut taken: BTreeSet<String> = containers(pod, "containers").map(name).collect();
    for (index, container) in containers(pod, "initContainers").enumerate() {
        let path = path.index(index);
        common(container, volumes, &path, errors);
        let policy = container["restartPolicy"].as_str();
        if let Some(policy) = policy.filter(|&policy| policy != "Always")
            && !container["restartPolicyRules"].is_array()
        {
            errors.not_supported(&path.child("restartPolicy"), policy, &["Always"]);
        }
        let name = name(container);
        if !name.is_empty() && !taken.insert(name.clone()) {
            errors.duplicate(&path.child("name"), &name);
        }
        if policy == Some("Always") {
            probes(container, &path, errors);
        } else {
            for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
                if container[field].is_object() {
                    let why = "may not be set for init containers without restartPolicy=Always";
                    errors.forbidden(&path.child(field), why);
                }
            }
        }
    }
}

fn mounts(container: &Value, volumes: &BTreeSet<&str>, path: &Path, errors: &mut Errors) {
    let mut taken = BTreeSet::new();
    for (index, mount) in list(container, "volumeMounts").enumerate() {
        let path = path.index(index);
        let text = |field: &str| mount[field].as_str().unwrap_or_default();
        let (name, place) = (text("name"), text("mountPath"));
        if name.is_empty() {
            errors.required(&path.child("name"), "");
        }
        if !volumes.contains(name) {
            errors.not_found(&path.child("name"), name);
        }
        if place.is_empty() {
            errors.required(&path.child("mountPath"), "");
        }
        if !taken.insert(place) {
            errors.invalid(&path.child("mountPath"), place, "must be unique");
        }
    }
}

fn ports(container: &Value, path: &Path, errors: &mut Errors) {
    let range = "must be between 1 and 65535, inclusive";
    let fits = |port: i64| (1..=65535).contains(&port);
    for (index, port) in list(container, "ports").enumerate() {
        let path = path.index(index);
        match port["containerPort"].as_i64().unwrap_or(0) {
            0 => errors.required(&path.child("containerPort"), ""),
            number if !fits(number) => errors.invalid(&path.child("containerPort"), number, range),
            _ => {}
        }
        if let Some(number) = port["hostPort"].as_i64().filter(|&number| number != 0 && !fits(number)) {
            errors.invalid(&path.child("hostPort"), number, range);
        }
        one_of(port, &path, "protocol", &["SCTP", "TCP", "UDP"], errors);
    }
}

fn host_ports(spec: &Value, path: &Path, errors: &mut Errors) {
    if spec["hostNetwork"] != true {
        return;
    }
    for (index, container) in list(spec, "containers").enumerate() {
        for (number, port) in list(container, "ports").enumerate() {
            let (host, own) =
                (port["hostPort"].as_i64().unwrap_or(0), port["containerPort"].as_i64().unwrap_or(0));
            if host != own {
                let path = path.index(index).child("ports").index(number).child("hostPort");
                errors.invalid(&path, host, "must match `containerPort` when `hostNetwork` is true");
            }
        }
    }
}

fn probes(container: &Value, path: &Path, errors: &mut Errors) {
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let (probe, path) = (&container[name], path.child(name));
        if !probe.is_object() {
            continue;
        }
        let handlers =
            ["exec", "httpGet", "tcpSocket", "grpc"].iter().filter(|handler| probe[**handler].is_object());
        if handlers.count() == 0 {
            errors.required(&path, "must specify a handler type");
        }
        for field in
            ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
        {
            if let Some(value) = probe[field].as_i64().filter(|&value| value < 0) {
                errors.invalid(&path.child(field), value, "must be greater than or equal to 0");
            }
        }
        let successes = probe["successThreshold"].as_i64().unwrap_or(1);
        if name != "readinessProbe" && successes != 1 {
            errors.invalid(&path.child("successThreshold"), successes, "must be 1");
        }
    }
}

fn security_context(context: &Value, path: &Path, errors: &mut Errors) {
    for field in ["runAsUser", "runAsGroup", "fsGroup"] {
        if let Some(id) = context[field].as_i64().filter(|id| !(0..=i64::from(i32::MAX)).contains(id)) {
            errors.invalid(&path.child(field), id, "must be between 0 and 2147483647, inclusive");
        }
    }
}

/// Checks tolerations.
pub(super) fn tolerations(spec: &Value, path: &Path, errors: &mut Errors) {
    for (index, toleration) in list(spec, "tolerations").enumerate() {
        let path = path.index(index);
        let text = |field: &str| toleration[field].as_str().unwrap_or_default();
        let (key, operator, effect, value) = (text("key"), text("operator"), text("effect"), text("value"));
        if !key.is_empty() {
            names::qualified(key).iter().for_each(|wrong| errors.invalid(&path.child("key"), key, wrong));
        } else if operator != "Exists" {
            let why =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.invalid(&path.child("operator"), operator, why);
        }
        if toleration["tolerationSeconds"].is_i64() && effect != "NoExecute" {
            let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.invalid(&path.child("effect"), effect, why);
        }
        match operator {
            "" | "Equal" => {
                let wrong = names::label_value(value);
                if !wrong.is_empty() {
                    errors.invalid(&path.child("operator"), value, &wrong.join(";"));
                }
            }
            "Exists" => {
                if !value.is_empty() {
                    errors.invalid(
                        &path.child("operator"),
                        value,
                        "value must be empty when `operator` is 'Exists'",
                    );
                }
            }
            // Numbers are compared since 1.35 (`TaintTolerationComparisonOperators`, KEP-5471), behind a gate that is off.
            other => errors.not_supported(&path.child("operator"), other, &["Equal", "Exists"]),
        }
        one_of(toleration, &path, "effect", &["NoSchedule", "PreferNoSchedule", "NoExecute"], errors);
    }
}

/// A field that, where it is stated, has one of some values.
fn one_of(value: &Value, path: &Path, field: &str, supported: &[&str], errors: &mut Errors) {
    if let Some(stated) =
        value[field].as_str().filter(|stated| !stated.is_empty() && !supported.contains(stated))
    {
        errors.not_supported(&path.child(field), stated, supported);
    }
}

fn list<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    value[field].as_array().into_iter().flatten()
}
