//! Samples: Summaries of the node, reduced to the statistics that evictions depend on.

use serde_json::{Map, Value, json};

/// Reduces a Summary to a sample in the format of recordings.
///
/// A sample has `t`, in seconds since the first pod was created, rounded to hundredths; of the node
/// `memory`, `fs`, `runtime` and `rlimit`; of each pod in `namespace` its reference, memory, process count,
/// ephemeral storage and volumes, and of its containers memory, rootfs and logs. Other pods keep
/// their reference and memory: the kubelet ranks them together with the case's pods.
pub fn sample(t: f64, summary: &Value, namespace: &str) -> Value {
    let pods = items(&summary["pods"]).map(|pod| match pod["podRef"]["namespace"] == namespace {
        true => {
            let mut sampled =
                pick(pod, &["podRef", "memory", "process_stats", "ephemeral-storage", "volume"]);
            let containers = items(&pod["containers"]);
            let containers: Vec<Value> = containers
                .map(|container| pick(container, &["name", "startTime", "memory", "rootfs", "logs"]).into())
                .collect();
            sampled.insert("containers".to_owned(), containers.into());
            sampled.into()
        }
        false => pick(pod, &["podRef", "memory"]).into(),
    });
    let pods: Vec<Value> = pods.collect();
    json!({
        "t": (t * 100.0).round() / 100.0,
        "node": pick(&summary["node"], &["memory", "fs", "runtime", "rlimit"]),
        "pods": pods,
    })
}

/// Returns the statistics of a sample's containers by pod and container.
pub(crate) fn containers_by_pod(sample: &Value) -> Value {
    let pods = items(&sample["pods"]).filter_map(|pod| {
        let containers = pod["containers"].as_array()?.iter();
        let containers: Map<String, Value> = containers
            .filter_map(|container| Some((container["name"].as_str()?.to_owned(), container.clone())))
            .collect();
        Some((pod["podRef"]["name"].as_str()?.to_owned(), Value::Object(containers)))
    });
    Value::Object(pods.collect())
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn pick(from: &Value, fields: &[&str]) -> Map<String, Value> {
    fields.iter().filter_map(|field| Some(((*field).to_owned(), from.get(field)?.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_only_what_evictions_depend_on() {
        let summary = json!({
            "node": {"nodeName": "n", "memory": {"availableBytes": 5}, "cpu": {}, "fs": {"availableBytes": 6},
                "runtime": {"imageFs": {"availableBytes": 7}}},
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
                "node": {"memory": {"availableBytes": 5}, "fs": {"availableBytes": 6},
                    "runtime": {"imageFs": {"availableBytes": 7}}},
                "pods": [
                    {"podRef": {"name": "a", "namespace": "ns"}, "memory": {"workingSetBytes": 1},
                        "containers": [{"name": "c", "memory": {"workingSetBytes": 2}}]},
                    {"podRef": {"name": "b", "namespace": "kube-system"}, "memory": {"workingSetBytes": 3}},
                ],
            })
        );
    }
}
