//! Jobs (`pkg/controller/job`).
//!
//! The real controller counts a pod in two steps, with `uncountedTerminatedPods` and a finalizer;
//! the model counts it in one. Not implemented: indexed jobs (rejected by the API), suspended jobs,
//! `activeDeadlineSeconds`, `podReplacementPolicy`, `ttlSecondsAfterFinished`, and the limit of
//! container restarts with `restartPolicy: OnFailure`.

mod backoff;
mod end;
mod failure_policy;
mod state;
mod sync;

pub(super) use backoff::Backoffs;
pub(super) use state::is_tracked;
pub(super) use sync::{is_finished, is_wanted, release_orphan, sync};
