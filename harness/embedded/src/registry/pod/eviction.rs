//! The eviction subresource: `pkg/registry/core/pod/storage/eviction.go`.

use serde_json::{Value, json};

use super::super::condition::{self, Condition};
use super::super::{DeleteOptions, Preconditions, Status, selector};
use crate::store::Kind;
use crate::world::Ctx;

/// How many pods may be disrupted without the controller's confirmation.
const MOST_DISRUPTED: usize = 2000;

/// Evicts a pod unless a disruption budget forbids it.
pub(in super::super) fn evict(
    ctx: &mut Ctx,
    namespace: &str,
    name: &str,
    eviction: &Value,
) -> Result<(), Status> {
    let stated = eviction["metadata"]["name"].as_str().unwrap_or_default();
    if stated != name {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    let how = options(eviction);
    let pod = super::super::found(ctx, Kind::Pod, namespace, name)?;
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    let unprotected = ["Succeeded", "Failed", "Pending"].contains(&phase)
        || pod["metadata"]["deletionTimestamp"].is_string();
    if !unprotected {
        check_budgets(ctx, namespace, name, &pod, how.dry_run)?;
    }
    super::super::check_preconditions(Kind::Pod, name, &pod, &how.preconditions)?;
    let mut delete = how;
    if !delete.dry_run {
        let now = ctx.epoch().seconds(ctx.now);
        ctx.store.update(Kind::Pod, namespace, name, |pod| {
            Condition::disruption("EvictionByEvictionAPI", "Eviction API: evicting").set(pod, &now, None);
        });
        // The version has just grown by the condition.
        delete.preconditions.resource_version = None;
    }
    super::deletion::delete(ctx, namespace, name, &delete).map(|_| ())
}

/// `deleteOptions` of an eviction.
fn options(eviction: &Value) -> DeleteOptions {
    let options = &eviction["deleteOptions"];
    let text = |field: &str| options["preconditions"][field].as_str().map(str::to_owned);
    DeleteOptions {
        grace: options["gracePeriodSeconds"].as_u64(),
        preconditions: Preconditions { uid: text("uid"), resource_version: text("resourceVersion") },
        propagation: None,
        dry_run: options["dryRun"].as_array().is_some_and(|all| all.iter().any(|one| one == "All")),
    }
}

fn check_budgets(
    ctx: &mut Ctx,
    namespace: &str,
    name: &str,
    pod: &Value,
    dry_run: bool,
) -> Result<(), Status> {
    let covers = |budget: &&std::sync::Arc<Value>| {
        selector::matches(&budget["spec"]["selector"], &pod["metadata"]["labels"])
    };
    let covering: Vec<_> =
        ctx.store.list(Kind::PodDisruptionBudget, Some(namespace)).filter(covers).cloned().collect();
    let Some(budget) = covering.first() else { return Ok(()) };
    if covering.len() > 1 {
        let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        // The one refusal without a reason.
        return Err(Status { code: 500, reason: "", message: message.to_owned(), details: None });
    }
    let status = &budget["status"];
    let count = |field: &str| status[field].as_i64().unwrap_or(0);
    if condition::status(pod, "Ready") != "True" {
        let always = budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow";
        let (current, desired) = (count("currentHealthy"), count("desiredHealthy"));
        if always || current >= desired && desired > 0 {
            return Ok(());
        }
    }
    let own = budget["metadata"]["name"].as_str().unwrap_or_default();
    if count("observedGeneration") < budget["metadata"]["generation"].as_i64().unwrap_or(0) {
        let why = format!("The disruption budget {own} is still being processed by the server.");
        return Err(blocked(&why, Some(10)));
    }
    if status["disruptedPods"].as_object().is_some_and(|pods| pods.len() > MOST_DISRUPTED) {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(Status::forbidden(Kind::PodDisruptionBudget, own, why));
    }
    if count("disruptionsAllowed") <= 0 {
        return Err(blocked(&insufficient(budget, own), None));
    }
    if !dry_run {
        let now = ctx.epoch().seconds(ctx.now);
        ctx.store.update(Kind::PodDisruptionBudget, namespace, own, |budget| {
            let status = &mut budget["status"];
            status["disruptionsAllowed"] = json!(status["disruptionsAllowed"].as_i64().unwrap_or(1) - 1);
            status["disruptedPods"][name] = json!(now);
        });
    }
    Ok(())
}

/// Why a budget allows no disruption.
fn insufficient(budget: &Value, name: &str) -> String {
    let status = &budget["status"];
    let count = |field: &str| status[field].as_i64().unwrap_or(0);
    let allowed = condition::find(budget, "DisruptionAllowed")
        .filter(|condition| condition["status"] == "False")
        .map(|condition| (condition["reason"].as_str(), condition["message"].as_str().unwrap_or_default()))
        .filter(|(_, message)| !message.is_empty());
    match allowed {
        Some((Some("SyncFailed"), message)) => {
            format!(
                "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
            )
        }
        _ if count("currentHealthy") <= count("desiredHealthy") => format!(
            "The disruption budget {name} needs {} healthy pods and has {} currently",
            count("desiredHealthy"),
            count("currentHealthy")
        ),
        Some((reason, message)) => format!(
            "The disruption budget {name} does not allow evicting pods currently ({}): {message}",
            reason.unwrap_or_default()
        ),
        None => format!("The disruption budget {name} does not allow evicting pods currently"),
    }
}

fn blocked(why: &str, retry_after: Option<u32>) -> Status {
    let mut details = json!({"causes": [{"reason": "DisruptionBudget", "message": why}]});
    if let Some(seconds) = retry_after {
        details["retryAfterSeconds"] = json!(seconds);
    }
    Status::too_many_requests(
        "Cannot evict pod as it would violate the pod's disruption budget.",
        Some(details),
    )
}
