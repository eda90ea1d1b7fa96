//! One look at the node's Summary, cut down to what evictions hang on.

use serde_json::{Map, Value, json};

/// Reduces a Summary to a sample of the recordings' form: `t` in seconds since the first pod's creation, the node's memory, fs and
/// rlimit, and of each pod of the namespace its name, memory, process count, ephemeral storage, volumes and containers with memory, rootfs
/// and logs. Other pods keep their name and memory: they are what the kubelet ranks ours against.
pub fn sample(t: f64, summary: &Value, namespace: &str) -> Value {
    let pods: Vec<Value> = summary["pods"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|pod| match pod["podRef"]["namespace"] == namespace {
            true => {
                let mut kept =
                    pick(pod, &["podRef", "memory", "process_stats", "ephemeral-storage", "volume"]);
                let containers: Vec<Value> = pod["containers"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|container| {
                        pick(container, &["name", "startTime", "memory", "rootfs", "logs"]).into()
                    })
                    .collect();
                kept.insert("containers".to_owned(), containers.into());
                kept.into()
            }
            false => pick(pod, &["podRef", "memory"]).into(),
        })
        .collect();
    json!({
        "t": (t * 100.0).round() / 100.0,
        "node": pick(&summary["node"], &["memory", "fs", "rlimit"]),
        "pods": pods,
    })
}

fn pick(from: &Value, fields: &[&str]) -> Map<String, Value> {
    fields.iter().filter_map(|field| Some(((*field).to_owned(), from.get(field)?.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_evictions_hang_on_is_kept() {
        let summary = json!({
            "node": {"nodeName": "n", "memory": {"availableBytes": 5}, "cpu": {}, "fs": {"availableBytes": 6}},
            "pods": [
                {"podRef": {"name": "a", "namespace": "ns"}, "memory": {"workingSetBytes": 1}, "cpu": {},
                    "containers": [{"name": "c", "cpu": {}, "memory": {"workingSetBytes": 2}}]},
                {"podRef": {"name": "b", "namespace": "kube-system"}, "memory": {"workingSetBytes": 3}, "containers": [{}]},
            ],
        });
        assert_eq!(
            sample(1.23456, &summary, "ns"),
            json!({
                "t": 1.23,
                "node": {"memory": {"availableBytes": 5}, "fs": {"availableBytes": 6}},
                "pods": [
                    {"podRef": {"name": "a", "namespace": "ns"}, "memory": {"workingSetBytes": 1},
                        "containers": [{"name": "c", "memory": {"workingSetBytes": 2}}]},
                    {"podRef": {"name": "b", "namespace": "kube-system"}, "memory": {"workingSetBytes": 3}},
                ],
            })
        );
    }
}
