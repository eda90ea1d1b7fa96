//! The summary page of a GitHub Actions job: cases that need attention, then the rest.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use evictlab_rules::quantity::{KIB, MIB};
use maud::html;

use crate::attention::AttentionGroups;
use crate::baseline_changes::BaselineChanges;
use crate::known_bugs::known_bugs;
use crate::markdown;
use crate::matrix::matrix;
use crate::repro_command::write_repro_commands;
use crate::run_dir::RunDir;
use crate::run_state::{Cluster, Creation, EndedCase, RunState};
use crate::sink::{Report, ReportError};
use crate::text::{code_block, first_line, visible};

/// Maximum size of the summary of a step, in bytes: GitHub drops a summary over 1 MiB.
const MAX_SUMMARY_BYTES: usize = (MIB - KIB) as usize;
/// Maximum number of rows of a matrix that is shown unfolded.
const MAX_OPEN_ROWS: usize = 20;

/// Appends the summary of the run to the file that `GITHUB_STEP_SUMMARY` names.
#[derive(Debug)]
pub struct JobSummary {
    path: PathBuf,
}

impl JobSummary {
    /// Appends to `path` at the end of the run.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }
}

impl Report for JobSummary {
    fn name(&self) -> &'static str {
        "job summary"
    }

    fn finish(self: Box<Self>, run: &RunState) -> Result<(), ReportError> {
        let file = OpenOptions::new().append(true).create(true).open(&self.path);
        let written = file.and_then(|mut file| {
            // Other commands of the step have written to it, too.
            let room = MAX_SUMMARY_BYTES.saturating_sub(file.metadata()?.len() as usize);
            file.write_all(fitting_summary(run, room).as_bytes())
        });
        written.map_err(|source| ReportError::Write { path: self.path, source })
    }
}

/// Renders the summary with the details that fit in a number of bytes: all, none, or only the
/// totals. Returns an empty text if these do not fit, either.
fn fitting_summary(run: &RunState, room: usize) -> String {
    let forms: [&dyn Fn() -> String; 3] = [&|| job_summary(run, true), &|| job_summary(run, false), &|| {
        format!("{}\n**{}**\n", title(run), markdown::totals(run))
    }];
    let mut texts = forms.iter().map(|form| visible(&form()).into_owned());
    texts.find(|text| text.len() <= room).unwrap_or_default()
}

/// Renders the summary, with or without the details of each case that needs attention.
fn job_summary(state: &RunState, with_details: bool) -> String {
    let mut text = title(state);
    let _ = writeln!(text, "\n**{}**", markdown::totals(state));
    if let Some(changes) = BaselineChanges::of(state) {
        let _ = write!(text, "\n{}", changes.render());
    }
    for (problem, error) in state.clusters.iter().flat_map(cluster_errors) {
        let title = html! { b { "error" } " " (problem) ": " (first_line(error)) };
        write_details(&mut text, &title.into_string(), true, &code_block("text", error.trim()));
    }
    if with_details {
        write_attention(&mut text, state);
    }
    let bugs = known_bugs(state);
    let bugs = bugs.iter().map(|bug| format!("- {}\n", bug.render(state, bug.name))).collect();
    let notices = [("Known bugs", bugs), ("Retried", markdown::retry_notices(state))];
    for (title, lines) in notices.iter().filter(|(_, lines)| !lines.is_empty()) {
        write_details(&mut text, &format!("{title}: {}", lines.lines().count()), false, lines);
    }
    let cases = state.run.as_ref().map_or(0, |run| run.cases.len());
    write_details(&mut text, "All cases", cases <= MAX_OPEN_ROWS, &matrix(state));
    markdown::write_model_notice(&mut text, state);
    text
}

/// Writes the cases that need attention, and those of them that the baseline expects.
fn write_attention(text: &mut String, state: &RunState) {
    let groups = AttentionGroups::of(state);
    for (first, others) in &groups.unexpected {
        let reason = first_line(&first.result.why);
        let title = html! { b { (first.result.verdict) } " " (first.id.full_title()) ": " (reason) };
        write_details(text, &title.into_string(), false, &case_details(state, first, others));
    }
    if let Some((title, lines)) = groups.expected_failures() {
        write_details(text, &title, false, &lines);
    }
}

/// Renders the heading: `## evictlab: v1.31.14, v1.32.13 on kind`.
fn title(state: &RunState) -> String {
    match &state.run {
        Some(run) if run.model.is_some() => format!("## evictlab: {}, a model\n", run.kubelets.join(", ")),
        Some(run) => format!("## evictlab: {} on {}\n", run.kubelets.join(", "), run.backend),
        None => "## evictlab\n".to_owned(),
    }
}

/// Failed creation and deletion of a cluster, each with its error.
fn cluster_errors(cluster: &Cluster) -> impl Iterator<Item = (String, &str)> {
    let creation = match &cluster.creation {
        Some(Creation::Failed { error, .. }) => {
            Some((format!("failed to create cluster {}", cluster.name), error))
        }
        _ => None,
    };
    let error = cluster.deletion.as_ref().and_then(|deletion| deletion.error.as_ref());
    let deletion = error.map(|error| (format!("failed to delete cluster {}", cluster.name), error));
    creation.into_iter().chain(deletion).map(|(problem, error)| (problem, error.as_str()))
}

