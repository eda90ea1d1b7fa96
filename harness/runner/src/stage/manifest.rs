//! A case's pod as it is created: the manifest as written, placed on its node.

use serde_json::{Map, Value, json};

/// What a pod is given beside its own manifest.
pub struct Placement<'a> {
    /// The namespace.
    pub namespace: &'a str,
    /// The node; pods are bound to it directly, because its Allocatable is small and its taints are no accident.
    pub node: &'a str,
    /// The environment of every container.
    pub environment: &'a [(&'static str, String)],
    /// The full name of a case's image.
    pub image: &'a dyn Fn(&str) -> String,
}

/// The manifest with `apiVersion` and `kind`, namespace and node, every taint tolerated, and each container with the harness's environment
/// and its image's full name. What the manifest states itself stays.
pub fn manifest(pod: &Map<String, Value>, placement: &Placement) -> Value {
    let mut pod = Value::Object(pod.clone());
    put(&mut pod, "apiVersion", json!("v1"));
    put(&mut pod, "kind", json!("Pod"));
    pod["metadata"]["namespace"] = json!(placement.namespace);
    let spec = &mut pod["spec"];
    spec["nodeName"] = json!(placement.node);
    put(spec, "tolerations", json!([{"operator": "Exists"}]));
    // No case talks to the API; a token that is not there cannot leak.
    put(spec, "automountServiceAccountToken", json!(false));
    for list in ["initContainers", "containers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            place(container, placement);
        }
    }
    pod
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
        let placement = Placement { namespace: "ns", node: "n1", environment: &environment, image: &image };
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
