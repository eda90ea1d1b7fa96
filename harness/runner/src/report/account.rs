//! A run and its cases told as Markdown, for a terminal, a job summary and an issue alike.

use std::fmt::Write;
use std::path::Path;

use comfy_table::{Table, presets};

use super::changes::Changes;
use super::ledger::{Ended, Ledger};
use super::testimony::witnesses;
use super::{CaseId, Model, Planned, RunDir};
use crate::judge::{Check, Rate, Verdict};
use crate::observe::Observations;

/// The end of a run: the matrix, an account of every case that needs a person, the bugs that showed or did not, the
/// totals, and where everything lies.
pub(super) fn of_run(ledger: &Ledger, run_dir: Option<&RunDir>) -> String {
    let mut text = matrix(ledger);
    for (first, others) in alike(ledger) {
        text.push('\n');
        text.push_str(&heading(first));
        body(&mut text, ledger.planned(&first.id), first);
        the_same_in(&mut text, &others);
        if let Some(run_dir) = run_dir {
            evidence_in(&mut text, run_dir, &first.id);
        }
    }
    let rates = rates(ledger);
    if !rates.is_empty() {
        let _ = write!(text, "\n{rates}");
    }
    let notices = notices(ledger);
    if !notices.is_empty() {
        let _ = write!(text, "\n{notices}");
    }
    if let Some(changes) = Changes::of(ledger) {
        let _ = write!(text, "\n{}", changes.told());
    }
    let _ = writeln!(text, "\n{}", totals(ledger));
    if let Some(run_dir) = run_dir.filter(|run_dir| !run_dir.is_here()) {
        let _ = writeln!(text, "Run directory: {}", code(&shown(run_dir.path())));
    }
    that_it_was_a_model(&mut text, ledger);
    text
}

/// That no kubelet was real, and the command for real ones.
pub(super) fn that_it_was_a_model(text: &mut String, ledger: &Ledger) {
    if let Some(model) = ledger.run.as_ref().and_then(|run| run.model.as_ref()) {
        let real = code(&model.on_real_kubelets);
        let _ = writeln!(text, "\nThis was a model ({}). On real kubelets: {real}", of_model(model));
    }
}

/// The other attempts that came to the same.
pub(super) fn the_same_in(text: &mut String, others: &[&Ended]) {
    if !others.is_empty() {
        let attempts: Vec<_> = others.iter().map(|other| format!("#{}", other.id.attempt)).collect();
        let _ = writeln!(text, "\nThe same in {} more: {}.", count(others.len()), attempts.join(", "));
    }
}

/// Where a case's evidence lies.
pub(super) fn evidence_in(text: &mut String, run_dir: &RunDir, id: &CaseId) {
    let _ = writeln!(text, "\nEvidence: {}", code(&shown(&run_dir.case_dir(id))));
}

/// What a run was that had no real kubelets, in some words.
pub(crate) fn of_model(model: &Model) -> String {
    format!("embedded cluster, cgroup {}, seed {}", model.cgroup, model.seed)
}

/// One case, to be pasted into an issue: the verdict, its grounds, where it was seen, and how to see it again.
pub(super) fn for_issue(ledger: &Ledger, ended: &Ended, evidence: Option<&Observations>) -> String {
    let mut text = heading(ended);
    let model = ledger.run.as_ref().and_then(|run| run.model.as_ref());
    if let Some(model) = model {
        let _ = writeln!(text, "\nA model said this, not a kubelet: {}.", of_model(model));
    }
    body(&mut text, ledger.planned(&ended.id), ended);
    text.push_str("\n| | |\n|-|-|\n");
    let mut fact = |name: &str, value: &str| {
        let _ = writeln!(text, "| {name} | {} |", cell(value));
    };
    if let Some(run) = &ledger.run {
        fact("evictlab", &format!("{}, backend {}", run.evictlab, run.backend));
    }
    if let Some(seen) = evidence {
        fact("kubelet", &seen.kubelet_version);
        fact(
            "kubelet configuration",
            &code(&serde_json::Value::from(seen.kubelet_config_overrides.clone()).to_string()),
        );
        if let Some(seconds) = seen.seconds_to_outcome {
            fact("first pod created to outcome", &duration(seconds));
        }
    }
    again(&mut text, ledger, &ended.id);
    text
}

