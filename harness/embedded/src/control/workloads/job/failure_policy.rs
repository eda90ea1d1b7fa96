//! What a job makes of the way in which a pod has failed (`pod_failure_policy.go`).

use serde_json::Value;

use super::super::super::meta;

/// What the policy's first rule that fits a failed pod says.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    /// The failure counts; so it does where no rule fits.
    Count,
    /// It does not.
    Ignore,
    /// The job fails, with this message.
    FailJob(String),
}

/// Whether the failure of a pod counts.
pub(super) fn counts(job: &Value, pod: &Value) -> bool {
    judge(job, pod) != Verdict::Ignore
}

/// Why the failure of a pod is that of the job, if it is.
pub(super) fn fails_job(job: &Value, pod: &Value) -> Option<String> {
    match judge(job, pod) {
        Verdict::FailJob(message) => Some(message),
        Verdict::Count | Verdict::Ignore => None,
    }
}

fn judge(job: &Value, pod: &Value) -> Verdict {
    let rules = job["spec"]["podFailurePolicy"]["rules"].as_array().into_iter().flatten();
    for (index, rule) in rules.enumerate() {
        let Some(found) = exit(rule, pod).or_else(|| condition(rule, pod)) else { continue };
        match rule["action"].as_str().unwrap_or_default() {
            "Ignore" => return Verdict::Ignore,
            "FailJob" => return Verdict::FailJob(format!("{found} matching FailJob rule at index {index}")),
            _ => return Verdict::Count,
        }
    }
    Verdict::Count
}

/// The container of a pod that ended as a rule says.
fn exit(rule: &Value, pod: &Value) -> Option<String> {
    let wanted = rule["onExitCodes"].as_object()?;
    let values = wanted.get("values").and_then(Value::as_array)?;
    let is_in = wanted.get("operator")? == "In";
    let name = wanted.get("containerName");
    let statuses = |list: &str| pod["status"][list].as_array().into_iter().flatten();
    statuses("containerStatuses").chain(statuses("initContainerStatuses")).find_map(|status| {
        let code = status["state"]["terminated"]["exitCode"].as_i64().filter(|code| *code != 0)?;
        let fits =
            name.is_none_or(|name| *name == status["name"]) && values.iter().any(|one| *one == code) == is_in;
        fits.then(|| {
            let container = status["name"].as_str().unwrap_or_default();
            let (namespace, name) = (meta(pod, "namespace"), meta(pod, "name"));
            format!("Container {container} for pod {namespace}/{name} failed with exit code {code}")
        })
    })
}

/// The condition of a pod that a rule names.
fn condition(rule: &Value, pod: &Value) -> Option<String> {
    let patterns = rule["onPodConditions"].as_array()?;
    let all = pod["status"]["conditions"].as_array()?;
    let fits = |one: &&Value| {
        patterns.iter().any(|wanted| wanted["type"] == one["type"] && wanted["status"] == one["status"])
    };
    all.iter().find(fits).map(|one| {
        let kind = one["type"].as_str().unwrap_or_default();
        format!("Pod {}/{} has condition {kind}", meta(pod, "namespace"), meta(pod, "name"))
    })
}
