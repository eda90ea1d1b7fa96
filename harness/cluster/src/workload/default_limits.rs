//! Limits of pods that state none, for nodes that evictlab does not manage.

use evictlab_case::PodSpecManifest;

/// Memory limit of a container that states neither CPU nor memory.
pub const DEFAULT_MEMORY_LIMIT: &str = "256Mi";
/// Limit on the disk usage of a pod that states none, set on its first container: the kubelet
/// compares the usage of the whole pod with the sum of the limits of its containers.
pub const DEFAULT_STORAGE_LIMIT: &str = "1Gi";

/// Adds limits to a pod spec. Requests stay as they are. Containers below a memory limit of the pod
/// get none, and a container that states CPU or memory keeps these resources, and with them the QoS
/// class that its case may be about.
pub fn add_default_limits(spec: &mut PodSpecManifest) {
    let limits = spec.resources.as_ref().and_then(|resources| resources.limits.as_ref());
    let is_limited = limits.and_then(|limits| limits.get("memory")).is_some_and(|limit| !limit.is_null());
    if !is_limited {
        for container in spec.all_containers_mut() {
            if !container.states("memory") && !container.states("cpu") {
                // The API server would default the request to the limit.
                container.resources.get_or_insert_default().set("memory", DEFAULT_MEMORY_LIMIT, "0");
            }
        }
    }
    let containers = spec.containers.as_mut();
    let Some(containers) = containers.filter(|all| !all.iter().any(|one| one.states("ephemeral-storage")))
    else {
        return;
    };
    if let Some(first) = containers.first_mut() {
        first.resources.get_or_insert_default().set("ephemeral-storage", DEFAULT_STORAGE_LIMIT, "0");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
            let spec = json!({"containers": containers, "initContainers": [{}]});
            let mut template = PodSpecManifest::parse(spec.as_object().unwrap()).unwrap();
            add_default_limits(&mut template);
            let spec = json!(template);
            let resources: Vec<_> =
                spec["containers"].as_array().unwrap().iter().map(|one| one["resources"].clone()).collect();
            assert_eq!(json!(resources), expected);
            assert_eq!(spec["initContainers"][0]["resources"], memory);
        }
    }
}
