//! ReplicaSets (`pkg/controller/replicaset`).
//!
//! Pods that have ended or are being deleted do not count: they are replaced, and failed ones are
//! kept.

use std::sync::Arc;

use serde_json::{Value, json};

use super::pods::{Owner, deletion_key, is_active, is_terminating_pod};
use super::reconcile::{ReconcileError, Reconciled, count};
use crate::apiserver::control_plane_version;
use crate::context::SimContext;
use crate::controllers::context::ControllerContext;
use crate::resource::{Kind, ObjectExt};

/// Maximum number of pods that are created or deleted at once (`BurstReplicas`).
const BURST: usize = 500;

/// Creates or deletes pods, and updates the status.
pub(super) fn sync(set: &Value, ctx: &mut ControllerContext) -> Reconciled {
    let owner = Owner { kind: Kind::ReplicaSet, object: set, component: "replicaset-controller" };
    let all = owner.claim(None, ctx);
    let mut active: Vec<_> = all.iter().filter(|pod| is_active(pod)).cloned().collect();
    let wanted = usize::try_from(set["spec"].integer("replicas")).unwrap_or(0);
    let mut outcome = Ok(None);
    if !set.is_deleting() {
        for _ in 0..wanted.saturating_sub(active.len()).min(BURST) {
            if owner.create(None, ctx).is_err() {
                outcome = Err(ReconcileError);
                break;
            }
        }
        active.sort_by_cached_key(|pod| deletion_key(pod));
        for pod in active.iter().take(active.len().saturating_sub(wanted).min(BURST)) {
            owner.delete(pod, ctx);
        }
    }
    let status = status(set, &all, &active, ctx);
    ctx.store.update(Kind::ReplicaSet, set.namespace(), set.name(), |set| {
        set["status"] = status;
    });
    outcome
}

/// Returns the status (`calculateStatus`). A ready pod is available at once: `minReadySeconds` is not
/// implemented.
fn status(set: &Value, all: &[Arc<Value>], active: &[Arc<Value>], ctx: &SimContext) -> Value {
    let labels = &set["spec"]["template"]["metadata"]["labels"];
    let has_labels = |pod: &&Arc<Value>| {
        labels.as_object().into_iter().flatten().all(|(key, value)| pod.labels()[key] == *value)
    };
    let ready = active.iter().filter(|pod| pod.has_condition("Ready")).count() as i64;
    let mut status = set["status"].clone();
    status["replicas"] = json!(active.len());
    count(&mut status, "fullyLabeledReplicas", active.iter().filter(has_labels).count() as i64);
    count(&mut status, "readyReplicas", ready);
    count(&mut status, "availableReplicas", ready);
    // `DeploymentReplicaSetTerminatingReplicas`, KEP-3973, since 1.35.
    if control_plane_version(ctx).at_least(35) {
        status["terminatingReplicas"] = json!(all.iter().filter(|pod| is_terminating_pod(pod)).count());
    }
    status["observedGeneration"] = set["metadata"]["generation"].clone();
    status
}
