//! Pods: what is filled in, what is demanded of them, how they end.

pub(super) mod admission;
pub(super) mod binding;
pub(crate) mod defaults;
pub(super) mod deletion;
pub(super) mod ephemeral;
pub(super) mod eviction;
mod resources;
pub(super) mod update;
pub(super) mod validation;
mod volumes;

use evictlab_rules::pod::{Pod, Qos};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Status;
use super::condition::Condition;
use crate::world::Ctx;

/// The lists of containers in a pod's spec, in the order in which they are validated.
const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

/// Makes a new pod whole: defaults, admission, status. The pod is validated by [`validation::create`].
pub(super) fn prepare(ctx: &mut Ctx, namespace: &str, name: &str, pod: &mut Value) -> Result<(), Status> {
    let control_plane = super::control_plane(ctx);
    defaults::set(pod, &control_plane);
    admission::admit(ctx, namespace, name, pod)?;
    // What is wrong with one that cannot be read is told by the validation.
    let qos = Pod::deserialize(&*pod).map_or(Qos::BestEffort, |pod| pod.qos());
    pod["status"] = json!({"phase": "Pending", "qosClass": qos});
    if pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
        let message = "Scheduling is blocked due to non-empty scheduling gates";
        let now = ctx.epoch().seconds(ctx.now);
        Condition { kind: "PodScheduled", status: "False", reason: "SchedulingGated", message }
            .set(pod, &now, None);
    }
    // Pods have generations since 1.33 (KEP-5067).
    if control_plane.at_least(33) {
        pod["metadata"]["generation"] = json!(1);
    } else if let Some(metadata) = pod["metadata"].as_object_mut() {
        metadata.shift_remove("generation");
    }
    Ok(())
}

/// The containers of a list of a pod's spec.
fn containers<'a>(pod: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    pod["spec"][list].as_array().into_iter().flatten()
}
