//! The rate at which a property holds, counted over many pods or many runs of a case.

use serde_json::Value;

use crate::case_evidence::CaseEvidence;
use crate::case_result::{CaseResult, Check, Rate};
use crate::known_bug::bug_label;
use crate::text::capitalize;
use crate::verdict::{Inconclusive, InconclusiveReason, Verdict};
use evictlab_case::expression::ExpressionError;
use evictlab_case::{Case, ExpectedRate, KnownBug};
use evictlab_evidence::Scope;

/// Numbers of observations and of runs from which on an intermittent bug must not show in all of
/// them. The pods of one run share their moment, and a busy host makes the bug show in all of them.
const MIN_OBSERVATIONS_OF_SOMETIMES: u64 = 5;
const MIN_RUNS_OF_SOMETIMES: usize = 3;

/// Reason why a run has no rate.
pub(crate) enum Unrated {
    /// Evidence that the rate reads is missing.
    Lost(Inconclusive),
    /// The expression has no value, or a value of another type.
    Failed(Check),
    /// The expression exceeds the cost limit.
    TooCostly(String),
}

impl Rate {
    /// Evaluates the case's rate in one run; `None` for a case without a rate.
    ///
    /// # Errors
    /// The expression reads missing evidence, is too costly, or has no value or another value than
    /// a list of booleans.
    pub(crate) fn of(
        case: &Case,
        scope: &Scope<'_>,
        evidence: &CaseEvidence<'_>,
    ) -> Option<Result<Self, Unrated>> {
        let rate = case.expect.rate.as_ref()?;
        if let Some(lost) = evidence.missing_evidence_for(&rate.what, &rate.of) {
            return Some(Err(Unrated::Lost(lost)));
        }
        let failure = |observed: String| {
            Unrated::Failed(Check {
                name: rate.what.clone(),
                holds: false,
                expected: "a list of true and false".to_owned(),
                observed,
            })
        };
        let value = rate.of.value(scope).map_err(|cause| match cause {
            ExpressionError::TooCostly(_) => Unrated::TooCostly(format!("{}: {cause}", rate.what)),
            cause => failure(format!("no value: {cause}")),
        });
        Some(value.and_then(|value| {
            let list = if let Value::Array(list) = value { list } else { vec![value] };
            let count = list.iter().filter(|item| **item == Value::Bool(true)).count() as u64;
            match list.iter().all(Value::is_boolean) {
                true => Ok(Self { label: rate.what.clone(), count, total: list.len() as u64 }),
                false => Err(failure(Value::Array(list).to_string())),
            }
        }))
    }

    /// Returns the 95 % confidence interval of the true share, from 0 to 1. Wilson's score interval
    /// suits small counts and shares near 0 and 1.
    pub fn interval(&self) -> (f64, f64) {
        const Z: f64 = 1.959_964;
        if self.total == 0 {
            return (0.0, 1.0);
        }
        let (n, share) = (self.total as f64, self.count as f64 / self.total as f64);
        let middle = (share + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
        let half = Z / (1.0 + Z * Z / n) * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
        ((middle - half).max(0.0), (middle + half).min(1.0))
    }
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (least, most) = self.interval();
        let Self { label, count, total } = self;
        // With 100 observations or more, a tenth of a percent is significant.
        let digits = if *total < 100 { 0 } else { 1 };
        let (least, most) = (least * 100.0, most * 100.0);
        write!(f, "{label}: {count} of {total} (95 % interval {least:.digits$} to {most:.digits$} %)")
    }
}

/// Combines the results of all runs of a case that has a rate, by adding up the counts. `stated` is
/// the case's rate.
///
/// A run with any other verdict than `passed`, `reproduced` or `fixed`, or without a rate, is
/// returned as the result.
pub fn over_runs(stated: &ExpectedRate, bug: Option<&KnownBug>, runs: Vec<CaseResult>) -> CaseResult {
    let mut sum = Rate { label: String::new(), count: 0, total: 0 };
    let (mut last, mut tries) = (None, vec![]);
    let has_enough_runs = runs.len() >= MIN_RUNS_OF_SOMETIMES;
    for run in runs {
        let rate = match (&run.rate, run.verdict) {
            (Some(rate), verdict) if verdict.is_success() => rate.clone(),
            _ => return run,
        };
        sum = Rate { label: rate.label, count: sum.count + rate.count, total: sum.total + rate.total };
        tries.extend(run.earlier_tries.iter().cloned());
        last = Some(run);
    }
    let Some(last) = last else {
        return CaseResult::without_evidence(Verdict::Error, "the case was not run");
    };
    let bug = bug.filter(|bug| bug.sometimes);
    let is_right = stated.holds(sum.count, sum.total);
    let verdict = match bug {
        _ if sum.total == 0 => Verdict::Inconclusive,
        _ if is_right => Verdict::Passed,
        Some(_) if sum.count == 0 && sum.total >= MIN_OBSERVATIONS_OF_SOMETIMES && has_enough_runs => {
            Verdict::Failed
        }
        Some(_) => Verdict::Reproduced,
        None => Verdict::Failed,
    };
    let check = Check {
        name: sum.label.clone(),
        holds: is_right,
        expected: expected_count(stated, sum.total),
        observed: format!("{} of {}", sum.count, sum.total),
    };
    CaseResult {
        verdict,
        why: explain(verdict, bug, &sum),
        inconclusive_reason: (sum.total == 0).then_some(InconclusiveReason::EvidenceLost),
        known_bug: bug.filter(|_| verdict == Verdict::Reproduced).map(bug_label),
        checks: [vec![check], last.checks].concat(),
        rate: Some(sum),
        earlier_tries: vec![],
        ..last
    }
    .after_tries(tries)
}

