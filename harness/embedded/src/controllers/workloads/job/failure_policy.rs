//! Pod failure policy (`pod_failure_policy.go`).

use serde_json::Value;

use crate::resource::container_status::exit_code;
use crate::resource::{ContainerStatusExt, ObjectExt};

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
pub(super) fn counts(job: &Value, pod: &Value) -> bool {
    action(job, pod) != Action::Ignore
}

/// Returns the message if the failure of a pod fails the job.
pub(super) fn fails_job(job: &Value, pod: &Value) -> Option<String> {
    match action(job, pod) {
        Action::FailJob(message) => Some(message),
        Action::Count | Action::Ignore => None,
    }
}

fn action(job: &Value, pod: &Value) -> Action {
    let rules = job["spec"]["podFailurePolicy"].items("rules");
    for (index, rule) in rules.enumerate() {
        let Some(found) = exit(rule, pod).or_else(|| condition(rule, pod)) else { continue };
        match rule.text("action") {
            "Ignore" => return Action::Ignore,
            "FailJob" => return Action::FailJob(format!("{found} matching FailJob rule at index {index}")),
            _ => return Action::Count,
        }
    }
    Action::Count
}

/// Returns the description of a container whose exit code matches a rule.
fn exit(rule: &Value, pod: &Value) -> Option<String> {
    let wanted = rule["onExitCodes"].as_object()?;
    let values = wanted.get("values").and_then(Value::as_array)?;
    let is_in = wanted.get("operator")? == "In";
    let name = wanted.get("containerName");
    let statuses = |list: &str| pod["status"].items(list);
    statuses("containerStatuses").chain(statuses("initContainerStatuses")).find_map(|status| {
        let code = exit_code(status.terminated()).filter(|code| *code != 0)?;
        let fits =
            name.is_none_or(|name| *name == status["name"]) && values.iter().any(|one| *one == code) == is_in;
        fits.then(|| {
            let container = status.text("name");
            let (namespace, name) = (pod.namespace(), pod.name());
            format!("Container {container} for pod {namespace}/{name} failed with exit code {code}")
        })
    })
}

/// Returns the description of a pod condition that matches a rule.
fn condition(rule: &Value, pod: &Value) -> Option<String> {
    let patterns = rule["onPodConditions"].as_array()?;
    let all = pod["status"]["conditions"].as_array()?;
    let fits = |one: &&Value| {
        patterns.iter().any(|wanted| wanted["type"] == one["type"] && wanted["status"] == one["status"])
    };
    all.iter().find(fits).map(|one| {
        let kind = one.text("type");
        format!("Pod {}/{} has condition {kind}", pod.namespace(), pod.name())
    })
}
