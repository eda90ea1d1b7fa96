//! What a deployment's status tells of its roll-out (`progress.go`, `calculateStatus`).

use std::time::Duration;

use serde_json::{Value, json};

use super::super::meta;
use super::deployment::Deployment;
use super::{age, count, number};
use crate::registry::{condition, control_plane};
use crate::store::Kind;
use crate::world::Ctx;

const PROGRESSING: &str = "Progressing";
const AVAILABLE: &str = "NewReplicaSetAvailable";
const TIMED_OUT: &str = "ProgressDeadlineExceeded";

/// A condition to be set.
struct Told<'a> {
    kind: &'a str,
    status: &'a str,
    reason: &'a str,
    message: String,
}

/// Writes a deployment's status; the answer is when its progress is to be looked at again, if nothing happens.
pub(super) fn tell(deployment: &Deployment, ctx: &mut Ctx) -> Option<Duration> {
    let object = deployment.owner.object;
    let (namespace, name) = (meta(object, "namespace"), meta(object, "name"));
    // Its revision may just have been written.
    let object = ctx.store.get(Kind::Deployment, namespace, name)?.clone();
    let mut status = counted(deployment, &object["status"], ctx);
    let (_, unavailable) = deployment.slack();
    let enough = number(&status["availableReplicas"]) >= deployment.wanted() - unavailable;
    let available = if enough {
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    let (state, reason, message) = available;
    let told = Told { kind: "Available", status: state, reason, message: message.to_owned() };
    set(&mut status, told, false, ctx);
    let wait = progress(deployment, &object["status"], &mut status, ctx);
    fail(deployment, &mut status, ctx);
    ctx.store.update(Kind::Deployment, namespace, name, |object| object["status"] = status);
    wait
}

/// Whether all pods are of the newest template, and available, by what was told last.
pub(super) fn is_complete(deployment: &Deployment) -> bool {
    let object = deployment.owner.object;
    complete(deployment, &object["status"])
        && number(&object["status"]["observedGeneration"]) >= number(&object["metadata"]["generation"])
}

fn complete(deployment: &Deployment, status: &Value) -> bool {
    let all = ["updatedReplicas", "replicas", "availableReplicas"];
    all.iter().all(|field| number(&status[field]) == deployment.wanted())
}

/// The status with new counts.
fn counted(deployment: &Deployment, old: &Value, ctx: &Ctx) -> Value {
    let sum = |field: &str| deployment.all().map(|set| number(&set["status"][field])).sum::<i64>();
    let total: i64 = deployment.all().map(|set| number(&set["spec"]["replicas"])).sum();
    let updated = deployment.new.as_ref().map_or(0, |set| number(&set["status"]["replicas"]));
    let available = sum("availableReplicas");
    let mut status = old.clone();
    for (field, number) in [
        ("replicas", sum("replicas")),
        ("updatedReplicas", updated),
        ("readyReplicas", sum("readyReplicas")),
        ("availableReplicas", available),
        ("unavailableReplicas", (total - available).max(0)),
    ] {
        count(&mut status, field, number);
    }
    if control_plane(ctx).at_least(35) {
        status["terminatingReplicas"] = json!(sum("terminatingReplicas"));
    }
    status["observedGeneration"] = deployment.owner.object["metadata"]["generation"].clone();
    status
}

/// The condition `Progressing` (`syncRolloutStatus`).
fn progress(deployment: &Deployment, old: &Value, status: &mut Value, ctx: &Ctx) -> Option<Duration> {
    let deadline = number(&deployment.owner.object["spec"]["progressDeadlineSeconds"]);
    // So many seconds mean that nobody waits (`HasProgressDeadline`).
    if deadline == i64::from(i32::MAX) {
        return None;
    }
    let deadline = Duration::from_secs(u64::try_from(deadline).unwrap_or(0));
    let current = find(old, PROGRESSING).cloned().unwrap_or_default();
    let named = |what: &str| match &deployment.new {
        Some(set) => format!("ReplicaSet {:?} {what}", meta(set, "name")),
        None => format!("Deployment {:?} {what}", meta(deployment.owner.object, "name")),
    };
    let told = |status, reason, message| Told { kind: PROGRESSING, status, reason, message };
    if current.is_null()
        && let Some(set) = &deployment.new
    {
        let message = format!("Created new replica set {:?}", meta(set, "name"));
        self::set(status, told("True", "NewReplicaSetCreated", message), true, ctx);
        return Some(deadline + Duration::from_secs(1));
    }
    if current["reason"] == AVAILABLE && status["replicas"] == status["updatedReplicas"] {
        return None;
    }
    let outdated = |status: &Value| number(&status["replicas"]) - number(&status["updatedReplicas"]);
    let more = |field: &str| number(&status[field]) > number(&old[field]);
    let further = outdated(status) < outdated(old)
        || ["updatedReplicas", "readyReplicas", "availableReplicas"].iter().any(|field| more(field));
    let since = age(&current["lastUpdateTime"], ctx);
    if complete(deployment, status) {
        self::set(status, told("True", AVAILABLE, named("has successfully progressed.")), false, ctx);
        None
    } else if further {
        self::set(status, told("True", "ReplicaSetUpdated", named("is progressing.")), true, ctx);
        Some(deadline + Duration::from_secs(1))
    } else if current["reason"] == TIMED_OUT {
        None
    } else if since.is_some_and(|since| since > deadline) && current["reason"] != AVAILABLE {
        self::set(status, told("False", TIMED_OUT, named("has timed out progressing.")), false, ctx);
        None
    } else {
        // A second more, as the real one does.
        since.map(|since| deadline.saturating_sub(since) + Duration::from_secs(1))
    }
}

/// The condition `ReplicaFailure` is that of a set, the newest first.
fn fail(deployment: &Deployment, status: &mut Value, ctx: &Ctx) {
    const KIND: &str = "ReplicaFailure";
    let sets = deployment.new.iter().chain(&deployment.old);
    let failure = sets.filter_map(|set| condition::find(set, KIND)).next();
    match failure {
        Some(failure) => {
            let text = |field: &str| failure[field].as_str().unwrap_or_default();
            let told = Told {
                kind: KIND,
                status: text("status"),
                reason: text("reason"),
                message: text("message").to_owned(),
            };
            set(status, told, false, ctx);
        }
        None => {
            let conditions = status["conditions"].as_array_mut();
            conditions.into_iter().for_each(|all| all.retain(|one| one["type"] != KIND));
        }
    }
}

fn find<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

/// Sets a condition (`SetDeploymentCondition`): one of the same status and reason stays as it is, unless it is told `again`.
fn set(status: &mut Value, told: Told, again: bool, ctx: &Ctx) {
    let now = ctx.epoch().seconds(ctx.now);
    let old = find(status, told.kind).cloned().unwrap_or_default();
    if old["status"] == told.status && old["reason"] == told.reason && !again {
        return;
    }
    let since = if old["status"] == told.status { old["lastTransitionTime"].clone() } else { json!(now) };
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(all) = status["conditions"].as_array_mut() else { return };
    all.retain(|one| one["type"] != told.kind);
    all.push(json!({
        "type": told.kind,
        "status": told.status,
        "lastUpdateTime": now,
        "lastTransitionTime": since,
        "reason": told.reason,
        "message": told.message,
    }));
}
