//! Deletion of pods: with a grace period, at once, or with the last finalizer.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use crate::apiserver::objects::{
    check_preconditions, control_plane_version, find, increment_generation, replace,
};
use crate::apiserver::options::{DeleteOptions, DeleteResult, ObjectPath};
use crate::apiserver::status::Status;
use crate::context::SimContext;
use crate::resource::{Kind, ObjectExt};

/// Deletes a pod (`rest.BeforeDelete` with the strategy of pods).
pub(in crate::apiserver) fn delete(
    ctx: &mut SimContext,
    namespace: &str,
    name: &str,
    options: &DeleteOptions,
) -> Result<DeleteResult, Status> {
    let mut pod = Value::clone(&*find(ctx, ObjectPath { kind: Kind::Pod, namespace, name })?);
    check_preconditions(Kind::Pod, name, &pod, &options.preconditions)?;
    let pending: Option<u64> = pod.metadata().read("deletionGracePeriodSeconds");
    let grace = match (pending, options.grace) {
        // A pending grace period can only be shortened.
        (Some(pending), Some(requested)) if requested < pending => requested,
        (Some(_), _) => return Ok(DeleteResult::Object(pod.into())),
        (None, requested) => initial_grace(&pod, requested),
    };
    let deletion_time = match pending {
        Some(pending) => shortened_deletion_time(&pod, pending - grace, ctx),
        None => Some(ctx.epoch().meta_time(ctx.now + Duration::from_secs(grace))),
    };
    pod.metadata_mut().write("deletionTimestamp", deletion_time);
    pod.metadata_mut().write("deletionGracePeriodSeconds", grace);
    if pending.is_none() {
        increment_generation(&mut pod);
    }
    if grace == 0 && pod.finalizers().next().is_none() {
        let removed = ctx.store.remove(Kind::Pod, namespace, name);
        return Ok(DeleteResult::Object(removed.unwrap_or_else(|| pod.into())));
    }
    replace(ctx, Kind::Pod, name, pod).map(DeleteResult::Object)
}

/// Removes a pod whose containers its kubelet has cleaned up. Pods with another uid and pods with
/// finalizers are kept.
pub(crate) fn finish_pod_deletion(ctx: &mut SimContext, namespace: &str, name: &str, uid: &str) {
    let Some(pod) = ctx.store.get(Kind::Pod, namespace, name) else { return };
    if pod.uid() != uid {
        return;
    }
    let at_once = DeleteOptions { grace: Some(0), ..DeleteOptions::default() };
    // The pod exists and there are no preconditions, so the deletion cannot fail.
    let _ = delete(ctx, namespace, name, &at_once);
}

/// Returns the deletion timestamp of a pod, moved forward by some seconds; since 1.33 it never
/// moves into the past.
fn shortened_deletion_time(pod: &Value, seconds: u64, ctx: &SimContext) -> Option<Time> {
    let time: Time = pod.metadata().read::<Option<Time>>("deletionTimestamp")?;
    let shortened = Time(time.0.checked_sub(Duration::from_secs(seconds)).ok()?);
    if control_plane_version(ctx).at_least(33) {
        return Some(shortened.max(ctx.epoch().meta_time(ctx.now)));
    }
    Some(shortened)
}

/// Returns the grace period of a first deletion in seconds: 0 for a pod without a node and for a
/// terminated pod.
fn initial_grace(pod: &Value, requested: Option<u64>) -> u64 {
    let own = pod.spec().integer("terminationGracePeriodSeconds");
    let is_unscheduled = pod.node_name().is_empty();
    if is_unscheduled || pod.is_terminal() {
        0
    } else {
        // A negative period means the shortest one, 1 s.
        requested.unwrap_or(u64::try_from(own).unwrap_or(1))
    }
}
