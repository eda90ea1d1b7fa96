//! Parts that the specs of workloads share, and helpers of their controllers.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Delay in which the job controller collects pod updates (`syncJobBatchPeriod`).
pub(super) const SYNC_JOB_BATCH_PERIOD: Duration = Duration::from_secs(1);

/// A reconciliation failed; the reason is in an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReconcileError;

/// Delay until an object is reconciled again if it does not change.
pub(super) type Reconciled = Result<Option<Duration>, ReconcileError>;

/// Spec of a Deployment or ReplicaSet.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ReplicaSpec {
    pub(super) replicas: i32,
    pub(super) selector: LabelSelector,
    pub(super) template: PodTemplateSpec,
}

/// Pod template. The spec stays JSON, so that fields newer than k8s-openapi's types are kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct PodTemplateSpec {
    pub(super) metadata: ObjectMeta,
    pub(super) spec: Value,
}

/// Returns a count for a status; `None` for 0, which a status omits.
pub(super) fn nonzero(number: i32) -> Option<i32> {
    Some(number).filter(|number| *number != 0)
}

/// Converts a number of objects; returns the largest `i32` if it is larger.
pub(super) fn saturating_i32(objects: usize) -> i32 {
    i32::try_from(objects).unwrap_or(i32::MAX)
}
