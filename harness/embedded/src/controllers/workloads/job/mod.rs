//! Jobs (`pkg/controller/job`).
//!
//! The counts are those of the pods that exist. Not implemented: indexed jobs (rejected by the
//! API), the finalizer by which the real controller counts pods once, the interim conditions
//! `FailureTarget` and `SuccessCriteriaMet`, suspended jobs, `podReplacementPolicy`, fewer
//! pods after a change of `parallelism`, and the limit of container restarts with `restartPolicy:
//! OnFailure`.

mod failure_policy;
mod sync;

pub(super) use sync::sync;