/// Describes the expected count, such as `20 of 20` or `at least 90 % of 20`.
fn expected_count(stated: &ExpectedRate, total: u64) -> String {
    match stated.at_least {
        None => format!("{total} of {total}"),
        Some(share) => format!("at least {} % of {total}", share * 100.0),
    }
}

/// Explains the verdict on a rate; `bug` is an intermittent bug.
fn explain(verdict: Verdict, bug: Option<&KnownBug>, rate: &Rate) -> String {
    match (verdict, bug) {
        (Verdict::Reproduced, Some(KnownBug { about: Some(about), .. })) => {
            format!("{about} {}", capitalize(&rate.to_string()))
        }
        (Verdict::Failed, Some(_)) => {
            format!("{rate}; the known bug is intermittent, and showed every time")
        }
        (Verdict::Passed, Some(_)) => format!("{rate}; the known bug, which is intermittent, did not show"),
        _ => rate.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_is_wilsons_score_interval() {
        // Reference values from R's binom.confint(method = "wilson").
        for (count, total, least, most) in
            [(20, 20, 0.8389, 1.0), (0, 10, 0.0, 0.2775), (7, 10, 0.3968, 0.8922)]
        {
            let (from, to) = Rate { label: String::new(), count, total }.interval();
            assert!(
                (from - least).abs() < 1e-3 && (to - most).abs() < 1e-3,
                "{count} of {total}: {from} to {to}"
            );
        }
    }

    fn stated(more: &str) -> ExpectedRate {
        serde_saphyr::from_str(&format!("{{what: survivors, of: 'true'{more}}}")).unwrap()
    }

    fn run(count: u64, total: u64) -> CaseResult {
        CaseResult {
            rate: Some(Rate { label: "survivors".to_owned(), count, total }),
            ..CaseResult::without_evidence(Verdict::Passed, "")
        }
    }

    #[test]
    fn a_bound_on_the_share_allows_some_wrong_observations() {
        let rows = [
            ((9, 10), Verdict::Passed, "at least 90 % of 20"),
            ((8, 10), Verdict::Failed, "at least 90 % of 20"),
            ((10, 10), Verdict::Passed, "at least 90 % of 20"),
        ];
        for ((count, total), verdict, expected) in rows {
            let result = over_runs(&stated(", at-least: 0.9"), None, vec![run(9, 10), run(count, total)]);
            assert_eq!(result.verdict, verdict, "{count} of {total}: {}", result.why);
            assert_eq!(result.checks[0].expected, expected);
        }
        let result = over_runs(&stated(""), None, vec![run(9, 10)]);
        assert_eq!((result.verdict, &*result.checks[0].expected), (Verdict::Failed, "10 of 10"));
    }

    #[test]
    fn an_intermittent_bug_that_shows_every_time_is_a_failure() {
        let bug: KnownBug =
            serde_saphyr::from_str("{kubelet: '>=1.26', about: It shows at times., sometimes: true}")
                .unwrap();
        let rows = [
            (vec![run(0, 1); 5], Verdict::Failed),
            (vec![run(0, 2); 3], Verdict::Failed),
            (vec![run(0, 12); 2], Verdict::Reproduced),
            (vec![run(0, 1); 4], Verdict::Reproduced),
            // Twelve pods at the same time.
            (vec![run(0, 12)], Verdict::Reproduced),
            (vec![run(1, 12); 5], Verdict::Reproduced),
            (vec![run(12, 12)], Verdict::Passed),
        ];
        for (runs, verdict) in rows {
            let result = over_runs(&stated(""), Some(&bug), runs);
            assert_eq!(result.verdict, verdict, "{}", result.why);
        }
    }
}
