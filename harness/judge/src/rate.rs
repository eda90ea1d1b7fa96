//! The rate at which a property holds, counted over many pods or many runs of a case.

use serde_json::Value;

use crate::case_evidence::CaseEvidence;
use crate::case_result::{CaseResult, Check, Rate};
use crate::known_bug::bug_label;
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
            if list.iter().all(Value::is_boolean) {
                Ok(Self { label: rate.what.clone(), count, total: list.len() as u64 })
            } else {
                Err(failure(Value::Array(list).to_string()))
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
/// returned as the result: the first that failed or, without one, the first of these runs. Runs
/// that are `reproduced` or `fixed` keep this verdict if the rate is right.
pub fn over_runs(stated: &ExpectedRate, bug: Option<&KnownBug>, mut runs: Vec<CaseResult>) -> CaseResult {
    let is_counted = |run: &CaseResult| run.verdict.is_success() && run.rate.is_some();
    let failed = runs.iter().position(|run| run.verdict == Verdict::Failed);
    if let Some(decisive) = failed.or_else(|| runs.iter().position(|run| !is_counted(run))) {
        return runs.swap_remove(decisive);
    }
    let mut sum = Rate { label: String::new(), count: 0, total: 0 };
    for rate in runs.iter().filter_map(|run| run.rate.as_ref()) {
        let label = rate.label.clone();
        sum = Rate { label, count: sum.count + rate.count, total: sum.total + rate.total };
    }
    let has_enough_runs = runs.len() >= MIN_RUNS_OF_SOMETIMES;
    let tries = runs.iter().flat_map(|run| run.earlier_tries.iter().cloned()).collect();
    let with_bug = [Verdict::Reproduced, Verdict::Fixed];
    let by_bug = with_bug.into_iter().find_map(|verdict| runs.iter().find(|run| run.verdict == verdict));
    let by_bug = by_bug.map(|run| (run.verdict, run.known_bug.clone()));
    let Some(last) = runs.pop() else {
        return CaseResult::without_evidence(Verdict::Error, "the case was not run");
    };
    let bug = bug.filter(|bug| bug.sometimes);
    let is_right = stated.holds(sum.count, sum.total);
    let verdict = match bug {
        _ if sum.total == 0 => Verdict::Inconclusive,
        _ if is_right => by_bug.as_ref().map_or(Verdict::Passed, |(verdict, _)| *verdict),
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
    let known_bug = match by_bug.filter(|_| is_right && sum.total > 0) {
        Some((_, of_run)) => of_run,
        None => bug.filter(|_| verdict == Verdict::Reproduced).map(bug_label),
    };
    CaseResult {
        verdict,
        why: explain(verdict, bug, &sum),
        inconclusive_reason: (sum.total == 0).then_some(InconclusiveReason::EvidenceLost),
        known_bug,
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
            format!("{about} Observed: {rate}")
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
    fn a_run_without_a_verdict_on_the_rate_is_the_result() {
        let of = |verdict| CaseResult { verdict, why: verdict.to_string(), ..run(1, 1) };
        let unrated = |verdict| CaseResult { rate: None, ..of(verdict) };
        use Verdict::{Error, Failed, Inconclusive, Passed, Reproduced};
        let rows = [
            (vec![of(Passed), of(Inconclusive)], Inconclusive),
            // A failure that was observed stays a failure.
            (vec![of(Inconclusive), of(Passed), of(Failed)], Failed),
            (vec![unrated(Error), of(Failed)], Failed),
            (vec![of(Passed), unrated(Error), of(Inconclusive)], Error),
            (vec![unrated(Reproduced)], Reproduced),
        ];
        for (runs, verdict) in rows {
            let result = over_runs(&stated(""), None, runs);
            assert_eq!((result.verdict, result.why), (verdict, verdict.to_string()));
        }
    }

    /// The bug is about something else than the rate.
    #[test]
    fn a_right_rate_does_not_hide_a_known_bug() {
        let of = |verdict: Verdict, count| CaseResult {
            verdict,
            known_bug: (verdict != Verdict::Passed).then(|| "a bug".to_owned()),
            ..run(count, 1)
        };
        use Verdict::{Failed, Fixed, Passed, Reproduced};
        let rows = [
            ([of(Reproduced, 1), of(Reproduced, 1)], Reproduced),
            ([of(Fixed, 1), of(Reproduced, 1)], Reproduced),
            ([of(Fixed, 1), of(Fixed, 1)], Fixed),
            ([of(Reproduced, 1), of(Reproduced, 0)], Failed),
            ([of(Passed, 1), of(Passed, 1)], Passed),
        ];
        for (runs, verdict) in rows {
            let result = over_runs(&stated(""), None, runs.to_vec());
            let has_bug = matches!(verdict, Reproduced | Fixed);
            assert_eq!((result.verdict, result.known_bug.is_some()), (verdict, has_bug), "{}", result.why);
        }
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
