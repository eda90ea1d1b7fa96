//! Comparison of two runs.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::markdown::{duration, totals};
use crate::median::median;
use crate::recorded::RecordedRun;
use crate::run_state::{EndedCase, RunState};
use crate::words::{inert_markdown, markdown_cell, visible};
use evictlab_judge::{Rate, Verdict};

/// Minimum ratio of two durations that is reported as a change. Clusters vary in speed.
const MIN_DURATION_RATIO: f64 = 2.0;
/// Minimum difference of two durations that is reported as a change, in seconds.
const MIN_DURATION_DIFFERENCE: f64 = 10.0;

/// All attempts of a case on a kubelet.
struct Cell<'a> {
    attempts: Vec<&'a EndedCase>,
}

/// Renders the differences between two runs as Markdown: verdicts, rates with disjoint confidence
/// intervals, and durations that changed a lot.
pub fn compare(before: &RecordedRun, after: &RecordedRun) -> String {
    let (before, after) = (before.state(), after.state());
    let (old, new) = (cells(before), cells(after));
    let mut text = String::new();
    for (name, state) in [("before", before), ("after", after)] {
        if let Some(run) = &state.run {
            let at = run.at.strftime("%Y-%m-%d %H:%M UTC");
            let (id, backend) = (inert_markdown(&run.id), inert_markdown(&run.backend));
            let _ = writeln!(text, "- {name}: run {id}, {at}, {backend}: {}", totals(state));
        }
    }
    let both = || new.iter().filter_map(|(key, new)| Some((key, old.get(key)?, new)));
    let changed: Vec<_> =
        both().filter_map(|(key, old, new)| Some((key, old, new, change(old, new)?))).collect();
    let _ = writeln!(text, "\n{} changed, {} unchanged.", changed.len(), both().count() - changed.len());
    if !changed.is_empty() {
        text.push_str("\n| case | kubelet | before | after | change |\n|-|-|-|-|-|\n");
    }
    for ((suite, case, kubelet), old, new, change) in changed {
        let (case, kubelet) = (format!("{suite}/{case}"), inert_markdown(kubelet));
        let [case, kubelet] = [inert_markdown(&case), kubelet].map(|name| markdown_cell(&name));
        let (old, new, change) = (old.render(), new.render(), markdown_cell(&inert_markdown(&change)));
        let _ = writeln!(text, "| {case} | {kubelet} | {old} | {new} | {change} |");
    }
    for (name, one, other) in [("before", &old, &new), ("after", &new, &old)] {
        let only: Vec<_> = one.keys().filter(|key| !other.contains_key(*key)).collect();
        let names: Vec<String> =
            only.iter().map(|(suite, case, kubelet)| format!("{suite}/{case} on {kubelet}")).collect();
        if !names.is_empty() {
            let _ = writeln!(text, "\nOnly in the run {name}: {}.", inert_markdown(&names.join(", ")));
        }
    }
    visible(&text).into_owned()
}

/// Cases with a verdict, by suite, case and kubelet.
fn cells(state: &RunState) -> BTreeMap<(&str, &str, &str), Cell<'_>> {
    let mut cells: BTreeMap<_, Cell<'_>> = BTreeMap::new();
    for ended in state.ended.iter().filter(|ended| ended.judgement.verdict != Verdict::Skipped) {
        let key = (ended.id.suite.as_str(), ended.id.case.as_str(), ended.id.kubelet.as_str());
        cells.entry(key).or_insert_with(|| Cell { attempts: vec![] }).attempts.push(ended);
    }
    cells
}

/// Describes the change of a case between two runs; `None` if there is none worth reporting.
fn change(old: &Cell<'_>, new: &Cell<'_>) -> Option<String> {
    // A bug that occurs at random appears in one run and not in the next: compare the rates.
    let random = match (old.rate(), new.rate()) {
        (Some(before), Some(now)) => {
            let ((before_low, before_high), (low, high)) = (before.interval(), now.interval());
            if low > before_high || high < before_low {
                return Some(format!("rate: before {before}, now {now}"));
            }
            let equivalent = |verdict: &Verdict| matches!(verdict, Verdict::Passed | Verdict::Reproduced);
            old.verdicts().iter().chain(&new.verdicts()).all(equivalent)
        }
        _ => false,
    };
    if !random && old.verdicts() != new.verdicts() {
        return Some("verdict".to_owned());
    }
    let (old, new) = (old.seconds(), new.seconds());
    let much_longer =
        |short: f64, long: f64| long >= short * MIN_DURATION_RATIO && long - short >= MIN_DURATION_DIFFERENCE;
    match () {
        () if much_longer(old, new) => Some(format!("{:.1} times as long", new / old)),
        () if much_longer(new, old) => Some(format!("{:.0} % of the time", 100.0 * new / old)),
        () => None,
    }
}

