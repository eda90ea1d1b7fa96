//! Taints of nodes, and `NoSchedule` taints by condition.

use serde_json::{Value, json};

use super::context::ControllerContext;
use crate::defect::{Defect, Defects};
use crate::resource::{Kind, ObjectExt};
use crate::storage::{Change, ChangeKind};

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
pub(super) fn changed(change: &Change, defects: &Defects, ctx: &mut ControllerContext) {
    const EFFECT: &str = "NoSchedule";
    if change.what == ChangeKind::Deleted {
        return;
    }
    let name = change.object.name();
    let Some(node) = ctx.store.get(Kind::Node, "", name) else { return };
    let conditions = node["status"].items("conditions");
    let mut wanted: Vec<&str> = conditions
        .filter_map(|condition| {
            let fits = |(kind, status, _): &&(&str, &str, &str)| {
                condition["type"] == *kind && condition["status"] == *status
            };
            BY_CONDITION.iter().find(fits).map(|(_, _, key)| *key)
        })
        .filter(|key| !is_missing(key, defects))
        .collect();
    if node["spec"]["unschedulable"] == true {
        wanted.push(UNSCHEDULABLE);
    }
    let ours = |key: &str| key == UNSCHEDULABLE || BY_CONDITION.iter().any(|(_, _, own)| *own == key);
    let has = |key: &str| node.taints().any(|taint| taint["key"] == key && taint["effect"] == EFFECT);
    let extra: Vec<String> = node
        .taints()
        .filter(|taint| taint["effect"] == EFFECT)
        .filter_map(|taint| taint["key"].as_str())
        .filter(|key| ours(key) && !wanted.contains(key))
        .map(str::to_owned)
        .collect();
    let missing: Vec<&str> = wanted.into_iter().filter(|key| !has(key)).collect();
    if !missing.is_empty() || !extra.is_empty() {
        let extra: Vec<&str> = extra.iter().map(String::as_str).collect();
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
    let now = ctx.epoch().seconds(ctx.now);
    ctx.store.update(Kind::Node, "", node, |node| {
        let changed = |taint: &Value| {
            let key = taint.text("key");
            taint["effect"] == effect && (add.contains(&key) || remove.contains(&key))
        };
        let mut taints: Vec<Value> = node.taints().filter(|taint| !changed(taint)).cloned().collect();
        taints.extend(add.iter().map(|key| json!({"key": key, "effect": effect, "timeAdded": now})));
        if !taints.is_empty() {
            node["spec"]["taints"] = json!(taints);
        } else {
            node["spec"].remove("taints");
        }
    });
}
