//! State of a node at one time.

use std::collections::BTreeMap;

use evictlab_rules::KubeletVersion;
use k8s_openapi::api::core::v1::Node as ApiNode;
use kube::ResourceExt;
use schemars::JsonSchema;
use serde::Serialize;

use super::pod_fields::WatchedPod;
use super::reading::NodeInput;
use super::reading::Reading;

/// A node.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeView {
    /// Name of the node.
    pub name: String,
    /// Version of the kubelet.
    pub kubelet: String,
    /// Conditions that are `True`, and `NotReady` for a node that is not ready, each with its
    /// message.
    pub conditions: BTreeMap<String, String>,
    /// The last reading; kept while the node does not answer.
    pub reading: Option<Reading>,
    /// Error of the last query.
    pub problem: Option<String>,
    /// Names of running pods by UID.
    #[serde(skip)]
    pub(super) active: BTreeMap<String, String>,
    /// Final phase and reason of ended pods by UID.
    #[serde(skip)]
    pub(super) ended: BTreeMap<String, String>,
}

impl NodeView {
    pub(super) fn new(input: &NodeInput<'_>) -> Self {
        let kubelet = kubelet_version(input.node);
        let active: Vec<&WatchedPod> = input.pods.iter().filter(|pod| !pod.has_ended()).collect();
        let read = || {
            let snapshot = input.snapshot.map_err(ToString::to_string)?;
            let version: KubeletVersion = kubelet.parse().map_err(|error| format!("{error}"))?;
            Ok(Reading::new(&version, input, snapshot, &active))
        };
        let (reading, problem) = match read() {
            Ok(reading) => (Some(reading), None),
            Err(problem) => (None, Some(problem)),
        };
        Self {
            name: input.node.name_any(),
            conditions: conditions(input.node),
            active: active.iter().map(|own| (own.pod.metadata.uid.clone(), own.name())).collect(),
            ended: input.pods.iter().filter_map(ended).collect(),
            kubelet,
            reading,
            problem,
        }
    }

    /// Distance to the nearest threshold, as a sort key; the nearest first.
    pub(super) fn urgency(&self) -> i64 {
        let nearest = self.reading.as_ref().and_then(Reading::nearest);
        nearest.map_or(i64::MAX, |status| status.margin)
    }
}

fn kubelet_version(node: &ApiNode) -> String {
    let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
    info.map(|info| info.kubelet_version.clone()).unwrap_or_default()
}

fn conditions(node: &ApiNode) -> BTreeMap<String, String> {
    let all = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    all.filter_map(|condition| {
        let message = condition.message.clone().unwrap_or_default();
        match (condition.type_.as_str(), condition.status.as_str()) {
            ("Ready", "True") => None,
            ("Ready", _) => Some(("NotReady".to_owned(), message)),
            (name, "True") => Some((name.to_owned(), message)),
            _ => None,
        }
    })
    .collect()
}

fn ended(pod: &WatchedPod) -> Option<(String, String)> {
    let phase = pod.phase.as_deref().filter(|_| pod.has_ended())?;
    let how = match &pod.reason {
        Some(reason) => format!("{phase}, {reason}"),
        None => phase.to_owned(),
    };
    Some((pod.pod.metadata.uid.clone(), how))
}
