//! Pod failure policy (`pod_failure_policy.go`).

use k8s_openapi::api::batch::v1::{
    PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyOnPodConditionsPattern,
};
use serde_json::Value;

use crate::resource::{ObjectExt, PodStatus};

/// Action of the first matching rule.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    /// The failure counts; also used if no rule matches.
    Count,
    /// The failure does not count.
    Ignore,
    /// The job fails with this message.
    FailJob(String),
}

/// Returns whether the failure of a pod counts.
pub(super) fn counts(policy: &PodFailurePolicy, pod: &Value) -> bool {
    action(policy, pod) != Action::Ignore
}

/// Returns the message if the failure of a pod fails the job.
pub(super) fn fails_job(policy: &PodFailurePolicy, pod: &Value) -> Option<String> {
    match action(policy, pod) {
        Action::FailJob(message) => Some(message),
        Action::Count | Action::Ignore => None,
    }
}

fn action(policy: &PodFailurePolicy, pod: &Value) -> Action {
    let status = PodStatus::of(pod);
    let name = format!("{}/{}", pod.namespace(), pod.name());
    for (index, rule) in policy.rules.iter().enumerate() {
        let by_exit = || exit(rule.on_exit_codes.as_ref()?, &status, &name);
        let by_condition = || condition(rule.on_pod_conditions.as_ref()?, &status, &name);
        let Some(found) = by_exit().or_else(by_condition) else { continue };
        match rule.action.as_str() {
            "Ignore" => return Action::Ignore,
            "FailJob" => return Action::FailJob(format!("{found} matching FailJob rule at index {index}")),
            _ => return Action::Count,
        }
    }
    Action::Count
}

/// Returns the description of a container whose exit code matches a requirement.
fn exit(wanted: &PodFailurePolicyOnExitCodesRequirement, status: &PodStatus, pod: &str) -> Option<String> {
    let is_in = wanted.operator == "In";
    status.container_statuses.iter().chain(&status.init_container_statuses).find_map(|status| {
        let code = status.exit_code().filter(|code| *code != 0)?;
        let is_named = wanted.container_name.as_ref().is_none_or(|name| *name == status.name);
        let fits = is_named && wanted.values.iter().any(|value| i64::from(*value) == code) == is_in;
        let container = &status.name;
        fits.then(|| format!("Container {container} for pod {pod} failed with exit code {code}"))
    })
}

/// Returns the description of a pod condition that matches a pattern.
fn condition(
    patterns: &[PodFailurePolicyOnPodConditionsPattern],
    status: &PodStatus,
    pod: &str,
) -> Option<String> {
    let found = status.conditions.iter().find(|condition| {
        let text = condition.status.to_string();
        patterns.iter().any(|wanted| wanted.type_ == condition.kind && wanted.status == text)
    })?;
    Some(format!("Pod {pod} has condition {}", found.kind))
}
