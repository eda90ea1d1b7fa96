//! Samples: Summaries of the node, reduced to the statistics that evictions depend on.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::kubernetes_schema::{PodReferenceSchema, StatisticsSchema};

/// Statistics of a node and its pods at one time, reduced to those that evictions depend on.
#[derive(Serialize, JsonSchema)]
pub struct SampleDocument<'a> {
    /// Time in seconds since the first pod was created, rounded to hundredths.
    t: f64,
    /// Statistics of the node.
    node: NodeSample<'a>,
    /// All pods of the node.
    pods: Vec<PodSample<'a>>,
}

/// Statistics of a node.
#[derive(Serialize, JsonSchema)]
struct NodeSample<'a> {
    /// Memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<StatisticsSchema>")]
    memory: Option<&'a Value>,
    /// nodefs, the file system of the kubelet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<StatisticsSchema>")]
    fs: Option<&'a Value>,
    /// imagefs and containerfs, the file systems of the container runtime.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<StatisticsSchema>")]
    runtime: Option<&'a Value>,
    /// Process ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<StatisticsSchema>")]
    rlimit: Option<&'a Value>,
}

/// Statistics of a pod. Of pods that do not belong to the case only `podRef` and `memory`.
#[derive(Serialize, JsonSchema)]
struct PodSample<'a> {
    /// Reference of the pod.
    #[serde(rename = "podRef", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<PodReferenceSchema>")]
    reference: Option<&'a Value>,
    /// Memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<StatisticsSchema>")]
    memory: Option<&'a Value>,
    /// Processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<StatisticsSchema>")]
    process_stats: Option<&'a Value>,
    /// Local ephemeral storage.
    #[serde(rename = "ephemeral-storage", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<StatisticsSchema>")]
    ephemeral_storage: Option<&'a Value>,
    /// Volumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<StatisticsSchema>>")]
    volume: Option<&'a Value>,
    /// Containers.
    #[serde(skip_serializing_if = "Option::is_none")]
    containers: Option<Vec<ContainerSample<'a>>>,
}

/// Statistics of a container.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ContainerSample<'a> {
    /// Name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    name: Option<&'a Value>,
    /// Time at which the container started.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<jiff::Timestamp>")]
    start_time: Option<&'a Value>,
    /// Memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<StatisticsSchema>")]
    memory: Option<&'a Value>,
    /// Writable layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<StatisticsSchema>")]
    rootfs: Option<&'a Value>,
    /// Logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<StatisticsSchema>")]
    logs: Option<&'a Value>,
}

impl<'a> PodSample<'a> {
    fn new(pod: &'a Value, namespace: &str) -> Self {
        let field = |name: &str| pod.get(name);
        let (reference, memory) = (field("podRef"), field("memory"));
        if pod["podRef"]["namespace"] != namespace {
            let (process_stats, ephemeral_storage, volume, containers) = (None, None, None, None);
            return Self { reference, memory, process_stats, ephemeral_storage, volume, containers };
        }
        Self {
            reference,
            memory,
            process_stats: field("process_stats"),
            ephemeral_storage: field("ephemeral-storage"),
            volume: field("volume"),
            containers: Some(items(&pod["containers"]).map(ContainerSample::new).collect()),
        }
    }
}

impl<'a> ContainerSample<'a> {
    fn new(container: &'a Value) -> Self {
        let field = |name: &str| container.get(name);
        Self {
            name: field("name"),
            start_time: field("startTime"),
            memory: field("memory"),
            rootfs: field("rootfs"),
            logs: field("logs"),
        }
    }
}

/// Reduces a Summary to a sample in the format of recordings, [`SampleDocument`]: `t` seconds after the first pod
/// was created, with the statistics of pods in `namespace`.
///
/// Other pods keep their reference and memory: the kubelet ranks them together with the case's pods.
pub fn sample(t: f64, summary: &Value, namespace: &str) -> Value {
    let node = |name: &str| summary["node"].get(name);
    let document = SampleDocument {
        t: (t * 100.0).round() / 100.0,
        node: NodeSample {
            memory: node("memory"),
            fs: node("fs"),
            runtime: node("runtime"),
            rlimit: node("rlimit"),
        },
        pods: items(&summary["pods"]).map(|pod| PodSample::new(pod, namespace)).collect(),
    };
    // A value made of JSON values is one.
    serde_json::to_value(document).unwrap_or_default()
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

#[cfg(test)]
mod tests {
    use serde_json::json;

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
