//! The pods of a node in the order in which its kubelet would evict them.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use evictlab_rules::KubeletVersion;
use evictlab_rules::pod::{Pod, Qos, Sample};
use evictlab_rules::ranking::{Disks, Ranked, compare};
use evictlab_rules::threshold::Signal;
use k8s_openapi::api::core::v1::Pod as ApiPod;
use serde::{Deserialize, Serialize};

use super::reason::reason;

/// A pod that may be evicted.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Candidate {
    /// Its place, 1 for the first to go. Equal pods have the same: which of them goes first is left to chance.
    pub place: usize,
    /// `namespace/name`.
    pub pod: String,
    /// Its uid.
    pub uid: String,
    /// Its class, which does not decide, but says what to expect.
    pub qos: Qos,
    /// Why it has this place, in plain words.
    pub why: String,
}

/// A pod that the kubelet never evicts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Never {
    /// `namespace/name`.
    pub pod: String,
    /// Its uid.
    pub uid: String,
    /// Why not, in plain words.
    pub why: String,
}

/// A pod that the kubelet has not done with.
pub(super) struct Active {
    /// As the rules see it.
    pub pod: Pod,
    /// Whether it is being deleted.
    pub deleted: bool,
}

impl Active {
    /// None for a pod that has ended: the kubelet does not rank it (`filterOutInactivePods`).
    pub fn of(pod: &ApiPod) -> Option<Self> {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        if matches!(phase, Some("Succeeded" | "Failed")) {
            return None;
        }
        let object = serde_json::to_value(pod).ok()?;
        let deleted = pod.metadata.deletion_timestamp.is_some();
        Some(Self { pod: Pod::deserialize(object).ok()?, deleted })
    }

    /// `namespace/name`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.pod.metadata.namespace, self.pod.metadata.name)
    }
}

/// Who would go in which order, and who never. `evicted` are the uids of pods that are being evicted already.
pub(super) fn order(
    version: &KubeletVersion,
    signal: Signal,
    sample: &Sample,
    active: &[Active],
    evicted: &BTreeSet<String>,
) -> (Vec<Candidate>, Vec<Never>) {
    let disks = Disks::of(&sample.node);
    let (critical, others): (Vec<&Active>, Vec<&Active>) =
        active.iter().partition(|active| active.pod.is_critical());
    let mut ranked: Vec<(&Active, Ranked<'_>)> = others
        .into_iter()
        .filter(|active| !evicted.contains(&active.pod.metadata.uid))
        .map(|active| (active, Ranked { pod: &active.pod, stats: sample.pod(&active.pod.metadata.uid) }))
        .collect();
    // Equal ones stay where they are from one look to the next.
    ranked.sort_by_key(|(active, _)| active.name());
    ranked.sort_by(|(_, one), (_, other)| compare(version, signal, disks, one, other));
    let mut candidates: Vec<Candidate> = Vec::with_capacity(ranked.len());
    for (nth, (active, own)) in ranked.iter().enumerate() {
        let equal = nth > 0 && compare(version, signal, disks, &ranked[nth - 1].1, own) == Ordering::Equal;
        let place = match candidates.last() {
            Some(before) if equal => before.place,
            _ => nth + 1,
        };
        let deleted = if active.deleted { "; it is being deleted" } else { "" };
        candidates.push(Candidate {
            place,
            pod: active.name(),
            uid: active.pod.metadata.uid.clone(),
            qos: active.pod.qos(),
            why: format!("{}{deleted}", reason(version, signal, disks, own)),
        });
    }
    let mut never: Vec<Never> = critical.into_iter().map(never).collect();
    never.sort_by(|one, other| one.pod.cmp(&other.pod));
    (candidates, never)
}

fn never(active: &Active) -> Never {
    let pod = &active.pod;
    // The API knows a static pod by its mirror.
    let why = match pod.metadata.annotations.contains_key("kubernetes.io/config.mirror") {
        true => "static pod".to_owned(),
        false => format!("priority {}", pod.priority()),
    };
    Never { pod: active.name(), uid: pod.metadata.uid.clone(), why }
}
