//! State of a job.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::context::SimContext;
use crate::controllers::context::ControllerContext;
use crate::controllers::workloads::pods::{Owner, is_active, is_terminating_pod};
use crate::controllers::workloads::reconcile::age;
use crate::resource::ObjectExt;

/// Finalizer of pods that their job has not counted yet.
pub(super) const TRACKING: &str = "batch.kubernetes.io/job-tracking";

/// Job with its pods and counts.
pub(super) struct Job<'a> {
    pub(super) owner: Owner<'a>,
    pub(super) pods: Vec<Arc<Value>>,
    pub(super) status: Value,
    /// Pods that are pending or running.
    pub(super) active: i64,
    pub(super) ready: i64,
    /// Pods that are being deleted.
    pub(super) terminating: i64,
    pub(super) succeeded: i64,
    pub(super) failed: i64,
}

impl<'a> Job<'a> {
    pub(super) fn read(owner: Owner<'a>, ctx: &mut ControllerContext) -> Self {
        let pods = owner.claim(Some(TRACKING), ctx);
        let counted = |is: fn(&Value) -> bool| pods.iter().filter(|pod| is(pod)).count() as i64;
        let status = owner.object["status"].clone();
        Self {
            active: counted(is_active),
            ready: counted(|pod| is_active(pod) && pod.has_condition("Ready")),
            terminating: counted(is_terminating_pod),
            succeeded: status.integer("succeeded"),
            failed: status.integer("failed"),
            owner,
            pods,
            status,
        }
    }

    pub(super) fn spec(&self) -> &'a Value {
        &self.owner.object["spec"]
    }

    /// Returns whether terminating pods are replaced only after their end
    /// (`onlyReplaceFailedPods`).
    pub(super) fn replaces_failed_only(&self) -> bool {
        self.spec()["podReplacementPolicy"] == "Failed" || self.spec()["podFailurePolicy"].is_object()
    }

    /// Returns whether a pod has failed. Pods that are being deleted count as failed if they are
    /// replaced at once (`isPodFailed`).
    pub(super) fn has_failed(&self, pod: &Value) -> bool {
        let phase = &pod["status"]["phase"];
        *phase == "Failed" || !self.replaces_failed_only() && *phase != "Succeeded" && pod.is_deleting()
    }

    pub(super) fn active_pods(&self) -> Vec<Arc<Value>> {
        self.pods.iter().filter(|pod| is_active(pod)).cloned().collect()
    }

    /// Returns the succeeded and the failed pods that were not counted yet.
    pub(super) fn uncounted(&self) -> (Vec<Arc<Value>>, Vec<Arc<Value>>) {
        let new = || self.pods.iter().filter(|pod| is_tracked(pod));
        let succeeded = new().filter(|pod| pod.phase() == "Succeeded").cloned().collect();
        (succeeded, new().filter(|pod| self.has_failed(pod)).cloned().collect())
    }

    /// Returns the time until `activeDeadlineSeconds` is exceeded.
    pub(super) fn deadline(&self, ctx: &SimContext) -> Option<Duration> {
        let most = self.spec()["activeDeadlineSeconds"].as_u64()?;
        let since = age(&self.status["startTime"], ctx)?;
        Some(Duration::from_secs(most).saturating_sub(since))
    }
}

/// Returns whether a job has not counted the pod yet.
pub(in crate::controllers::workloads) fn is_tracked(pod: &Value) -> bool {
    pod["metadata"]["finalizers"].as_array().is_some_and(|all| all.iter().any(|one| one == TRACKING))
}
