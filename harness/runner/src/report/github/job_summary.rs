//! The page of a job, told as Markdown: first what needs a person, then the rest.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use maud::html;

use crate::report::changes::Changes;
use crate::report::ledger::{Cluster, Creation, Ended, Ledger};
use crate::report::{Report, ReportError, RunDir, RunEvent, account};

/// GitHub drops a step's summary over 1 MiB whole.
const LIMIT: usize = 1024 * 1024 - 1024;
/// A matrix of so many rows is shown at once; of a longer one, its title.
const ROWS: usize = 20;

/// Appends the account of the run to the file that `GITHUB_STEP_SUMMARY` names.
#[derive(Debug)]
pub struct JobSummary {
    path: PathBuf,
    ledger: Ledger,
}

impl JobSummary {
    /// Appends to `path` when the run is over.
    pub fn new(path: PathBuf) -> Self {
        Self { path, ledger: Ledger::default() }
    }
}

impl Report for JobSummary {
    fn name(&self) -> &'static str {
        "job summary"
    }

    fn take(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        self.ledger.take(event);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), ReportError> {
        let mut text = of_job(&self.ledger, true);
        if text.len() > LIMIT {
            text = of_job(&self.ledger, false);
        }
        let file = OpenOptions::new().append(true).create(true).open(&self.path);
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|source| ReportError::Write { path: self.path, source })
    }
}

/// The whole, with what was seen of each case that needs a person or without.
fn of_job(ledger: &Ledger, whole: bool) -> String {
    let mut text = title(ledger);
    let _ = writeln!(text, "\n**{}**", account::totals(ledger));
    let changes = Changes::of(ledger);
    if let Some(changes) = &changes {
        let _ = write!(text, "\n{}", changes.told());
    }
    for (what, error) in ledger.clusters.iter().flat_map(broken) {
        let title = html! { b { "error" } " " (what) ": " (first_line(error)) };
        folded(&mut text, &title.into_string(), true, &format!("```text\n{}\n```", error.trim()));
    }
    let all = if whole { account::alike(ledger) } else { vec![] };
    let (known, open): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(first, _)| ledger.is_as_expected(first));
    for (first, others) in &open {
        let title = html! { b { (first.judgement.verdict) } " " (name(first)) ": " (first_line(&first.judgement.why)) };
        folded(&mut text, &title.into_string(), false, &of_case(ledger, first, others));
    }
    if !known.is_empty() {
        let line = |(first, _): &(&Ended, _)| format!("- {}: {}\n", first.judgement.verdict, name(first));
        let lines: String = known.iter().map(line).collect();
        folded(&mut text, &format!("As bad as the baseline expects: {}", known.len()), false, &lines);
    }
    let notices = account::notices(ledger);
    if !notices.is_empty() {
        folded(&mut text, &format!("Known bugs: {}", notices.lines().count()), false, &notices);
    }
    let cases = ledger.run.as_ref().map_or(0, |run| run.cases.len());
    folded(&mut text, "The matrix", cases <= ROWS, &account::matrix(ledger));
    account::that_it_was_a_model(&mut text, ledger);
    text
}

/// What tells one job's summary from another's: `## evictlab: v1.31.14, v1.32.13 on kind`.
fn title(ledger: &Ledger) -> String {
    match &ledger.run {
        Some(run) if run.model.is_some() => format!("## evictlab: {}, a model\n", run.kubelets.join(", ")),
        Some(run) => format!("## evictlab: {} on {}\n", run.kubelets.join(", "), run.backend),
        None => "## evictlab\n".to_owned(),
    }
}

/// What went wrong with a cluster, and the error.
fn broken(cluster: &Cluster) -> impl Iterator<Item = (String, &str)> {
    let made = match &cluster.creation {
        Some(Creation::Failed { error, .. }) => {
            Some((format!("cluster {} could not be made", cluster.name), error))
        }
        _ => None,
    };
    let error = cluster.deletion.as_ref().and_then(|deletion| deletion.error.as_ref());
    let deleted = error.map(|error| (format!("cluster {} could not be deleted", cluster.name), error));
    made.into_iter().chain(deleted).map(|(what, error)| (what, error.as_str()))
}

