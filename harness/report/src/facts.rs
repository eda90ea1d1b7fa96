//! Documents in the evidence of a case that contain more than one kind of observation.

use std::collections::BTreeMap;

use evictlab_evidence::{
    Metric, MissingEvidence, NodeHistoryEntry, NodeImage, ObservationEnd, Observations, PodHistoryEntry,
    Recorded,
};
use evictlab_rules::CgroupVersion;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// `facts.yaml`: the node of a case, the times, and the counters.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Facts<'a> {
    /// Name of the case.
    case: &'a str,
    /// Version that the node reported, such as `v1.32.13`.
    kubelet_version: &'a str,
    /// Name of the node.
    node: &'a str,
    /// cgroup version of the node's host, `v1` or `v2`.
    cgroup: &'a str,
    /// Changes to the node's KubeletConfiguration.
    kubelet_config_overrides: &'a Map<String, Value>,
    /// Seconds from the change of the configuration until `configz` reported it.
    configure_seconds: f64,
    /// Seconds from the creation of the first pod until every expected eviction was in
    /// `status.reason`; `null` if that did not happen in time.
    seconds_to_outcome: Option<f64>,
    /// Duration of the observation, in seconds since the first pod was created.
    seconds: Option<f64>,
    /// Increase of the kubelet's counter `kubelet_evictions` during the case, by signal.
    evictions_counted: &'a BTreeMap<String, u64>,
    /// Metrics of the kubelet that expressions of the case read, by name.
    metrics: &'a BTreeMap<String, Vec<Metric>>,
    /// Reason why the observation ended.
    ended: Option<&'a ObservationEnd>,
    /// True if the case's trigger held at any time of the observation.
    trigger_observed: bool,
    /// Sources of evidence that could not be read, or not completely.
    missing: &'a [MissingEvidence],
}

impl<'a> Facts<'a> {
    pub(crate) fn new(observations: &'a Observations) -> Self {
        Self {
            case: &observations.case_name,
            kubelet_version: &observations.kubelet_version,
            node: &observations.node,
            cgroup: observations.cgroup.map_or("", CgroupVersion::as_str),
            kubelet_config_overrides: &observations.kubelet_config_overrides,
            configure_seconds: observations.configure_seconds,
            seconds_to_outcome: observations.seconds_to_outcome,
            seconds: observations.seconds,
            evictions_counted: &observations.evictions_counted,
            metrics: &observations.metrics,
            ended: observations.ended.as_ref(),
            trigger_observed: observations.trigger_observed,
            missing: &observations.missing,
        }
    }
}

/// `history.yaml`: the states of the pods and of the node, one entry for each change, and the
/// images that the node has listed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ObjectHistory<'a> {
    /// States of each pod, by name.
    pods: &'a BTreeMap<String, Vec<Recorded<PodHistoryEntry>>>,
    /// States of the node.
    node: &'a [Recorded<NodeHistoryEntry>],
    /// Images that the node listed, also those that were deleted.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    images: &'a [NodeImage],
}

impl<'a> ObjectHistory<'a> {
    /// `None` if nothing changed.
    pub(crate) fn new(observations: &'a Observations) -> Option<Self> {
        let Observations { pod_history: pods, node_history: node, images, .. } = observations;
        let history = Self { pods, node, images };
        (!history.pods.is_empty() || !history.node.is_empty()).then_some(history)
    }
}
