//! Limits of pods that state none, for nodes that evictlab does not manage.

use evictlab_case::{PodSpecManifest, ResourcesManifest, parse_amount};

/// Memory limit of a container that states neither CPU nor memory.
const DEFAULT_MEMORY_LIMIT: &str = "256Mi";
/// Limit on the disk usage of a pod that states none, set on its first container: the kubelet
/// compares the usage of the whole pod with the sum of the limits of its containers.
const DEFAULT_STORAGE_LIMIT: &str = "1Gi";

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

/// Adds a memory limit, in bytes, to each container without one. A BestEffort pod gets none: it
/// would be Burstable. Stated requests stay as they are. Containers below a memory limit of the pod
/// get none.
pub(super) fn add_memory_limit(spec: &mut PodSpecManifest, bytes: u64) {
    let has_limit =
        |resources: &ResourcesManifest| resources.limit("memory").is_some_and(|limit| limit.value() > 0);
    let of_containers = spec.all_containers().filter_map(|container| container.resources.as_ref());
    if spec.resources.as_ref().is_some_and(has_limit)
        || !spec.resources.iter().chain(of_containers).any(states_amount)
    {
        return;
    }
    for container in spec.all_containers_mut() {
        let resources = container.resources.get_or_insert_default();
        if has_limit(resources) {
            continue;
        }
        let stated = resources.requests.as_ref().and_then(|requests| requests.get("memory")).cloned();
        let request =
            stated.as_ref().and_then(parse_amount).and_then(|request| u64::try_from(request.value()).ok());
        let limit = bytes.max(request.unwrap_or_default()).to_string();
        // The API server would default the request to the limit.
        resources.set("memory", &limit, "0");
        if let (Some(stated), Some(requests)) = (stated, &mut resources.requests) {
            requests.insert("memory".to_owned(), stated);
        }
    }
}

/// Returns whether a limit or a request on CPU or memory is more than 0: such a pod is not
/// BestEffort.
fn states_amount(resources: &ResourcesManifest) -> bool {
    let lists = resources.limits.iter().chain(&resources.requests);
    let mut amounts = lists.flat_map(|amounts| ["cpu", "memory"].map(|resource| amounts.get(resource)));
    amounts.any(|amount| amount.and_then(parse_amount).is_some_and(|amount| amount.value() > 0))
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

    #[test]
    fn a_memory_limit_keeps_the_qos_class() {
        let rows = [
            (json!([{}, {"resources": {"requests": {"cpu": 0}}}]), json!([null, {"requests": {"cpu": 0}}])),
            (
                json!([{"resources": {"requests": {"cpu": "1m"}}}, {}]),
                json!([
                    {"limits": {"memory": "1000"}, "requests": {"cpu": "1m", "memory": "0"}},
                    {"limits": {"memory": "1000"}, "requests": {"memory": "0"}},
                ]),
            ),
            (
                json!([{"resources": {"requests": {"memory": "1Ki"}}}, {"resources": {"limits": {"memory": "5"}}}]),
                json!([
                    {"limits": {"memory": "1024"}, "requests": {"memory": "1Ki"}},
                    {"limits": {"memory": "5"}},
                ]),
            ),
        ];
        for (containers, expected) in rows {
            let spec = json!({"containers": containers});
            let mut template = PodSpecManifest::parse(spec.as_object().unwrap()).unwrap();
            add_memory_limit(&mut template, 1000);
            let spec = json!(template);
            let resources: Vec<_> =
                spec["containers"].as_array().unwrap().iter().map(|one| one["resources"].clone()).collect();
            assert_eq!(json!(resources), expected);
        }
        let spec = json!({"resources": {"limits": {"memory": "1Gi"}}, "containers": [{}]});
        let mut bounded = PodSpecManifest::parse(spec.as_object().unwrap()).unwrap();
        add_memory_limit(&mut bounded, 1000);
        assert_eq!(json!(bounded), spec);
    }
}
