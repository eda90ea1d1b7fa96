//! The eviction subresource: `pkg/registry/core/pod/storage/eviction.go`.

use std::sync::Arc;

use k8s_openapi::api::policy::v1::{Eviction, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus};
use serde::Deserialize;
use serde_json::{Value, json};

use super::deletion::delete;
use crate::apiserver::objects::{check_preconditions, find};
use crate::apiserver::options::{DeleteOptions, ObjectPath};
use crate::apiserver::status::{Status, StatusReason};
use crate::context::SimContext;
use crate::resource::pod_status::PodCondition;
use crate::resource::{Kind, ObjectExt, label_selector};

/// Evicts a pod by a `policy/v1` `Eviction` and returns a `Status` of success.
///
/// # Errors
/// 400 if the eviction names another pod, 404 if the pod does not exist, 429 if a disruption budget
/// forbids the eviction, 500 if two budgets select the pod.
pub(crate) fn evict(
    ctx: &mut SimContext,
    namespace: &str,
    name: &str,
    eviction: &Value,
) -> Result<Value, Status> {
    let eviction = Eviction::deserialize(eviction).map_err(|error| Status::bad_request(error.to_string()))?;
    if eviction.metadata.name.as_deref() != Some(name) {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    let mut options = DeleteOptions::from_api(eviction.delete_options.unwrap_or_default())?;
    let pod = find(ctx, ObjectPath { kind: Kind::Pod, namespace, name })?;
    let phase = pod.phase();
    let is_unprotected = ["Succeeded", "Failed", "Pending"].contains(&phase) || pod.is_deleting();
    if !is_unprotected {
        check_budgets(ctx, namespace, &pod)?;
    }
    check_preconditions(Kind::Pod, name, &pod, &options.preconditions)?;
    let now = ctx.epoch().meta_time(ctx.now);
    ctx.store.update(Kind::Pod, namespace, name, |pod| {
        PodCondition::disruption("EvictionByEvictionAPI", "Eviction API: evicting").set(pod, now);
    });
    // The condition has changed the resource version.
    options.preconditions.resource_version = None;
    delete(ctx, namespace, name, &options)?;
    Ok(json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}))
}

/// Checks the budgets that select a running pod and takes one disruption from the budget.
fn check_budgets(ctx: &mut SimContext, namespace: &str, pod: &Value) -> Result<(), Status> {
    let selects = |budget: &&Arc<Value>| label_selector::selects(budget, pod);
    let budgets: Vec<_> =
        ctx.store.list(Kind::PodDisruptionBudget, Some(namespace)).filter(selects).cloned().collect();
    let Some(budget) = budgets.first() else { return Ok(()) };
    if budgets.len() > 1 {
        let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        // The API server states no reason here.
        return Err(Status::new(StatusReason::Unknown, message));
    }
    let status: PodDisruptionBudgetStatus = budget.read("status");
    if !pod.has_condition("Ready") {
        let policy = budget.read::<PodDisruptionBudgetSpec>("spec").unhealthy_pod_eviction_policy;
        let always = policy.as_deref() == Some("AlwaysAllow");
        let (current, desired) = (status.current_healthy, status.desired_healthy);
        if always || current >= desired && desired > 0 {
            return Ok(());
        }
    }
    let name = budget.name();
    if status.observed_generation.unwrap_or(0) < budget.generation().unwrap_or(0) {
        let cause = format!("The disruption budget {name} is still being processed by the server.");
        return Err(blocked(cause, Some(10)));
    }
    if status.disruptions_allowed <= 0 {
        return Err(blocked(insufficient_healthy_pods(&status, name), None));
    }
    let now = ctx.epoch().meta_time(ctx.now);
    ctx.store.update(Kind::PodDisruptionBudget, namespace, name, |budget| {
        budget.change("status", |status: &mut PodDisruptionBudgetStatus| {
            status.disruptions_allowed -= 1;
            status.disrupted_pods.get_or_insert_default().insert(pod.name().to_owned(), now);
        });
    });
    Ok(())
}

/// Explains why a budget allows no disruption.
fn insufficient_healthy_pods(status: &PodDisruptionBudgetStatus, name: &str) -> String {
    let mut conditions = status.conditions.iter().flatten();
    let failed = conditions.find(|condition| {
        condition.type_ == "DisruptionAllowed"
            && condition.status == "False"
            && condition.reason == "SyncFailed"
    });
    if let Some(failed) = failed.filter(|failed| !failed.message.is_empty()) {
        return format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {}",
            failed.message
        );
    }
    let PodDisruptionBudgetStatus { current_healthy: current, desired_healthy: desired, .. } = status;
    if current <= desired {
        return format!(
            "The disruption budget {name} needs {desired} healthy pods and has {current} currently"
        );
    }
    format!("The disruption budget {name} does not allow evicting pods currently")
}

fn blocked(cause: String, retry_after_seconds: Option<i32>) -> Status {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    let mut status =
        Status::new(StatusReason::TooManyRequests, message).with_cause("DisruptionBudget", cause, None);
    if let Some(details) = &mut status.details {
        details.retry_after_seconds = retry_after_seconds;
    }
    status
}
