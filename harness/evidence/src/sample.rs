//! Samples: Summaries of the node, reduced to the statistics that evictions depend on.

use schemars::JsonSchema;
use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::kubernetes_schema::{PodReferenceSchema, StatisticsSchema};
use crate::recorded::{DecodeError, decode_text};

/// Statistics of a node and its pods at one time, reduced to those that evictions depend on.
#[derive(Serialize, JsonSchema)]
pub struct SampleDocument {
    /// Time in seconds since the first pod was created, rounded to hundredths.
    t: f64,
    /// Statistics of the node.
    node: NodeSample,
    /// All pods of the node.
    pods: Vec<PodSample>,
}

/// The fields of a Summary of the kubelet that a sample keeps.
#[derive(Deserialize)]
struct Summary {
    #[serde(default)]
    node: NodeSample,
    /// `null` on a node without pods.
    pods: Option<Vec<PodSample>>,
}

/// Statistics of a node.
#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct NodeSample {
    /// The cgroup of all pods: `allocatableMemory.available` is measured there.
    #[serde(skip_serializing_if = "Option::is_none")]
    system_containers: Option<Vec<CgroupSample>>,
    /// Memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<StatisticsSchema>")]
    memory: Option<SummaryPart>,
    /// nodefs, the file system of the kubelet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<StatisticsSchema>")]
    fs: Option<SummaryPart>,
    /// imagefs and containerfs, the file systems of the container runtime.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<StatisticsSchema>")]
    runtime: Option<SummaryPart>,
    /// Process IDs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<StatisticsSchema>")]
    rlimit: Option<SummaryPart>,
}

/// Statistics of a cgroup outside of pods.
#[derive(Deserialize, Serialize, JsonSchema)]
struct CgroupSample {
    /// `pods`.
    name: String,
    /// Memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<StatisticsSchema>")]
    memory: Option<SummaryPart>,
}

/// Statistics of a pod. Pods of other namespaces have only `podRef` and `memory`.
#[derive(Deserialize, Serialize, JsonSchema)]
struct PodSample {
    /// Reference of the pod.
    #[serde(rename = "podRef", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<PodReferenceSchema>")]
    reference: Option<PodReference>,
    /// Memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<StatisticsSchema>")]
    memory: Option<SummaryPart>,
    /// Processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<StatisticsSchema>")]
    process_stats: Option<SummaryPart>,
    /// Local ephemeral storage.
    #[serde(rename = "ephemeral-storage", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<StatisticsSchema>")]
    ephemeral_storage: Option<SummaryPart>,
    /// Volumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<StatisticsSchema>>")]
    volume: Option<SummaryPart>,
    /// Containers.
    #[serde(skip_serializing_if = "Option::is_none")]
    containers: Option<Vec<ContainerSample>>,
}

/// Reference of a pod in a Summary.
#[derive(Deserialize)]
#[serde(try_from = "Box<RawValue>")]
struct PodReference {
    json: SummaryPart,
    namespace: Option<String>,
}

impl TryFrom<Box<RawValue>> for PodReference {
    type Error = serde_json::Error;

    fn try_from(json: Box<RawValue>) -> Result<Self, Self::Error> {
        #[derive(Deserialize)]
        struct Fields {
            namespace: Option<String>,
        }
        let Fields { namespace } = serde_json::from_str(json.get())?;
        Ok(Self { json: SummaryPart(json), namespace })
    }
}

impl Serialize for PodReference {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(to)
    }
}

/// A part of a Summary that a sample keeps as it is.
#[derive(Deserialize)]
struct SummaryPart(Box<RawValue>);

/// Serializes to one line. The kubelet indents its response, the model does not.
impl Serialize for SummaryPart {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let text = self.0.get();
        if text.contains('\n') {
            serde_json::from_str::<Value>(text).map_err(S::Error::custom)?.serialize(to)
        } else {
            self.0.serialize(to)
        }
    }
}

/// Statistics of a container.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ContainerSample {
    /// Name.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Time at which the container started.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<jiff::Timestamp>")]
    start_time: Option<SummaryPart>,
    /// Memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<StatisticsSchema>")]
    memory: Option<SummaryPart>,
    /// Writable layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<StatisticsSchema>")]
    rootfs: Option<SummaryPart>,
    /// Logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<StatisticsSchema>")]
    logs: Option<SummaryPart>,
}

impl PodSample {
    /// Removes the statistics that a sample does not keep of pods of other namespaces.
    fn reduced(self, namespace: &str) -> Self {
        let of_pod = self.reference.as_ref().and_then(|reference| reference.namespace.as_deref());
        if of_pod == Some(namespace) {
            return Self { containers: Some(self.containers.unwrap_or_default()), ..self };
        }
        let (process_stats, ephemeral_storage, volume, containers) = (None, None, None, None);
        Self { process_stats, ephemeral_storage, volume, containers, ..self }
    }
}

