//! Cases that need attention.

use crate::run_state::{EndedCase, RunState};

/// Ended cases that need attention, in the order of their ends, apart from those whose verdict the
/// baseline expects.
pub(crate) struct AttentionGroups<'a> {
    /// Each with the later attempts, on all kubelets, that have the same verdict and reason.
    pub unexpected: Vec<(&'a EndedCase, Vec<&'a EndedCase>)>,
    /// Without attempts that repeat an earlier one of the same kubelet.
    expected: Vec<&'a EndedCase>,
}

impl<'a> AttentionGroups<'a> {
    pub(crate) fn of(state: &'a RunState) -> Self {
        let mut groups = Self { unexpected: vec![], expected: vec![] };
        for ended in state.ended.iter().filter(|ended| ended.result.verdict.needs_attention()) {
            if state.is_as_expected(ended) {
                if !groups.expected.iter().any(|first| same_outcome(first, ended)) {
                    groups.expected.push(ended);
                }
                continue;
            }
            match groups.unexpected.iter_mut().find(|(first, _)| same_reason(first, ended)) {
                Some((_, others)) => others.push(ended),
                None => groups.unexpected.push((ended, vec![])),
            }
        }
        groups
    }

    /// The title of the expected failures, and a line of Markdown for each; `None` without them.
    pub(crate) fn expected_failures(&self) -> Option<(String, String)> {
        let line = |ended: &&EndedCase| format!("- {}: {}\n", ended.result.verdict, ended.id.full_title());
        let lines: String = self.expected.iter().map(line).collect();
        (!lines.is_empty()).then(|| (format!("Expected failures: {}", self.expected.len()), lines))
    }
}

/// Returns whether two attempts of one case on one kubelet have the same verdict and reason.
pub(crate) fn same_outcome(first: &EndedCase, other: &EndedCase) -> bool {
    first.id.kubelet == other.id.kubelet && same_reason(first, other)
}

/// Returns whether two attempts of one case, on any kubelets, have the same verdict and reason.
fn same_reason(first: &EndedCase, other: &EndedCase) -> bool {
    (&first.id.suite, &first.id.case) == (&other.id.suite, &other.id.case)
        && first.result.verdict == other.result.verdict
        && first.result.why == other.result.why
}
