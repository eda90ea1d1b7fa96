//! `artifacts/junit_evictlab.xml`.
//!
//! One test suite per kubelet, one test case per case and attempt. Clusters are a suite of their own each, with the rows
//! `create`, `run` and `delete`: a broken cluster and a broken kubelet are different rows in TestGrid.
//!
//! | verdict | row |
//! | --- | --- |
//! | passed, reproduced, fixed | success; the property `verdict` tells them apart |
//! | failed | `failure`, with the difference |
//! | error | `error`, type `error.<phase>` |
//! | inconclusive | `error`, type `inconclusive.<doubt>` |
//! | skipped, not run | `skipped`, with the reason |
//!
//! Inconclusive is an `error` because TestGrid shows a skipped row as blank: a case whose evidence never suffices would
//! vanish from a nightly job unnoticed. So a run with another exit status than 0 always has a red row, but one whose
//! cases all passed before it was interrupted.

use std::path::PathBuf;
use std::time::Duration;

use quick_junit::{NonSuccessKind, Property, TestCase, TestCaseStatus, TestSuite};

use super::ledger::{Cluster, Creation, Deletion, Ended, Ledger};
use super::run_dir::write_file;
use super::{Planned, Report, ReportError, RunDir, RunEvent, account};
use crate::judge::Verdict;

/// Writes the file when the run is over.
#[derive(Debug)]
pub struct Junit {
    path: PathBuf,
    ledger: Ledger,
}

impl Junit {
    /// Writes under `run_dir`.
    pub fn new(run_dir: &RunDir) -> Self {
        Self { path: run_dir.artifacts().join("junit_evictlab.xml"), ledger: Ledger::default() }
    }
}

impl Report for Junit {
    fn name(&self) -> &'static str {
        "junit"
    }

    fn take(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        self.ledger.take(event);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), ReportError> {
        let text = report(&self.ledger)
            .to_string()
            .map_err(|error| ReportError::Form { what: "the JUnit file", reason: error.to_string() })?;
        write_file(&self.path, text.as_bytes())
    }
}

fn report(ledger: &Ledger) -> quick_junit::Report {
    let mut report = quick_junit::Report::new("evictlab");
    if let Some(over) = &ledger.over {
        report.set_time(time(over.seconds));
    }
    report.add_test_suites(ledger.clusters.iter().map(|cluster| cluster_suite(ledger, cluster)));
    let kubelets = ledger.run.iter().flat_map(|run| &run.kubelets);
    report.add_test_suites(kubelets.map(|kubelet| kubelet_suite(ledger, kubelet)));
    report
}

fn kubelet_suite(ledger: &Ledger, kubelet: &str) -> TestSuite {
    let mut suite = TestSuite::new(kubelet);
    if let Some(run) = &ledger.run {
        for (name, value) in
            [("kubelet", kubelet), ("backend", &run.backend), ("run", &run.id), ("evictlab", &run.evictlab)]
        {
            suite.add_property(Property::new(name, value));
        }
        if let Some(model) = &run.model {
            suite.add_property(Property::new("model", account::of_model(model)));
        }
    }
    let ended = ledger.ended.iter().filter(|ended| ended.id.kubelet == kubelet);
    let seconds: f64 = ended.clone().map(|ended| ended.seconds).sum();
    suite.set_time(time(seconds));
    suite.add_test_cases(ended.map(|ended| case_row(ledger, ended)));
    let unended = ledger.without_verdict().filter(|(_, on)| *on == kubelet);
    suite.add_test_cases(unended.map(|(planned, _)| unended_row(ledger, planned, kubelet)));
    suite
}

fn case_row(ledger: &Ledger, ended: &Ended) -> TestCase {
    let Ended { id, node, seconds, judgement } = ended;
    let planned = ledger.planned(id);
    let mut row = TestCase::new(id.title(), case_status(planned, ended));
    row.set_classname(&id.suite).set_time(time(*seconds));
    describe(&mut row, &id.kubelet, planned);
    row.add_property(Property::new("verdict", judgement.verdict.to_string()));
    for (name, value) in [("node", node), ("known-bug", &judgement.known_bug)] {
        if let Some(value) = value {
            row.add_property(Property::new(name, value));
        }
    }
    if matches!(judgement.verdict, Verdict::Reproduced | Verdict::Fixed) {
        row.set_system_out(format!("{}: {}", judgement.verdict, judgement.why));
    }
    row
}