/// `message/requests-decide on v1.32.13`.
fn name(ended: &Ended) -> String {
    format!("{}/{} on {}", ended.id.suite, ended.id.title(), ended.id.kubelet)
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// What was seen of a case, where its evidence is, and how to see it again.
fn of_case(ledger: &Ledger, ended: &Ended, others: &[&Ended]) -> String {
    let mut text = String::new();
    account::body(&mut text, ledger.planned(&ended.id), ended);
    account::the_same_in(&mut text, others);
    // Where it is in the job's artifact, too.
    account::evidence_in(&mut text, &RunDir::here(), &ended.id);
    account::again(&mut text, ledger, &ended.id);
    text
}

/// A part that a click opens. GitHub takes what stands between empty lines for Markdown.
fn folded(text: &mut String, title: &str, open: bool, content: &str) {
    let open = if open { " open" } else { "" };
    let content = content.trim();
    let _ = writeln!(text, "\n<details{open}><summary>{title}</summary>\n\n{content}\n\n</details>");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Verdict;
    use crate::report::{What, story};

    fn summary(events: &[RunEvent]) -> String {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("summary.md");
        std::fs::write(&path, "before\n").unwrap();
        let mut report = Box::new(JobSummary::new(path.clone()));
        events.iter().for_each(|event| report.take(event).unwrap());
        report.finish().unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        text.strip_prefix("before\n").unwrap().to_owned()
    }

    #[test]
    fn what_needs_a_person_comes_first() {
        insta::assert_snapshot!(summary(&story::whole()));
    }

    #[test]
    fn what_a_baseline_expects_is_one_line() {
        let expected = [("a", Verdict::Failed), ("b", Verdict::Passed), ("c", Verdict::Passed)];
        let seen = [Verdict::Failed, Verdict::Failed, Verdict::Inconclusive];
        let told = summary(&story::against_a_baseline(&expected, &seen));
        let titles: Vec<_> = told.lines().filter(|line| line.contains("<summary>")).collect();
        assert_eq!(
            titles,
            [
                "<details><summary><b>failed</b> message/b on v1.32.13: so it was</summary>",
                "<details><summary><b>inconclusive</b> message/c on v1.32.13: so it was</summary>",
                "<details><summary>As bad as the baseline expects: 1</summary>",
                "<details open><summary>The matrix</summary>",
            ]
        );
        assert!(told.contains("| message/b | v1.32.13 | passed | failed |"), "{told}");
    }

    #[test]
    fn a_cluster_that_could_not_be_made_is_told() {
        let cluster = "evictlab-7f3a".to_owned();
        let error = "too many open files\nsysctl fs.inotify.max_user_watches=524288".to_owned();
        let told = summary(&[
            story::event(0.0, story::run_started(&["v1.32.13"], &["a"])),
            story::event(
                0.1,
                What::ClusterStarted { cluster: cluster.clone(), kubelets: vec![], reused: false },
            ),
            story::event(9.0, What::ClusterFailed { cluster, seconds: 8.9, error }),
        ]);
        let title = "<details open><summary><b>error</b> cluster evictlab-7f3a could not be made: too many open files</summary>";
        assert!(told.contains(title) && told.contains("\nsysctl fs.inotify"), "{told}");
        assert!(told.contains("**1 not run**"), "{told}");
    }

    #[test]
    fn a_summary_that_github_would_drop_is_shortened() {
        let ended =
            story::case_ended("message", "a", "v1.32.13", 1, Verdict::Failed, &"why ".repeat(LIMIT / 4));
        let text = summary(&[
            story::event(0.0, story::run_started(&["v1.32.13"], &["a"])),
            story::event(1.0, ended),
        ]);
        assert!(
            text.contains("| message/a | failed 8.2s |") && text.contains("1 failed"),
            "{} bytes",
            text.len()
        );
        assert!(text.len() < 1000);
    }
}
