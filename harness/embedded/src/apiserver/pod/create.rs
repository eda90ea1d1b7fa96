//! Creation of pods: defaults, admission, initial status.

use evictlab_rules::pod::{Pod, QosClass};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{admission, defaults};
use crate::apiserver::objects::control_plane_version;
use crate::apiserver::status::Status;
use crate::context::SimContext;
use crate::resource::ObjectExt;

/// Applies defaults and admission to a new pod and sets its initial status.
pub(in crate::apiserver) fn prepare(
    ctx: &mut SimContext,
    namespace: &str,
    name: &str,
    pod: &mut Value,
) -> Result<(), Status> {
    let version = control_plane_version(ctx);
    defaults::set_defaults(pod, &version);
    admission::admit(ctx, namespace, name, pod)?;
    // A pod that cannot be read is rejected by the validation.
    let qos = Pod::deserialize(&*pod).map_or(QosClass::BestEffort, |pod| pod.qos_class());
    pod["status"] = json!({"phase": "Pending", "qosClass": qos});
    // Pods have generations since 1.33 (KEP-5067).
    if version.at_least(33) {
        pod["metadata"]["generation"] = json!(1);
    } else {
        pod["metadata"].remove("generation");
    }
    Ok(())
}
