//! Differences between a run and its baseline.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::run_event::{CaseId, FlakyResult};
use crate::run_state::{EndedCase, RunState};
use crate::text::markdown_table;
use evictlab_judge::{CaseResult, Verdict};

/// A run compared with its baseline.
#[derive(Debug, Default)]
pub(crate) struct BaselineChanges<'a> {
    /// Cases with another verdict than expected, and the expected verdict.
    changed: Vec<(&'a EndedCase, Verdict)>,
    /// Number of cases with the expected verdict.
    unchanged: usize,
    /// Number of cases that the baseline does not contain.
    unknown: usize,
    /// Planned cases that did not run in a complete run: title, kubelet, and the expected verdict.
    missing: Vec<(String, &'a str, Verdict)>,
}

impl<'a> BaselineChanges<'a> {
    /// Compares a run with its baseline; `None` for a run without one.
    pub(crate) fn of(state: &'a RunState) -> Option<Self> {
        let run = state.run.as_ref()?;
        if run.cases.iter().all(|info| info.baseline.is_empty()) {
            return None;
        }
        let mut changes = Self { missing: state.missing().collect(), ..Self::default() };
        for ended in &state.ended {
            match state.expected(ended) {
                None if ended.result.verdict == Verdict::Skipped => {}
                None => changes.unknown += 1,
                Some(expected) if matches_expected(&ended.result, expected) => changes.unchanged += 1,
                Some(expected) => changes.changed.push((ended, expected)),
            }
        }
        Some(changes)
    }

    /// Renders the changes as Markdown.
    pub(crate) fn render(&self) -> String {
        let unknown = match self.unknown {
            0 => String::new(),
            unknown => format!(", {unknown} not in the baseline"),
        };
        let changed = self.changed.iter().map(|(ended, before)| {
            let (id, now) = (&ended.id, ended.result.verdict);
            let case = format!("{}/{}", id.suite, id.title());
            [case, id.kubelet.clone(), before.to_string(), now.to_string()]
        });
        let missing = self.missing.iter().map(|(case, kubelet, before)| {
            [case.clone(), (*kubelet).to_owned(), before.to_string(), "did not run".to_owned()]
        });
        let rows: Vec<_> = changed.chain(missing).collect();
        let mut text =
            format!("Since the baseline: {} changed, {} unchanged{unknown}.\n", rows.len(), self.unchanged);
        if !rows.is_empty() {
            let _ = write!(text, "\n{}", markdown_table(&["case", "kubelet", "before", "now"], rows));
        }
        text
    }
}

/// Returns whether a case has the expected verdict. `flaky` is equivalent to `passed`; for a bug
/// that occurs at random, `passed` and `reproduced` are equivalent.
fn matches_expected(result: &CaseResult, expected: Verdict) -> bool {
    let now = result.verdict.without_tries();
    now == expected || result.rate.is_some() && now.may_alternate() && expected.may_alternate()
}

impl RunState {
    /// The verdict that the baseline expects of a case.
    pub(crate) fn expected(&self, ended: &EndedCase) -> Option<Verdict> {
        self.expected_of(&ended.id)
    }

    fn expected_of(&self, id: &CaseId) -> Option<Verdict> {
        self.case_info(id)?.baseline.get(&id.kubelet).copied()
    }

    /// Returns whether a case has the verdict that the baseline expects.
    pub(crate) fn is_as_expected(&self, ended: &EndedCase) -> bool {
        self.expects(&ended.id, &ended.result)
    }

    /// Returns whether the baseline expects the verdict of a result.
    pub(crate) fn expects(&self, id: &CaseId, result: &CaseResult) -> bool {
        self.expected_of(id).is_some_and(|expected| matches_expected(result, expected))
    }

    /// Verdicts that determine the exit status: all that the baseline does not expect. A flaky case
    /// that counts as failed is `failed`, whatever the baseline expects.
    pub(crate) fn unexpected_verdicts(&self) -> impl Iterator<Item = Verdict> {
        let flaky_fails = self.run.as_ref().is_some_and(|run| run.flaky_result == FlakyResult::Fail);
        self.ended.iter().filter_map(move |ended| match ended.result.verdict {
            Verdict::Flaky if flaky_fails => Some(Verdict::Failed),
            verdict => (!self.is_as_expected(ended)).then_some(verdict),
        })
    }

    /// The expected verdict of a case that has another conclusive verdict or was skipped.
    pub(crate) fn changed_from(&self, ended: &EndedCase) -> Option<Verdict> {
        let verdict = ended.result.verdict;
        let is_change = verdict.is_conclusive() || verdict == Verdict::Skipped;
        self.expected(ended).filter(|expected| is_change && !matches_expected(&ended.result, *expected))
    }

    /// The planned cases that the baseline contains and that did not run, not even to be skipped:
    /// title, kubelet, and the expected verdict. If the run ended early or their cluster was not
    /// created, nothing is known about the kubelet: [`Self::infrastructure_failed`] applies.
    fn missing(&self) -> impl Iterator<Item = (String, &str, Verdict)> {
        let ended: BTreeSet<(&str, &str, &str)> = self
            .ended
            .iter()
            .map(|EndedCase { id, .. }| (id.suite.as_str(), id.case.as_str(), id.kubelet.as_str()))
            .collect();
        let planned = self.run.iter().flat_map(|run| &run.cases).flat_map(|info| {
            info.baseline.iter().map(move |(kubelet, expected)| (info, kubelet.as_str(), *expected))
        });
        planned
            .filter(move |(_, kubelet, _)| !self.was_cut_short() && self.failed_cluster(kubelet).is_none())
            .filter(move |(info, kubelet, _)| {
                !ended.contains(&(info.suite.as_str(), info.case.as_str(), *kubelet))
            })
            .map(|(info, kubelet, expected)| (info.suite_and_case(), kubelet, expected))
    }

    /// Returns whether any conclusive verdict differs from the baseline, or a case of it did not
    /// run in a complete run.
    pub(crate) fn has_changed(&self) -> bool {
        self.ended.iter().any(|ended| self.changed_from(ended).is_some()) || self.missing().next().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_event::RunEventKind;
    use crate::{exit_code, fixtures, sink};

    #[test]
    fn other_conclusive_verdicts_and_skips_are_changes() {
        let rows = [
            (Verdict::Passed, Verdict::Passed, false),
            (Verdict::Passed, Verdict::Flaky, false),
            (Verdict::Passed, Verdict::Failed, true),
            (Verdict::Reproduced, Verdict::Fixed, true),
            (Verdict::Failed, Verdict::Passed, true),
            // A case that is skipped hides what the baseline knows of it.
            (Verdict::Passed, Verdict::Skipped, true),
            (Verdict::Skipped, Verdict::Skipped, false),
            (Verdict::Skipped, Verdict::Passed, true),
            // They decide nothing; their own exit statuses apply.
            (Verdict::Passed, Verdict::Inconclusive, false),
            (Verdict::Passed, Verdict::Error, false),
        ];
        for (expected, seen, is_change) in rows {
            let state = fixtures::state_after(&fixtures::run_with_baseline(&[("a", expected)], &[seen]));
            assert_eq!(state.has_changed(), is_change, "{expected} and {seen}");
        }
    }

    #[test]
    fn cases_that_could_not_run_are_not_changes() {
        let cluster = |cluster: &str| RunEventKind::ClusterStarted {
            cluster: cluster.to_owned(),
            kubelets: vec!["v1.32.13".to_owned()],
            reused: false,
        };
        let failed = |cluster: &str| RunEventKind::ClusterFailed {
            cluster: cluster.to_owned(),
            seconds: 1.0,
            error: "no image".to_owned(),
            cause: None,
        };
        let ready =
            || RunEventKind::ClusterReady { cluster: "second".to_owned(), seconds: 1.0, nodes: vec![] };
        for (of_a, events, code) in [
            (Verdict::Passed, vec![], exit_code::CHANGED),
            (Verdict::Passed, vec![RunEventKind::TimedOut], exit_code::INFRASTRUCTURE),
            (Verdict::Failed, vec![RunEventKind::TimedOut], exit_code::CHANGED),
            (Verdict::Passed, vec![cluster("first"), failed("first")], exit_code::INFRASTRUCTURE),
            (
                Verdict::Passed,
                vec![cluster("first"), failed("first"), cluster("second"), ready()],
                exit_code::CHANGED,
            ),
        ] {
            let expected = [("a", Verdict::Passed), ("b", Verdict::Passed)];
            let mut run = fixtures::run_with_baseline(&expected, &[of_a]);
            run.extend(events.into_iter().map(|kind| fixtures::event(1.0, kind)));
            let changed = usize::from(code == exit_code::CHANGED);
            let text = BaselineChanges::of(&fixtures::state_after(&run)).unwrap().render();
            assert!(text.contains(&format!("{changed} changed")), "{text}");
            assert_eq!(sink::replay(&run, vec![]).exit_code, code, "{run:?}");
        }
    }
}
