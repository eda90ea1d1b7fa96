//! Status of pod disruption budgets: `pkg/controller/disruption`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::context::{ControllerContext, ControllerEvent};
use super::recorder;
use crate::apiserver::int_or_percent::{Round, scaled};
use crate::context::SimContext;
use crate::resource::{EventBody, Kind, ObjectExt, label_selector};
use crate::storage::{Change, ChangeKind};

const COMPONENT: &str = "controllermanager";

/// Time after which an evicted pod that is not being deleted counts as healthy again.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Handles changes of budgets and pods.
pub(super) fn changed(changes: &[Change], ctx: &mut ControllerContext) {
    let concerned = changes.iter().filter(|change| match change.kind {
        Kind::Pod => true,
        Kind::PodDisruptionBudget => change.what != ChangeKind::Deleted,
        _ => false,
    });
    let namespaces: BTreeSet<&str> = concerned.map(|change| change.object.namespace()).collect();
    for namespace in namespaces {
        compute(namespace, ctx);
    }
}

/// Updates the statuses of the budgets in a namespace.
pub(super) fn compute(namespace: &str, ctx: &mut ControllerContext) {
    let budgets: Vec<_> = ctx.store.list(Kind::PodDisruptionBudget, Some(namespace)).cloned().collect();
    for budget in budgets {
        let covered = |pod: &&Arc<Value>| label_selector::matches(&budget["spec"]["selector"], pod.labels());
        let pods: Vec<_> = ctx.store.list(Kind::Pod, Some(namespace)).filter(covered).cloned().collect();
        let status = status(&budget, &pods, ctx);
        if status["disruptedPods"].is_object() {
            ctx.schedule_after(TIMEOUT, ControllerEvent::Disruption(namespace.to_owned()));
        }
        let before = ctx.store.version();
        ctx.store.update(Kind::PodDisruptionBudget, namespace, budget.name(), |budget| {
            budget["status"] = status;
        });
        if pods.is_empty() && ctx.store.version() != before {
            let about = recorder::object_reference(Kind::PodDisruptionBudget, &budget);
            let event = EventBody::normal("NoPods", "No matching pods found");
            ctx.record(COMPONENT, about, event);
        }
    }
}

/// Returns the status of a budget (`trySync`).
fn status(budget: &Value, pods: &[Arc<Value>], ctx: &SimContext) -> Value {
    let disrupted = disrupted(budget, pods, ctx);
    let healthy = |pod: &&Arc<Value>| {
        !pod.is_deleting() && !disrupted.contains_key(pod.name()) && pod.has_condition("Ready")
    };
    let current = pods.iter().filter(healthy).count() as i64;
    let generation = &budget["metadata"]["generation"];
    let (expected, desired) = match expected(&budget["spec"], pods, ctx) {
        Ok(counts) => counts,
        Err(why) => {
            // The old status is kept, except that no disruption is allowed.
            let mut status = budget["status"].clone();
            status["disruptionsAllowed"] = json!(0);
            status["conditions"] = allowed(budget, false, "SyncFailed", &why, ctx);
            return status;
        }
    };
    let spare = if expected > 0 { (current - desired).max(0) } else { 0 };
    let reason = if spare > 0 { "SufficientPods" } else { "InsufficientPods" };
    let mut status = json!({
        "conditions": allowed(budget, spare > 0, reason, "", ctx),
        "currentHealthy": current,
        "desiredHealthy": desired,
        "disruptionsAllowed": spare,
        "expectedPods": expected,
        "observedGeneration": generation,
    });
    if !disrupted.is_empty() {
        status["disruptedPods"] = Value::Object(disrupted);
    }
    status
}

/// Returns the expected number of pods and the required number of healthy pods
/// (`getExpectedPodCount`). Pods without a controller are only supported with an integer
/// `minAvailable`.
fn expected(spec: &Value, pods: &[Arc<Value>], ctx: &SimContext) -> Result<(i64, i64), String> {
    if let Some(least) = spec["minAvailable"].as_i64() {
        return Ok((pods.len() as i64, least));
    }
    let mut scales = BTreeMap::new();
    for pod in pods {
        let owners = pod.owners();
        if let Some(owner) = owners.into_iter().find(|owner| owner["controller"] == true) {
            let scale = scale(owner, pod.namespace(), ctx);
            let (uid, replicas) =
                scale.ok_or_else(|| format!("found no controllers for pod {:?}", pod.name()))?;
            scales.insert(uid, replicas);
        }
    }
    let all: i64 = scales.into_values().sum();
    let share = |field: &str| scaled(&spec[field], all, Round::Up);
    let healthy = share("maxUnavailable").map(|most| (all - most).max(0)).or_else(|| share("minAvailable"));
    Ok((all, healthy.unwrap_or(0)))
}

/// Returns the uid and the replicas of a ReplicaSet or of its Deployment. Other controllers, such
/// as Jobs, have no scale subresource.
fn scale(owner: &Value, namespace: &str, ctx: &SimContext) -> Option<(String, i64)> {
    let find = |kind: Kind, reference: &Value| {
        let name = reference["name"].as_str().filter(|_| reference["kind"] == kind.names().0)?;
        ctx.store.get(kind, namespace, name).filter(|object| object.uid() == reference.text("uid"))
    };
    let set = find(Kind::ReplicaSet, owner)?;
    let above = set.owners();
    let object = match above.into_iter().find(|owner| owner["controller"] == true) {
        Some(above) => find(Kind::Deployment, above)?,
        None => set,
    };
    Some((object.uid().to_owned(), object["spec"]["replicas"].as_i64()?))
}

/// Returns the evicted pods that are not being deleted yet (`buildDisruptedPodMap`).
fn disrupted(budget: &Value, pods: &[Arc<Value>], ctx: &SimContext) -> Map<String, Value> {
    let now = ctx.epoch().at(ctx.now);
    let disrupted = &budget["status"]["disruptedPods"];
    let waiting = |name: &str| {
        let alive = |pod: &Arc<Value>| pod.name() == name && !pod.is_deleting();
        let end = disrupted.time(name).and_then(|at| at.checked_add(TIMEOUT).ok());
        end.is_some_and(|end| end > now) && pods.iter().any(alive)
    };
    let all = disrupted.as_object().into_iter().flatten();
    all.filter(|(name, _)| waiting(name)).map(|(name, at)| (name.clone(), at.clone())).collect()
}

/// Returns the condition `DisruptionAllowed`.
fn allowed(budget: &Value, allowed: bool, reason: &str, message: &str, ctx: &SimContext) -> Value {
    const KIND: &str = "DisruptionAllowed";
    let status = if allowed { "True" } else { "False" };
    let since = budget
        .condition(KIND)
        .filter(|old| old["status"] == status)
        .map_or_else(|| json!(ctx.epoch().seconds(ctx.now)), |old| old["lastTransitionTime"].clone());
    json!([{
        "type": KIND,
        "status": status,
        "observedGeneration": budget["metadata"]["generation"],
        "lastTransitionTime": since,
        "reason": reason,
        "message": message,
    }])
}
