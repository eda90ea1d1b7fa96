//! Which nodes a pod fits on, and which of them is the best.

use std::cmp::Reverse;

use evictlab_rules::KubeletVersion;
use evictlab_rules::quantity::Quantity;
use serde_json::{Value, json};

use super::super::taints::{self, UNSCHEDULABLE};
use super::nodes::{Room, Wanted};
use crate::registry::selector;

/// Why a pod does not fit on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Misfit {
    /// In the words of the plugin that refused it.
    pub(super) reasons: Vec<String>,
    /// Whether it may fit when other pods go.
    pub(super) resolvable: bool,
}

/// Why a pod does not fit on a node, if it does not: what the first plugin says that refuses it.
pub(super) fn misfit(
    pod: &Value,
    wanted: &Wanted,
    room: &Room,
    control_plane: &KubeletVersion,
) -> Option<Misfit> {
    let for_ever = |reason: String| Some(Misfit { reasons: vec![reason], resolvable: false });
    let cordon = json!({"key": UNSCHEDULABLE, "effect": "NoSchedule"});
    if room.node["spec"]["unschedulable"] == true && taints::toleration(pod, &cordon).is_none() {
        return for_ever("node(s) were unschedulable".to_owned());
    }
    let mut forbidding = taints::of(&room.node)
        .filter(|taint| ["NoSchedule", "NoExecute"].contains(&taint["effect"].as_str().unwrap_or_default()));
    if let Some(taint) = forbidding.find(|taint| taints::toleration(pod, taint).is_none()) {
        let text = |field: &str| taint[field].as_str().unwrap_or_default();
        // Since 1.34 the taint is not told (plugins/tainttoleration/taint_toleration.go).
        return for_ever(match control_plane.at_least(34) {
            true => "node(s) had untolerated taint(s)".to_owned(),
            false => format!("node(s) had untolerated taint {{{}: {}}}", text("key"), text("value")),
        });
    }
    if !is_wanted(pod, room) {
        return for_ever("node(s) didn't match Pod's node affinity/selector".to_owned());
    }
    lacking(wanted, room, control_plane)
}

/// How good a node is for a pod that fits there; the least is the best. Fewest taints that are better avoided, most room, fewest pods, name.
pub(super) fn score<'a>(
    pod: &Value,
    wanted: &Wanted,
    room: &'a Room,
) -> (usize, Reverse<i128>, usize, &'a str) {
    let avoided = taints::of(&room.node)
        .filter(|taint| taint["effect"] == "PreferNoSchedule" && taints::toleration(pod, taint).is_none())
        .count();
    let free = |resource: &str| {
        let milli = |quantity: &Quantity| i128::from(quantity.milli_value());
        let has = room.allocatable.get(resource).map_or(0, milli);
        let taken = milli(&room.taken(resource)) + wanted.0.get(resource).map_or(0, milli);
        if has > 0 { (has - taken).max(0) * 100 / has } else { 0 }
    };
    let least_allocated = (free("cpu") + free("memory")) / 2;
    (avoided, Reverse(least_allocated), room.pods.len(), &room.name)
}

/// What a node has too little of (`noderesources.Fit`).
fn lacking(wanted: &Wanted, room: &Room, control_plane: &KubeletVersion) -> Option<Misfit> {
    // What the node does not have at all cannot be had by preemption; told since 1.34 (`InsufficientResource.Unresolvable`).
    let tells = control_plane.at_least(34);
    let mut misfit = Misfit { reasons: Vec::new(), resolvable: true };
    let most = room.allocatable.get("pods").map_or(0, Quantity::value);
    if room.pods.len() as i64 + 1 > most {
        misfit.reasons.push("Too many pods".to_owned());
    }
    for (resource, amount) in wanted.0.iter().filter(|(_, amount)| !amount.is_zero()) {
        let has = room.allocatable.get(resource).cloned().unwrap_or(Quantity::ZERO);
        if room.taken(resource) + amount > has {
            misfit.reasons.push(format!("Insufficient {resource}"));
            misfit.resolvable &= !tells || *amount <= has;
        }
    }
    (!misfit.reasons.is_empty()).then_some(misfit)
}

/// Whether the pod's node selector and required node affinity want the node.
fn is_wanted(pod: &Value, room: &Room) -> bool {
    let labels = &room.node["metadata"]["labels"];
    let selector = pod["spec"]["nodeSelector"].as_object().into_iter().flatten();
    let selected = selector.into_iter().all(|(key, value)| labels.get(key) == Some(value));
    let terms = &pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
    let Some(terms) = terms.as_array() else { return selected };
    let list = |term: &Value, field: &str| term[field].as_array().cloned().unwrap_or_default();
    selected
        && terms.iter().any(|term| {
            let (expressions, fields) = (list(term, "matchExpressions"), list(term, "matchFields"));
            // A term without requirements wants no node.
            !(expressions.is_empty() && fields.is_empty())
                && expressions.iter().all(|one| selector::meets(one, labels, None))
                && fields.iter().all(|one| selector::meets(one, labels, Some(&room.name)))
        })
}