fn case_status(planned: Option<&Planned>, ended: &Ended) -> TestCaseStatus {
    let judgement = &ended.judgement;
    let (mut status, kind, message) = match judgement.verdict {
        Verdict::Passed | Verdict::Reproduced | Verdict::Fixed => return TestCaseStatus::success(),
        Verdict::Skipped => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(&judgement.why);
            return status;
        }
        Verdict::Failed => {
            (TestCaseStatus::non_success(NonSuccessKind::Failure), "failed".to_owned(), judgement.why.clone())
        }
        Verdict::Error => {
            let phase = judgement.phase.map(|phase| format!(".{phase}")).unwrap_or_default();
            let status = TestCaseStatus::non_success(NonSuccessKind::Error);
            (status, format!("error{phase}"), judgement.why.clone())
        }
        Verdict::Inconclusive => {
            let doubt = judgement.doubt.map(|doubt| format!(".{doubt}")).unwrap_or_default();
            let status = TestCaseStatus::non_success(NonSuccessKind::Error);
            (status, format!("inconclusive{doubt}"), format!("inconclusive: {}", judgement.why))
        }
    };
    let mut description = String::new();
    account::body(&mut description, planned, ended);
    // An attribute holds one line: a reader of XML turns what separates lines into spaces. The description has all.
    let message = message.lines().next().unwrap_or_default();
    status.set_type(kind).set_message(message).set_description(description.trim());
    status
}

fn unended_row(ledger: &Ledger, planned: &Planned, kubelet: &str) -> TestCase {
    let made = ledger.clusters.iter().rfind(|cluster| cluster.kubelets.iter().any(|it| it == kubelet));
    let why = match made.map(|cluster| (&cluster.name, &cluster.creation)) {
        Some((name, Some(Creation::Failed { .. }))) => format!("cluster {name} could not be made"),
        _ if ledger.interrupted > 0 => "the run was interrupted".to_owned(),
        _ => "the run ended before it".to_owned(),
    };
    let mut status = TestCaseStatus::skipped();
    status.set_message(format!("not run: {why}"));
    let mut row = TestCase::new(&planned.case, status);
    row.set_classname(&planned.suite);
    describe(&mut row, kubelet, Some(planned));
    row
}

/// The properties that a row has whatever became of it.
fn describe(row: &mut TestCase, kubelet: &str, planned: Option<&Planned>) {
    row.add_property(Property::new("kubelet", kubelet));
    let Some(planned) = planned else { return };
    row.add_property(Property::new("suite", &planned.suite));
    row.add_properties(planned.upstream.iter().map(|link| Property::new("upstream", link)));
}

fn cluster_suite(ledger: &Ledger, cluster: &Cluster) -> TestSuite {
    let mut suite = TestSuite::new(format!("cluster {}", cluster.name));
    suite.add_property(Property::new("kubelets", cluster.kubelets.join(" ")));
    suite.add_test_cases([
        create_row(ledger, cluster),
        run_row(ledger, cluster),
        delete_row(ledger, cluster),
    ]);
    suite
}

fn create_row(ledger: &Ledger, cluster: &Cluster) -> TestCase {
    let (status, seconds) = match &cluster.creation {
        Some(Creation::Ready { seconds, .. }) => (TestCaseStatus::success(), *seconds),
        Some(Creation::Failed { seconds, error }) => (error_status(error), *seconds),
        None if ledger.interrupted > 0 => (skipped_status("the run was interrupted"), 0.0),
        None => (error_status("the run ended while the cluster was made"), 0.0),
    };
    cluster_row(cluster, if cluster.reused { "take" } else { "create" }, status, seconds)
}

