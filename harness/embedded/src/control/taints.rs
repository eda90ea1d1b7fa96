//! Taints: what nodes have by their conditions, and which pods tolerate them.

use serde_json::{Value, json};

use super::meta;
use crate::store::{Change, ChangeKind, Kind};
use crate::world::Ctx;

/// The taints of conditions: type, status, key (`nodeConditionToTaintKeyStatusMap`).
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

/// A node has changed: its `NoSchedule` taints follow its conditions (`doNoScheduleTaintingPass`).
pub(super) fn changed(change: &Change, ctx: &mut Ctx) {
    const EFFECT: &str = "NoSchedule";
    if change.what == ChangeKind::Deleted {
        return;
    }
    let name = meta(&change.object, "name");
    let Some(node) = ctx.store.get(Kind::Node, "", name) else { return };
    let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    let mut wanted: Vec<&str> = conditions
        .filter_map(|condition| {
            let fits = |(kind, status, _): &&(&str, &str, &str)| {
                condition["type"] == *kind && condition["status"] == *status
            };
            BY_CONDITION.iter().find(fits).map(|(_, _, key)| *key)
        })
        .collect();
    if node["spec"]["unschedulable"] == true {
        wanted.push(UNSCHEDULABLE);
    }
    let ours = |key: &str| key == UNSCHEDULABLE || BY_CONDITION.iter().any(|(_, _, own)| *own == key);
    let has = |key: &str| of(node).any(|taint| taint["key"] == key && taint["effect"] == EFFECT);
    let extra: Vec<String> = of(node)
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

/// Adds taints to a node and takes others from it (`SwapNodeControllerTaint`).
pub(super) fn swap(node: &str, effect: &str, add: &[&str], remove: &[&str], ctx: &mut Ctx) {
    let now = ctx.epoch().seconds(ctx.now);
    ctx.store.update(Kind::Node, "", node, |node| {
        let changed = |taint: &Value| {
            let key = taint["key"].as_str().unwrap_or_default();
            taint["effect"] == effect && (add.contains(&key) || remove.contains(&key))
        };
        let mut taints: Vec<Value> = of(node).filter(|taint| !changed(taint)).cloned().collect();
        taints.extend(add.iter().map(|key| json!({"key": key, "effect": effect, "timeAdded": now})));
        if !taints.is_empty() {
            node["spec"]["taints"] = json!(taints);
        } else if let Some(spec) = node["spec"].as_object_mut() {
            spec.shift_remove("taints");
        }
    });
}

/// A node's taints.
pub(super) fn of(node: &Value) -> impl Iterator<Item = &Value> {
    node["spec"]["taints"].as_array().into_iter().flatten()
}

/// The first toleration of a pod that tolerates a taint.
pub(super) fn toleration<'a>(pod: &'a Value, taint: &Value) -> Option<&'a Value> {
    let all = pod["spec"]["tolerations"].as_array().into_iter().flatten();
    let same = |wanted: &str, field: &str| taint[field].as_str().unwrap_or_default() == wanted;
    all.into_iter().find(|toleration| {
        let text = |field: &str| toleration[field].as_str().unwrap_or_default();
        let (effect, key) = (text("effect"), text("key"));
        (effect.is_empty() || same(effect, "effect"))
            && (key.is_empty() || same(key, "key"))
            && match text("operator") {
                "Exists" => true,
                "" | "Equal" => same(text("value"), "value"),
                _ => false,
            }
    })
}
