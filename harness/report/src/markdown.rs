//! A run and its cases as Markdown: for the terminal, the job summary, JUnit, the HTML page, and
//! issues.

use std::fmt::Write;
use std::path::Path;

use comfy_table::{Table, presets};

use crate::baseline_changes::BaselineChanges;
use crate::eviction_record::write_eviction_record;
use crate::output_options::Verbosity;
use crate::run_dir::RunDir;
use crate::run_state::{EndedCase, RunState};
use crate::stream::{CaseId, CaseInfo, Model};
use crate::words::{code_block, count, inert_markdown, markdown_cell, markdown_code};
use evictlab_evidence::Observations;
use evictlab_judge::{Check, Rate, Verdict};

/// Minimum number of conclusive attempts for a failure rate: with fewer, the confidence interval
/// is too wide.
const MIN_RUNS_FOR_RATE: usize = 10;

/// The summary at the end of a run: the matrix, every case that needs attention, known bugs,
/// totals, and the run directory. The quiet summary has neither the matrix nor known bugs.
pub(crate) fn run_summary(state: &RunState, run_dir: Option<&RunDir>, verbosity: Verbosity) -> String {
    let mut text = if verbosity == Verbosity::Quiet { String::new() } else { matrix(state) };
    for (title, details) in attention_groups(state, run_dir) {
        let _ = write!(text, "\n### {title}\n{details}");
    }
    text + &closing(state, run_dir, verbosity)
}

/// The summary without the cases that need attention.
pub(crate) fn run_totals(state: &RunState, run_dir: Option<&RunDir>, verbosity: Verbosity) -> String {
    let matrix = if verbosity == Verbosity::Quiet { String::new() } else { matrix(state) };
    matrix + &closing(state, run_dir, verbosity)
}

/// Title and details of each case that needs attention. Attempts with the same outcome share one.
pub(crate) fn attention_groups(state: &RunState, run_dir: Option<&RunDir>) -> Vec<(String, String)> {
    let group = |(first, others): (&EndedCase, Vec<&EndedCase>)| {
        let mut text = String::new();
        write_case_details(&mut text, state.case_info(&first.id), first);
        write_identical_attempts(&mut text, &others);
        if let Some(run_dir) = run_dir {
            write_evidence_path(&mut text, run_dir, &first.id);
        }
        (title(first), text)
    };
    group_identical(state).into_iter().map(group).collect()
}

/// The end of a summary: rates, known bugs, changes, totals, and the run directory.
fn closing(state: &RunState, run_dir: Option<&RunDir>, verbosity: Verbosity) -> String {
    let mut text = String::new();
    if verbosity > Verbosity::Quiet {
        let notices = known_bug_notices(state) + &retry_notices(state);
        for part in [rates(state), notices].iter().filter(|part| !part.is_empty()) {
            let _ = write!(text, "\n{part}");
        }
    }
    if let Some(changes) = BaselineChanges::of(state) {
        let _ = write!(text, "\n{}", changes.render());
    }
    let _ = writeln!(text, "\n{}", totals(state));
    if let Some(run_dir) = run_dir.filter(|run_dir| !run_dir.is_relative()) {
        let _ = writeln!(text, "Run directory: {}", markdown_code(&display(run_dir.path())));
    }
    write_model_notice(&mut text, state);
    text
}

/// Writes that the kubelets were modelled, with the command for real ones.
pub(crate) fn write_model_notice(text: &mut String, state: &RunState) {
    if let Some(model) = state.model() {
        let real = markdown_code(&model.on_real_kubelets);
        let _ = writeln!(text, "\nThis was a model ({}). On real kubelets: {real}", model_notice(model));
    }
}

/// Writes the numbers of other attempts with the same outcome.
pub(crate) fn write_identical_attempts(text: &mut String, others: &[&EndedCase]) {
    if !others.is_empty() {
        let attempts: Vec<_> = others.iter().map(|other| format!("#{}", other.id.attempt)).collect();
        let more = count(others.len(), "other attempt");
        let _ = writeln!(text, "\nSame result in {more}: {}.", attempts.join(", "));
    }
}

/// Writes the path of a case's evidence.
pub(crate) fn write_evidence_path(text: &mut String, run_dir: &RunDir, id: &CaseId) {
    let _ = writeln!(text, "\nEvidence: {}", markdown_code(&display(&run_dir.case_dir(id))));
}

/// Describes a model: `embedded cluster, cgroup v2, seed 0`.
pub fn model_notice(model: &Model) -> String {
    format!("embedded cluster, cgroup {}, seed {}", model.cgroup, model.seed)
}

