//! Status of pod disruption budgets: `pkg/controller/disruption`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::policy::v1::{PodDisruptionBudgetSpec, PodDisruptionBudgetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{self as meta, OwnerReference};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::Value;

use super::context::{ControllerContext, ControllerTask};
use super::{owners, recorder};
use crate::apiserver::int_or_percent::{Round, scaled};
use crate::context::SimContext;
use crate::resource::{EventBody, Kind, ObjectExt, label_selector};
use crate::storage::{ObjectChange, WatchEventType};

const COMPONENT: &str = "controllermanager";

/// Time after which an evicted pod that is not being deleted counts as healthy again.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Handles changes of budgets and pods.
pub(super) fn handle_changes(changes: &[ObjectChange], ctx: &mut ControllerContext) {
    let concerned = changes.iter().filter(|change| match change.kind {
        Kind::Pod => true,
        Kind::PodDisruptionBudget => change.event_type != WatchEventType::Deleted,
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
    for object in budgets {
        let budget = Budget::read(&object, ctx);
        let status = budget.status(ctx);
        if status.disrupted_pods.is_some() {
            ctx.schedule_after(TIMEOUT, ControllerTask::UpdateBudgets(namespace.to_owned()));
        }
        let before = ctx.store.version();
        ctx.store.update(Kind::PodDisruptionBudget, namespace, object.name(), |object| {
            object.write("status", status);
        });
        if budget.pods.is_empty() && ctx.store.version() != before {
            let about = recorder::object_reference(Kind::PodDisruptionBudget, &object);
            let event = EventBody::normal("NoPods", "No matching pods found");
            ctx.record(COMPONENT, about, event);
        }
    }
}

/// Budget with the pods that it selects.
struct Budget {
    generation: Option<i64>,
    spec: PodDisruptionBudgetSpec,
    /// Last status.
    before: PodDisruptionBudgetStatus,
    pods: Vec<Arc<Value>>,
}

impl Budget {
    fn read(object: &Value, ctx: &SimContext) -> Self {
        let spec: PodDisruptionBudgetSpec = object.read("spec");
        let selected = |pod: &&Arc<Value>| label_selector::matches(spec.selector.as_ref(), pod.labels());
        let pods = ctx.store.list(Kind::Pod, Some(object.namespace())).filter(selected).cloned().collect();
        Self { generation: object.generation(), before: object.read("status"), pods, spec }
    }

    /// Returns the new status (`trySync`).
    fn status(&self, ctx: &SimContext) -> PodDisruptionBudgetStatus {
        let disrupted = self.disrupted(ctx);
        let healthy = |pod: &&Arc<Value>| {
            !pod.is_deleting() && !disrupted.contains_key(pod.name()) && pod.has_condition("Ready")
        };
        let current = count(self.pods.iter().filter(healthy).count());
        let (expected, desired) = match self.expected(ctx) {
            Ok(counts) => counts,
            // The old status is kept, except that no disruption is allowed.
            Err(why) => {
                return PodDisruptionBudgetStatus {
                    disruptions_allowed: 0,
                    conditions: Some(vec![self.allowed(false, "SyncFailed", why, ctx)]),
                    ..self.before.clone()
                };
            }
        };
        let spare = if expected > 0 { (current - desired).max(0) } else { 0 };
        let reason = if spare > 0 { "SufficientPods" } else { "InsufficientPods" };
        PodDisruptionBudgetStatus {
            conditions: Some(vec![self.allowed(spare > 0, reason, String::new(), ctx)]),
            current_healthy: current,
            desired_healthy: desired,
            disruptions_allowed: spare,
            expected_pods: expected,
            observed_generation: self.generation,
            disrupted_pods: Some(disrupted).filter(|disrupted| !disrupted.is_empty()),
        }
    }

    /// Returns the expected number of pods and the required number of healthy pods
    /// (`getExpectedPodCount`). Pods without a controller are only supported with an integer
    /// `minAvailable`.
    fn expected(&self, ctx: &SimContext) -> Result<(i32, i32), String> {
        if let Some(IntOrString::Int(least)) = self.spec.min_available {
            return Ok((count(self.pods.len()), least));
        }
        let mut scales = BTreeMap::new();
        for pod in &self.pods {
            if let Some(owner) = pod.controller() {
                let (uid, replicas) = scale(&owner, pod.namespace(), ctx)
                    .ok_or_else(|| format!("found no controllers for pod {:?}", pod.name()))?;
                scales.insert(uid, replicas);
            }
        }
        let all: i32 = scales.into_values().sum();
        let share = |bound: &Option<IntOrString>| scaled(bound.as_ref()?, all, Round::Up);
        let healthy = share(&self.spec.max_unavailable)
            .map(|most| (all - most).max(0))
            .or_else(|| share(&self.spec.min_available));
        Ok((all, healthy.unwrap_or(0)))
    }

    /// Returns the evicted pods that are not being deleted yet (`buildDisruptedPodMap`).
    fn disrupted(&self, ctx: &SimContext) -> BTreeMap<String, meta::Time> {
        let now = ctx.epoch().at(ctx.now);
        let waiting = |(name, at): &(&String, &meta::Time)| {
            let alive = |pod: &Arc<Value>| pod.name() == *name && !pod.is_deleting();
            at.0.checked_add(TIMEOUT).is_ok_and(|end| end > now) && self.pods.iter().any(alive)
        };
        let all = self.before.disrupted_pods.iter().flatten().filter(waiting);
        all.map(|(name, at)| (name.clone(), at.clone())).collect()
    }

    /// Returns the condition `DisruptionAllowed`.
    fn allowed(&self, allowed: bool, reason: &str, message: String, ctx: &SimContext) -> meta::Condition {
        const KIND: &str = "DisruptionAllowed";
        let status = if allowed { "True" } else { "False" };
        let mut before = self.before.conditions.iter().flatten();
        let same = before.find(|old| old.type_ == KIND && old.status == status);
        meta::Condition {
            type_: KIND.to_owned(),
            status: status.to_owned(),
            observed_generation: self.generation,
            last_transition_time: same
                .map_or_else(|| ctx.epoch().meta_time(ctx.now), |old| old.last_transition_time.clone()),
            reason: reason.to_owned(),
            message,
        }
    }
}

/// Returns the uid and the replicas of a ReplicaSet or of its Deployment. Other controllers, such
/// as Jobs, have no scale subresource.
fn scale(owner: &OwnerReference, namespace: &str, ctx: &SimContext) -> Option<(String, i32)> {
    let (kind, set) = owners::find(owner, namespace, ctx)?;
    if kind != Kind::ReplicaSet {
        return None;
    }
    let object = match set.controller() {
        Some(above) => owners::find(&above, namespace, ctx).filter(|(kind, _)| *kind == Kind::Deployment)?.1,
        None => set,
    };
    Some((object.uid().to_owned(), object.spec().read::<Option<i32>>("replicas")?))
}

fn count(pods: usize) -> i32 {
    i32::try_from(pods).unwrap_or(i32::MAX)
}
