//! The assertions of a case.

use crate::verdict::Check;
use crate::verdict::Rate;
use evictlab_case::expression::ExpressionError;
use evictlab_case::{Assertion, Case, KnownBug, display_value};
use evictlab_evidence::{Observations, Scope};

/// Maximum number of characters of an observed value in a check.
const MAX_VALUE_LENGTH: usize = 300;

/// Returns the assertions that apply to the observed kubelet and cgroup version. An assertion of
/// the known bug replaces the case's assertion with the same `what`.
pub(crate) fn applicable<'a>(
    case: &'a Case,
    bug: Option<&'a KnownBug>,
    observations: &Observations,
) -> Vec<&'a Assertion> {
    let of_bug = bug.map_or(&[][..], |bug| &bug.that);
    let kubelet = observations.kubelet_version.parse().ok();
    let cgroup = &observations.cgroup;
    let applies = |assertion: &&Assertion| {
        kubelet.as_ref().is_none_or(|kubelet| assertion.kubelet.matches(kubelet))
            && assertion.cgroup.is_none_or(|version| cgroup.is_empty() || version.as_str() == cgroup)
    };
    let is_replaced = |assertion: &&Assertion| of_bug.iter().any(|other| other.what == assertion.what);
    let of_case = case.expect.that.iter().filter(|assertion| !is_replaced(assertion));
    of_case.chain(of_bug).filter(applies).collect()
}

/// Evaluates one assertion.
pub(crate) fn check(assertion: &Assertion, scope: &Scope<'_>) -> Check {
    let (holds, observed) = match assertion.value.value(scope) {
        Ok(value) => (assertion.holds(&value), display_value(&value)),
        Err(ExpressionError::NoValue(cause)) => (assertion.absent, format!("no value: {cause}")),
        Err(error) => (false, error.to_string()),
    };
    let observed = match observed.char_indices().nth(MAX_VALUE_LENGTH) {
        Some((end, _)) => format!("{} …", &observed[..end]),
        None => observed,
    };
    Check { name: assertion.what.clone(), holds, expected: assertion.to_string(), observed }
}

/// Evaluates the case's rate in one run; `None` for a case without a rate.
pub(crate) fn rate(case: &Case, observations: &Observations) -> Option<Result<Rate, Check>> {
    Rate::of(case, &Scope::of(observations))
}
