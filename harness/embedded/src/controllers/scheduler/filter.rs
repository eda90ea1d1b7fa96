//! Filter and score plugins, and messages for unschedulable pods.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use evictlab_rules::KubeletVersion;
use evictlab_rules::quantity::Quantity;
use k8s_openapi::api::core::v1::Taint;

use super::nodes::{NodeInfo, PendingPod, PodRequests};
use crate::controllers::taints::UNSCHEDULABLE;
use crate::resource::ObjectExt;

/// Reason why a pod does not fit on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FilterFailure {
    /// Reasons of the plugin that rejected the pod.
    pub(super) reasons: Vec<String>,
    /// True if preemption may help.
    pub(super) resolvable: bool,
}

/// Returns the reason of the first plugin that rejects the node, if any.
pub(super) fn filter(
    pod: &PendingPod,
    node_info: &NodeInfo,
    control_plane: &KubeletVersion,
) -> Option<FilterFailure> {
    let constraints = &pod.constraints;
    let unresolvable = |reason: String| Some(FilterFailure { reasons: vec![reason], resolvable: false });
    let cordon = Taint { key: UNSCHEDULABLE.to_owned(), effect: "NoSchedule".to_owned(), ..Taint::default() };
    if node_info.node.is_unschedulable() && !constraints.tolerates(&cordon) {
        return unresolvable("node(s) were unschedulable".to_owned());
    }
    let forbids = |taint: &&Taint| {
        ["NoSchedule", "NoExecute"].contains(&taint.effect.as_str()) && !constraints.tolerates(taint)
    };
    if let Some(taint) = node_info.taints.iter().find(forbids) {
        // Since 1.34 the message omits the taint (plugins/tainttoleration/taint_toleration.go).
        return unresolvable(if control_plane.at_least(34) {
            "node(s) had untolerated taint(s)".to_owned()
        } else {
            let value = taint.value.as_deref().unwrap_or_default();
            format!("node(s) had untolerated taint {{{}: {value}}}", taint.key)
        });
    }
    if !constraints.matches(&node_info.node) {
        return unresolvable("node(s) didn't match Pod's node affinity/selector".to_owned());
    }
    insufficient_resources(&pod.requests, node_info, control_plane)
}

/// Returns a key that orders feasible nodes, best first: untolerated `PreferNoSchedule` taints,
/// free resources, pods, name.
pub(super) fn score<'a>(pod: &PendingPod, node_info: &'a NodeInfo) -> (usize, Reverse<i128>, usize, &'a str) {
    let is_avoided = |taint: &&Taint| taint.effect == "PreferNoSchedule" && !pod.constraints.tolerates(taint);
    let avoided = node_info.taints.iter().filter(is_avoided).count();
    let free = |resource: &str| {
        let milli = |quantity: &Quantity| i128::from(quantity.milli_value());
        let has = node_info.allocatable.get(resource).map_or(0, milli);
        let taken = milli(&node_info.taken(resource)) + pod.requests.get(resource).map_or(0, milli);
        if has > 0 { (has - taken).max(0) * 100 / has } else { 0 }
    };
    let least_allocated = (free("cpu") + free("memory")) / 2;
    (avoided, Reverse(least_allocated), node_info.pods.len(), &node_info.name)
}

/// Returns the resources that a node lacks (`noderesources.Fit`).
fn insufficient_resources(
    requests: &PodRequests,
    node_info: &NodeInfo,
    control_plane: &KubeletVersion,
) -> Option<FilterFailure> {
    // Preemption cannot help if the node's capacity is too small; considered since 1.34
    // (`InsufficientResource.Unresolvable`).
    let considers_capacity = control_plane.at_least(34);
    let mut failure = FilterFailure { reasons: Vec::new(), resolvable: true };
    let most = node_info.allocatable.get("pods").map_or(0, Quantity::value);
    if node_info.pods.len() as i64 + 1 > most {
        failure.reasons.push("Too many pods".to_owned());
    }
    for (resource, amount) in requests.iter().filter(|(_, amount)| !amount.is_zero()) {
        let has = node_info.allocatable.get(resource).cloned().unwrap_or(Quantity::ZERO);
        if node_info.taken(resource) + amount > has {
            failure.reasons.push(format!("Insufficient {resource}"));
            failure.resolvable &= !considers_capacity || *amount <= has;
        }
    }
    (!failure.reasons.is_empty()).then_some(failure)
}

/// Formats the reasons of all nodes: `0/2 nodes are available: 1 Insufficient memory, 1 Too many
/// pods.`
pub(super) fn unavailable<'a>(nodes: usize, reasons: impl Iterator<Item = &'a str>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in reasons {
        *counts.entry(reason).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    counts.sort();
    format!("0/{nodes} nodes are available: {}.", counts.join(", "))
}
