//! A node as it is seen at one moment.

use std::collections::{BTreeMap, BTreeSet};

use evictlab_rules::KubeletVersion;
use evictlab_rules::threshold::Signal;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node as ApiNode, Pod as ApiPod};
use kube::ResourceExt;
use serde::Serialize;

use super::answer::{Answer, Unread};
use super::order::Active;
use super::reading::Reading;

/// A node.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeView {
    /// Its name.
    pub name: String,
    /// What its kubelet says that it is.
    pub kubelet: String,
    /// What is the matter with it: its conditions that are `True`, and `NotReady` if it is not ready; each with its message.
    pub conditions: BTreeMap<String, String>,
    /// What was read of it; of a node that does not answer any more, what was read last.
    pub reading: Option<Reading>,
    /// Why nothing could be read now.
    pub problem: Option<String>,
    /// The pods that its kubelet has not done with, by uid.
    #[serde(skip)]
    pub(super) active: BTreeMap<String, String>,
    /// How those ended that are still there, by uid.
    #[serde(skip)]
    pub(super) ended: BTreeMap<String, String>,
}

/// What a node is seen by.
pub(super) struct Seen<'a> {
    pub node: &'a ApiNode,
    /// The pods bound to it.
    pub pods: &'a [&'a ApiPod],
    pub answer: Result<&'a Answer, &'a Unread>,
    pub signal: Signal,
    /// The uids of pods that are being evicted already.
    pub evicted: &'a BTreeSet<String>,
    pub at: Timestamp,
}

impl NodeView {
    pub(super) fn of(seen: &Seen<'_>) -> Self {
        let kubelet = kubelet(seen.node);
        let active: Vec<Active> = seen.pods.iter().filter_map(|pod| Active::of(pod)).collect();
        let read = || {
            let answer = seen.answer.map_err(|why| why.to_string())?;
            let version: KubeletVersion = kubelet.parse().map_err(|error| format!("{error}"))?;
            Ok(Reading::of(&version, seen.signal, answer, &active, seen.evicted, seen.at))
        };
        let (reading, problem) = match read() {
            Ok(reading) => (Some(reading), None),
            Err(problem) => (None, Some(problem)),
        };
        Self {
            name: seen.node.name_any(),
            conditions: conditions(seen.node),
            active: active.iter().map(|own| (own.pod.metadata.uid.clone(), own.name())).collect(),
            ended: seen.pods.iter().filter_map(|pod| ended(pod)).collect(),
            kubelet,
            reading,
            problem,
        }
    }

    /// How near it is to its nearest threshold, the nearest first.
    pub(super) fn urgency(&self) -> i64 {
        let nearest = self.reading.as_ref().and_then(Reading::nearest);
        nearest.map_or(i64::MAX, |limit| limit.left)
    }
}

fn kubelet(node: &ApiNode) -> String {
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

fn ended(pod: &ApiPod) -> Option<(String, String)> {
    let status = pod.status.as_ref()?;
    let phase = status.phase.as_deref().filter(|phase| ["Succeeded", "Failed"].contains(phase))?;
    let how = match &status.reason {
        Some(reason) => format!("{phase}, {reason}"),
        None => phase.to_owned(),
    };
    Some((pod.uid()?, how))
}
