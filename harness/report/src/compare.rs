//! Comparison of two runs.

use std::collections::BTreeMap;
use std::fmt::Write;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::backend_name::BackendName;
use crate::markdown::totals;
use crate::median::median;
use crate::recorded::RecordedRun;
use crate::run_state::{EndedCase, RunState};
use crate::text::{duration, inert_markdown, markdown_table, visible};
use evictlab_judge::{Rate, Verdict};

/// Minimum ratio of two durations that is reported as a change. Clusters vary in speed.
const MIN_DURATION_RATIO: f64 = 2.0;
/// Minimum difference of two durations that is reported as a change, in seconds.
const MIN_DURATION_DIFFERENCE: f64 = 10.0;

/// All attempts of a case on a kubelet.
struct CaseAttempts<'a> {
    attempts: Vec<&'a EndedCase>,
}

/// The differences between two runs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// The runs, before and after.
    pub runs: Vec<ComparedRun>,
    /// Cases with another verdict, rate or duration.
    pub changed: Vec<ChangedCase>,
    /// Number of cases in both runs without a change.
    pub unchanged: usize,
    /// Cases that only the run before contains, as `suite/case on kubelet`.
    pub only_before: Vec<String>,
    /// Cases that only the run after contains.
    pub only_after: Vec<String>,
}

/// One of two runs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComparedRun {
    /// Id of the run.
    pub run: String,
    /// Start of the run.
    pub at: Timestamp,
    /// Backend of the run.
    pub backend: BackendName,
    /// Numbers of verdicts, and the duration, as text.
    pub totals: String,
}

/// A case that changed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangedCase {
    /// `suite/case`.
    pub case: String,
    /// Label of the kubelet.
    pub kubelet: String,
    /// Verdicts and duration before, as text.
    pub before: String,
    /// Verdicts and duration after, as text.
    pub after: String,
    /// The change: `verdict`, rates, or the ratio of durations.
    pub change: String,
}

/// Compares two runs: verdicts, rates with disjoint confidence intervals, and durations that
/// changed a lot.
pub fn compare(before: &RecordedRun, after: &RecordedRun) -> Comparison {
    let states = [before.state(), after.state()];
    let (old, new) = (cells(states[0]), cells(states[1]));
    let run = |state: &RunState| {
        let run = state.run.as_ref()?;
        let (run, at, backend) = (run.id.clone(), run.real_start, run.backend);
        Some(ComparedRun { run, at, backend, totals: totals(state) })
    };
    let both: Vec<_> = new.iter().filter_map(|(key, new)| Some((key, old.get(key)?, new))).collect();
    let changed: Vec<ChangedCase> = both
        .iter()
        .filter_map(|((suite, case, kubelet), old, new)| {
            Some(ChangedCase {
                case: format!("{suite}/{case}"),
                kubelet: (*kubelet).to_owned(),
                before: old.render(),
                after: new.render(),
                change: change(old, new)?,
            })
        })
        .collect();
    let only = |one: &AttemptsByCase<'_>, other: &AttemptsByCase<'_>| {
        let only = one.keys().filter(|key| !other.contains_key(*key));
        only.map(|(suite, case, kubelet)| format!("{suite}/{case} on {kubelet}")).collect()
    };
    Comparison {
        runs: states.into_iter().filter_map(run).collect(),
        unchanged: both.len() - changed.len(),
        changed,
        only_before: only(&old, &new),
        only_after: only(&new, &old),
    }
}

impl Comparison {
    /// Renders the comparison as Markdown, without effect of the texts in it.
    pub fn render(&self) -> String {
        let mut text = String::new();
        for (name, run) in ["before", "after"].iter().zip(&self.runs) {
            let ComparedRun { run, at, backend, totals } = run;
            let at = at.strftime("%Y-%m-%d %H:%M UTC");
            let id = inert_markdown(run);
            let _ = writeln!(text, "- {name}: run {id}, {at}, {backend}: {totals}");
        }
        let _ = writeln!(text, "\n{} changed, {} unchanged.", self.changed.len(), self.unchanged);
        if !self.changed.is_empty() {
            let rows = self.changed.iter().map(|changed| {
                let ChangedCase { case, kubelet, before, after, change } = changed;
                let [case, kubelet, change] = [case, kubelet, change].map(|cell| inert_markdown(cell));
                [case, kubelet, before.clone(), after.clone(), change]
            });
            let header = ["case", "kubelet", "before", "after", "change"];
            let _ = write!(text, "\n{}", markdown_table(&header, rows));
        }
        for (name, names) in [("before", &self.only_before), ("after", &self.only_after)] {
            if !names.is_empty() {
                let _ = write!(text, "\nOnly in the run {name}:\n\n{}", by_case(names));
            }
        }
        visible(&text).into_owned()
    }
}

