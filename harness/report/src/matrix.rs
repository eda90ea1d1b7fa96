//! The table of verdicts as Markdown: a row for each case, a column for each kubelet.

use comfy_table::{Table, presets};

use crate::run_event::CaseInfo;
use crate::run_state::{EndedCase, RunStart, RunState};
use crate::symbols::{self, NOT_RUN, symbol};
use crate::text::{count_noun, duration, markdown_cell, truncate};
use evictlab_judge::Verdict;
use unicode_width::UnicodeWidthStr;

/// Minimum width of a name in the compact table.
const MIN_NAME: usize = 8;

/// Renders the table for a width in columns. If it is wider, renders a compact one, with one symbol
/// for each verdict and without the cases that passed everywhere.
pub(crate) fn matrix_within(state: &RunState, columns: usize) -> String {
    let full = matrix(state);
    match &state.run {
        Some(run) if full.lines().any(|line| line.width() > columns) => compact_matrix(state, run, columns),
        _ => full,
    }
}

/// Renders the table with verdicts and durations.
pub(crate) fn matrix(state: &RunState) -> String {
    let Some(run) = &state.run else { return String::new() };
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header(std::iter::once("case").chain(run.kubelets.iter().map(String::as_str)));
    for info in &run.cases {
        let cells = run.kubelets.iter().map(|kubelet| cell(state, info, kubelet));
        table.add_row(std::iter::once(markdown_cell(&info.suite_and_case())).chain(cells));
    }
    table.trim_fmt() + "\n"
}

fn cell(state: &RunState, info: &CaseInfo, kubelet: &str) -> String {
    let attempts: Vec<&EndedCase> = state.attempts(info, kubelet).collect();
    match attempts[..] {
        [] => "not run".to_owned(),
        [EndedCase { result, .. }] if result.verdict == Verdict::Skipped => result.verdict.to_string(),
        [ended] => format!("{} {}", ended.result.verdict, duration(ended.seconds)),
        _ => {
            let mut counts: Vec<(Verdict, usize)> = vec![];
            for ended in attempts {
                match counts.iter_mut().find(|(verdict, _)| *verdict == ended.result.verdict) {
                    Some((_, count)) => *count += 1,
                    None => counts.push((ended.result.verdict, 1)),
                }
            }
            let counts: Vec<_> =
                counts.iter().map(|(verdict, count)| format!("{verdict} ×{count}")).collect();
            counts.join(", ")
        }
    }
}

fn compact_matrix(state: &RunState, run: &RunStart, columns: usize) -> String {
    let labels = Labels::of(state, run);
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    let mut header = labels.rows.iter();
    table.set_header(["case", header.next().map_or("", String::as_str)]);
    header.for_each(|digits| {
        table.add_row(["", digits]);
    });
    // Subtract the borders: `| ` and ` | ` and ` |`.
    let width = columns.saturating_sub(run.kubelets.len() + 7).max(MIN_NAME);
    let (mut passed, mut shown) = (0, String::new());
    for info in &run.cases {
        let symbols: String = run.kubelets.iter().map(|kubelet| worst_symbol(state, info, kubelet)).collect();
        if symbols.chars().all(|symbol| symbols::verdict(symbol) == Some(Verdict::Passed)) {
            passed += 1;
            continue;
        }
        table.add_row([truncate(&markdown_cell(&info.suite_and_case()), width), symbols.clone()]);
        shown.push_str(&symbols);
    }
    let cases = count_noun(passed, "case");
    let (table, key) = (table.trim_fmt(), &labels.key);
    match (shown.is_empty(), passed) {
        (true, _) => format!("{cases} passed on every kubelet\n"),
        (false, 0) => format!("{table}\n\n{}; {key}\n", symbols::legend(|symbol| shown.contains(symbol))),
        (false, _) => format!(
            "{table}\n\n{}; {key}; {cases} passed on every kubelet\n",
            symbols::legend(|symbol| shown.contains(symbol))
        ),
    }
}

