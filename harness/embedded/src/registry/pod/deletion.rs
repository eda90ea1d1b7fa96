//! How pods go: with a grace period, at once, or when the last finalizer is gone.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::{DeleteOptions, Deleted, Status, meta};
use crate::store::Kind;
use crate::world::Ctx;

/// Deletes a pod: `rest.BeforeDelete` with the pods' strategy.
pub(in super::super) fn delete(
    ctx: &mut Ctx,
    namespace: &str,
    name: &str,
    how: &DeleteOptions,
) -> Result<Deleted, Status> {
    let mut pod = Value::clone(&*super::super::found(ctx, Kind::Pod, namespace, name)?);
    super::super::check_preconditions(Kind::Pod, name, &pod, &how.preconditions)?;
    let pending = pod["metadata"]["deletionGracePeriodSeconds"].as_u64();
    let grace = match (pending, how.grace) {
        // It may only be shortened.
        (Some(pending), Some(wanted)) if wanted < pending => wanted,
        (Some(_), _) => return Ok(Deleted::Object(pod.into())),
        (None, wanted) => grace(&pod, wanted),
    };
    let at = match pending {
        Some(pending) => sooner(&pod, pending - grace),
        None => ctx.epoch().seconds(ctx.now + Duration::from_secs(grace)),
    };
    pod["metadata"]["deletionTimestamp"] = json!(at);
    pod["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
    if let (None, Some(generation)) = (pending, pod["metadata"]["generation"].as_u64()) {
        pod["metadata"]["generation"] = json!(generation + 1);
    }
    if how.dry_run {
        return Ok(Deleted::Object(pod.into()));
    }
    if grace == 0 && meta::finalizers(&pod).next().is_none() {
        let gone = ctx.store.remove(Kind::Pod, namespace, name);
        return Ok(Deleted::Object(gone.unwrap_or_else(|| pod.into())));
    }
    super::super::replace(ctx, Kind::Pod, name, pod).map(Deleted::Object)
}

/// Takes out a pod of which nothing is left on its node; finalizers keep it.
pub(in super::super) fn finish(ctx: &mut Ctx, namespace: &str, name: &str, uid: &str) {
    let Some(pod) = ctx.store.get(Kind::Pod, namespace, name) else { return };
    if pod["metadata"]["uid"] != uid {
        return;
    }
    let at_once = DeleteOptions { grace: Some(0), ..DeleteOptions::default() };
    // Nothing can be wrong with a pod that is there.
    let _ = delete(ctx, namespace, name, &at_once);
}

/// When the pod is to be gone if that is so many seconds sooner than was said.
fn sooner(pod: &Value, seconds: u64) -> String {
    let said = pod["metadata"]["deletionTimestamp"].as_str().unwrap_or_default();
    let shortened =
        said.parse::<Timestamp>().ok().and_then(|said| said.checked_sub(Duration::from_secs(seconds)).ok());
    shortened.map_or_else(|| said.to_owned(), |at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// The grace period of a first deletion: none for a pod that is on no node or has ended.
fn grace(pod: &Value, wanted: Option<u64>) -> u64 {
    let own = pod["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(0);
    let unscheduled = pod["spec"]["nodeName"].as_str().unwrap_or_default().is_empty();
    let ended = ["Failed", "Succeeded"].contains(&pod["status"]["phase"].as_str().unwrap_or_default());
    if unscheduled || ended {
        0
    } else {
        // A negative period means the shortest.
        wanted.unwrap_or(u64::try_from(own).unwrap_or(1))
    }
}
