//! Limits of pods that state none, for nodes that evictlab does not manage.

use serde_json::{Map, Value, json};

/// Memory limit of a container that states neither CPU nor memory.
pub const DEFAULT_MEMORY_LIMIT: &str = "256Mi";
/// Limit on the disk usage of a pod that states none, set on its first container: the kubelet
/// compares the usage of the whole pod with the sum of the limits of its containers.
pub const DEFAULT_STORAGE_LIMIT: &str = "1Gi";

/// Adds limits to a pod spec. Requests stay as they are. Containers below a memory limit of the pod
/// get none, and a container that states CPU or memory keeps
/// these resources, and with them the QoS class that its case may be about.
pub fn add_default_limits(spec: &mut Map<String, Value>) {
    let is_limited = spec.get("resources").is_some_and(|resources| !resources["limits"]["memory"].is_null());
    let lists: &[&str] = if is_limited { &[] } else { &["initContainers", "containers"] };
    for list in lists {
        for container in spec.get_mut(*list).and_then(Value::as_array_mut).into_iter().flatten() {
            if !states(container, "memory") && !states(container, "cpu") {
                container["resources"]["limits"]["memory"] = json!(DEFAULT_MEMORY_LIMIT);
                // The API server would default the request to the limit.
                container["resources"]["requests"]["memory"] = json!("0");
            }
        }
    }
    let containers = spec.get_mut("containers").and_then(Value::as_array_mut);
    let Some(containers) = containers.filter(|all| !all.iter().any(|one| states(one, "ephemeral-storage")))
    else {
        return;
    };
    if let Some(first) = containers.first_mut() {
        first["resources"]["limits"]["ephemeral-storage"] = json!(DEFAULT_STORAGE_LIMIT);
        first["resources"]["requests"]["ephemeral-storage"] = json!("0");
    }
}

fn states(container: &Value, resource: &str) -> bool {
    let resources = &container["resources"];
    ["limits", "requests"].iter().any(|kind| !resources[*kind][resource].is_null())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_only_what_a_pod_does_not_state() {
        let memory = json!({"limits": {"memory": "256Mi"}, "requests": {"memory": "0"}});
        let both = json!({
            "limits": {"memory": "256Mi", "ephemeral-storage": "1Gi"},
            "requests": {"memory": "0", "ephemeral-storage": "0"},
        });
        let storage = json!({
            "limits": {"memory": "256Mi", "ephemeral-storage": "20M"},
            "requests": {"memory": "0"},
        });
        let rows = [
            (json!([{}, {}]), json!([both, memory])),
            (json!([{}, {"resources": {"limits": {"ephemeral-storage": "20M"}}}]), json!([memory, storage])),
            (
                json!([{"resources": {"requests": {"cpu": "1", "ephemeral-storage": "1"}}}]),
                json!([{"requests": {"cpu": "1", "ephemeral-storage": "1"}}]),
            ),
        ];
        for (containers, expected) in rows {
            let mut spec = json!({"containers": containers, "initContainers": [{}]});
            add_default_limits(spec.as_object_mut().unwrap());
            let resources: Vec<_> =
                spec["containers"].as_array().unwrap().iter().map(|one| one["resources"].clone()).collect();
            assert_eq!(json!(resources), expected);
            assert_eq!(spec["initContainers"][0]["resources"], memory);
        }
    }
}
