//! The recorded evidence of one case on one node.

use std::collections::BTreeMap;

use evictlab_rules::CgroupVersion;
use evictlab_rules::summary::Sample;
use evictlab_rules::threshold::Threshold;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{NodeCondition, Taint};
use schemars::JsonSchema;
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::history::{NodeHistoryEntry, NodeImage, PodHistoryEntry};
use crate::kubelet_config::{KubeletConfig, thresholds};
use crate::kubernetes_schema::{
    EventSchema, KubeletConfigurationSchema, NodeConditionSchema, NodeSchema, ObjectSchema, PodSchema,
    StatusSchema, SummarySchema, TaintSchema,
};
use crate::metric::Metric;
use crate::missing::MissingEvidence;
use crate::objects::{RecordedEvent, RecordedNode, RecordedPod};
use crate::observation_end::ObservationEnd;
use crate::recorded::Recorded;
use crate::sample::SampleDocument;
use crate::samples::Samples;

/// Evidence of one case on one node, as the API server and the kubelet reported it.
///
/// Kubernetes objects are unchanged except that `managedFields` is removed. The serialized form is
/// that of recordings.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Observations {
    /// Name of the case.
    #[serde(rename = "case", alias = "scenario")]
    pub case_name: String,
    /// Version that the node reported, such as `v1.32.13`.
    pub kubelet_version: String,
    /// Name of the node.
    pub node: String,
    /// cgroup version of the node's host, `v1` or `v2`. Empty in old recordings, which are all of
    /// v1.
    #[serde(default, deserialize_with = "cgroup_version", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub cgroup: Option<CgroupVersion>,
    /// Changes to the node's KubeletConfiguration.
    #[serde(default)]
    #[schemars(with = "KubeletConfigurationSchema")]
    pub kubelet_config_overrides: Map<String, Value>,
    /// Seconds from the change of the configuration until `configz` reported it.
    #[serde(default, alias = "tuneSeconds")]
    pub configure_seconds: f64,
    /// Seconds from the creation of the first pod until every expected eviction was in
    /// `status.reason`; `None` if that did not happen in time.
    #[serde(default)]
    pub seconds_to_outcome: Option<f64>,
    /// Pods as the API returned them on creation.
    #[serde(default)]
    #[schemars(with = "Vec<PodSchema>")]
    pub pods_created: Vec<RecordedPod>,
    /// Pods that existed at the end.
    #[serde(default)]
    #[schemars(with = "Vec<PodSchema>")]
    pub pods_final: Vec<RecordedPod>,
    /// Events of the namespace and of the node since the start of the case, in order of arrival.
    #[serde(default)]
    #[schemars(with = "Vec<EventSchema>")]
    pub events: Vec<RecordedEvent>,
    /// `status.conditions` and `spec.taints` of the node at the end.
    #[serde(default)]
    #[schemars(with = "Option<NodeState>")]
    pub node_status: Recorded<NodeState>,
    /// `/stats/summary` before the pods were created.
    #[serde(default)]
    #[schemars(with = "Option<SummarySchema>")]
    pub summary_before: Recorded<Sample>,
    /// `/stats/summary` about twice a second, reduced to the statistics that evictions depend on.
    #[serde(default)]
    #[schemars(with = "Vec<SampleDocument>")]
    pub samples: Samples,
    /// Lines of the eviction manager in the kubelet's log.
    #[serde(default)]
    pub kubelet_log: Vec<String>,
    /// The kubelet's complete configuration during the case, as `configz` returned it.
    #[serde(default, skip_serializing_if = "Recorded::is_null")]
    #[schemars(with = "KubeletConfigurationSchema")]
    pub configz: Recorded<KubeletConfig>,
    /// Increase of the kubelet's counter `kubelet_evictions` during the case, by signal. A restart
    /// of the kubelet resets the counter.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub evictions_counted: BTreeMap<String, u64>,
    /// Metrics of the kubelet that expressions of the case read, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, Vec<Metric>>,
    /// History of each pod, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pod_history: BTreeMap<String, Vec<Recorded<PodHistoryEntry>>>,
    /// History of the node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node_history: Vec<Recorded<NodeHistoryEntry>>,
    /// Images that the node listed during the observation, the last version of each, also of images
    /// that were deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<NodeImage>,
    /// Last version of each pod that did not exist any more at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<PodSchema>")]
    pub pods_gone: Vec<RecordedPod>,
    /// Time of the first request to delete each pod, by UID. The last version of a pod may have the
    /// time of the last request, after its containers have terminated.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub deletion_requests: BTreeMap<String, Timestamp>,
    /// Last version of the node.
    #[serde(default, skip_serializing_if = "Recorded::is_null")]
    #[schemars(with = "NodeSchema")]
    pub node_object: RecordedNode,
    /// The case's objects other than pods at the end, by name. They are of any kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, ObjectSchema>")]
    pub objects: BTreeMap<String, Value>,
    /// Answers that steps of the case keep, by the name of the answer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub answers: BTreeMap<String, StepAnswer>,
    /// Logs read by the case, by pod and container.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub container_logs: BTreeMap<String, BTreeMap<String, String>>,
    /// The step whose `when` did not hold in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<String>,
    /// Duration of the observation, in seconds since the first pod was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Sources of evidence that could not be read, or not completely.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingEvidence>,
    /// Reason why the observation ended; `None` in old recordings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<ObservationEnd>,
    /// True if the case's trigger held at any time of the observation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trigger_observed: bool,
    /// The API's Status for an ephemeral container that it rejected.
    #[serde(default, alias = "refused", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<StatusSchema>")]
    pub api_rejection: Option<Recorded<ApiAnswer>>,
}

