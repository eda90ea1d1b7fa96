//! The assertions of a case.

use crate::case_evidence::CaseEvidence;
use crate::case_result::{Check, Rate};
use crate::known_bug::applies_to_cgroup;
use crate::rate::Unrated;
use crate::verdict::Inconclusive;
use evictlab_case::expression::ExpressionError;
use evictlab_case::{Assertion, Case, KnownBug, display_value};
use evictlab_evidence::{Observations, Scope};

/// Maximum number of characters of an observed value in a check.
const MAX_VALUE_LENGTH: usize = 300;

/// Returns the assertions that apply to the observed kubelet and cgroup version. An assertion of
/// the known bug replaces the case's assertion with the same `what`, or is added.
pub(crate) fn applicable<'a>(
    case: &'a Case,
    bug: Option<&'a KnownBug>,
    observations: &Observations,
) -> Vec<&'a Assertion> {
    let of_bug = bug.map_or(&[][..], |bug| &bug.that);
    let kubelet = observations.kubelet_version.parse().ok();
    let cgroup = observations.cgroup;
    let applies = |assertion: &&Assertion| {
        kubelet.as_ref().is_none_or(|kubelet| assertion.kubelet.matches(kubelet))
            && applies_to_cgroup(assertion.cgroup, cgroup)
    };
    let is_replaced = |assertion: &&Assertion| of_bug.iter().any(|other| other.what == assertion.what);
    let of_case = case.expect.that.iter().filter(|assertion| !is_replaced(assertion));
    of_case.chain(of_bug).filter(applies).collect()
}

/// Evaluates one assertion.
///
/// # Errors
/// The assertion reads missing evidence, or cannot be evaluated.
pub(crate) fn check(
    assertion: &Assertion,
    scope: &Scope<'_>,
    evidence: &CaseEvidence<'_>,
) -> Result<Check, Undecided> {
    if let Some(lost) = evidence.missing_evidence_for(&assertion.what, &assertion.value) {
        return Err(Undecided::Lost(lost));
    }
    let (holds, observed) = match assertion.value.value(scope) {
        Ok(value) => (assertion.holds(&value), display_value(&value)),
        Err(ExpressionError::Absent(cause)) => (assertion.absent, format!("absent: {cause}")),
        Err(error @ ExpressionError::TooCostly(_)) => {
            return Err(Undecided::TooCostly(format!("{}: {error}", assertion.what)));
        }
        Err(error) => (false, format!("no value: {error}")),
    };
    let observed = match observed.char_indices().nth(MAX_VALUE_LENGTH) {
        Some((end, _)) => format!("{} …", &observed[..end]),
        None => observed,
    };
    Ok(Check { name: assertion.what.clone(), holds, expected: assertion.to_string(), observed })
}

/// Reason why an assertion has no result.
pub(crate) enum Undecided {
    /// It reads evidence that was not collected.
    Lost(Inconclusive),
    /// Its expression exceeds the cost limit.
    TooCostly(String),
}

/// Evaluates the case's rate in one run; `None` for a case without a rate.
pub(crate) fn rate(case: &Case, evidence: &CaseEvidence<'_>) -> Option<Result<Rate, Unrated>> {
    Rate::of(case, &Scope::of(evidence.observations), evidence)
}
