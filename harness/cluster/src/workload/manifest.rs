//! Manifests of a case, completed for the node that the case runs on.

use std::time::Duration;

use serde_json::{Map, Value, json};

use evictlab_case::{CASE_NAME_ANNOTATION, PodPlacement, case_name};

use super::default_limits::add_default_limits;

/// Fields that are added to the manifests of a case.
pub struct Placement<'a> {
    /// Namespace of the objects.
    pub namespace: &'a str,
    /// Node of the pods.
    pub node: &'a str,
    /// Scheduling of the pods. Bound pods bypass the scheduler, because the node has little
    /// allocatable memory and intentional taints.
    pub placed: PodPlacement,
    /// Tolerations for the taints that the node had before the case, for scheduled pods.
    pub tolerations: &'a [Value],
    /// Priority classes of the case: name in the case, and name in the cluster.
    pub priority_classes: &'a [(String, String)],
    /// Environment variables of every container.
    pub environment: &'a [(&'static str, String)],
    /// True if pods without limits get default limits.
    pub default_limits: bool,
    /// Time after which the kubelet ends the pods, in case nobody deletes them. Not for the pods of
    /// a Deployment, whose template must not have it.
    pub active_deadline: Option<Duration>,
    /// Returns the full name of an image.
    pub image: &'a dyn Fn(&str) -> String,
}

impl<'a> Placement<'a> {
    /// Placement of pods that are bound to a node, without further additions.
    pub fn bound(namespace: &'a str, node: &'a str, image: &'a dyn Fn(&str) -> String) -> Self {
        let placed = PodPlacement::Bound;
        Self {
            namespace,
            node,
            placed,
            tolerations: &[],
            priority_classes: &[],
            environment: &[],
            default_limits: false,
            active_deadline: None,
            image,
        }
    }
}

/// Adds `apiVersion`, `kind`, namespace, node and tolerations to a pod, and environment and full
/// image name to its containers. Existing fields are kept.
pub fn pod_manifest(pod: &Map<String, Value>, placement: &Placement) -> Value {
    let name = case_name(pod);
    let mut pod = Value::Object(pod.clone());
    set_default(&mut pod, "apiVersion", json!("v1"));
    set_default(&mut pod, "kind", json!("Pod"));
    pod["metadata"]["namespace"] = json!(placement.namespace);
    if pod["metadata"].get("name").is_none()
        && let Some(name) = name
    {
        pod["metadata"]["annotations"][CASE_NAME_ANNOTATION] = json!(name);
    }
    place_spec(&mut pod["spec"], placement);
    set_active_deadline(&mut pod["spec"], placement);
    pod
}

/// Like [`pod_manifest`], for a static pod: it has no `nodeName`, because the kubelet that reads
/// its file sets the node.
pub fn static_pod_manifest(pod: &Map<String, Value>, placement: &Placement) -> Value {
    let mut pod = pod_manifest(pod, &Placement { placed: PodPlacement::Bound, ..*placement });
    if let Some(spec) = pod["spec"].as_object_mut() {
        spec.remove("nodeName");
    }
    pod
}

/// Adds the namespace to an object of any kind, and completes its pod template like
/// [`pod_manifest`].
pub fn object_manifest(object: &Map<String, Value>, placement: &Placement) -> Value {
    let mut object = Value::Object(object.clone());
    object["metadata"]["namespace"] = json!(placement.namespace);
    if object["kind"] == "Pod" {
        return object.as_object().map(|pod| pod_manifest(pod, placement)).unwrap_or_default();
    }
    if object["spec"]["template"]["spec"].is_object() {
        place_spec(&mut object["spec"]["template"]["spec"], placement);
    }
    if object["kind"] == "Job" {
        set_active_deadline(&mut object["spec"]["template"]["spec"], placement);
    }
    object
}

fn set_active_deadline(spec: &mut Value, placement: &Placement) {
    if let Some(deadline) = placement.active_deadline {
        set_default(spec, "activeDeadlineSeconds", json!(deadline.as_secs()));
    }
}

fn place_spec(spec: &mut Value, placement: &Placement) {
    match placement.placed {
        PodPlacement::Bound => {
            spec["nodeName"] = json!(placement.node);
            set_default(spec, "tolerations", json!([{"operator": "Exists"}]));
        }
        PodPlacement::Scheduled => {
            spec["nodeSelector"]["kubernetes.io/hostname"] = json!(placement.node);
            let mut tolerations = placement.tolerations.to_vec();
            tolerations.extend(spec["tolerations"].as_array().into_iter().flatten().cloned());
            if !tolerations.is_empty() {
                spec["tolerations"] = Value::Array(tolerations);
            }
        }
    }
    if let Some(class) = spec.get("priorityClassName").and_then(Value::as_str)
        && let Some((_, name)) = placement.priority_classes.iter().find(|(own, _)| own == class)
    {
        spec["priorityClassName"] = json!(name);
    }
    if let Some(spec) = spec.as_object_mut().filter(|_| placement.default_limits) {
        add_default_limits(spec);
    }
    // Cases do not use the API, so their pods get no token.
    set_default(spec, "automountServiceAccountToken", json!(false));
    for list in ["initContainers", "containers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            place_container(container, placement);
        }
    }
}