/// The summary of one case, to be pasted into an issue: verdict, reasons, environment, and the
/// commands that reproduce it.
pub(crate) fn case_summary(state: &RunState, ended: &EndedCase, evidence: Option<&Observations>) -> String {
    let mut text = heading(ended);
    if let Some(model) = state.model() {
        let _ = writeln!(text, "\nResult of a model, not of a real kubelet: {}.", model_notice(model));
    }
    write_case_details(&mut text, state.case_info(&ended.id), ended);
    text.push_str("\n| | |\n|-|-|\n");
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(text, "| {name} | {} |", markdown_cell(value));
    };
    if let Some(run) = &state.run {
        row("evictlab", &format!("{}, backend {}", run.evictlab, run.backend));
    }
    if let Some(observations) = evidence {
        row("kubelet", &observations.kubelet_version);
        let overrides = serde_json::Value::from(observations.kubelet_config_overrides.clone());
        row("kubelet configuration", &markdown_code(&overrides.to_string()));
        if let Some(seconds) = observations.seconds_to_outcome {
            row("first pod created to outcome", &duration(seconds));
        }
    }
    write_repro_commands(&mut text, state, &ended.id);
    text
}

/// Writes the commands that run one case again, as a block of code.
pub(crate) fn write_repro_commands(text: &mut String, state: &RunState, id: &CaseId) {
    let CaseId { suite, case, kubelet, .. } = id;
    let command = |backend: &str| match state.case_info(id).and_then(|info| info.path.as_ref()) {
        Some(path) => {
            let path = format!("'{}'", path.replace('\'', r"'\''"));
            format!("evictlab run {path} --backend {backend} --kubelet {kubelet}")
        }
        None => format!("evictlab run {suite} --backend {backend} --kubelet {kubelet} --focus {case}"),
    };
    let mut commands = command(state.run.as_ref().map_or("kind", |run| &run.backend));
    if let Some(model) = state.model() {
        let gap = if model.options.is_empty() { "" } else { " " };
        let _ = write!(commands, "{gap}{}\n# on a real kubelet\n{}", model.options, command("kind"));
    }
    let _ = writeln!(text, "\nTo reproduce:\n\n{}", code_block("sh", &commands));
}

/// The table of verdicts: a row for each case, a column for each kubelet.
pub(crate) fn matrix(state: &RunState) -> String {
    let Some(run) = &state.run else { return String::new() };
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header(std::iter::once("case").chain(run.kubelets.iter().map(String::as_str)));
    for info in &run.cases {
        let name = format!("{}/{}", info.suite, info.case);
        let cells = run.kubelets.iter().map(|kubelet| matrix_cell(state, info, kubelet));
        table.add_row(std::iter::once(markdown_cell(&name)).chain(cells));
    }
    table.trim_fmt() + "\n"
}

fn matrix_cell(state: &RunState, info: &CaseInfo, kubelet: &str) -> String {
    let attempts: Vec<&EndedCase> = state.attempts(info, kubelet).collect();
    match attempts[..] {
        [] => "not run".to_owned(),
        [EndedCase { judgement, .. }] if judgement.verdict == Verdict::Skipped => {
            judgement.verdict.to_string()
        }
        [ended] => format!("{} {}", ended.judgement.verdict, duration(ended.seconds)),
        _ => {
            let mut counts: Vec<(Verdict, usize)> = vec![];
            for ended in attempts {
                match counts.iter_mut().find(|(verdict, _)| *verdict == ended.judgement.verdict) {
                    Some((_, count)) => *count += 1,
                    None => counts.push((ended.judgement.verdict, 1)),
                }
            }
            let counts: Vec<_> =
                counts.iter().map(|(verdict, count)| format!("{verdict} ×{count}")).collect();
            counts.join(", ")
        }
    }
}

/// The totals by verdict, in one line.
pub(crate) fn totals(state: &RunState) -> String {
    let mut parts: Vec<String> =
        state.verdict_counts().iter().map(|(verdict, count)| format!("{count} {verdict}")).collect();
    let not_run = state.without_verdict().count();
    if not_run > 0 {
        parts.push(format!("{not_run} not run"));
    }
    if parts.is_empty() {
        parts.push("no cases".to_owned());
    }
    let simulated = if state.model().is_some() { " of simulated time" } else { "" };
    let time = state.end.as_ref().map(|end| format!(" in {}{simulated}", duration(end.seconds)));
    let time = time.unwrap_or_default();
    let interrupted = if state.interrupted > 0 { " (interrupted)" } else { "" };
    format!("{}{time}{interrupted}", parts.join(", "))
}