/// Renders the details of a case, the path of its evidence, and the commands that reproduce it.
fn case_details(state: &RunState, ended: &EndedCase, others: &[&EndedCase]) -> String {
    let mut text = String::new();
    markdown::write_case_details(&mut text, state.case_info(&ended.id), ended);
    markdown::write_identical_attempts(&mut text, ended, others);
    // The path is relative to the run directory, as in the artifact of the job.
    markdown::write_evidence_path(&mut text, &RunDir::relative(), &ended.id);
    write_repro_commands(&mut text, state, &ended.id);
    text
}

/// Writes a collapsible section. GitHub renders text between empty lines as Markdown.
fn write_details(text: &mut String, title: &str, open: bool, content: &str) {
    let open = if open { " open" } else { "" };
    let content = content.trim();
    let _ = writeln!(text, "\n<details{open}><summary>{title}</summary>\n\n{content}\n\n</details>");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RunEvent, RunEventKind, fixtures};
    use evictlab_judge::Verdict;

    fn summary(events: &[RunEvent]) -> String {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("summary.md");
        std::fs::write(&path, "before\n").unwrap();
        let mut report = Box::new(JobSummary::new(path.clone()));
        let state = fixtures::deliver(&mut *report, events);
        report.finish(&state).unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        text.strip_prefix("before\n").unwrap().to_owned()
    }

    #[test]
    fn cases_in_need_of_attention_come_first() {
        insta::assert_snapshot!(summary(&fixtures::full_run()));
    }

    #[test]
    fn expected_failures_are_one_section() {
        let expected = [("a", Verdict::Failed), ("b", Verdict::Passed), ("c", Verdict::Passed)];
        let seen = [Verdict::Failed, Verdict::Failed, Verdict::Inconclusive];
        let text = summary(&fixtures::run_with_baseline(&expected, &seen));
        let titles: Vec<_> = text.lines().filter(|line| line.contains("<summary>")).collect();
        assert_eq!(
            titles,
            [
                "<details><summary><b>failed</b> message/b on v1.32.13: so it was</summary>",
                "<details><summary><b>inconclusive</b> message/c on v1.32.13: so it was</summary>",
                "<details><summary>Expected failures: 1</summary>",
                "<details open><summary>All cases</summary>",
            ]
        );
        assert!(text.contains("| message/b | v1.32.13 | passed | failed       |"), "{text}");
    }

    #[test]
    fn a_planned_case_that_did_not_run_is_a_change() {
        let expected = [("a", Verdict::Passed), ("b", Verdict::Passed)];
        let text = summary(&fixtures::run_with_baseline(&expected, &[Verdict::Passed]));
        assert!(text.contains("1 changed, 1 unchanged"), "{text}");
        assert!(text.contains("| message/b | v1.32.13 | passed | did not run |"), "{text}");
    }

    #[test]
    fn shows_failed_clusters() {
        let cluster = "evictlab-7f3a".to_owned();
        let error = "too many open files\nsysctl fs.inotify.max_user_watches=524288".to_owned();
        let text = summary(&[
            fixtures::event(0.0, fixtures::run_started(&["v1.32.13"], &["a"])),
            fixtures::event(
                0.1,
                RunEventKind::ClusterStarted { cluster: cluster.clone(), kubelets: vec![], reused: false },
            ),
            fixtures::event(9.0, RunEventKind::ClusterFailed { cluster, seconds: 8.9, error, cause: None }),
        ]);
        let title = "<details open><summary><b>error</b> failed to create cluster evictlab-7f3a: too many open files</summary>";
        assert!(text.contains(title) && text.contains("\nsysctl fs.inotify"), "{text}");
        assert!(text.contains("**1 not run**"), "{text}");
    }

    #[test]
    fn oversized_summary_is_shortened() {
        let ended =
            fixtures::case_ended("a", "v1.32.13", 1, Verdict::Failed, &"why ".repeat(MAX_SUMMARY_BYTES / 4));
        let text = summary(&[
            fixtures::event(0.0, fixtures::run_started(&["v1.32.13"], &["a"])),
            fixtures::event(1.0, ended),
        ]);
        assert!(
            text.contains("| message/a | failed 8.2s |") && text.contains("1 failed"),
            "{} bytes",
            text.len()
        );
        assert!(text.len() < 1000);
    }

    #[test]
    fn a_summary_leaves_those_of_other_commands() {
        let state = fixtures::state_after(&fixtures::full_run());
        let [whole, short] = [true, false].map(|details| visible(&job_summary(&state, details)).into_owned());
        assert_eq!(fitting_summary(&state, whole.len()), whole);
        assert_eq!(fitting_summary(&state, whole.len() - 1), short);
        let totals = fitting_summary(&state, short.len() - 1);
        assert!(totals.starts_with("## evictlab") && totals.len() < 200, "{totals}");
        assert_eq!(fitting_summary(&state, 10), "");
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("summary.md");
        std::fs::write(&path, "x".repeat(MAX_SUMMARY_BYTES - totals.len())).unwrap();
        Box::new(JobSummary::new(path.clone())).finish(&state).unwrap();
        assert!(std::fs::read_to_string(path).unwrap().ends_with(&totals));
    }
}