/// Reads a cgroup version; an empty text is an unknown one.
fn cgroup_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<CgroupVersion>, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.is_empty() { Ok(None) } else { text.parse().map(Some).map_err(Error::custom) }
}

/// Conditions and taints of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeState {
    /// `status.conditions`.
    #[schemars(with = "Option<Vec<NodeConditionSchema>>")]
    pub conditions: Option<Vec<NodeCondition>>,
    /// `spec.taints`.
    #[schemars(with = "Option<Vec<TaintSchema>>")]
    pub taints: Option<Vec<Taint>>,
}

/// Answer to a step of a case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum StepAnswer {
    /// The result of a command in a container.
    Command(CommandOutput),
    /// The answer of the API to a request.
    Api(ApiAnswer),
}

/// Result of a command in a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandOutput {
    /// Exit status; 128 plus the signal for a command that was killed.
    pub code: i64,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// Answer of the API to a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ApiAnswer {
    /// HTTP status.
    pub code: u16,
    /// Reason of the Status, such as `Invalid`.
    pub reason: String,
    /// Message of the Status.
    pub message: String,
}

impl Observations {
    /// Namespace of the case, by its pods; `None` if the case had no pods.
    pub fn namespace(&self) -> Option<&str> {
        let mut pods = self.pods_created.iter().chain(&self.pods_final).chain(&self.pods_gone);
        pods.find_map(|pod| pod.metadata.namespace.as_deref())
    }

    /// Returns whether nothing was observed: the case ended before its first object was created.
    pub fn is_empty(&self) -> bool {
        let pods = [&self.pods_created, &self.pods_final, &self.pods_gone];
        pods.into_iter().all(Vec::is_empty)
            && self.events.is_empty()
            && self.objects.is_empty()
            && self.samples.is_empty()
    }

    /// Returns the eviction thresholds of the node's complete configuration if that was recorded,
    /// or of the changes to it. Empty if the kubelet would reject them.
    pub fn thresholds(&self) -> Vec<Threshold> {
        if self.configz.is_null() {
            thresholds(&Value::Object(self.kubelet_config_overrides.clone()))
        } else {
            self.configz.thresholds()
        }
    }
}