/// Lists `suite/case on kubelet` as a line of Markdown for each case, with its kubelets.
fn by_case(names: &[String]) -> String {
    fn parts(name: &str) -> (&str, &str) {
        name.split_once(" on ").unwrap_or((name, ""))
    }
    let line = |names: &[String]| {
        let kubelets: Vec<&str> = names.iter().map(|name| parts(name).1).collect();
        let case = names.first().map_or("", |name| parts(name).0);
        format!("- {} on {}\n", inert_markdown(case), inert_markdown(&kubelets.join(", ")))
    };
    names.chunk_by(|one, next| parts(one).0 == parts(next).0).map(line).collect()
}

/// The attempts of each case by suite, case and kubelet.
type AttemptsByCase<'a> = BTreeMap<(&'a str, &'a str, &'a str), CaseAttempts<'a>>;

/// Cases with a verdict, by suite, case and kubelet.
fn cells(state: &RunState) -> AttemptsByCase<'_> {
    let mut cells: BTreeMap<_, CaseAttempts<'_>> = BTreeMap::new();
    for ended in state.ended.iter().filter(|ended| ended.result.verdict != Verdict::Skipped) {
        let key = (ended.id.suite.as_str(), ended.id.case.as_str(), ended.id.kubelet.as_str());
        cells.entry(key).or_insert_with(|| CaseAttempts { attempts: vec![] }).attempts.push(ended);
    }
    cells
}

/// Describes the change of a case between two runs; `None` if no change is worth reporting.
fn change(old: &CaseAttempts<'_>, new: &CaseAttempts<'_>) -> Option<String> {
    // A bug that occurs at random appears in one run and not in the next: compare the rates.
    let random = match (old.rate(), new.rate()) {
        (Some(before), Some(now)) => {
            let ((before_low, before_high), (low, high)) = (before.interval(), now.interval());
            if low > before_high || high < before_low {
                return Some(format!("rate: before {before}, now {now}"));
            }
            old.verdicts().iter().chain(&new.verdicts()).all(|verdict| verdict.may_alternate())
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

impl CaseAttempts<'_> {
    /// Distinct verdicts, sorted by name.
    fn verdicts(&self) -> Vec<Verdict> {
        let mut all: Vec<Verdict> = Vec::new();
        for ended in &self.attempts {
            if !all.contains(&ended.result.verdict) {
                all.push(ended.result.verdict);
            }
        }
        all.sort_by_key(|verdict| verdict.to_string());
        all
    }

    fn rate(&self) -> Option<&Rate> {
        self.attempts.last()?.result.rate.as_ref()
    }

    /// Median duration, in seconds.
    fn seconds(&self) -> f64 {
        median(self.attempts.iter().map(|ended| ended.seconds)).unwrap_or_default()
    }

    fn render(&self) -> String {
        let count =
            |verdict: &Verdict| self.attempts.iter().filter(|ended| ended.result.verdict == *verdict).count();
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

    #[test]
    fn rates_keep_their_names_in_files() {
        let rate = Rate { label: "pods".to_owned(), count: 7, total: 10 };
        let json = serde_json::json!({"label": "pods", "count": 7, "total": 10});
        assert_eq!(serde_json::to_value(&rate).unwrap(), json);
        assert_eq!(serde_json::from_value::<Rate>(json).unwrap(), rate);
    }

    fn run(cases: &[Row]) -> RecordedRun {
        let dir = tempfile::tempdir().unwrap();
        let mut report = JsonLines::create(&RunDir::at(dir.path()).unwrap()).unwrap();
        let names: Vec<&str> = cases.iter().map(|(name, ..)| *name).collect();
        let mut events = vec![fixtures::event(0.0, fixtures::run_started(&[K], &names))];
        for (name, verdict, took, counted) in cases {
            let rate = counted.map(|(count, total)| Rate { label: "pods".to_owned(), count, total });
            let result = CaseResult { rate, ..CaseResult::without_evidence(*verdict, "why") };
            let ended = RunEventKind::CaseEnded {
                id: fixtures::id("message", name, K, 1),
                node: None,
                seconds: *took,
                result: Arc::new(result),
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
        let compared = compare(&before, &after);
        insta::assert_snapshot!(compared.render());
        assert_eq!((compared.changed.len(), compared.unchanged), (4, 2));
        assert!(compare(&after, &after).changed.is_empty());
    }
}
