//! State of a job.

use std::sync::Arc;

use k8s_openapi::api::batch::v1::{JobStatus, PodFailurePolicy};
use serde::Deserialize;
use serde_json::Value;

use super::failure_policy;
use crate::controllers::context::ControllerContext;
use crate::controllers::workloads::pods::{Owner, is_active, is_terminating_pod};
use crate::controllers::workloads::reconcile::PodTemplate;
use crate::resource::ObjectExt;

/// Finalizer of pods that their job has not counted yet.
pub(super) const TRACKING: &str = "batch.kubernetes.io/job-tracking";

/// Fields of a job's spec that its controller reads.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct JobSpec {
    pub(super) parallelism: i64,
    pub(super) completions: Option<i64>,
    pub(super) backoff_limit: i64,
    pub(super) pod_failure_policy: Option<PodFailurePolicy>,
    pub(super) template: PodTemplate,
}

/// Job with its pods and counts.
pub(super) struct Job<'a> {
    pub(super) owner: Owner<'a>,
    pub(super) pods: Vec<Arc<Value>>,
    pub(super) spec: JobSpec,
    pub(super) status: JobStatus,
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
        let status: JobStatus = owner.object.read("status");
        Self {
            active: counted(is_active),
            ready: counted(|pod| is_active(pod) && pod.has_condition("Ready")),
            terminating: counted(is_terminating_pod),
            succeeded: status.succeeded.unwrap_or(0).into(),
            failed: status.failed.unwrap_or(0).into(),
            spec: owner.object.read("spec"),
            owner,
            pods,
            status,
        }
    }

    /// Returns whether terminating pods are replaced only after their end
    /// (`onlyReplaceFailedPods`).
    pub(super) fn replaces_failed_only(&self) -> bool {
        self.spec.pod_failure_policy.is_some()
    }

    /// Returns whether a pod has failed. Pods that are being deleted count as failed if they are
    /// replaced at once (`isPodFailed`).
    pub(super) fn has_failed(&self, pod: &Value) -> bool {
        let phase = pod.phase();
        phase == "Failed" || !self.replaces_failed_only() && phase != "Succeeded" && pod.is_deleting()
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

    /// Returns whether the failure of a pod counts.
    pub(super) fn counts(&self, pod: &Value) -> bool {
        self.spec.pod_failure_policy.as_ref().is_none_or(|policy| failure_policy::counts(policy, pod))
    }
}

/// Returns whether a job has not counted the pod yet.
pub(in crate::controllers::workloads) fn is_tracked(pod: &Value) -> bool {
    pod.finalizers().any(|finalizer| finalizer == TRACKING)
}
