//! Deployments (`pkg/controller/deployment`).
//!
//! A Deployment has one ReplicaSet per template. A new template replaces the old one at once:
//! rolling updates, revisions, rollback and pausing are not implemented.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{
    DeploymentCondition, DeploymentStatus, DeploymentStrategy, ReplicaSetStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use super::pods::PodController;
use super::workload_spec::{PodTemplateSpec, ReconcileError, Reconciled, ReplicaSpec, nonzero};
use crate::apiserver::int_or_percent::{Round, scaled};
use crate::apiserver::{self, FieldValidation, control_plane_version};
use crate::context::SimContext;
use crate::controllers::context::ControllerContext;
use crate::controllers::owners::controller_reference;
use crate::resource::{EventBody, Kind, ObjectExt};
use crate::storage::SAFE_LETTERS;

/// Label with the hash of the template.
const TEMPLATE_HASH: &str = "pod-template-hash";

/// Creates or scales the ReplicaSets of a Deployment, and updates its status.
pub(super) fn sync(object: &Value, ctx: &mut ControllerContext) -> Reconciled {
    let owner = PodController { kind: Kind::Deployment, object, component: "deployment-controller" };
    let spec: ReplicaSpec = object.read("spec");
    if !object.is_deleting() {
        let (current, outdated) = replica_sets(object, &spec.template, ctx);
        for set in outdated {
            scale(&owner, &set, 0, ctx);
        }
        match current {
            Some(set) => scale(&owner, &set, spec.replicas, ctx),
            None => create(&owner, spec.clone(), ctx)?,
        }
    }
    let status = status(object, &spec, ctx);
    ctx.store.update(Kind::Deployment, object.namespace(), object.name(), |object| {
        object.write("status", status);
    });
    Ok(None)
}

/// Returns the ReplicaSet of the current template, and those of earlier templates.
fn replica_sets(
    object: &Value,
    template: &PodTemplateSpec,
    ctx: &SimContext,
) -> (Option<Arc<Value>>, Vec<Arc<Value>>) {
    let sets = ctx.store.list(Kind::ReplicaSet, Some(object.namespace()));
    let sets = sets.filter(|set| set.is_controlled_by(object.uid())).cloned();
    let is_current = |set: &Arc<Value>| {
        let mut own: PodTemplateSpec = set.spec().read("template");
        own.metadata.labels.as_mut().and_then(|labels| labels.remove(TEMPLATE_HASH));
        own == *template
    };
    let (mut current, outdated): (Vec<_>, Vec<_>) = sets.partition(is_current);
    (current.pop(), outdated)
}

/// Creates the ReplicaSet of the current template.
fn create(
    owner: &PodController,
    mut spec: ReplicaSpec,
    ctx: &mut ControllerContext,
) -> Result<(), ReconcileError> {
    let object = owner.object;
    let hash = hash(&spec.template);
    let name = format!("{}-{hash}", object.name());
    let labels = spec.template.metadata.labels.get_or_insert_default();
    labels.insert(TEMPLATE_HASH.to_owned(), hash.clone());
    let metadata = ObjectMeta {
        name: Some(name.clone()),
        labels: Some(labels.clone()),
        annotations: object.read::<ObjectMeta>("metadata").annotations,
        owner_references: Some(vec![controller_reference(Kind::Deployment, object)]),
        ..ObjectMeta::default()
    };
    spec.selector.match_labels.get_or_insert_default().insert(TEMPLATE_HASH.to_owned(), hash);
    let set = json!({"metadata": metadata, "spec": spec});
    match apiserver::create(ctx, Kind::ReplicaSet, object.namespace(), set, FieldValidation::default()) {
        Ok(_) => {
            if spec.replicas > 0 {
                record_scaling(owner, &name, None, spec.replicas, ctx);
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
fn scale(owner: &PodController, set: &Value, replicas: i32, ctx: &mut ControllerContext) {
    let before: i32 = set.spec().read("replicas");
    if before == replicas {
        return;
    }
    ctx.store.update(Kind::ReplicaSet, set.namespace(), set.name(), |set| {
        set.spec_mut().write("replicas", replicas);
        set.metadata_mut().change("generation", |generation: &mut i64| *generation += 1);
    });
    record_scaling(owner, set.name(), Some(before), replicas, ctx);
}

/// Records the event about a ReplicaSet that was scaled, or created if `before` is `None`.
fn record_scaling(
    owner: &PodController,
    set: &str,
    before: Option<i32>,
    after: i32,
    ctx: &mut ControllerContext,
) {
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
fn status(object: &Value, spec: &ReplicaSpec, ctx: &SimContext) -> DeploymentStatus {
    let (current, outdated) = replica_sets(object, &spec.template, ctx);
    let sets: Vec<&Arc<Value>> = outdated.iter().chain(&current).collect();
    let statuses: Vec<ReplicaSetStatus> = sets.iter().map(|set| set.read("status")).collect();
    let sum = |field: fn(&ReplicaSetStatus) -> Option<i32>| statuses.iter().filter_map(field).sum::<i32>();
    let total: i32 = sets.iter().map(|set| set.spec().read::<i32>("replicas")).sum();
    let available = sum(|set| set.available_replicas);
    let strategy: DeploymentStrategy = object.spec().read("strategy");
    let max_unavailable = strategy.rolling_update.and_then(|update| update.max_unavailable);
    let max_unavailable =
        max_unavailable.and_then(|most| scaled(&most, spec.replicas, Round::Down)).unwrap_or(0);
    let mut status: DeploymentStatus = object.read("status");
    if let Some(condition) = available_condition(&status, available >= spec.replicas - max_unavailable, ctx) {
        status.conditions = Some(vec![condition]);
    }
    let terminating = || sum(|set| set.terminating_replicas);
    DeploymentStatus {
        replicas: nonzero(sum(|set| Some(set.replicas))),
        updated_replicas: current.and_then(|set| nonzero(set.read::<ReplicaSetStatus>("status").replicas)),
        ready_replicas: nonzero(sum(|set| set.ready_replicas)),
        available_replicas: nonzero(available),
        unavailable_replicas: nonzero((total - available).max(0)),
        terminating_replicas: control_plane_version(ctx).at_least(35).then(terminating),
        observed_generation: object.generation(),
        ..status
    }
}

/// Returns the condition `Available`, or `None` if it has not changed.
fn available_condition(
    before: &DeploymentStatus,
    is_available: bool,
    ctx: &SimContext,
) -> Option<DeploymentCondition> {
    const KIND: &str = "Available";
    let (status, reason, message) = if is_available {
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    if before.conditions.iter().flatten().any(|old| old.type_ == KIND && old.status == status) {
        return None;
    }
    let now = Some(ctx.epoch().meta_time(ctx.now));
    Some(DeploymentCondition {
        type_: KIND.to_owned(),
        status: status.to_owned(),
        last_update_time: now.clone(),
        last_transition_time: now,
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
    })
}

/// Returns the hash of a template. It differs from the real one, which hashes Go's memory, but has
/// the same characters (`SafeEncodeString`).
fn hash(template: &PodTemplateSpec) -> String {
    // FNV-1a with 32 bits, as Go's `fnv.New32a`.
    let hash = json!(template)
        .to_string()
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let digits = hash.to_string();
    digits.bytes().map(|digit| char::from(SAFE_LETTERS[usize::from(digit) % SAFE_LETTERS.len()])).collect()
}