/// Reduces a Summary to a sample in the format of recordings, [`SampleDocument`]: `t` seconds after
/// the first pod was created, with the statistics of pods in `namespace`.
///
/// Other pods keep their reference and memory: the kubelet ranks them together with the case's
/// pods.
///
/// # Errors
/// The Summary does not have the form of the Summary API.
pub fn reduce_summary(t: f64, summary: &RawValue, namespace: &str) -> Result<SampleDocument, DecodeError> {
    let Summary { mut node, pods } = decode_text(summary)?;
    node.system_containers.iter_mut().for_each(|cgroups| cgroups.retain(|cgroup| cgroup.name == "pods"));
    Ok(SampleDocument {
        t: (t * 100.0).round() / 100.0,
        node,
        pods: pods.into_iter().flatten().map(|pod| pod.reduced(namespace)).collect(),
    })
}

/// The pods of a sample, with all their statistics.
#[derive(Default, Deserialize)]
pub(crate) struct PodsOfSample {
    #[serde(default)]
    pods: Vec<Map<String, Value>>,
}

impl PodsOfSample {
    /// Returns the statistics of the case's pods by name. `case_name` maps the name of an object to
    /// the name in the case.
    pub(crate) fn by_name(self, case_name: impl Fn(&str) -> String) -> Value {
        // Pods of other namespaces have no containers in a sample.
        let pods = self.pods.into_iter().filter(|pod| pod.contains_key("containers"));
        let pods = pods.filter_map(|pod| Some((case_name(object_name(&pod)?), Value::Object(pod))));
        Value::Object(pods.collect())
    }

    /// Returns the statistics of the containers by pod and container. `case_name` maps the name of
    /// an object to the name in the case.
    pub(crate) fn containers_by_pod(self, case_name: impl Fn(&str) -> String) -> Value {
        let pods = self.pods.into_iter().filter_map(|mut pod| {
            let name = case_name(object_name(&pod)?);
            let Value::Array(containers) = pod.remove("containers")? else { return None };
            let containers = containers
                .into_iter()
                .filter_map(|container| Some((container.get("name")?.as_str()?.to_owned(), container)));
            Some((name, Value::Object(containers.collect())))
        });
        Value::Object(pods.collect())
    }
}

fn object_name(stats: &Map<String, Value>) -> Option<&str> {
    stats.get("podRef")?.get("name")?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_summary_of_another_form_is_an_error() {
        let rows = [
            (
                json!({"node": {"systemContainers": [{}]}}),
                "Summary at node.systemContainers[0]: missing field `name`",
            ),
            (json!({"pods": [{"containers": [{"name": 1}]}]}), "Summary at pods[0].containers[0].name: "),
        ];
        for (summary, expected) in rows {
            let summary = serde_json::value::to_raw_value(&summary).unwrap();
            let error = reduce_summary(0.0, &summary, "ns").err().unwrap().to_string();
            assert!(error.starts_with(&format!("failed to decode {expected}")), "{error}");
        }
    }

    #[test]
    fn keeps_only_what_evictions_depend_on() {
        let summary = json!({
            "node": {"nodeName": "n", "memory": {"availableBytes": 5}, "cpu": {}, "fs": {"availableBytes": 6},
                "runtime": {"imageFs": {"availableBytes": 7}}, "systemContainers": [{"name": "kubelet", "memory": {}},
                {"name": "pods", "cpu": {}, "memory": {"availableBytes": 8}}]},
            "pods": [
                {"podRef": {"name": "a", "namespace": "ns"}, "memory": {"workingSetBytes": 1}, "cpu": {},
                    "containers": [{"name": "c", "cpu": {}, "memory": {"workingSetBytes": 2}}]},
                {"podRef": {"name": "b", "namespace": "kube-system"}, "memory": {"workingSetBytes": 3}, "containers": [{}]},
            ],
        });
        // As the kubelet responds.
        let summary = RawValue::from_string(format!("{summary:#}")).unwrap();
        let sample = reduce_summary(1.23456, &summary, "ns").unwrap();
        assert!(!serde_json::to_string(&sample).unwrap().contains('\n'));
        assert_eq!(
            json!(sample),
            json!({
                "t": 1.23,
                "node": {"memory": {"availableBytes": 5}, "fs": {"availableBytes": 6},
                    "runtime": {"imageFs": {"availableBytes": 7}},
                    "systemContainers": [{"name": "pods", "memory": {"availableBytes": 8}}]},
                "pods": [
                    {"podRef": {"name": "a", "namespace": "ns"}, "memory": {"workingSetBytes": 1},
                        "containers": [{"name": "c", "memory": {"workingSetBytes": 2}}]},
                    {"podRef": {"name": "b", "namespace": "kube-system"}, "memory": {"workingSetBytes": 3}},
                ],
            })
        );
    }

    #[test]
    fn statistics_are_found_by_the_names_of_pods_and_containers() {
        let sample = json!({"pods": [
            {"podRef": {"name": "a", "namespace": "ns"}, "memory": {"workingSetBytes": 5},
                "containers": [{"name": "c", "memory": {"workingSetBytes": 2}}]},
            {"podRef": {"name": "etcd", "namespace": "kube-system"}, "memory": {"workingSetBytes": 3}},
        ]});
        let pods = || serde_json::from_value::<PodsOfSample>(sample.clone()).unwrap();
        let name = |object: &str| format!("pod-{object}");
        assert_eq!(pods().by_name(name), json!({"pod-a": sample["pods"][0]}));
        let container = &sample["pods"][0]["containers"][0];
        assert_eq!(pods().containers_by_pod(name), json!({"pod-a": {"c": container}}));
    }
}