impl Cell<'_> {
    /// Distinct verdicts, sorted by name.
    fn verdicts(&self) -> Vec<Verdict> {
        let mut all: Vec<Verdict> = Vec::new();
        for ended in &self.attempts {
            if !all.contains(&ended.judgement.verdict) {
                all.push(ended.judgement.verdict);
            }
        }
        all.sort_by_key(|verdict| verdict.to_string());
        all
    }

    fn rate(&self) -> Option<&Rate> {
        self.attempts.last()?.judgement.rate.as_ref()
    }

    /// Median duration, in seconds.
    fn seconds(&self) -> f64 {
        median(self.attempts.iter().map(|ended| ended.seconds)).unwrap_or_default()
    }

    fn render(&self) -> String {
        let count = |verdict: &Verdict| {
            self.attempts.iter().filter(|ended| ended.judgement.verdict == *verdict).count()
        };
        let verdicts = self.verdicts();
        let verdicts = verdicts.iter().map(|verdict| match count(verdict) {
            1 => verdict.to_string(),
            count => format!("{verdict} ×{count}"),
        });
        format!("{} {}", verdicts.collect::<Vec<_>>().join(", "), duration(self.seconds()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{JsonLines, RunDir, RunEventKind, fixtures};
    use evictlab_judge::CaseResult;

    const K: &str = "v1.32.13";

    /// A case, its verdict, its duration in seconds, and the counts of its rate.
    type Row = (&'static str, Verdict, f64, Option<(u64, u64)>);

    fn run(cases: &[Row]) -> RecordedRun {
        let dir = tempfile::tempdir().unwrap();
        let mut report = JsonLines::create(&RunDir::at(dir.path()).unwrap()).unwrap();
        let names: Vec<&str> = cases.iter().map(|(name, ..)| *name).collect();
        let mut events = vec![fixtures::event(0.0, fixtures::run_started(&[K], &names))];
        for (name, verdict, took, counted) in cases {
            let rate = counted.map(|(right, of)| Rate { what: "pods".to_owned(), right, of });
            let judgement = CaseResult { rate, ..CaseResult::without_evidence(*verdict, "why") };
            let ended = RunEventKind::CaseEnded {
                id: fixtures::id("message", name, K, 1),
                node: None,
                seconds: *took,
                judgement: Arc::new(judgement),
                evidence: None,
            };
            events.push(fixtures::event(1.0, ended));
        }
        fixtures::deliver(&mut report, &events);
        RecordedRun::read(dir.path()).unwrap()
    }

    #[test]
    fn reports_changes_but_not_noise() {
        use Verdict::{Failed, Passed, Reproduced, Skipped};
        let before = run(&[
            ("fails-now", Passed, 8.0, None),
            ("a-little-slower", Passed, 8.0, None),
            ("much-slower", Passed, 8.0, None),
            ("quicker", Passed, 60.0, None),
            ("by-chance", Reproduced, 8.0, Some((4, 10))),
            ("rarer", Reproduced, 8.0, Some((1, 10))),
            ("gone", Passed, 8.0, None),
            ("skipped", Skipped, 0.0, None),
        ]);
        let after = run(&[
            ("fails-now", Failed, 8.0, None),
            ("a-little-slower", Passed, 15.0, None),
            ("much-slower", Passed, 48.0, None),
            ("quicker", Passed, 9.0, None),
            ("by-chance", Passed, 8.0, Some((6, 10))),
            ("rarer", Reproduced, 8.0, Some((9, 10))),
            ("new", Passed, 8.0, None),
        ]);
        insta::assert_snapshot!(compare(&before, &after));
    }
}
