//! What changed since the baseline.

use std::fmt::Write;

use super::ledger::{Ended, Ledger};
use crate::judge::Verdict;

/// A run held against a baseline.
#[derive(Debug, Default)]
pub(super) struct Changes<'a> {
    /// What came out otherwise than expected, with what was expected.
    pub changed: Vec<(&'a Ended, Verdict)>,
    /// How many came out as expected.
    pub same: usize,
    /// How many of them the baseline does not know.
    pub unknown: usize,
}

impl<'a> Changes<'a> {
    /// None for a run that is held against nothing.
    pub(super) fn of(ledger: &'a Ledger) -> Option<Self> {
        let run = ledger.run.as_ref()?;
        if run.cases.iter().all(|planned| planned.baseline.is_empty()) {
            return None;
        }
        let mut changes = Self::default();
        for ended in &ledger.ended {
            match ledger.expected(ended) {
                None if ended.judgement.verdict == Verdict::Skipped => {}
                None => changes.unknown += 1,
                Some(expected) if is_as_before(ended, expected) => changes.same += 1,
                Some(_) if ended.judgement.verdict == Verdict::Skipped => {}
                Some(expected) => changes.changed.push((ended, expected)),
            }
        }
        Some(changes)
    }

    /// The same told as Markdown.
    pub(super) fn told(&self) -> String {
        let unknown = match self.unknown {
            0 => String::new(),
            unknown => format!(", {unknown} not in it"),
        };
        let mut text = format!(
            "Since the baseline: {} changed, {} as before{unknown}.\n",
            self.changed.len(),
            self.same
        );
        if !self.changed.is_empty() {
            text.push_str("\n| case | kubelet | before | now |\n|-|-|-|-|\n");
        }
        for (ended, before) in &self.changed {
            let (id, now) = (&ended.id, ended.judgement.verdict);
            let _ = writeln!(text, "| {}/{} | {} | {before} | {now} |", id.suite, id.title(), id.kubelet);
        }
        text
    }
}

/// A bug that comes by chance shows in one run and not in the next: that is no change.
fn is_as_before(ended: &Ended, expected: Verdict) -> bool {
    let by_chance = |verdict| matches!(verdict, Verdict::Passed | Verdict::Reproduced);
    let now = ended.judgement.verdict;
    now == expected || ended.judgement.rate.is_some() && by_chance(now) && by_chance(expected)
}

impl Ledger {
    /// What the baseline expects of a case that ended.
    pub(super) fn expected(&self, ended: &Ended) -> Option<Verdict> {
        self.planned(&ended.id)?.baseline.get(&ended.id.kubelet).copied()
    }

    /// Whether a case ended as the baseline expects.
    pub(super) fn is_as_expected(&self, ended: &Ended) -> bool {
        self.expected(ended).is_some_and(|expected| is_as_before(ended, expected))
    }

    /// The verdicts that the exit status is made of: all but those that are as the baseline expects.
    pub(super) fn telling(&self) -> impl Iterator<Item = Verdict> {
        self.ended.iter().filter(|ended| !self.is_as_expected(ended)).map(|ended| ended.judgement.verdict)
    }

    /// What the baseline expected of a case that ended otherwise. A verdict that says nothing of the kubelet is no change.
    pub(super) fn changed_from(&self, ended: &Ended) -> Option<Verdict> {
        let says_something =
            !matches!(ended.judgement.verdict, Verdict::Inconclusive | Verdict::Error | Verdict::Skipped);
        self.expected(ended).filter(|expected| says_something && !is_as_before(ended, *expected))
    }

    /// Whether a verdict is another than the baseline expects.
    pub(super) fn has_changed(&self) -> bool {
        self.ended.iter().any(|ended| self.changed_from(ended).is_some())
    }
}