/// The commands that run one case again, as a block of code.
pub(super) fn again(text: &mut String, ledger: &Ledger, id: &CaseId) {
    let run = ledger.run.as_ref();
    let CaseId { suite, case, kubelet, .. } = id;
    let on = |backend: &str| match ledger.planned(id).and_then(|planned| planned.path.as_ref()) {
        Some(path) => format!("evictlab run '{path}' --backend {backend} --kubelet {kubelet}"),
        None => format!("evictlab run {suite} --backend {backend} --kubelet {kubelet} --focus {case}"),
    };
    let mut commands = on(run.map_or("kind", |run| &run.backend));
    if let Some(model) = run.and_then(|run| run.model.as_ref()) {
        let gap = if model.options.is_empty() { "" } else { " " };
        let _ = write!(commands, "{gap}{}\n# on a real kubelet\n{}", model.options, on("kind"));
    }
    let _ = writeln!(text, "\nTo see it again:\n\n```sh\n{commands}\n```");
}

/// Case by kubelet.
pub(super) fn matrix(ledger: &Ledger) -> String {
    let Some(run) = &ledger.run else { return String::new() };
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header(std::iter::once("case").chain(run.kubelets.iter().map(String::as_str)));
    for planned in &run.cases {
        let name = format!("{}/{}", planned.suite, planned.case);
        let cells = run.kubelets.iter().map(|kubelet| matrix_cell(ledger, planned, kubelet));
        table.add_row(std::iter::once(cell(&name)).chain(cells));
    }
    table.trim_fmt() + "\n"
}

