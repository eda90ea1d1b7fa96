//! Creation of pods: defaults, admission, initial status.

use evictlab_api_types::read;
use evictlab_rules::pod::{Pod, QosClass};
use serde_json::Value;

use super::{admission, defaults};
use crate::apiserver::objects::control_plane_version;
use crate::apiserver::status::Status;
use crate::context::SimContext;
use crate::resource::{ObjectExt, Phase, PodStatus};

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
    let qos = read::<Pod>(pod).map_or(QosClass::BestEffort, |pod| pod.qos_class());
    let phase = Some(Phase::Pending);
    pod.write("status", PodStatus { phase, qos_class: Some(qos), ..PodStatus::default() });
    // Pods have generations since 1.33 (KEP-5067).
    if version.at_least(33) {
        pod.metadata_mut().write("generation", 1);
    } else {
        pod.metadata_mut().remove("generation");
    }
    Ok(())
}