/// Failure rates of cases with at least [`MIN_RUNS_FOR_RATE`] conclusive attempts.
fn rates(state: &RunState) -> String {
    let Some(run) = &state.run else { return String::new() };
    let cells = run.cases.iter().flat_map(|case| run.kubelets.iter().map(move |kubelet| (case, kubelet)));
    let mut text = String::new();
    for (case, kubelet) in cells {
        let verdicts: Vec<Verdict> =
            state.attempts(case, kubelet).map(|ended| ended.judgement.verdict).collect();
        let count = |wanted: &[Verdict]| verdicts.iter().filter(|verdict| wanted.contains(verdict)).count();
        let failed = count(&[Verdict::Failed]);
        let conclusive =
            failed + count(&[Verdict::Passed, Verdict::Flaky, Verdict::Reproduced, Verdict::Fixed]);
        if conclusive >= MIN_RUNS_FOR_RATE {
            let rate = Rate { what: "failed".to_owned(), right: failed as u64, of: conclusive as u64 };
            let _ = writeln!(text, "- {}/{} on {kubelet}: {rate}", case.suite, case.case);
        }
    }
    text
}

/// One line for each case that ran more than once before its verdict.
pub(crate) fn retry_notices(state: &RunState) -> String {
    let retried = state.ended.iter().filter(|ended| !ended.judgement.earlier_tries.is_empty());
    let lines = retried.map(|ended| {
        let EndedCase { id, judgement, .. } = ended;
        let tries = judgement.earlier_tries.iter().map(|earlier| match earlier.doubt {
            Some(reason) => format!("{} ({reason})", earlier.verdict),
            None => earlier.verdict.to_string(),
        });
        let tries = tries.collect::<Vec<_>>().join(", ");
        let (count, verdict) = (judgement.earlier_tries.len() + 1, judgement.verdict);
        format!("- {}: {verdict} at try {count}, before: {tries}\n", id.full_title())
    });
    lines.collect()
}