/// An error if the harness could not bring every case to its end on this cluster.
fn run_row(ledger: &Ledger, cluster: &Cluster) -> TestCase {
    let Some(Creation::Ready { at: began, .. }) = cluster.creation else {
        return cluster_row(cluster, "run", skipped_status("there was no cluster to run on"), 0.0);
    };
    let here = |kubelet: &String| cluster.kubelets.contains(kubelet);
    let errors: Vec<String> = ledger
        .ended
        .iter()
        .filter(|ended| here(&ended.id.kubelet) && ended.judgement.verdict == Verdict::Error)
        .map(|ended| format!("{} on {}: {}", ended.id.title(), ended.id.kubelet, ended.judgement.why))
        .collect();
    let status = match errors.len() {
        0 if ledger.interrupted > 0 => skipped_status("the run was interrupted"),
        0 => TestCaseStatus::success(),
        count => {
            let mut status = error_status(&format!("{count} ended in an error of the harness"));
            status.set_description(errors.join("\n"));
            status
        }
    };
    let deletion = cluster.deletion.as_ref();
    let ended = deletion.map(|it| (it.at, it.seconds)).or(ledger.over.as_ref().map(|over| (over.at, 0.0)));
    let seconds = ended.map_or(0.0, |(at, deleting)| at.duration_since(began).as_secs_f64() - deleting);
    cluster_row(cluster, "run", status, seconds)
}

fn delete_row(ledger: &Ledger, cluster: &Cluster) -> TestCase {
    let (status, seconds) = match &cluster.deletion {
        Some(Deletion { error: Some(error), seconds, .. }) => (error_status(error), *seconds),
        Some(Deletion { kept: Some(why), .. }) => (skipped_status(&format!("kept: {why}")), 0.0),
        Some(Deletion { seconds, .. }) => (TestCaseStatus::success(), *seconds),
        None if cluster.reused => (skipped_status("it was there before the run"), 0.0),
        None if matches!(cluster.creation, Some(Creation::Failed { .. })) => {
            (skipped_status("there was no cluster to delete"), 0.0)
        }
        None if ledger.interrupted > 1 => {
            (skipped_status("the run was interrupted twice: evictlab gc removes what is left"), 0.0)
        }
        None => (error_status("the run ended before the cluster was deleted: evictlab gc removes it"), 0.0),
    };
    cluster_row(cluster, "delete", status, seconds)
}

fn cluster_row(cluster: &Cluster, name: &str, status: TestCaseStatus, seconds: f64) -> TestCase {
    let mut row = TestCase::new(name, status);
    row.set_classname(format!("cluster {}", cluster.name)).set_time(time(seconds));
    row
}

fn error_status(message: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
    status.set_type("infrastructure").set_message(message);
    status
}

fn skipped_status(message: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_message(message);
    status
}

