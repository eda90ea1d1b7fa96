//! Selector and labels of jobs: `pkg/registry/batch/job`.

use serde_json::{Value, json};

use crate::apiserver::status::{Status, StatusReason};
use crate::context::SimContext;
use crate::resource::ObjectExt;

/// Labels of a job's pods with the job's name: legacy and current key.
const NAME_LABELS: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];
/// Labels of a job's pods with the job's uid: legacy and current key.
const UID_LABELS: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];

/// Rejects jobs that the job controller of the embedded cluster does not implement: indexed ones,
/// and those with rules for failed pods that read exit codes or fail the job.
pub(super) fn reject_unsupported(job: &Value) -> Result<(), Status> {
    let spec = job.spec();
    let is_unsupported = |rule: &Value| {
        rule.get("onExitCodes").is_some() || !["Count", "Ignore"].contains(&rule.text("action"))
    };
    let message = if spec.text("completionMode") == "Indexed" {
        "the embedded cluster does not run Indexed jobs: leave completionMode out"
    } else if spec["podFailurePolicy"].items("rules").any(is_unsupported) {
        "the embedded cluster runs podFailurePolicy only with onPodConditions and the actions Count and Ignore"
    } else {
        return Ok(());
    };
    Err(Status::new(StatusReason::NotImplemented, message))
}

/// Sets the uid of a new job, and the selector and labels of its pods (`generateSelector`).
pub(super) fn generate_selector(ctx: &mut SimContext, name: &str, job: &mut Value) {
    let uid = ctx.store.uid();
    job.metadata_mut().write("uid", &uid);
    let spec = job.spec_mut();
    if spec.read("manualSelector") {
        return;
    }
    let labels = &mut spec["template"].metadata_mut()["labels"];
    for (keys, value) in [(NAME_LABELS, name), (UID_LABELS, &uid)] {
        keys.into_iter().for_each(|key| labels.set_default(key, json!(value)));
    }
    spec["selector"]["matchLabels"].set_default(UID_LABELS[1], json!(uid));
}
