//! Results of a reconciliation, and fields of statuses.

use std::time::Duration;

use serde_json::{Value, json};

use crate::resource::ObjectExt;

/// Delay in which the job controller collects pod updates (`syncJobBatchPeriod`).
pub(super) const BATCH: Duration = Duration::from_secs(1);

/// A reconciliation failed; the reason is in an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReconcileError;

/// Delay until an object is reconciled again if it does not change.
pub(super) type Reconciled = Result<Option<Duration>, ReconcileError>;

/// Sets a count in a status; 0 is omitted.
pub(super) fn count(status: &mut Value, field: &str, count: i64) {
    if count != 0 {
        status[field] = json!(count);
    } else {
        status.remove(field);
    }
}
