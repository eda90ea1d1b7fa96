//! A case's pod as it is created: the manifest as written, placed on its node.

use serde_json::{Map, Value, json};

use crate::case::Placed;

/// What a pod is given beside its own manifest.
pub struct Placement<'a> {
    /// The namespace.
    pub namespace: &'a str,
    /// The node.
    pub node: &'a str,
    /// How pods come to it. Bound ones pass by the scheduler, because the node's Allocatable is small and its taints are no accident.
    pub placed: Placed,
    /// The taints that the node had before the case, as tolerations: a scheduled pod tolerates no other.
    pub tolerations: &'a [Value],
    /// The case's priority classes: the name that the case has for one, and the name that it has.
    pub priority_classes: &'a [(String, String)],
    /// The environment of every container.
    pub environment: &'a [(&'static str, String)],
    /// The full name of a case's image.
    pub image: &'a dyn Fn(&str) -> String,
}

impl<'a> Placement<'a> {
    /// A pod that is bound to its node, and is given nothing else.
    pub fn bound(namespace: &'a str, node: &'a str, image: &'a dyn Fn(&str) -> String) -> Self {
        let placed = Placed::Bound;
        Self { namespace, node, placed, tolerations: &[], priority_classes: &[], environment: &[], image }
    }
}

/// The manifest with `apiVersion` and `kind`, namespace and node, every taint tolerated, and each container with the harness's environment
/// and its image's full name. What the manifest states itself stays.
pub fn manifest(pod: &Map<String, Value>, placement: &Placement) -> Value {
    let mut pod = Value::Object(pod.clone());
    put(&mut pod, "apiVersion", json!("v1"));
    put(&mut pod, "kind", json!("Pod"));
    pod["metadata"]["namespace"] = json!(placement.namespace);
    place_spec(&mut pod["spec"], placement);
    pod
}

/// A static pod: what a kubelet reads from a file of its node is bound to it already.
pub fn static_pod(pod: &Map<String, Value>, placement: &Placement) -> Value {
    let mut pod = manifest(pod, &Placement { placed: Placed::Bound, ..*placement });
    if let Some(spec) = pod["spec"].as_object_mut() {
        spec.remove("nodeName");
    }
    pod
}

/// An object of another kind, with the template of its pods placed in the same way.
pub fn object(object: &Map<String, Value>, placement: &Placement) -> Value {
    let mut object = Value::Object(object.clone());
    object["metadata"]["namespace"] = json!(placement.namespace);
    if object["kind"] == "Pod" {
        return object.as_object().map(|pod| manifest(pod, placement)).unwrap_or_default();
    }
    if object["spec"]["template"]["spec"].is_object() {
        place_spec(&mut object["spec"]["template"]["spec"], placement);
    }
    object
}

fn place_spec(spec: &mut Value, placement: &Placement) {
    match placement.placed {
        Placed::Bound => {
            spec["nodeName"] = json!(placement.node);
            put(spec, "tolerations", json!([{"operator": "Exists"}]));
        }
        Placed::Scheduled => {
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
    // No case talks to the API; a token that is not there cannot leak.
    put(spec, "automountServiceAccountToken", json!(false));
    for list in ["initContainers", "containers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            place(container, placement);
        }
    }
}

/// The same for one container, such as an ephemeral one.
pub fn place(container: &mut Value, placement: &Placement) {
    if let Some(image) = container.get("image").and_then(Value::as_str) {
        container["image"] = json!((placement.image)(image));
    }
    // Images are brought, never pulled: a node under pressure is no place to wait for a registry.
    put(container, "imagePullPolicy", json!("IfNotPresent"));
    let own = container.get("env").and_then(Value::as_array).cloned().unwrap_or_default();
    let states = |name: &str| own.iter().any(|variable| variable["name"] == name);
    // Before the case's own variables, which may refer to these.
    let mut all: Vec<Value> = placement
        .environment
        .iter()
        .filter(|(name, _)| !states(name))
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect();
    all.extend(own.iter().cloned());
    if !all.is_empty() {
        container["env"] = Value::Array(all);
    }
}

fn put(object: &mut Value, field: &str, value: Value) {
    if object.get(field).is_none() {
        object[field] = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_stays_and_the_rest_is_added() {
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
        let pod = manifest(written.as_object().unwrap(), &placement);
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
}
