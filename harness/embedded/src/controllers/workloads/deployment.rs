//! Deployments (`pkg/controller/deployment`).
//!
//! A Deployment has one ReplicaSet per template. A new template replaces the old one at once:
//! rolling updates, revisions, rollback and pausing are not implemented.

use std::sync::Arc;

use serde_json::{Value, json};

use super::pods::{Owner, reference};
use super::reconcile::{ReconcileError, Reconciled, count};
use crate::apiserver::int_or_percent::{Round, scaled};
use crate::apiserver::{self, WriteOptions, control_plane_version};
use crate::context::SimContext;
use crate::controllers::context::ControllerContext;
use crate::resource::{EventBody, Kind, ObjectExt};

/// Label with the hash of the template.
const TEMPLATE_HASH: &str = "pod-template-hash";

/// Creates or scales the ReplicaSets of a Deployment, and updates its status.
pub(super) fn sync(object: &Value, ctx: &mut ControllerContext) -> Reconciled {
    let owner = Owner { kind: Kind::Deployment, object, component: "deployment-controller" };
    let replicas = object["spec"].integer("replicas");
    if !object.is_deleting() {
        let (current, outdated) = replica_sets(object, ctx);
        for set in outdated {
            scale(&owner, &set, 0, ctx);
        }
        match current {
            Some(set) => scale(&owner, &set, replicas, ctx),
            None => create(&owner, replicas, ctx)?,
        }
    }
    let status = status(object, ctx);
    ctx.store.update(Kind::Deployment, object.namespace(), object.name(), |object| {
        object["status"] = status;
    });
    Ok(None)
}

/// Returns the ReplicaSet of the current template, and those of earlier templates.
fn replica_sets(object: &Value, ctx: &SimContext) -> (Option<Arc<Value>>, Vec<Arc<Value>>) {
    let sets = ctx.store.list(Kind::ReplicaSet, Some(object.namespace()));
    let sets = sets.filter(|set| set.is_controlled_by(object.uid())).cloned();
    let (mut current, outdated): (Vec<_>, Vec<_>) =
        sets.partition(|set| without_hash(&set["spec"]["template"]) == object["spec"]["template"]);
    (current.pop(), outdated)
}

/// Creates the ReplicaSet of the current template.
fn create(owner: &Owner, replicas: i64, ctx: &mut ControllerContext) -> Result<(), ReconcileError> {
    let object = owner.object;
    let hash = hash(&object["spec"]["template"]);
    let name = format!("{}-{hash}", object.name());
    let mut template = object["spec"]["template"].clone();
    template["metadata"]["labels"][TEMPLATE_HASH] = json!(hash);
    let mut selector = object["spec"]["selector"].clone();
    selector["matchLabels"][TEMPLATE_HASH] = json!(hash);
    let set = json!({
        "metadata": {
            "name": name,
            "labels": template["metadata"]["labels"],
            "annotations": object["metadata"]["annotations"],
            "ownerReferences": [reference(Kind::Deployment, object)],
        },
        "spec": {"replicas": replicas, "selector": selector, "template": template},
    });
    match apiserver::create(ctx, Kind::ReplicaSet, object.namespace(), set, WriteOptions::default()) {
        Ok(_) => {
            if replicas > 0 {
                record_scaling(owner, &name, None, replicas, ctx);
            }
            Ok(())
        }
        Err(status) => {
            let message = format!("Failed to create new replica set {name:?}: {}", status.message);
            owner.record_event(EventBody::warning("ReplicaSetCreateError", &message), ctx);
            Err(ReconcileError)
        }
    }
}

/// Sets the replicas of a ReplicaSet, unless they are up to date.
fn scale(owner: &Owner, set: &Value, replicas: i64, ctx: &mut ControllerContext) {
    let before = set["spec"].integer("replicas");
    if before == replicas {
        return;
    }
    ctx.store.update(Kind::ReplicaSet, set.namespace(), set.name(), |set| {
        set["spec"]["replicas"] = json!(replicas);
        set["metadata"]["generation"] = json!(set["metadata"].integer("generation") + 1);
    });
    record_scaling(owner, set.name(), Some(before), replicas, ctx);
}

/// Records the event about a ReplicaSet that was scaled, or created if `before` is `None`.
fn record_scaling(owner: &Owner, set: &str, before: Option<i64>, after: i64, ctx: &mut ControllerContext) {
    let direction = if before.unwrap_or(0) < after { "up" } else { "down" };
    // Reworded in 1.32 (deployment/sync.go).
    let message = match before {
        _ if control_plane_version(ctx).at_least(32) => {
            let before = before.unwrap_or(0);
            format!("Scaled {direction} replica set {set} from {before} to {after}")
        }
        None => format!("Scaled {direction} replica set {set} to {after}"),
        Some(before) => format!("Scaled {direction} replica set {set} to {after} from {before}"),
    };
    owner.record_event(EventBody::normal("ScalingReplicaSet", &message), ctx);
}

/// Returns the status: the counts of all ReplicaSets, and the condition `Available`.
fn status(object: &Value, ctx: &SimContext) -> Value {
    let (current, outdated) = replica_sets(object, ctx);
    let sets: Vec<&Arc<Value>> = outdated.iter().chain(&current).collect();
    let sum = |field: &str| sets.iter().map(|set| set["status"].integer(field)).sum::<i64>();
    let total: i64 = sets.iter().map(|set| set["spec"].integer("replicas")).sum();
    let available = sum("availableReplicas");
    let mut status = object["status"].clone();
    for (field, number) in [
        ("replicas", sum("replicas")),
        ("updatedReplicas", current.as_ref().map_or(0, |set| set["status"].integer("replicas"))),
        ("readyReplicas", sum("readyReplicas")),
        ("availableReplicas", available),
        ("unavailableReplicas", (total - available).max(0)),
    ] {
        count(&mut status, field, number);
    }
    if control_plane_version(ctx).at_least(35) {
        status["terminatingReplicas"] = json!(sum("terminatingReplicas"));
    }
    status["observedGeneration"] = object["metadata"]["generation"].clone();
    let replicas = object["spec"].integer("replicas");
    let max_unavailable = &object["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"];
    let max_unavailable = scaled(max_unavailable, replicas, Round::Down).unwrap_or(0);
    let is_available = available >= replicas - max_unavailable;
    if let Some(condition) = available_condition(object, is_available, ctx) {
        status["conditions"] = json!([condition]);
    }
    status
}

/// Returns the condition `Available`, or `None` if it has not changed.
fn available_condition(object: &Value, is_available: bool, ctx: &SimContext) -> Option<Value> {
    let (status, reason, message) = match is_available {
        true => ("True", "MinimumReplicasAvailable", "Deployment has minimum availability."),
        false => ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability."),
    };
    let now = ctx.epoch().seconds(ctx.now);
    (object.condition("Available").is_none_or(|old| old["status"] != status)).then(|| {
        json!({
            "type": "Available",
            "status": status,
            "lastUpdateTime": now,
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        })
    })
}

fn without_hash(template: &Value) -> Value {
    let mut template = template.clone();
    template["metadata"]["labels"].remove(TEMPLATE_HASH);
    template
}

/// Returns the hash of a template. It differs from the real one, which hashes Go's memory, but has
/// the same characters (`SafeEncodeString`).
fn hash(template: &Value) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    // FNV-1a with 32 bits, as Go's `fnv.New32a`.
    let hash = template
        .to_string()
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let digits = hash.to_string();
    digits.bytes().map(|digit| char::from(LETTERS[usize::from(digit) % LETTERS.len()])).collect()
}