fn matrix_cell(ledger: &Ledger, planned: &Planned, kubelet: &str) -> String {
    let attempts: Vec<&Ended> = ledger.attempts(planned, kubelet).collect();
    match attempts[..] {
        [] => "not run".to_owned(),
        [Ended { judgement, .. }] if judgement.verdict == Verdict::Skipped => judgement.verdict.to_string(),
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
pub(super) fn totals(ledger: &Ledger) -> String {
    let mut parts: Vec<String> =
        ledger.counts().iter().map(|(verdict, count)| format!("{count} {verdict}")).collect();
    let unended = ledger.without_verdict().count();
    if unended > 0 {
        parts.push(format!("{unended} not run"));
    }
    if parts.is_empty() {
        parts.push("no case was run".to_owned());
    }
    let model = ledger.run.as_ref().is_some_and(|run| run.model.is_some());
    let whose = if model { " of the model's time" } else { "" };
    let time = ledger.over.as_ref().map(|over| format!(" in {}{whose}", duration(over.seconds)));
    let time = time.unwrap_or_default();
    let stop = if ledger.interrupted > 0 { " (interrupted)" } else { "" };
    format!("{}{time}{stop}", parts.join(", "))
}

/// How many runs are enough for a rate: of fewer, the interval is too wide to tell anything.
const MANY: usize = 10;

/// How often each case failed that was run many times. What was inconclusive is not counted.
fn rates(ledger: &Ledger) -> String {
    let Some(run) = &ledger.run else { return String::new() };
    let cells = run.cases.iter().flat_map(|case| run.kubelets.iter().map(move |kubelet| (case, kubelet)));
    let mut text = String::new();
    for (case, kubelet) in cells {
        let verdicts: Vec<Verdict> =
            ledger.attempts(case, kubelet).map(|ended| ended.judgement.verdict).collect();
        let count = |wanted: &[Verdict]| verdicts.iter().filter(|verdict| wanted.contains(verdict)).count();
        let failed = count(&[Verdict::Failed]);
        let told = failed + count(&[Verdict::Passed, Verdict::Reproduced, Verdict::Fixed]);
        if told >= MANY {
            let rate = Rate { what: "failed".to_owned(), right: failed as u64, of: told as u64 };
            let _ = writeln!(text, "- {}/{} on {kubelet}: {rate}", case.suite, case.case);
        }
    }
    text
}

/// The bugs that showed, and those that did not.
pub(super) fn notices(ledger: &Ledger) -> String {
    let mut lines: Vec<String> = vec![];
    for ended in &ledger.ended {
        let (id, judgement) = (&ended.id, &ended.judgement);
        let bug = judgement.known_bug.as_deref().unwrap_or("a known bug");
        let line = match judgement.verdict {
            Verdict::Reproduced => {
                format!("- reproduced: {bug} shows on {}, as stated in {}/{}", id.kubelet, id.suite, id.case)
            }
            Verdict::Fixed => format!(
                "- fixed: {bug} should have shown on {} and did not: narrow `known-bugs` of {}/{}",
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

/// The cases that need a person, in the order of their ends; those that differ from one in the attempt alone follow it.
pub(super) fn alike(ledger: &Ledger) -> Vec<(&Ended, Vec<&Ended>)> {
    let mut groups: Vec<(&Ended, Vec<&Ended>)> = vec![];
    for ended in ledger.ended.iter().filter(|ended| needs_a_person(ended.judgement.verdict)) {
        match groups.iter_mut().find(|(first, _)| differ_in_attempt_alone(first, ended)) {
            Some((_, others)) => others.push(ended),
            None => groups.push((ended, vec![])),
        }
    }
    groups
}

/// Whether two attempts came to the same for the same reason.
pub(super) fn differ_in_attempt_alone(first: &Ended, other: &Ended) -> bool {
    (&first.id.suite, &first.id.case, &first.id.kubelet)
        == (&other.id.suite, &other.id.case, &other.id.kubelet)
        && first.judgement.verdict == other.judgement.verdict
        && first.judgement.why == other.judgement.why
}

/// Whether a verdict is one that somebody has to look into.
pub(super) fn needs_a_person(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Failed | Verdict::Inconclusive | Verdict::Error)
}

fn heading(ended: &Ended) -> String {
    let Ended { id, node, seconds, judgement } = ended;
    let detail = match (judgement.doubt, judgement.phase) {
        (Some(doubt), _) => format!(" ({doubt})"),
        (None, Some(phase)) => format!(" (in {phase})"),
        (None, None) => String::new(),
    };
    let node = node.as_ref().map(|node| format!(", node {node}")).unwrap_or_default();
    format!(
        "### {}{detail}: {}/{} on {}{node}, {}\n",
        judgement.verdict,
        id.suite,
        id.title(),
        id.kubelet,
        duration(*seconds)
    )
}

/// What follows the heading: why, the checks, the difference, the witnesses, what to conclude, the links.
pub(super) fn body(text: &mut String, planned: Option<&Planned>, ended: &Ended) {
    let judgement = &ended.judgement;
    let _ = writeln!(text, "\n{}", judgement.why.trim_end());
    let broken: Vec<&Check> = judgement.checks.iter().filter(|check| !check.holds).collect();
    if !broken.is_empty() {
        text.push('\n');
    }
    for Check { name, expected, observed, .. } in broken {
        let _ = writeln!(text, "- {name}: expected {}, observed {}", code(expected), code(observed));
    }
    if !judgement.diff.is_empty() {
        let _ = writeln!(text, "\n```diff\n{}\n```", judgement.diff.trim_end());
    }
    for testimony in &judgement.testimony {
        witnesses(text, testimony);
    }
    let Some(planned) = planned else { return };
    if ended.judgement.verdict == Verdict::Failed
        && let Some(conclusion) = &planned.when_it_fails
    {
        let _ = writeln!(text, "\nWhat it means: {}", conclusion.trim_end());
    }
    if !planned.upstream.is_empty() {
        let _ = writeln!(text, "\nUpstream: {}", planned.upstream.join(", "));
    }
}

/// `8.2s`, `1m05s`.
pub(super) fn duration(seconds: f64) -> String {
    if seconds < 59.95 {
        return format!("{seconds:.1}s");
    }
    let whole = seconds.round() as u64;
    format!("{}m{:02}s", whole / 60, whole % 60)
}

fn count(attempts: usize) -> String {
    if attempts == 1 { "1 attempt".to_owned() } else { format!("{attempts} attempts") }
}

/// Text as code, verbatim, spaces at its ends included.
pub(super) fn code(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ");
    let fence = if text.contains('`') { "``" } else { "`" };
    match text.as_str() {
        "" => "nothing".to_owned(),
        text if fence.len() > 1 => format!("{fence} {text} {fence}"),
        text => format!("{fence}{text}{fence}"),
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{What, story};

    fn ledger() -> Ledger {
        let mut ledger = Ledger::default();
        story::whole().iter().for_each(|event| ledger.take(event));
        ledger
    }

    #[test]
    fn a_run_is_told() {
        insta::assert_snapshot!(of_run(&ledger(), None));
    }

    #[test]
    fn attempts_that_went_alike_are_told_once() {
        let mut ledger = Ledger::default();
        ledger.take(&story::event(0.0, story::run_started(&["v1.32.13"], &["requests-decide"])));
        for (attempt, verdict, why) in [
            (1, Verdict::Passed, "as stated"),
            (2, Verdict::Failed, "el1 is missing"),
            (3, Verdict::Failed, "el1 is missing"),
            (4, Verdict::Failed, "el2 is missing"),
        ] {
            let what = story::case_ended("message", "requests-decide", "v1.32.13", attempt, verdict, why);
            ledger.take(&story::event(f64::from(attempt), what));
        }
        let dir = tempfile::tempdir().unwrap();
        let text = of_run(&ledger, Some(&RunDir::at(dir.path()).unwrap()));
        assert!(text.contains("/artifacts/message/requests-decide/v1.32.13-2`"), "{text}");
        assert!(text.ends_with(&format!("\nRun directory: `{}`\n", dir.path().display())), "{text}");
        assert!(text.contains("| message/requests-decide | passed ×1, failed ×3 |"), "{text}");
        let told: Vec<_> =
            text.lines().filter(|line| line.starts_with("###") || line.contains("same")).collect();
        assert_eq!(
            told,
            [
                "### failed: message/requests-decide #2 on v1.32.13, 8.2s",
                "The same in 1 attempt more: #3.",
                "### failed: message/requests-decide #4 on v1.32.13, 8.2s",
            ]
        );
    }

    #[test]
    fn a_case_of_no_suite_is_run_again_by_its_path() {
        let mut started = story::run_started(&["v1.32.13"], &["mine"]);
        let What::RunStarted { cases, .. } = &mut started else { unreachable!("it started") };
        cases[0].path = Some("to report/mine.yaml".to_owned());
        let mut ledger = Ledger::default();
        ledger.take(&story::event(0.0, started));
        let mut text = String::new();
        again(&mut text, &ledger, &story::id("message", "mine", "v1.32.13", 1));
        let command = "\nevictlab run 'to report/mine.yaml' --backend kind --kubelet v1.32.13\n";
        assert!(text.contains(command), "{text}");
    }

    #[test]
    fn durations_are_short() {
        for (seconds, text) in
            [(0.04, "0.0s"), (8.24, "8.2s"), (59.96, "1m00s"), (65.4, "1m05s"), (3599.0, "59m59s")]
        {
            assert_eq!(duration(seconds), text);
        }
    }
}
