//! Taints of nodes, and `NoSchedule` taints by condition.

use k8s_openapi::api::core::v1::{NodeCondition, Taint};

use super::context::ControllerContext;
use crate::defect::{Defect, Defects};
use crate::resource::{Kind, ObjectExt};
use crate::storage::{ObjectChange, WatchEventType};

/// Taints by condition: type, status, key (`nodeConditionToTaintKeyStatusMap`).
const BY_CONDITION: [(&str, &str, &str); 6] = [
    ("Ready", "False", NOT_READY),
    ("Ready", "Unknown", UNREACHABLE),
    ("MemoryPressure", "True", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "True", "node.kubernetes.io/disk-pressure"),
    ("NetworkUnavailable", "True", "node.kubernetes.io/network-unavailable"),
    ("PIDPressure", "True", "node.kubernetes.io/pid-pressure"),
];

pub(super) const NOT_READY: &str = "node.kubernetes.io/not-ready";
pub(super) const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
pub(super) const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// Updates the `NoSchedule` taints of a node after a change of its conditions
/// (`doNoScheduleTaintingPass`).
pub(super) fn handle_change(change: &ObjectChange, defects: &Defects, ctx: &mut ControllerContext) {
    const EFFECT: &str = "NoSchedule";
    if change.event_type == WatchEventType::Deleted {
        return;
    }
    let name = change.object.name();
    let Some(node) = ctx.store.get(Kind::Node, "", name) else { return };
    let conditions: Vec<NodeCondition> = node.status().read("conditions");
    let mut wanted: Vec<&str> = conditions
        .iter()
        .filter_map(|condition| {
            let fits = |(kind, status, _): &&(&str, &str, &str)| {
                condition.type_ == *kind && condition.status == *status
            };
            BY_CONDITION.iter().find(fits).map(|(_, _, key)| *key)
        })
        .filter(|key| !is_missing(key, defects))
        .collect();
    if node.is_unschedulable() {
        wanted.push(UNSCHEDULABLE);
    }
    let ours = |key: &str| key == UNSCHEDULABLE || BY_CONDITION.iter().any(|(_, _, own)| *own == key);
    let taints = node.taints();
    let present: Vec<&str> =
        taints.iter().filter(|taint| taint.effect == EFFECT).map(|taint| taint.key.as_str()).collect();
    let extra: Vec<&str> = present.iter().copied().filter(|key| ours(key) && !wanted.contains(key)).collect();
    let missing: Vec<&str> = wanted.into_iter().filter(|key| !present.contains(key)).collect();
    if !missing.is_empty() || !extra.is_empty() {
        swap(name, EFFECT, &missing, &extra, ctx);
    }
}

/// Returns whether a defect keeps a taint from a node.
fn is_missing(key: &str, defects: &Defects) -> bool {
    match key {
        "node.kubernetes.io/memory-pressure" => defects.has(Defect::MemoryTaintMissing),
        "node.kubernetes.io/disk-pressure" => defects.has(Defect::DiskTaintMissing),
        "node.kubernetes.io/pid-pressure" => defects.has(Defect::PidTaintMissing),
        _ => false,
    }
}

/// Adds and removes taints of a node (`SwapNodeControllerTaint`).
pub(super) fn swap(node: &str, effect: &str, add: &[&str], remove: &[&str], ctx: &mut ControllerContext) {
    let now = ctx.epoch().meta_time(ctx.now);
    ctx.store.update(Kind::Node, "", node, |node| {
        let changed = |taint: &Taint| {
            let key = taint.key.as_str();
            taint.effect == effect && (add.contains(&key) || remove.contains(&key))
        };
        let mut taints = node.taints();
        taints.retain(|taint| !changed(taint));
        taints.extend(add.iter().map(|key| Taint {
            key: (*key).to_owned(),
            effect: effect.to_owned(),
            time_added: Some(now.clone()),
            value: None,
        }));
        if taints.is_empty() {
            node.spec_mut().remove("taints");
        } else {
            node.spec_mut().write("taints", taints);
        }
    });
}
