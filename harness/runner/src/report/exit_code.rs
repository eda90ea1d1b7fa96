//! The exit status of `evictlab run`.
//!
//! | status | name | when |
//! | --- | --- | --- |
//! | 0 | [`SUCCESS`] | every verdict is `passed`, `reproduced`, `fixed` or `skipped` |
//! | 1 | [`FAILED`] | a case `failed` |
//! | 2 | [`BAD_INPUT`] | nothing was run: arguments, a case file, a kubelet version, an output directory is not right |
//! | 3 | [`INCONCLUSIVE`] | the evidence of a case does not suffice |
//! | 4 | [`INFRASTRUCTURE`] | a case ended in `error` or without a verdict, a cluster could not be made or deleted, a report could not be written |
//! | 5 | [`CHANGED`] | with `--baseline`: a verdict is another than the baseline's |
//! | 130 | [`INTERRUPTED`] | Ctrl-C, SIGTERM or a closed terminal (SIGHUP) |
//!
//! Where several hold, the first of this list counts: 130, 5, 1, 4, 3. A failed case is a statement about a kubelet and
//! stands whatever else went wrong; a broken cluster explains an inconclusive case, not the other way round.
//!
//! With `--baseline`, a verdict that is as expected counts as a success, whatever it is.
//!
//! `fixed` is a success: the kubelet does what upstream wants. It is said loudly in every report, because the
//! case's `known-bugs` should be narrowed.

use crate::judge::Verdict;

/// Every case did as stated, or was skipped.
pub const SUCCESS: u8 = 0;
/// A case failed.
pub const FAILED: u8 = 1;
/// The input is not right; nothing was run.
pub const BAD_INPUT: u8 = 2;
/// The evidence of a case does not suffice.
pub const INCONCLUSIVE: u8 = 3;
/// The harness, the cluster or the host went wrong.
pub const INFRASTRUCTURE: u8 = 4;
/// A verdict is another than the baseline's.
pub const CHANGED: u8 = 5;
/// Ctrl-C or SIGTERM.
pub const INTERRUPTED: u8 = 130;

/// The exit status of a run that came to `verdicts`. `infrastructure_failed` tells of what no verdict tells: a
/// cluster, a case that never ended, a report; `changed`, whether a verdict is another than the baseline's.
pub fn exit_code(
    verdicts: impl IntoIterator<Item = Verdict>,
    changed: bool,
    infrastructure_failed: bool,
    interrupted: bool,
) -> u8 {
    let mut code = if infrastructure_failed { INFRASTRUCTURE } else { SUCCESS };
    for verdict in verdicts {
        code = match (verdict, code) {
            (Verdict::Failed, _) | (_, FAILED) => FAILED,
            (Verdict::Error, _) | (_, INFRASTRUCTURE) => INFRASTRUCTURE,
            (Verdict::Inconclusive, _) | (_, INCONCLUSIVE) => INCONCLUSIVE,
            (Verdict::Passed | Verdict::Reproduced | Verdict::Fixed | Verdict::Skipped, _) => SUCCESS,
        };
    }
    match (interrupted, changed) {
        (true, _) => INTERRUPTED,
        (false, true) => CHANGED,
        (false, false) => code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::*;

    #[test]
    fn the_first_of_the_list_counts() {
        for (verdicts, infrastructure_failed, interrupted, code) in [
            (&[][..], false, false, SUCCESS),
            (&[Passed, Reproduced, Fixed, Skipped], false, false, SUCCESS),
            (&[Passed, Inconclusive, Passed], false, false, INCONCLUSIVE),
            (&[Inconclusive, Error, Passed], false, false, INFRASTRUCTURE),
            (&[Error, Failed, Inconclusive], false, false, FAILED),
            (&[Failed, Error, Passed], false, false, FAILED),
            (&[Passed, Inconclusive], true, false, INFRASTRUCTURE),
            (&[Failed], true, false, FAILED),
            (&[Failed, Error], true, true, INTERRUPTED),
            (&[Passed], false, true, INTERRUPTED),
        ] {
            let got = exit_code(verdicts.iter().copied(), false, infrastructure_failed, interrupted);
            assert_eq!(got, code, "{verdicts:?} {infrastructure_failed} {interrupted}");
        }
    }

    #[test]
    fn a_change_goes_before_what_it_changed_to() {
        assert_eq!(exit_code([Failed], true, true, false), CHANGED);
        assert_eq!(exit_code([Passed], true, false, true), INTERRUPTED);
    }
}