fn time(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{What, story};

    fn written(events: &[RunEvent]) -> String {
        let dir = tempfile::tempdir().unwrap();
        let run_dir = RunDir::at(dir.path()).unwrap();
        let mut junit = Box::new(Junit::new(&run_dir));
        events.iter().for_each(|event| junit.take(event).unwrap());
        junit.finish().unwrap();
        std::fs::read_to_string(dir.path().join("artifacts/junit_evictlab.xml")).unwrap()
    }

    #[test]
    fn a_run_in_junit() {
        insta::assert_snapshot!(written(&story::whole()));
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut ledger = Ledger::default();
        story::whole().iter().for_each(|event| ledger.take(event));
        let back = quick_junit::Report::deserialize_from_str(&written(&story::whole())).unwrap();
        assert_eq!(back, report(&ledger));
    }

    #[test]
    fn attempts_have_names_of_their_own() {
        let ended = |attempt| story::case_ended("message", "a", "v1.32.13", attempt, Verdict::Passed, "");
        let mut events = vec![story::event(0.0, story::run_started(&["v1.32.13"], &["a"]))];
        events.extend([1, 2, 3].map(|attempt| story::event(1.0, ended(attempt))));
        let back = quick_junit::Report::deserialize_from_str(&written(&events)).unwrap();
        let names: Vec<_> =
            back.test_suites[0].test_cases.iter().map(|row| row.name.as_str().to_owned()).collect();
        assert_eq!(names, ["a", "a #2", "a #3"]);
    }

    /// What the rows of a cluster are called, and how they look, by what happened to it.
    #[test]
    fn a_cluster_has_rows_of_its_own() {
        let cluster = || "c".to_owned();
        let started = |reused| What::ClusterStarted {
            cluster: cluster(),
            kubelets: vec!["v1.32.13".to_owned()],
            reused,
        };
        let ready = || What::ClusterReady { cluster: cluster(), seconds: 1.0, nodes: vec![] };
        let failed =
            || What::ClusterFailed { cluster: cluster(), seconds: 1.0, error: "no image".to_owned() };
        let deleted = |kept: Option<&str>, error: Option<&str>| What::ClusterDeleted {
            cluster: cluster(),
            seconds: 1.0,
            kept: kept.map(str::to_owned),
            error: error.map(str::to_owned),
        };
        let error = || story::case_ended("message", "a", "v1.32.13", 1, Verdict::Error, "API server gone");
        for (story, rows) in [
            (vec![started(false), ready(), deleted(None, None)], "create ok, run ok, delete ok"),
            (
                vec![started(false), failed()],
                "create error no image, run skipped there was no cluster to run on, delete skipped there was no cluster to delete",
            ),
            (
                vec![started(false), ready(), error(), deleted(None, None)],
                "create ok, run error 1 ended in an error of the harness, delete ok",
            ),
            (
                vec![started(false), ready(), deleted(Some("--keep"), None)],
                "create ok, run ok, delete skipped kept: --keep",
            ),
            (
                vec![started(false), ready(), deleted(None, Some("no Docker"))],
                "create ok, run ok, delete error no Docker",
            ),
            (vec![started(true), ready()], "take ok, run ok, delete skipped it was there before the run"),
            (
                vec![started(false), What::Interrupted { stage: 1 }, deleted(None, None)],
                "create skipped the run was interrupted, run skipped there was no cluster to run on, delete ok",
            ),
        ] {
            let whole = std::iter::once(story::run_started(&["v1.32.13"], &["a"])).chain(story);
            let events: Vec<_> = whole.map(|what| story::event(1.0, what)).collect();
            let back = quick_junit::Report::deserialize_from_str(&written(&events)).unwrap();
            let shown = |row: &TestCase| {
                let (word, message) = match &row.status {
                    TestCaseStatus::Success { .. } => ("ok", None),
                    TestCaseStatus::NonSuccess { message, .. } => ("error ", message.as_ref()),
                    TestCaseStatus::Skipped { message, .. } => ("skipped ", message.as_ref()),
                };
                format!("{} {word}{}", row.name.as_str(), message.map_or("", |message| message.as_str()))
            };
            let shown: Vec<_> = back.test_suites[0].test_cases.iter().map(shown).collect();
            assert_eq!(shown.join(", "), rows);
        }
    }

    #[test]
    fn a_case_that_never_ended_says_why() {
        let cluster = || "c".to_owned();
        let start = story::run_started(&["v1.32.13"], &["a"]);
        let started =
            What::ClusterStarted { cluster: cluster(), kubelets: vec!["v1.32.13".to_owned()], reused: false };
        let failed = What::ClusterFailed { cluster: cluster(), seconds: 1.0, error: "no image".to_owned() };
        for (story, why) in [
            (vec![start.clone(), started, failed], "not run: cluster c could not be made"),
            (vec![start.clone(), What::Interrupted { stage: 1 }], "not run: the run was interrupted"),
            (vec![start], "not run: the run ended before it"),
        ] {
            let events: Vec<_> = story.into_iter().map(|what| story::event(1.0, what)).collect();
            let text = written(&events);
            assert!(text.contains(&format!("<skipped message=\"{why}\"/>")), "{text}");
        }
    }
}
