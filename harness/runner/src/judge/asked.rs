//! The facts of a case, each with its bound.

use super::{Check, Rate};
use crate::case::{Case, Fact, KnownBug, shown};
use crate::cel::{ExpressionError, Scope};
use crate::observe::Observations;

/// How much of a value is shown.
const SHOWN: usize = 300;

/// The facts that hold for what was observed, those of a known bug in place of the case's own.
pub(super) fn facts<'a>(case: &'a Case, bug: Option<&'a KnownBug>, seen: &Observations) -> Vec<&'a Fact> {
    let instead = bug.map_or(&[][..], |bug| &bug.that);
    let kubelet = seen.kubelet_version.parse().ok();
    let holds_here = |fact: &&Fact| {
        kubelet.as_ref().is_none_or(|kubelet| fact.kubelet.matches(kubelet))
            && fact.cgroup.is_none_or(|cgroup| seen.cgroup.is_empty() || cgroup.as_str() == seen.cgroup)
    };
    let replaced = |fact: &&Fact| instead.iter().any(|other| other.what == fact.what);
    case.expect.that.iter().filter(|fact| !replaced(fact)).chain(instead).filter(holds_here).collect()
}

/// Holds one fact against what was observed.
pub(super) fn check(fact: &Fact, scope: &Scope<'_>) -> Check {
    let (holds, observed) = match fact.value.value(scope) {
        Ok(value) => (fact.holds(&value), shown(&value)),
        Err(ExpressionError::NoValue(why)) => (fact.absent, format!("it cannot be told: {why}")),
        Err(error) => (false, error.to_string()),
    };
    let observed = match observed.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{} …", &observed[..end]),
        None => observed,
    };
    Check { name: fact.what.clone(), holds, expected: fact.to_string(), observed }
}

/// What a case counts, in one run of it.
pub(super) fn rate(case: &Case, seen: &Observations) -> Option<Result<Rate, Check>> {
    Rate::of(case, &Scope::of(seen))
}
