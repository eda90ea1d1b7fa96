//! Pod disruption budgets.

use serde_json::{Value, json};

use super::field::{Errors, Path};
use super::{meta, names};

/// Makes a new budget whole; its controller computes the status.
pub(super) fn prepare(budget: &mut Value) {
    budget["metadata"]["generation"] = json!(1);
    budget["status"] =
        json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0});
}

/// Checks a budget.
pub(super) fn validate(budget: &Value) -> Errors {
    let mut errors = meta::validate(budget, names::subdomain);
    let (spec, path) = (&budget["spec"], Path::new("spec"));
    if !spec["minAvailable"].is_null() && !spec["maxUnavailable"].is_null() {
        errors.invalid(&path, spec.clone(), "minAvailable and maxUnavailable cannot be both set");
    }
    for field in ["minAvailable", "maxUnavailable"] {
        let path = path.child(field);
        match &spec[field] {
            Value::Number(number) if number.as_i64().is_some_and(|number| number < 0) => {
                errors.invalid(&path, number.as_i64(), "must be greater than or equal to 0");
            }
            Value::String(text) => match percent(text) {
                None => {
                    let why = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
                    errors.invalid(&path, text.as_str(), why);
                }
                Some(percent) if percent > 100 => {
                    errors.invalid(&path, text.as_str(), "must not be greater than 100%");
                }
                Some(_) => {}
            },
            _ => {}
        }
    }
    const POLICIES: [&str; 2] = ["AlwaysAllow", "IfHealthyBudget"];
    if let Some(policy) =
        spec["unhealthyPodEvictionPolicy"].as_str().filter(|policy| !POLICIES.contains(policy))
    {
        errors.not_supported(&path.child("unhealthyPodEvictionPolicy"), policy, &POLICIES);
    }
    errors
}

/// A percentage such as `30%`.
fn percent(text: &str) -> Option<u64> {
    let digits = text.strip_suffix('%')?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}
