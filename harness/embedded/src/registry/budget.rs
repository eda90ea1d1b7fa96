//! Pod disruption budgets.

use serde_json::{Value, json};

use super::field::{Errors, Path};
use super::{meta, names, share};

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
        share::check(&spec[field], &path.child(field), &mut errors);
    }
    const POLICIES: [&str; 2] = ["AlwaysAllow", "IfHealthyBudget"];
    if let Some(policy) =
        spec["unhealthyPodEvictionPolicy"].as_str().filter(|policy| !POLICIES.contains(policy))
    {
        errors.not_supported(&path.child("unhealthyPodEvictionPolicy"), policy, &POLICIES);
    }
    errors
}
