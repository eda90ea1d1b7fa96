//! The summary at the end of a run, for terminals and logs.

use std::fmt::Write;

use crate::attention::AttentionGroups;
use crate::baseline_changes::BaselineChanges;
use crate::known_bugs::known_bugs;
use crate::markdown::{
    retry_notices, title, totals, write_case_details, write_evidence_path, write_identical_attempts,
    write_model_notice,
};
use crate::matrix::matrix_within;
use crate::output_options::{OutputOptions, Verbosity};
use crate::run_dir::RunDir;
use crate::run_state::{EndedCase, RunState};
use crate::text::{markdown_code, shell_quote};
use evictlab_judge::{Rate, Verdict};

/// Minimum number of conclusive attempts for a failure rate: with fewer, the confidence interval
/// is too wide.
const MIN_RUNS_FOR_RATE: usize = 10;

/// Width of a table in a log, in columns.
pub(crate) const LOG_COLUMNS: usize = 120;

/// The summary of a run in parts.
pub(crate) struct SummaryParts {
    /// The matrix within a width in columns, and known bugs; empty if the summary is quiet.
    pub overview: String,
    /// Title and details of each case that needs attention, and whose verdict the baseline does not
    /// expect. Attempts with the same outcome share one.
    pub attention: Vec<(String, String)>,
    /// Totals, the run directory, and the next command.
    pub closing: String,
}

/// Renders the summary of a run as one text.
pub(crate) fn run_summary(
    state: &RunState,
    run_dir: Option<&RunDir>,
    options: OutputOptions,
    columns: usize,
) -> String {
    let SummaryParts { overview: mut text, attention, closing } =
        SummaryParts::of(state, run_dir, options, columns);
    for (title, details) in attention {
        let _ = write!(text, "\n### {title}\n{details}");
    }
    text + &closing
}

impl SummaryParts {
    /// Renders the parts for a width of tables in columns.
    pub(crate) fn of(
        state: &RunState,
        run_dir: Option<&RunDir>,
        options: OutputOptions,
        columns: usize,
    ) -> Self {
        let groups = AttentionGroups::of(state);
        let expected_failures = groups.expected_failures();
        let closing = closing(state, run_dir, options, expected_failures);
        let details = |(first, others): (&EndedCase, Vec<&EndedCase>)| {
            let mut text = String::new();
            write_case_details(&mut text, state.case_info(&first.id), first);
            write_identical_attempts(&mut text, first, &others);
            if let Some(run_dir) = run_dir {
                write_evidence_path(&mut text, run_dir, &first.id);
            }
            (title(first), text)
        };
        let attention = groups.unexpected.into_iter().map(details).collect();
        Self { overview: overview(state, options.verbosity, columns), attention, closing }
    }
}

/// The start of a summary: the matrix, and known bugs with their kubelets.
fn overview(state: &RunState, verbosity: Verbosity, columns: usize) -> String {
    if verbosity == Verbosity::Quiet {
        return String::new();
    }
    let mut text = matrix_within(state, columns);
    let bugs = known_bugs(state);
    if !bugs.is_empty() {
        text.push_str("\n### Known bugs\n\n");
    }
    for bug in &bugs {
        let _ = writeln!(text, "- {}", bug.render_within(state, columns.saturating_sub(2)));
    }
    text
}

/// The end of a summary: rates, tries, expected failures by their title and a line for each,
/// changes, totals, the run directory, and the next command.
fn closing(
    state: &RunState,
    run_dir: Option<&RunDir>,
    OutputOptions { verbosity, hints, .. }: OutputOptions,
    expected_failures: Option<(String, String)>,
) -> String {
    let mut text = String::new();
    if verbosity > Verbosity::Quiet {
        let expected = expected_failures.map(|(title, lines)| format!("{title}\n{lines}"));
        let parts = [rates(state), retry_notices(state), expected.unwrap_or_default()];
        for part in parts.iter().filter(|part| !part.is_empty()) {
            let _ = write!(text, "\n{part}");
        }
    }
    if let Some(changes) = BaselineChanges::of(state) {
        let _ = write!(text, "\n{}", changes.render());
    }
    let _ = writeln!(text, "\n{}", totals(state));
    if !hints {
        return text;
    }
    if let Some(run_dir) = run_dir.filter(|run_dir| !run_dir.is_relative()) {
        let path = run_dir.path().display().to_string();
        let _ = writeln!(text, "Run directory: {}", markdown_code(&path));
        if verbosity > Verbosity::Quiet && state.ended.iter().any(|ended| ended.node.is_some()) {
            let command = shell_quote(&["evictlab", "report", &path]);
            let _ = writeln!(text, "Timelines and evidence as a page: {}", markdown_code(&command));
        }
    }
    write_model_notice(&mut text, state);
    text
}

