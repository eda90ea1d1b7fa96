//! Resource quotas, with `count/pods` as the only resource.

use std::collections::BTreeMap;

use serde_json::Value;

use super::status::Status;
use crate::context::SimContext;
use crate::resource::{Kind, ObjectExt};

/// The resource that is enforced.
const COUNT: &str = "count/pods";

/// Rejects a quota with other resources, which would not be enforced.
///
/// # Errors
/// 403 that names the resource.
pub(super) fn check_supported(name: &str, quota: &Value) -> Result<(), Status> {
    match hard(quota).into_keys().find(|resource| resource != COUNT) {
        None => Ok(()),
        Some(other) => {
            let reason = format!("the model enforces only {COUNT}, not {other}");
            Err(Status::forbidden(Kind::ResourceQuota, name, &reason))
        }
    }
}

/// Rejects a pod that exceeds a quota of its namespace, in the words of the API server.
///
/// # Errors
/// 403 for a pod beyond a quota.
pub(super) fn admit_pod(ctx: &SimContext, namespace: &str, name: &str) -> Result<(), Status> {
    let mut quotas = ctx.store.list(Kind::ResourceQuota, Some(namespace));
    let used = ctx.store.list(Kind::Pod, Some(namespace)).count();
    let exceeded = quotas.find_map(|quota| {
        let limit: usize = hard(quota).remove(COUNT)?.parse().ok()?;
        (used >= limit).then(|| (quota.name(), limit))
    });
    match exceeded {
        None => Ok(()),
        Some((quota, limit)) => {
            let reason = format!(
                "exceeded quota: {quota}, requested: {COUNT}=1, used: {COUNT}={used}, limited: {COUNT}={limit}"
            );
            Err(Status::forbidden(Kind::Pod, name, &reason))
        }
    }
}

/// Returns the limits of a quota, by resource.
fn hard(quota: &Value) -> BTreeMap<String, String> {
    quota.spec().read("hard")
}
