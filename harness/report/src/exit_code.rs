//! The exit status of `evictlab run`.
//!
//! | status | name | when |
//! | --- | --- | --- |
//! | 0 | [`SUCCESS`] | every verdict is `passed`, `flaky`, `reproduced`, `fixed` or `skipped` |
//! | 1 | [`FAILED`] | a case `failed`, or was `flaky` with `--flaky-result fail` |
//! | 2 | [`BAD_INPUT`] | nothing was run: the input is invalid |
//! | 3 | [`INCONCLUSIVE`] | the evidence of a case is insufficient |
//! | 4 | [`INFRASTRUCTURE`] | a case ended in `error` or has no verdict; a cluster or report failed |
//! | 5 | [`CHANGED`] | with `--baseline`: a verdict differs from the baseline |
//! | 130 | [`INTERRUPTED`] | Ctrl-C, SIGTERM or a closed terminal (SIGHUP) |
//!
//! If several conditions are met, the first of this list applies: 130, 5, 1, 4, 3. A failed case is
//! valid independently of other problems; a broken cluster explains an inconclusive case.
//!
//! With `--baseline`, every expected verdict counts as a success.
//!
//! `fixed` is a success: the kubelet behaves as upstream intends. Every report shows it, because
//! the case's `known-bugs` should be narrowed.

use evictlab_judge::Verdict;

/// Every verdict is a success or `skipped`.
pub const SUCCESS: u8 = 0;
/// A case failed.
pub const FAILED: u8 = 1;
/// Invalid input; nothing was run.
pub const BAD_INPUT: u8 = 2;
/// The evidence of a case is insufficient.
pub const INCONCLUSIVE: u8 = 3;
/// The harness, a cluster or the host failed.
pub const INFRASTRUCTURE: u8 = 4;
/// A verdict differs from the baseline.
pub const CHANGED: u8 = 5;
/// Ctrl-C or SIGTERM.
pub const INTERRUPTED: u8 = 130;

/// Conditions of a run that affect its exit status, apart from its verdicts.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunConditions {
    /// A verdict differs from the baseline.
    pub changed: bool,
    /// A cluster or report failed, or a case has no verdict.
    pub infrastructure_failed: bool,
    /// The run was interrupted.
    pub interrupted: bool,
}

/// Computes the exit status of a run.
pub fn exit_code(verdicts: impl IntoIterator<Item = Verdict>, conditions: RunConditions) -> u8 {
    /// Statuses of verdicts and clusters, the decisive one first.
    const PRECEDENCE: [u8; 4] = [FAILED, INFRASTRUCTURE, INCONCLUSIVE, SUCCESS];
    let RunConditions { changed, infrastructure_failed, interrupted } = conditions;
    if interrupted {
        return INTERRUPTED;
    }
    if changed {
        return CHANGED;
    }
    let precedence = |status: &u8| PRECEDENCE.iter().position(|other| other == status);
    let infrastructure = infrastructure_failed.then_some(INFRASTRUCTURE);
    let statuses = verdicts.into_iter().map(status_of_verdict).chain(infrastructure);
    statuses.min_by_key(precedence).unwrap_or(SUCCESS)
}

/// Returns the exit status of a run whose cases all have this verdict.
fn status_of_verdict(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Passed | Verdict::Flaky | Verdict::Reproduced | Verdict::Fixed | Verdict::Skipped => SUCCESS,
        Verdict::Failed => FAILED,
        Verdict::Inconclusive => INCONCLUSIVE,
        Verdict::Error => INFRASTRUCTURE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::*;

    #[test]
    fn follows_the_documented_precedence() {
        for (verdicts, infrastructure_failed, interrupted, code) in [
            (&[][..], false, false, SUCCESS),
            (&[Passed, Flaky, Reproduced, Fixed, Skipped], false, false, SUCCESS),
            (&[Passed, Inconclusive, Passed], false, false, INCONCLUSIVE),
            (&[Inconclusive, Error, Passed], false, false, INFRASTRUCTURE),
            (&[Error, Failed, Inconclusive], false, false, FAILED),
            (&[Failed, Error, Passed], false, false, FAILED),
            (&[Passed, Inconclusive], true, false, INFRASTRUCTURE),
            (&[Failed], true, false, FAILED),
            (&[Failed, Error], true, true, INTERRUPTED),
            (&[Passed], false, true, INTERRUPTED),
        ] {
            let conditions = RunConditions { infrastructure_failed, interrupted, ..RunConditions::default() };
            let got = exit_code(verdicts.iter().copied(), conditions);
            assert_eq!(got, code, "{verdicts:?} {infrastructure_failed} {interrupted}");
        }
    }

    #[test]
    fn changed_precedes_failed() {
        let changed = RunConditions { changed: true, infrastructure_failed: true, interrupted: false };
        assert_eq!(exit_code([Failed], changed), CHANGED);
        assert_eq!(exit_code([Passed], RunConditions { interrupted: true, ..changed }), INTERRUPTED);
    }
}