/// Failure rates of cases with at least [`MIN_RUNS_FOR_RATE`] conclusive attempts.
fn rates(state: &RunState) -> String {
    let Some(run) = &state.run else { return String::new() };
    let cells = run.cases.iter().flat_map(|case| run.kubelets.iter().map(move |kubelet| (case, kubelet)));
    let mut text = String::new();
    for (case, kubelet) in cells {
        let verdicts = state.attempts(case, kubelet).map(|ended| ended.result.verdict);
        let conclusive: Vec<Verdict> = verdicts.filter(|verdict| verdict.is_conclusive()).collect();
        let failed = conclusive.iter().filter(|verdict| !verdict.is_success()).count();
        if conclusive.len() >= MIN_RUNS_FOR_RATE {
            let (count, total) = (failed as u64, conclusive.len() as u64);
            let rate = Rate { label: "failed".to_owned(), count, total };
            let _ = writeln!(text, "- {} on {kubelet}: {rate}", case.suite_and_case());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[test]
    fn summary_of_a_run() {
        insta::assert_snapshot!(run_summary(
            &fixtures::state_after(&fixtures::full_run()),
            None,
            fixtures::plain_output(Verbosity::Normal),
            LOG_COLUMNS
        ));
    }

    #[test]
    fn identical_attempts_are_grouped() {
        let mut state = RunState::default();
        let kubelets = ["v1.31.14", "v1.32.13"];
        state.apply(&fixtures::event(0.0, fixtures::run_started(&kubelets, &["requests-decide"])));
        for (attempt, verdict, why) in [
            (1, Verdict::Passed, "as stated"),
            (2, Verdict::Failed, "el1 is missing"),
            (3, Verdict::Failed, "el1 is missing"),
            (4, Verdict::Failed, "el2 is missing"),
        ] {
            let kind = fixtures::case_ended("requests-decide", "v1.32.13", attempt, verdict, why);
            state.apply(&fixtures::event(f64::from(attempt), kind));
        }
        let kind = fixtures::case_ended("requests-decide", "v1.31.14", 1, Verdict::Failed, "el2 is missing");
        state.apply(&fixtures::event(5.0, kind));
        let dir = tempfile::tempdir().unwrap();
        let (run_dir, options) = (RunDir::at(dir.path()).unwrap(), fixtures::plain_output(Verbosity::Normal));
        let text = run_summary(&state, Some(&run_dir), options, LOG_COLUMNS);
        let part = run_summary(&state, Some(&run_dir), options.without_hints(), LOG_COLUMNS);
        assert!(text.starts_with(&part) && !part.contains("Run directory"), "{part}");
        assert!(text.contains("/artifacts/message/requests-decide/v1.32.13-2`"), "{text}");
        assert!(text.ends_with(&format!("\nRun directory: `{}`\n", dir.path().display())), "{text}");
        assert!(text.contains(" passed ×1, failed ×3 |"), "{text}");
        let lines: Vec<_> =
            text.lines().filter(|line| line.starts_with("###") || line.contains("Same")).collect();
        assert_eq!(
            lines,
            [
                "### failed: message/requests-decide #2 on v1.32.13, 8.2s",
                "Same result in 1 other attempt: #3.",
                "### failed: message/requests-decide #4 on v1.32.13, 8.2s",
                "Same result in 1 other attempt: on v1.31.14.",
            ]
        );
    }
}