/// Adds environment, pull policy and full image name to a container.
pub fn place_container(container: &mut Value, placement: &Placement) {
    if let Some(image) = container.get("image").and_then(Value::as_str) {
        container["image"] = json!((placement.image)(image));
    }
    // Images are loaded before the case: a pull would delay a node under pressure.
    set_default(container, "imagePullPolicy", json!("IfNotPresent"));
    let own = container.get("env").and_then(Value::as_array).cloned().unwrap_or_default();
    let defines = |name: &str| own.iter().any(|variable| variable["name"] == name);
    // First, because the variables of the case may refer to these.
    let mut all: Vec<Value> = placement
        .environment
        .iter()
        .filter(|(name, _)| !defines(name))
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect();
    all.extend(own.iter().cloned());
    if !all.is_empty() {
        container["env"] = Value::Array(all);
    }
}

fn set_default(object: &mut Value, field: &str, value: Value) {
    if object.get(field).is_none() {
        object[field] = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_existing_fields_and_adds_the_rest() {
        let written = json!({
            "metadata": {"name": "a", "labels": {"b": "c"}},
            "spec": {
                "initContainers": [{"name": "i", "image": "agnhost:2.52"}],
                "containers": [{"name": "c", "image": "mine", "imagePullPolicy": "Never",
                    "env": [{"name": "STEP", "value": "1Mi"}, {"name": "X", "value": "$(TOTAL)"}]}],
            },
        });
        let environment = [("STEP", "13Mi".to_owned()), ("TOTAL", "364Mi".to_owned())];
        let image = |name: &str| format!("registry.example/{name}");
        let placement = Placement { environment: &environment, ..Placement::bound("ns", "n1", &image) };
        let pod = pod_manifest(written.as_object().unwrap(), &placement);
        assert_eq!(
            pod,
            json!({
                "metadata": {"name": "a", "labels": {"b": "c"}, "namespace": "ns"},
                "spec": {
                    "initContainers": [{"name": "i", "image": "registry.example/agnhost:2.52",
                        "imagePullPolicy": "IfNotPresent",
                        "env": [{"name": "STEP", "value": "13Mi"}, {"name": "TOTAL", "value": "364Mi"}]}],
                    "containers": [{"name": "c", "image": "registry.example/mine", "imagePullPolicy": "Never",
                        "env": [{"name": "TOTAL", "value": "364Mi"}, {"name": "STEP", "value": "1Mi"},
                            {"name": "X", "value": "$(TOTAL)"}]}],
                    "nodeName": "n1",
                    "tolerations": [{"operator": "Exists"}],
                    "automountServiceAccountToken": false,
                },
                "apiVersion": "v1",
                "kind": "Pod",
            })
        );
    }

    #[test]
    fn a_pod_with_a_generated_name_has_the_name_in_the_case() {
        let image = |name: &str| name.to_owned();
        let placement = Placement::bound("ns", "n1", &image);
        let annotations = |metadata: Value| {
            let pod = json!({"metadata": metadata, "spec": {}});
            pod_manifest(pod.as_object().unwrap(), &placement)["metadata"]["annotations"].clone()
        };
        assert_eq!(annotations(json!({"generateName": "web-"})), json!({"evictlab.dev/case-name": "web"}));
        assert_eq!(
            annotations(json!({"generateName": "web-", "annotations": {"a": "b"}})),
            json!({"a": "b", "evictlab.dev/case-name": "web"})
        );
        assert_eq!(annotations(json!({"name": "web"})), Value::Null);
    }

    #[test]
    fn only_pods_and_jobs_have_an_active_deadline() {
        let image = |name: &str| name.to_owned();
        let active_deadline = Some(Duration::from_secs(240));
        let placement = Placement { active_deadline, ..Placement::bound("ns", "n1", &image) };
        let deadline = |kind: &str| {
            let written = json!({"kind": kind, "metadata": {}, "spec": {"template": {"spec": {}}}});
            let object = object_manifest(written.as_object().unwrap(), &placement);
            let spec = if kind == "Pod" { &object["spec"] } else { &object["spec"]["template"]["spec"] };
            spec["activeDeadlineSeconds"].as_u64()
        };
        assert_eq!(["Pod", "Job", "Deployment"].map(deadline), [Some(240), Some(240), None]);
    }
}