/// The symbol of a verdict that needs attention, or of the last verdict.
fn worst_symbol(state: &RunState, info: &CaseInfo, kubelet: &str) -> char {
    let verdicts = || state.attempts(info, kubelet).map(|ended| ended.result.verdict);
    let worst = verdicts().find(|verdict| verdict.needs_attention()).or_else(|| verdicts().last());
    worst.map_or(NOT_RUN, symbol)
}

/// Labels of the columns: digits that stand below each other, and their meaning.
struct Labels {
    rows: Vec<String>,
    key: String,
}

impl Labels {
    /// Minor versions if all kubelets are releases of different ones, otherwise numbers.
    fn of(state: &RunState, run: &RunStart) -> Self {
        let names: Vec<String> = run.kubelets.iter().map(|kubelet| state.row_name(kubelet)).collect();
        let minors: Option<Vec<&str>> = names
            .iter()
            .map(|name| name.strip_prefix("v1.").filter(|rest| rest.parse::<u8>().is_ok()))
            .collect();
        let (labels, key) = match (minors, &names[..]) {
            (Some(minors), [first, .., last]) => {
                let labels = minors.into_iter().map(str::to_owned).collect();
                (labels, format!("columns: {first} to {last}"))
            }
            _ => {
                let numbered = |(number, name): (usize, &String)| format!("{number} {name}");
                let key: Vec<String> = (1..).zip(&run.kubelets).map(numbered).collect();
                let labels: Vec<String> = (1..=names.len()).map(|number| number.to_string()).collect();
                (labels, format!("columns: {}", key.join(", ")))
            }
        };
        let height = labels.iter().map(String::len).max().unwrap_or(0);
        let row = |place: usize| {
            let digit = |label: &String| {
                (label.len() + place).checked_sub(height).and_then(|at| label.chars().nth(at))
            };
            labels.iter().map(|label| digit(label).unwrap_or(' ')).collect()
        };
        Self { rows: (0..height).map(row).collect(), key }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    fn state(kubelets: &[&str], rows: &[(&str, &str)]) -> RunState {
        let cases: Vec<&str> = rows.iter().map(|(case, _)| *case).collect();
        let ended = rows.iter().flat_map(|(case, verdicts)| {
            let verdicts = kubelets.iter().zip(verdicts.chars());
            verdicts.filter_map(move |(kubelet, symbol)| {
                Some(fixtures::case_ended(case, kubelet, 1, symbols::verdict(symbol)?, "why"))
            })
        });
        let events = std::iter::once(fixtures::run_started(kubelets, &cases)).chain(ended);
        fixtures::state_after(&events.map(|kind| fixtures::event(0.0, kind)).collect::<Vec<_>>())
    }

    #[test]
    fn compact_where_the_full_table_does_not_fit() {
        let kubelets = ["v1.29.15", "v1.30.14", "v1.31.14", "v1.32.13"];
        let rows = [("sidecars-are-named", "rrr."), ("quiet", "...."), ("requests-decide", ".F-!")];
        let state = state(&kubelets, &rows);
        assert_eq!(matrix_within(&state, 100), matrix(&state));
        insta::assert_snapshot!(matrix_within(&state, 80));
        let narrow = matrix_within(&state, 24);
        let widest =
            narrow.lines().take_while(|line| line.starts_with('|')).map(UnicodeWidthStr::width).max();
        assert_eq!(widest, Some(24), "{narrow}");
    }

    #[test]
    fn kubelets_of_one_minor_are_numbered() {
        let kubelets = ["v1.31.14", "v1.32.13", "v1.32.13=./kubelet"];
        let text = matrix_within(&state(&kubelets, &[("requests-decide", "F..")]), 40);
        let key = "`.` passed, `F` failed; columns: 1 v1.31.14, 2 v1.32.13, 3 v1.32.13=./kubelet";
        assert!(text.contains("| 123 |") && text.contains("| F.. |") && text.contains(key), "{text}");
        let text = matrix_within(&state(&kubelets, &[("requests-decide", "...")]), 40);
        assert_eq!(text, "1 case passed on every kubelet\n");
    }
}
