//! A history as Markdown.

use std::fmt::Write;

use super::series::{History, PastResult, Series, SeriesChange};
use crate::symbols::{NOT_RUN, legend, symbol as symbol_of};
use crate::text::{count_noun, duration, inert_markdown, markdown_table, visible};
use evictlab_judge::Verdict;

/// Maximum number of executions that are shown of a case, the newest.
const MAX_SYMBOLS: usize = 40;

/// Renders a history as Markdown: a table of the cases that changed or did not always pass, or of
/// all cases.
pub fn history_table(history: &History, all: bool) -> String {
    let History { runs, recent, series } = history;
    let mut text = format!(
        "{} of case and kubelet in {}; the newest {recent} of each compared with those before.\n",
        count_noun(series.len(), "combination"),
        count_noun(*runs, "run"),
    );
    if series.is_empty() {
        text.push_str("\nNo case has a verdict.\n");
        return text;
    }
    let shown: Vec<&Series> = series.iter().filter(|series| all || is_notable(series)).collect();
    if shown.is_empty() {
        text.push_str("\nNo case changed or failed.\n");
        return text;
    }
    let rows = shown.iter().map(|series| {
        [
            inert_markdown(&series.case),
            inert_markdown(&history.kubelet(series)),
            pass_rate(series),
            symbols(&series.outcomes),
            median_durations(series),
            describe_change(series.change),
        ]
    });
    let header = ["case", "kubelet", "passed", "runs, oldest first", "median", "change"];
    let _ = write!(text, "\n{}", markdown_table(&header, rows));
    let is_symbol = |symbol: char| symbol != NOT_RUN && symbol != symbol_of(Verdict::Skipped);
    let _ = writeln!(text, "\n{}", legend(is_symbol));
    if !all && shown.len() < series.len() {
        let rest = count_noun(series.len() - shown.len(), "other");
        let _ = writeln!(text, "\n{rest} did not change or fail.");
    }
    visible(&text).into_owned()
}

/// Returns whether a case changed, or did not always succeed.
fn is_notable(series: &Series) -> bool {
    let is_success = |outcome: &PastResult| outcome.verdict.is_success();
    series.change != SeriesChange::Stable || !series.outcomes.iter().all(is_success)
}

/// One character for each execution.
pub(super) fn symbols(outcomes: &[PastResult]) -> String {
    let newest = &outcomes[outcomes.len().saturating_sub(MAX_SYMBOLS)..];
    let symbols: String = newest.iter().map(|outcome| symbol_of(outcome.verdict)).collect();
    if newest.len() < outcomes.len() { format!("`…{symbols}`") } else { format!("`{symbols}`") }
}

pub(super) fn pass_rate(series: &Series) -> String {
    series.pass_rate.map_or_else(|| "-".to_owned(), |rate| format!("{:.0} %", rate * 100.0))
}

/// The median durations of both periods.
pub(super) fn median_durations(series: &Series) -> String {
    match series.seconds {
        [Some(earlier), Some(recent)] => format!("{}, now {}", duration(earlier), duration(recent)),
        [Some(one), None] | [None, Some(one)] => duration(one),
        [None, None] => "-".to_owned(),
    }
}

/// Describes a change.
pub(super) fn describe_change(change: SeriesChange) -> String {
    match change {
        SeriesChange::Stable => String::new(),
        SeriesChange::NewlyFailing(runs) => format!("newly failing, {}", count_noun(runs, "time")),
        SeriesChange::Regressed(p) => format!("fails more often, p = {p:.3}"),
        SeriesChange::Improved(p) => format!("fails less often, p = {p:.3}"),
        SeriesChange::Flaky => "flaky".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BackendName;

    fn series(case: &str, verdicts: &[Verdict], change: SeriesChange) -> Series {
        let outcome = |verdict: &Verdict| PastResult {
            run: "7f3a".to_owned(),
            at: "2026-11-21T09:30:12Z".parse().unwrap(),
            kubelet: "v1.32.13".to_owned(),
            verdict: *verdict,
            seconds: 8.2,
        };
        Series {
            case: case.to_owned(),
            kubelet: "v1.32".to_owned(),
            backend: BackendName::Kind,
            outcomes: verdicts.iter().map(outcome).collect(),
            pass_rate: Some(0.5),
            seconds: [Some(8.2), Some(70.0)],
            change,
        }
    }

    #[test]
    fn a_history_without_changes_says_what_it_has() {
        let reproduced = series("message/a", &[Verdict::Reproduced], SeriesChange::Stable);
        for (series, says) in
            [(vec![], "\nNo case has a verdict.\n"), (vec![reproduced], "\nNo case changed or failed.\n")]
        {
            let text = history_table(&History { runs: 1, recent: 1, series }, false);
            assert!(text.ends_with(says), "{text}");
        }
    }

    #[test]
    fn table_of_a_history() {
        let many = [Verdict::Passed; 50];
        let history = History {
            runs: 50,
            recent: 10,
            series: vec![
                series("message/a", &many, SeriesChange::Stable),
                series("message/b", &[Verdict::Passed, Verdict::Failed], SeriesChange::NewlyFailing(1)),
                series("message/c", &[Verdict::Error, Verdict::Flaky], SeriesChange::Flaky),
                series("message/d", &[Verdict::Failed, Verdict::Reproduced], SeriesChange::Improved(0.0123)),
            ],
        };
        insta::assert_snapshot!(history_table(&history, false));
        assert!(history_table(&history, true).contains(&format!("| `…{}` |", ".".repeat(40))));
    }
}
