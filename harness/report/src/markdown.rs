//! The cases of a run as Markdown: for the terminal, the job summary, JUnit, the HTML page, and
//! issues.

use std::fmt::Write;
use std::path::Path;

use crate::eviction_record::write_eviction_record;
use crate::repro_command::write_repro_commands;
use crate::run_dir::RunDir;
use crate::run_event::{CaseId, CaseInfo, Model};
use crate::run_state::{EndedCase, RunState};
use crate::text::{code_block, count_noun, duration, inert_markdown, markdown_code, markdown_table};
use evictlab_evidence::Observations;
use evictlab_judge::{Check, Verdict};

/// Writes that the kubelets were modelled, with the command for real ones.
pub(crate) fn write_model_notice(text: &mut String, state: &RunState) {
    if let Some(model) = state.model() {
        let real = markdown_code(&model.on_real_kubelets);
        let _ = writeln!(text, "\nThis was a model ({}). On real kubelets: {real}", model_notice(model));
    }
}

/// Writes the kubelets and numbers of other attempts with the same outcome as `first`.
pub(crate) fn write_identical_attempts(text: &mut String, first: &EndedCase, others: &[&EndedCase]) {
    let name = |other: &&EndedCase| {
        let CaseId { kubelet, attempt, .. } = &other.id;
        match (*kubelet == first.id.kubelet, attempt) {
            (true, attempt) => format!("#{attempt}"),
            (false, 0 | 1) => format!("on {}", inert_markdown(kubelet)),
            (false, attempt) => format!("#{attempt} on {}", inert_markdown(kubelet)),
        }
    };
    if !others.is_empty() {
        let names: Vec<String> = others.iter().map(name).collect();
        let more = count_noun(others.len(), "other attempt");
        let _ = writeln!(text, "\nSame result in {more}: {}.", names.join(", "));
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
    let mut rows: Vec<[String; 2]> = Vec::new();
    let mut row = |name: &str, value: &str| rows.push([name.to_owned(), value.to_owned()]);
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
    let _ = write!(text, "\n{}", markdown_table(&["", ""], rows));
    write_repro_commands(&mut text, state, &ended.id);
    text
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

/// One line for each case that ran more than once before its verdict.
pub(crate) fn retry_notices(state: &RunState) -> String {
    let retried = state.ended.iter().filter(|ended| !ended.result.earlier_tries.is_empty());
    let lines = retried.map(|ended| {
        let EndedCase { id, result, .. } = ended;
        let tries = result.earlier_tries.iter().map(|earlier| match earlier.inconclusive_reason {
            Some(reason) => format!("{} ({reason})", earlier.verdict),
            None => earlier.verdict.to_string(),
        });
        let tries = tries.collect::<Vec<_>>().join(", ");
        let (count, verdict) = (result.earlier_tries.len() + 1, result.verdict);
        format!("- {}: {verdict} at try {count}, before: {tries}\n", id.full_title())
    });
    lines.collect()
}

fn heading(ended: &EndedCase) -> String {
    format!("### {}\n", title(ended))
}

/// The verdict of a case with its reason or phase, the case, the node and the duration.
pub(crate) fn title(ended: &EndedCase) -> String {
    let EndedCase { id, node, seconds, result } = ended;
    let detail = match (result.inconclusive_reason, result.phase) {
        (Some(reason), _) => format!(" ({reason})"),
        (None, Some(phase)) => format!(" (in {phase})"),
        (None, None) => String::new(),
    };
    let node = node.as_ref().map(|node| format!(", node {}", inert_markdown(node))).unwrap_or_default();
    format!("{}{detail}: {}{node}, {}", result.verdict, id.full_title(), duration(*seconds))
}

/// Writes the reason for a verdict, failed checks, the message diff, the eviction records, the
/// conclusion, and upstream links.
pub(crate) fn write_case_details(text: &mut String, info: Option<&CaseInfo>, ended: &EndedCase) {
    let result = &ended.result;
    let _ = writeln!(text, "\n{}", inert_markdown(result.why.trim_end()));
    let failed: Vec<&Check> = result.checks.iter().filter(|check| !check.holds).collect();
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
    if !result.diff.is_empty() {
        let _ = writeln!(text, "\n{}", code_block("diff", &result.diff));
    }
    for (number, earlier) in (1..).zip(&result.earlier_tries) {
        let _ = writeln!(
            text,
            "\nTry {number} was {}: {}",
            earlier.verdict,
            inert_markdown(earlier.why.trim_end())
        );
    }
    for record in &result.evictions {
        write_eviction_record(text, record);
    }
    let Some(info) = info else { return };
    if ended.result.verdict == Verdict::Failed
        && let Some(conclusion) = &info.when_it_fails
    {
        let _ = writeln!(text, "\nMeaning: {}", inert_markdown(conclusion.trim_end()));
    }
    if !info.upstream.is_empty() {
        let _ = writeln!(text, "\nUpstream: {}", inert_markdown(&info.upstream.join(", ")));
    }
}

fn display(path: &Path) -> String {
    path.display().to_string()
}
