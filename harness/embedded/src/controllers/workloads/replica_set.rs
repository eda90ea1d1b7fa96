//! ReplicaSets (`pkg/controller/replicaset`).
//!
//! Pods that have ended or are being deleted do not count: they are replaced, and failed ones are
//! kept.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::ReplicaSetStatus;
use serde_json::Value;

use super::pods::{PodController, deletion_key, is_active, is_terminating_pod};
use super::workload_spec::{ReconcileError, Reconciled, ReplicaSpec, nonzero, saturating_i32};
use crate::apiserver::control_plane_version;
use crate::context::SimContext;
use crate::controllers::context::ControllerContext;
use crate::resource::{Kind, ObjectExt};

/// Maximum number of pods that are created or deleted at once (`BurstReplicas`).
const BURST: usize = 500;

/// Creates or deletes pods, and updates the status.
pub(super) fn sync(set: &Value, ctx: &mut ControllerContext) -> Reconciled {
    let owner = PodController { kind: Kind::ReplicaSet, object: set, component: "replicaset-controller" };
    let spec: ReplicaSpec = set.read("spec");
    let all = owner.claim(ctx);
    let mut active: Vec<_> = all.iter().filter(|pod| is_active(pod)).cloned().collect();
    let wanted = usize::try_from(spec.replicas).unwrap_or(0);
    let mut outcome = Ok(None);
    if !set.is_deleting() {
        for _ in 0..wanted.saturating_sub(active.len()).min(BURST) {
            if owner.create(&spec.template, ctx).is_err() {
                outcome = Err(ReconcileError);
                break;
            }
        }
        active.sort_by_cached_key(|pod| deletion_key(pod));
        for pod in active.iter().take(active.len().saturating_sub(wanted).min(BURST)) {
            owner.delete(pod, ctx);
        }
    }
    let labels = spec.template.metadata.labels.unwrap_or_default();
    let has_labels = |pod: &&Arc<Value>| labels.iter().all(|(key, value)| pod.labels().text(key) == value);
    let ready = saturating_i32(active.iter().filter(|pod| pod.has_condition("Ready")).count());
    let status = ReplicaSetStatus {
        replicas: saturating_i32(active.len()),
        fully_labeled_replicas: nonzero(saturating_i32(active.iter().filter(has_labels).count())),
        ready_replicas: nonzero(ready),
        // A ready pod is available at once: `minReadySeconds` is not implemented.
        available_replicas: nonzero(ready),
        terminating_replicas: terminating_replicas(&all, ctx),
        observed_generation: set.generation(),
        conditions: None,
    };
    ctx.store.update(Kind::ReplicaSet, set.namespace(), set.name(), |set| set.write("status", status));
    outcome
}

/// Returns the number of pods that are being deleted
/// (`DeploymentReplicaSetTerminatingReplicas`, KEP-3973), since 1.35.
fn terminating_replicas(pods: &[Arc<Value>], ctx: &SimContext) -> Option<i32> {
    let terminating = || saturating_i32(pods.iter().filter(|pod| is_terminating_pod(pod)).count());
    control_plane_version(ctx).at_least(35).then(terminating)
}
