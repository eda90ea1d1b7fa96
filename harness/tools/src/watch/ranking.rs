//! Ranking of the pods of a node, in the order in which its kubelet would evict them.

use std::cmp::Ordering;

use evictlab_rules::KubeletVersion;
use evictlab_rules::pod::QosClass;
use evictlab_rules::ranking::{RankedPod, compare_pods};
use evictlab_rules::summary::Sample;
use evictlab_rules::threshold::{FsLayout, Signal};
use schemars::JsonSchema;
use serde::Serialize;

use super::bounded_set::BoundedSet;
use super::pod_fields::WatchedPod;
use super::rank_reason::rank_reason;

/// A pod that can be evicted.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvictionCandidate {
    /// Rank, 1 for the first candidate. Equal pods have the same rank: their order is random.
    pub rank: usize,
    /// `namespace/name`.
    pub pod: String,
    /// UID of the pod.
    pub uid: String,
    /// QoS class; the ranking does not use it.
    pub qos: QosClass,
    /// Reason for the rank.
    #[serde(rename = "why")]
    pub reason: String,
}

impl EvictionCandidate {
    /// Returns whether the kubelet would evict this pod, or one of several equal pods, first.
    pub(super) fn is_first(&self) -> bool {
        self.rank == 1
    }
}

/// A pod that the kubelet never evicts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExemptPod {
    /// `namespace/name`.
    pub pod: String,
    /// UID of the pod.
    pub uid: String,
    /// Reason.
    #[serde(rename = "why")]
    pub reason: String,
}

/// Returns the ranked candidates and the exempt pods of those that have not ended. `evicted`
/// contains the UIDs of pods that are being evicted.
pub(super) fn rank(
    version: &KubeletVersion,
    signal: Signal,
    sample: &Sample,
    active: &[&WatchedPod],
    evicted: &BoundedSet<String>,
) -> (Vec<EvictionCandidate>, Vec<ExemptPod>) {
    let layout = FsLayout::from_node_stats(&sample.node);
    let (critical, others): (Vec<&WatchedPod>, Vec<&WatchedPod>) =
        active.iter().copied().partition(|active| active.pod.is_critical());
    let mut ranked: Vec<(&WatchedPod, RankedPod<'_>)> = others
        .into_iter()
        .filter(|active| !evicted.contains(&active.pod.metadata.uid))
        .map(|active| (active, RankedPod { pod: &active.pod, stats: sample.pod(&active.pod.metadata.uid) }))
        .collect();
    // Equal pods keep their order between queries.
    ranked.sort_by_key(|(active, _)| active.name());
    ranked.sort_by(|(_, one), (_, other)| compare_pods(version, signal, layout, one, other));
    let mut candidates: Vec<EvictionCandidate> = Vec::with_capacity(ranked.len());
    for (nth, (active, own)) in ranked.iter().enumerate() {
        let equal =
            nth > 0 && compare_pods(version, signal, layout, &ranked[nth - 1].1, own) == Ordering::Equal;
        let rank = match candidates.last() {
            Some(previous) if equal => previous.rank,
            _ => nth + 1,
        };
        let deleted = if active.is_deleted { "; terminating" } else { "" };
        candidates.push(EvictionCandidate {
            rank,
            pod: active.name(),
            uid: active.pod.metadata.uid.clone(),
            qos: active.pod.qos_class(),
            reason: format!("{}{deleted}", rank_reason(version, signal, layout, own)),
        });
    }
    let mut exempt: Vec<ExemptPod> = critical.into_iter().map(exempt_pod).collect();
    exempt.sort_by(|one, other| one.pod.cmp(&other.pod));
    (candidates, exempt)
}

fn exempt_pod(active: &WatchedPod) -> ExemptPod {
    let pod = &active.pod;
    // A static pod is visible in the API as its mirror pod.
    let reason = if pod.metadata.annotations.contains_key("kubernetes.io/config.mirror") {
        "static pod".to_owned()
    } else {
        format!("priority {}", pod.priority())
    };
    ExemptPod { pod: active.name(), uid: pod.metadata.uid.clone(), reason }
}
