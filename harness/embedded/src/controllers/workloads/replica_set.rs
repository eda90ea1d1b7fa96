//! ReplicaSets (`pkg/controller/replicaset`).
//!
//! Pods that have ended or are being deleted do not count: they are replaced, and failed ones are
//! kept.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::pods::{Owner, deletion_key, is_active, is_terminating_pod};
use super::reconcile::{ReconcileError, Reconciled, age, count};
use crate::apiserver::control_plane_version;
use crate::context::SimContext;
use crate::controllers::context::ControllerContext;
use crate::resource::{Kind, ObjectExt, condition};

/// Maximum number of pods that are created or deleted at once (`BurstReplicas`).
const BURST: usize = 500;

/// Creates or deletes pods, and updates the status.
pub(super) fn sync(set: &Value, ctx: &mut ControllerContext) -> Reconciled {
    let owner = Owner { kind: Kind::ReplicaSet, object: set, component: "replicaset-controller" };
    let all = owner.claim(None, ctx);
    let mut active: Vec<_> = all.iter().filter(|pod| is_active(pod)).cloned().collect();
    let wanted = usize::try_from(set["spec"].integer("replicas")).unwrap_or(0);
    let mut failure = None;
    if !set.is_deleting() {
        for _ in 0..wanted.saturating_sub(active.len()).min(BURST) {
            if let Err(status) = owner.create(None, ctx) {
                failure = Some(status.message);
                break;
            }
        }
        active.sort_by_cached_key(|pod| deletion_key(pod));
        for pod in active.iter().take(active.len().saturating_sub(wanted).min(BURST)) {
            owner.delete(pod, ctx);
        }
    }
    let (status, waits) = status(set, &all, &active, failure.as_deref(), ctx);
    ctx.store.update(Kind::ReplicaSet, set.namespace(), set.name(), |set| {
        set["status"] = status;
    });
    if failure.is_some() { Err(ReconcileError) } else { Ok(waits) }
}

/// Returns the status, and the time until a ready pod becomes available (`calculateStatus`).
fn status(
    set: &Value,
    all: &[Arc<Value>],
    active: &[Arc<Value>],
    failure: Option<&str>,
    ctx: &SimContext,
) -> (Value, Option<Duration>) {
    let least = Duration::from_secs(u64::try_from(set["spec"].integer("minReadySeconds")).unwrap_or(0));
    let mut counts = [0; 3];
    let mut waits: Option<Duration> = None;
    for pod in active {
        let labels = set["spec"]["template"]["metadata"]["labels"].as_object().into_iter().flatten();
        counts[0] +=
            i64::from(labels.into_iter().all(|(key, value)| pod["metadata"]["labels"][key] == *value));
        if !pod.has_condition("Ready") {
            continue;
        }
        counts[1] += 1;
        let since = pod.condition("Ready").and_then(|ready| ready.time("lastTransitionTime"));
        match least.checked_sub(since.map_or(least, |since| age(since, ctx))).filter(|left| !left.is_zero()) {
            None => counts[2] += 1,
            Some(left) => waits = Some(waits.map_or(left, |waits| waits.min(left))),
        }
    }
    let mut status = set["status"].clone();
    status["replicas"] = json!(active.len());
    for (field, number) in ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"].iter().zip(counts) {
        count(&mut status, field, number);
    }
    // `DeploymentReplicaSetTerminatingReplicas`, KEP-3973, since 1.35.
    if control_plane_version(ctx).at_least(35) {
        status["terminatingReplicas"] = json!(all.iter().filter(|pod| is_terminating_pod(pod)).count());
    }
    status["observedGeneration"] = set["metadata"]["generation"].clone();
    fail(&mut status, failure, ctx);
    (status, waits)
}

/// Sets or removes the condition `ReplicaFailure`.
fn fail(status: &mut Value, failure: Option<&str>, ctx: &SimContext) {
    const KIND: &str = "ReplicaFailure";
    let there = condition::find(status, KIND).is_some();
    match failure {
        Some(message) if !there => {
            status["conditions"] = json!([{
                "type": KIND,
                "status": "True",
                "lastTransitionTime": ctx.epoch().seconds(ctx.now),
                "reason": "FailedCreate",
                "message": message,
            }]);
        }
        None if there => {
            status.remove("conditions");
        }
        _ => {}
    }
}
