//! Two runs side by side: what changed from one to the other.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::account::{duration, totals};
use super::ledger::{Ended, Ledger};
use super::past::PastRun;
use crate::judge::{Rate, Verdict};

/// How many times as long a case must take, and how many seconds longer, to be told of: clusters are never equally quick.
const SLOWER: (f64, f64) = (2.0, 10.0);

/// What a case came to on a kubelet, in all its attempts.
struct Cell<'a> {
    attempts: Vec<&'a Ended>,
}

/// What changed between two runs, as Markdown: verdicts, rates whose intervals are apart, and cases that take much longer or shorter.
pub fn compare(before: &PastRun, after: &PastRun) -> String {
    let (before, after) = (&before.ledger, &after.ledger);
    let (old, new) = (cells(before), cells(after));
    let mut text = String::new();
    for (name, ledger) in [("before", before), ("after", after)] {
        if let Some(run) = &ledger.run {
            let at = run.at.strftime("%Y-%m-%d %H:%M UTC");
            let _ = writeln!(text, "- {name}: run {}, {at}, {}: {}", run.id, run.backend, totals(ledger));
        }
    }
    let both = || new.iter().filter_map(|(key, new)| Some((key, old.get(key)?, new)));
    let changed: Vec<_> =
        both().filter_map(|(key, old, new)| Some((key, old, new, change(old, new)?))).collect();
    let _ = writeln!(text, "\n{} changed, {} as before.", changed.len(), both().count() - changed.len());
    if !changed.is_empty() {
        text.push_str("\n| case | kubelet | before | after | what changed |\n|-|-|-|-|-|\n");
    }
    for ((suite, case, kubelet), old, new, change) in changed {
        let _ = writeln!(text, "| {suite}/{case} | {kubelet} | {} | {} | {change} |", old.told(), new.told());
    }
    for (name, one, other) in [("before", &old, &new), ("after", &new, &old)] {
        let only: Vec<_> = one.keys().filter(|key| !other.contains_key(*key)).collect();
        let names: Vec<String> =
            only.iter().map(|(suite, case, kubelet)| format!("{suite}/{case} on {kubelet}")).collect();
        if !names.is_empty() {
            let _ = writeln!(text, "\nOnly {name}: {}.", names.join(", "));
        }
    }
    text
}

/// The cases that have a verdict, by suite, case and kubelet.
fn cells(ledger: &Ledger) -> BTreeMap<(&str, &str, &str), Cell<'_>> {
    let mut cells: BTreeMap<_, Cell<'_>> = BTreeMap::new();
    for ended in ledger.ended.iter().filter(|ended| ended.judgement.verdict != Verdict::Skipped) {
        let key = (ended.id.suite.as_str(), ended.id.case.as_str(), ended.id.kubelet.as_str());
        cells.entry(key).or_insert_with(|| Cell { attempts: vec![] }).attempts.push(ended);
    }
    cells
}

/// What is worth telling of a case that was in both runs.
fn change(old: &Cell<'_>, new: &Cell<'_>) -> Option<String> {
    // A bug that comes by chance shows in one run and not in the next: its rate tells.
    let by_chance = match (old.rate(), new.rate()) {
        (Some(before), Some(now)) => {
            let ((before_low, before_high), (low, high)) = (before.interval(), now.interval());
            if low > before_high || high < before_low {
                return Some(format!("the rate: {before}, now {now}"));
            }
            let shows_or_not = |verdict: &Verdict| matches!(verdict, Verdict::Passed | Verdict::Reproduced);
            old.verdicts().iter().chain(&new.verdicts()).all(shows_or_not)
        }
        _ => false,
    };
    if !by_chance && old.verdicts() != new.verdicts() {
        return Some("the verdict".to_owned());
    }
    let (old, new) = (old.seconds(), new.seconds());
    let (times, longer) = SLOWER;
    let much = |short: f64, long: f64| long >= short * times && long - short >= longer;
    match () {
        () if much(old, new) => Some(format!("it takes {:.1} times as long", new / old)),
        () if much(new, old) => Some(format!("it takes {:.0} % of the time", 100.0 * new / old)),
        () => None,
    }
}

impl Cell<'_> {
    /// Each verdict that was seen.
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

    /// The median.
    fn seconds(&self) -> f64 {
        let mut all: Vec<f64> = self.attempts.iter().map(|ended| ended.seconds).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or_default()
    }

    fn told(&self) -> String {
        let count = |verdict: &Verdict| {
            self.attempts.iter().filter(|ended| ended.judgement.verdict == *verdict).count()
        };
        let verdicts = self.verdicts();
        let told = verdicts.iter().map(|verdict| match count(verdict) {
            1 => verdict.to_string(),
            count => format!("{verdict} ×{count}"),
        });
        format!("{} {}", told.collect::<Vec<_>>().join(", "), duration(self.seconds()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::judge::Judgement;
    use crate::report::{JsonLines, Report, RunDir, What, story};

    const K: &str = "v1.32.13";

    /// A case, its verdict, its seconds, and what it counted.
    type Row = (&'static str, Verdict, f64, Option<(u64, u64)>);

    fn run(cases: &[Row]) -> PastRun {
        let dir = tempfile::tempdir().unwrap();
        let mut report = JsonLines::create(&RunDir::at(dir.path()).unwrap()).unwrap();
        let names: Vec<&str> = cases.iter().map(|(name, ..)| *name).collect();
        report.take(&story::event(0.0, story::run_started(&[K], &names))).unwrap();
        for (name, verdict, took, counted) in cases {
            let rate = counted.map(|(right, of)| Rate { what: "pods".to_owned(), right, of });
            let judgement = Judgement { rate, ..Judgement::without_evidence(*verdict, "why") };
            let ended = What::CaseEnded {
                id: story::id("message", name, K, 1),
                node: None,
                seconds: *took,
                judgement: Arc::new(judgement),
                evidence: None,
            };
            report.take(&story::event(1.0, ended)).unwrap();
        }
        PastRun::read(dir.path()).unwrap()
    }

    #[test]
    fn changes_are_told_and_noise_is_not() {
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