/// One line for each known bug that was reproduced or turned out to be fixed.
pub(crate) fn known_bug_notices(state: &RunState) -> String {
    let mut lines: Vec<String> = vec![];
    for ended in &state.ended {
        let (id, judgement) = (&ended.id, &ended.judgement);
        let bug = inert_markdown(judgement.known_bug.as_deref().unwrap_or("a known bug"));
        let line = match judgement.verdict {
            Verdict::Reproduced => {
                format!("- reproduced: {bug} on {}, as {}/{} states", id.kubelet, id.suite, id.case)
            }
            Verdict::Fixed => format!(
                "- fixed: {bug} does not occur on {}; narrow `known-bugs` of {}/{}",
                id.kubelet, id.suite, id.case
            ),
            _ => continue,
        };
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Ended cases that need attention, in the order of their ends, each with the later attempts that
/// have the same outcome.
pub(crate) fn group_identical(state: &RunState) -> Vec<(&EndedCase, Vec<&EndedCase>)> {
    let mut groups: Vec<(&EndedCase, Vec<&EndedCase>)> = vec![];
    for ended in state.ended.iter().filter(|ended| needs_attention(ended.judgement.verdict)) {
        match groups.iter_mut().find(|(first, _)| same_outcome(first, ended)) {
            Some((_, others)) => others.push(ended),
            None => groups.push((ended, vec![])),
        }
    }
    groups
}

/// Returns whether two attempts of one case on one kubelet have the same verdict and reason.
pub(crate) fn same_outcome(first: &EndedCase, other: &EndedCase) -> bool {
    (&first.id.suite, &first.id.case, &first.id.kubelet)
        == (&other.id.suite, &other.id.case, &other.id.kubelet)
        && first.judgement.verdict == other.judgement.verdict
        && first.judgement.why == other.judgement.why
}

/// Returns whether a person has to look into a verdict.
pub(crate) fn needs_attention(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Failed | Verdict::Inconclusive | Verdict::Error)
}

fn heading(ended: &EndedCase) -> String {
    format!("### {}\n", title(ended))
}

/// The verdict of a case with its reason or phase, the case, the node and the duration.
fn title(ended: &EndedCase) -> String {
    let EndedCase { id, node, seconds, judgement } = ended;
    let detail = match (judgement.doubt, judgement.phase) {
        (Some(reason), _) => format!(" ({reason})"),
        (None, Some(phase)) => format!(" (in {phase})"),
        (None, None) => String::new(),
    };
    let node = node.as_ref().map(|node| format!(", node {}", inert_markdown(node))).unwrap_or_default();
    format!("{}{detail}: {}{node}, {}", judgement.verdict, id.full_title(), duration(*seconds))
}

/// Writes the reason for a verdict, failed checks, the message diff, the eviction records, the
/// conclusion, and upstream links.
pub(crate) fn write_case_details(text: &mut String, info: Option<&CaseInfo>, ended: &EndedCase) {
    let judgement = &ended.judgement;
    let _ = writeln!(text, "\n{}", inert_markdown(judgement.why.trim_end()));
    let failed: Vec<&Check> = judgement.checks.iter().filter(|check| !check.holds).collect();
    if !failed.is_empty() {
        text.push('\n');
    }
    for Check { name, expected, observed, .. } in failed {
        let _ = writeln!(
            text,
            "- {}: expected {}, observed {}",
            inert_markdown(name),
            markdown_code(expected),
            markdown_code(observed)
        );
    }
    if !judgement.diff.is_empty() {
        let _ = writeln!(text, "\n{}", code_block("diff", &judgement.diff));
    }
    for (number, earlier) in (1..).zip(&judgement.earlier_tries) {
        let _ = writeln!(
            text,
            "\nTry {number} was {}: {}",
            earlier.verdict,
            inert_markdown(earlier.why.trim_end())
        );
    }
    for record in &judgement.testimony {
        write_eviction_record(text, record);
    }
    let Some(info) = info else { return };
    if ended.judgement.verdict == Verdict::Failed
        && let Some(conclusion) = &info.when_it_fails
    {
        let _ = writeln!(text, "\nMeaning: {}", inert_markdown(conclusion.trim_end()));
    }
    if !info.upstream.is_empty() {
        let _ = writeln!(text, "\nUpstream: {}", inert_markdown(&info.upstream.join(", ")));
    }
}

/// Formats seconds: `8.2s`, `1m05s`.
pub(crate) fn duration(seconds: f64) -> String {
    if seconds < 59.95 {
        return format!("{seconds:.1}s");
    }
    let whole = seconds.round() as u64;
    format!("{}m{:02}s", whole / 60, whole % 60)
}

fn display(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RunEventKind, fixtures};

    #[test]
    fn summary_of_a_run() {
        insta::assert_snapshot!(run_summary(
            &fixtures::state_after(&fixtures::full_run()),
            None,
            Verbosity::Normal
        ));
    }

    #[test]
    fn identical_attempts_are_grouped() {
        let mut state = RunState::default();
        state.apply(&fixtures::event(0.0, fixtures::run_started(&["v1.32.13"], &["requests-decide"])));
        for (attempt, verdict, why) in [
            (1, Verdict::Passed, "as stated"),
            (2, Verdict::Failed, "el1 is missing"),
            (3, Verdict::Failed, "el1 is missing"),
            (4, Verdict::Failed, "el2 is missing"),
        ] {
            let what = fixtures::case_ended("requests-decide", "v1.32.13", attempt, verdict, why);
            state.apply(&fixtures::event(f64::from(attempt), what));
        }
        let dir = tempfile::tempdir().unwrap();
        let text = run_summary(&state, Some(&RunDir::at(dir.path()).unwrap()), Verbosity::Normal);
        assert!(text.contains("/artifacts/message/requests-decide/v1.32.13-2`"), "{text}");
        assert!(text.ends_with(&format!("\nRun directory: `{}`\n", dir.path().display())), "{text}");
        assert!(text.contains("| message/requests-decide | passed ×1, failed ×3 |"), "{text}");
        let lines: Vec<_> =
            text.lines().filter(|line| line.starts_with("###") || line.contains("Same")).collect();
        assert_eq!(
            lines,
            [
                "### failed: message/requests-decide #2 on v1.32.13, 8.2s",
                "Same result in 1 other attempt: #3.",
                "### failed: message/requests-decide #4 on v1.32.13, 8.2s",
            ]
        );
    }

    #[test]
    fn case_without_a_suite_is_reproduced_by_its_path() {
        let mut started = fixtures::run_started(&["v1.32.13"], &["mine"]);
        let RunEventKind::RunStarted { cases, .. } = &mut started else { unreachable!("it started") };
        cases[0].path = Some("to report/mine.yaml".to_owned());
        let mut state = RunState::default();
        state.apply(&fixtures::event(0.0, started));
        let mut text = String::new();
        write_repro_commands(&mut text, &state, &fixtures::id("message", "mine", "v1.32.13", 1));
        let command = "\nevictlab run 'to report/mine.yaml' --backend kind --kubelet v1.32.13\n";
        assert!(text.contains(command), "{text}");
    }

    #[test]
    fn formats_durations() {
        for (seconds, text) in
            [(0.04, "0.0s"), (8.24, "8.2s"), (59.96, "1m00s"), (65.4, "1m05s"), (3599.0, "59m59s")]
        {
            assert_eq!(duration(seconds), text);
        }
    }
}
