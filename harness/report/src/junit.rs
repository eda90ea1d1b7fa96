//! `artifacts/junit_evictlab.xml`.
//!
//! One test suite per kubelet, one test case per case and attempt. Each cluster is a test suite
//! with the test cases `create`, `run` and `delete`, so that TestGrid shows a broken cluster and a
//! broken kubelet in different rows.
//!
//! CI systems recognize a test of an earlier run by its suite, `classname` and `name`. These
//! contain the minor version of the kubelet, or its label if several kubelets of a run have the
//! same minor; the property `kubelet` has the complete version. No two test cases of a file share
//! `classname` and `name`: GitLab keeps only one of them.
//!
//! | verdict | test case |
//! | --- | --- |
//! | as the baseline expects | success, with the property `expected` |
//! | another one than the baseline expects | `failure`, type `changed` |
//! | not run in a complete run, though the baseline expects a verdict | `failure`, type `changed` |
//! | passed, reproduced, fixed | success; the property `verdict` distinguishes them |
//! | flaky | success with a `flakyError`; with `--flaky-result fail`, `failure` |
//! | failed | `failure`, with the message diff |
//! | error | `error`, type `error.<phase>` |
//! | inconclusive | `error`, type `inconclusive.<reason>` |
//! | skipped, not run | `skipped`, with the reason |
//!
//! Inconclusive is an `error` because TestGrid shows skipped rows as blank: a case that is always
//! inconclusive would disappear from a nightly job unnoticed. A run with a non-zero exit status
//! therefore has a red row, unless all cases passed before it was interrupted or timed out.
//!
//! GitLab shows the content of an element, not its attributes, so the content has the facts of the
//! message, too.

use std::path::PathBuf;
use std::time::Duration;

use quick_junit::{NonSuccessKind, Property, TestCase, TestCaseStatus, TestRerun, TestSuite};

use crate::markdown;
use crate::run_dir::{RunDir, write_file};
use crate::run_event::{CaseInfo, FlakyResult};
use crate::run_state::{Cluster, Creation, Deletion, EndedCase, RunState};
use crate::sink::{Report, ReportError};
use crate::text::{count_noun, first_line};
use evictlab_judge::{CaseResult, Verdict};

/// Writes the file at the end of the run.
#[derive(Debug)]
pub struct Junit {
    path: PathBuf,
}

impl Junit {
    /// Writes under `run_dir`.
    pub fn new(run_dir: &RunDir) -> Self {
        Self { path: run_dir.artifacts().join("junit_evictlab.xml") }
    }
}

impl Report for Junit {
    fn name(&self) -> &'static str {
        "junit"
    }

    fn finish(self: Box<Self>, run: &RunState) -> Result<(), ReportError> {
        let text = report(run)
            .to_string()
            .map_err(|error| ReportError::Form { what: "the JUnit file", reason: error.to_string() })?;
        write_file(&self.path, text.as_bytes())
    }
}

fn report(state: &RunState) -> quick_junit::Report {
    let mut report = quick_junit::Report::new("evictlab");
    report.timestamp = state.run.as_ref().and_then(|run| run.real_start.to_string().parse().ok());
    if let Some(end) = &state.end {
        report.set_time(time(end.seconds));
    }
    let clusters = (0..).zip(&state.clusters);
    report.add_test_suites(clusters.map(|(index, cluster)| cluster_suite(state, index, cluster)));
    let kubelets = state.run.iter().flat_map(|run| &run.kubelets);
    report.add_test_suites(kubelets.map(|kubelet| kubelet_suite(state, kubelet)));
    report
}

fn kubelet_suite(state: &RunState, kubelet: &str) -> TestSuite {
    let mut suite = TestSuite::new(state.row_name(kubelet));
    if let Some(run) = &state.run {
        suite.timestamp = run.real_start.to_string().parse().ok();
        for (name, value) in [
            ("kubelet", kubelet),
            ("backend", run.backend.as_str()),
            ("run", &run.id),
            ("evictlab", &run.evictlab),
        ] {
            suite.add_property(Property::new(name, value));
        }
        if let Some(model) = &run.model {
            suite.add_property(Property::new("model", markdown::model_notice(model)));
        }
    }
    let ended = state.ended.iter().filter(|ended| ended.id.kubelet == kubelet);
    let seconds: f64 = ended.clone().map(|ended| ended.seconds).sum();
    suite.set_time(time(seconds));
    suite.add_test_cases(ended.map(|ended| case_row(state, ended)));
    let not_run = state.without_verdict().filter(|(_, on)| *on == kubelet);
    suite.add_test_cases(not_run.map(|(info, _)| not_run_row(state, info, kubelet)));
    suite
}

fn case_row(state: &RunState, ended: &EndedCase) -> TestCase {
    let EndedCase { id, node, seconds, result } = ended;
    let info = state.case_info(id);
    let mut row = TestCase::new(id.title(), case_status(state, ended));
    row.set_classname(class_name(state, &id.suite, &id.kubelet)).set_time(time(*seconds));
    add_properties(&mut row, &id.kubelet, info);
    row.add_property(Property::new("verdict", result.verdict.to_string()));
    if let Some(expected) = state.expected(ended) {
        row.add_property(Property::new("expected", expected.to_string()));
    }
    for (name, value) in [("node", node), ("known-bug", &result.known_bug)] {
        if let Some(value) = value {
            row.add_property(Property::new(name, value));
        }
    }
    if result.verdict != Verdict::Passed && matches!(row.status, TestCaseStatus::Success { .. }) {
        row.set_system_out(format!("{}: {}", result.verdict, result.why));
    }
    row
}

/// `v1.32.message`: Jenkins shows the part before the last full stop as the package.
fn class_name(state: &RunState, suite: &str, kubelet: &str) -> String {
    format!("{}.{suite}", state.row_name(kubelet))
}

fn case_status(state: &RunState, ended: &EndedCase) -> TestCaseStatus {
    let result = &ended.result;
    let failure = || TestCaseStatus::non_success(NonSuccessKind::Failure);
    let flaky_fails = state.run.as_ref().is_some_and(|run| run.flaky_result == FlakyResult::Fail);
    let mut description = String::new();
    let (mut status, kind, message) = match (result.verdict, state.changed_from(ended)) {
        (Verdict::Flaky, _) if flaky_fails => (failure(), "flaky".to_owned(), result.why.clone()),
        (verdict, Some(expected)) => {
            description = format!("{verdict}, expected by the baseline: {expected}.\n");
            let message = format!("{} {}", description.trim_end(), result.why);
            (failure(), "changed".to_owned(), message)
        }
        _ if state.is_as_expected(ended) => return flaky_runs(result),
        (Verdict::Passed | Verdict::Flaky | Verdict::Reproduced | Verdict::Fixed, None) => {
            return flaky_runs(result);
        }
        (Verdict::Skipped, None) => return skipped_status(&result.why),
        (Verdict::Failed, None) => (failure(), "failed".to_owned(), result.why.clone()),
        (Verdict::Error, None) => {
            let phase = result.phase.map(|phase| format!(".{phase}")).unwrap_or_default();
            let status = TestCaseStatus::non_success(NonSuccessKind::Error);
            (status, format!("error{phase}"), result.why.clone())
        }
        (Verdict::Inconclusive, None) => {
            let suffix = result.inconclusive_reason.map(|reason| format!(".{reason}")).unwrap_or_default();
            let status = TestCaseStatus::non_success(NonSuccessKind::Error);
            (status, format!("inconclusive{suffix}"), format!("inconclusive: {}", result.why))
        }
    };
    markdown::write_case_details(&mut description, state.case_info(&ended.id), ended);
    // XML parsers turn line breaks in attributes into spaces; the description has all lines.
    status.set_type(kind).set_message(first_line(&message)).set_description(description.trim());
    status
}

/// The status of a successful case, with its earlier tries as flaky runs.
fn flaky_runs(result: &CaseResult) -> TestCaseStatus {
    let mut status = TestCaseStatus::success();
    for earlier in &result.earlier_tries {
        let mut rerun = TestRerun::new(NonSuccessKind::Error);
        let reason = earlier.inconclusive_reason.map(|reason| format!(".{reason}")).unwrap_or_default();
        rerun.set_type(format!("{}{reason}", earlier.verdict));
        rerun.set_message(first_line(&earlier.why));
        status.add_rerun(rerun);
    }
    status
}

fn not_run_row(state: &RunState, info: &CaseInfo, kubelet: &str) -> TestCase {
    let status = match (state.failed_cluster(kubelet), info.baseline.get(kubelet)) {
        (Some(name), _) => skipped_status(&format!("not run: failed to create cluster {name}")),
        _ if state.interrupted > 0 => skipped_status("not run: run interrupted"),
        _ if state.timed_out => skipped_status("not run: the run ended early"),
        (_, Some(expected)) => {
            let reason = if info.file.is_empty() { ", no file contains the case" } else { "" };
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            let message = format!("did not run{reason}, expected by the baseline: {expected}");
            status.set_type("changed").set_message(message.as_str()).set_description(message);
            status
        }
        (_, None) => skipped_status("not run: the run ended early"),
    };
    let mut row = TestCase::new(&info.case, status);
    row.set_classname(class_name(state, &info.suite, kubelet));
    add_properties(&mut row, kubelet, Some(info));
    row
}

/// Adds the properties that do not depend on the verdict.
fn add_properties(row: &mut TestCase, kubelet: &str, info: Option<&CaseInfo>) {
    row.add_property(Property::new("kubelet", kubelet));
    let Some(info) = info else { return };
    if !info.file.is_empty() {
        row.extra.insert("file".into(), info.repository_path().into());
    }
    row.add_property(Property::new("suite", &info.suite));
    row.add_properties(info.upstream.iter().map(|link| Property::new("upstream", link)));
}

fn cluster_suite(state: &RunState, index: usize, cluster: &Cluster) -> TestSuite {
    let name = cluster_row_name(state, index);
    let mut suite = TestSuite::new(&name);
    suite.timestamp = state.run.as_ref().and_then(|run| run.real_start.to_string().parse().ok());
    suite.add_property(Property::new("cluster", &cluster.name));
    suite.add_property(Property::new("kubelets", cluster.kubelets.join(" ")));
    let rows = [create_row(state, cluster), run_row(state, cluster), delete_row(state, cluster)];
    // Jenkins takes the part before the last full stop for the package.
    let class_name = format!("cluster.{}", name["cluster ".len()..].replace('.', "_"));
    suite.add_test_cases(rows.map(|mut row| {
        row.set_classname(&class_name);
        row
    }));
    suite
}

/// The name of the suite of a cluster, by its kubelets: the name of the cluster contains the id of
/// the run.
fn cluster_row_name(state: &RunState, index: usize) -> String {
    let name = |cluster: &Cluster| {
        let kubelets: Vec<String> = cluster.kubelets.iter().map(|kubelet| state.row_name(kubelet)).collect();
        format!("cluster {}", kubelets.join(" "))
    };
    let own = name(&state.clusters[index]);
    match state.clusters[..index].iter().filter(|cluster| name(cluster) == own).count() {
        0 => own,
        earlier => format!("{own} #{}", earlier + 1),
    }
}

fn create_row(state: &RunState, cluster: &Cluster) -> TestCase {
    let (status, seconds) = match &cluster.creation {
        Some(Creation::Ready { seconds, .. }) => (TestCaseStatus::success(), *seconds),
        Some(Creation::Failed { seconds, error }) => (error_status(error), *seconds),
        None if state.interrupted > 0 => (skipped_status("run interrupted"), 0.0),
        None => (error_status("the run ended while the cluster was being created"), 0.0),
    };
    cluster_row(if cluster.reused { "reuse" } else { "create" }, status, seconds)
}

/// The test case `run`: an error if a case on this cluster ended in an error.
fn run_row(state: &RunState, cluster: &Cluster) -> TestCase {
    let Some(Creation::Ready { at: began, .. }) = cluster.creation else {
        return cluster_row("run", skipped_status("no cluster"), 0.0);
    };
    let here = |kubelet: &String| cluster.kubelets.contains(kubelet);
    let errors: Vec<String> = state
        .ended
        .iter()
        .filter(|ended| here(&ended.id.kubelet) && ended.result.verdict == Verdict::Error)
        .map(|ended| format!("{} on {}: {}", ended.id.title(), ended.id.kubelet, ended.result.why))
        .collect();
    let status = match errors.len() {
        0 if state.interrupted > 0 => skipped_status("run interrupted"),
        0 => TestCaseStatus::success(),
        _ => {
            let mut status = error_status(&format!("{} in the harness", count_noun(errors.len(), "error")));
            status.set_description(errors.join("\n"));
            status
        }
    };
    let deletion = cluster.deletion.as_ref();
    let ended = deletion.map(|it| (it.at, it.seconds)).or(state.end.as_ref().map(|end| (end.at, 0.0)));
    let seconds = ended.map_or(0.0, |(at, deleting)| at.duration_since(began).as_secs_f64() - deleting);
    cluster_row("run", status, seconds)
}

fn delete_row(state: &RunState, cluster: &Cluster) -> TestCase {
    let (status, seconds) = match &cluster.deletion {
        Some(Deletion { error: Some(error), seconds, .. }) => (error_status(error), *seconds),
        Some(Deletion { kept: Some(why), .. }) => (skipped_status(&format!("kept: {why}")), 0.0),
        Some(Deletion { seconds, .. }) => (TestCaseStatus::success(), *seconds),
        None if cluster.reused => (skipped_status("the cluster existed before the run"), 0.0),
        None if matches!(cluster.creation, Some(Creation::Failed { .. })) => {
            (skipped_status("no cluster"), 0.0)
        }
        None if state.interrupted > 1 => {
            (skipped_status("interrupted twice; `evictlab gc` removes leftovers"), 0.0)
        }
        None => (error_status("the run ended before the cluster was deleted; `evictlab gc` removes it"), 0.0),
    };
    cluster_row("delete", status, seconds)
}

fn cluster_row(name: &str, status: TestCaseStatus, seconds: f64) -> TestCase {
    let mut row = TestCase::new(name, status);
    row.set_time(time(seconds));
    row
}

fn error_status(message: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
    status.set_type("infrastructure").set_message(message);
    status.set_description(message);
    status
}

fn skipped_status(message: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_message(message).set_description(message);
    status
}

fn time(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{RunEvent, RunEventKind, fixtures};

    fn written(events: &[RunEvent]) -> String {
        let dir = tempfile::tempdir().unwrap();
        let run_dir = RunDir::at(dir.path()).unwrap();
        let mut junit = Box::new(Junit::new(&run_dir));
        let state = fixtures::deliver(&mut *junit, events);
        junit.finish(&state).unwrap();
        std::fs::read_to_string(dir.path().join("artifacts/junit_evictlab.xml")).unwrap()
    }

    /// Returns the text that GitLab shows of a test case that is not a success.
    fn content(row: &TestCase) -> &str {
        match &row.status {
            TestCaseStatus::Success { .. } => "",
            TestCaseStatus::NonSuccess { description, .. } | TestCaseStatus::Skipped { description, .. } => {
                description.as_ref().map_or("", |description| description.as_str())
            }
        }
    }

    #[test]
    fn junit_of_a_run() {
        insta::assert_snapshot!(written(&fixtures::full_run()));
    }

    #[test]
    fn output_parses_as_junit() {
        let state = fixtures::state_after(&fixtures::full_run());
        let back = quick_junit::Report::deserialize_from_str(&written(&fixtures::full_run())).unwrap();
        assert_eq!(back, report(&state));
    }

    #[test]
    fn attempts_have_distinct_names() {
        let ended = |attempt| fixtures::case_ended("a", "v1.32.13", attempt, Verdict::Passed, "");
        let mut events = vec![fixtures::event(0.0, fixtures::run_started(&["v1.32.13"], &["a"]))];
        events.extend([1, 2, 3].map(|attempt| fixtures::event(1.0, ended(attempt))));
        let back = quick_junit::Report::deserialize_from_str(&written(&events)).unwrap();
        let names: Vec<_> =
            back.test_suites[0].test_cases.iter().map(|row| row.name.as_str().to_owned()).collect();
        assert_eq!(names, ["a", "a #2", "a #3"]);
    }

    /// CI systems take `classname` and `name` for the identity of a test (GitLab keeps only the
    /// first test case of an identity), Jenkins takes the text before the last full stop of
    /// `classname` for the package, and TestGrid joins suite and name to the name of a row.
    #[test]
    fn test_cases_are_unique_and_keep_their_names_over_patches() {
        let identities = |kubelets: &[&str]| {
            let mut events = vec![fixtures::run_started(kubelets, &["a", "b"])];
            for (nth, kubelets) in kubelets.chunks(2).chain(kubelets.chunks(2)).enumerate() {
                let kubelets = kubelets.iter().map(|&kubelet| kubelet.to_owned()).collect();
                events.push(RunEventKind::ClusterStarted {
                    cluster: format!("evictlab-{nth}"),
                    kubelets,
                    reused: false,
                });
            }
            for kubelet in kubelets {
                events.push(fixtures::case_ended("a", kubelet, 1, Verdict::Passed, ""));
                events.push(fixtures::case_ended("a", kubelet, 2, Verdict::Failed, ""));
            }
            let events: Vec<_> = events.into_iter().map(|kind| fixtures::event(1.0, kind)).collect();
            let back = quick_junit::Report::deserialize_from_str(&written(&events)).unwrap();
            let of_suite = |suite: &TestSuite| {
                let suite_name = suite.name.as_str().to_owned();
                let identity = move |row: &TestCase| {
                    let class = row.classname.as_ref().map_or("", |class| class.as_str());
                    [&suite_name, class, row.name.as_str()].map(str::to_owned)
                };
                suite.test_cases.iter().map(identity).collect::<Vec<_>>()
            };
            let all: Vec<_> = back.test_suites.iter().flat_map(of_suite).collect();
            let distinct: BTreeSet<_> = all.iter().map(|[_, class, name]| (class, name)).collect();
            assert_eq!(distinct.len(), all.len(), "{all:?}");
            let rows: BTreeSet<_> = all.iter().map(|[suite, _, name]| format!("{suite}.{name}")).collect();
            assert_eq!(rows.len(), all.len(), "{all:?}");
            all
        };
        let march = identities(&["v1.31.12", "v1.32.9", "v1.33.1"]);
        let april = identities(&["v1.31.13", "v1.32.10", "v1.33.1"]);
        assert_eq!(march, april);
        assert!(march.contains(&["v1.32", "v1.32.message", "a"].map(str::to_owned)), "{march:?}");
        // Kubelets of one minor, one of them patched.
        let patched = identities(&["v1.31.14", "v1.31.14=./kubelet", "v1.32.9", "v1.32.10"]);
        assert!(patched.contains(&["v1.31", "v1.31.message", "a"].map(str::to_owned)), "{patched:?}");
        assert!(patched.contains(&["v1.32.9", "v1.32.9.message", "a"].map(str::to_owned)), "{patched:?}");
    }

    #[test]
    fn test_cases_follow_the_baseline() {
        use Verdict::{Failed, Fixed, Flaky, Inconclusive, Passed, Reproduced, Skipped};
        for (expected, verdict, status) in [
            (Failed, Failed, "success"),
            (Inconclusive, Inconclusive, "success"),
            (Passed, Passed, "success"),
            (Passed, Flaky, "success"),
            (Passed, Failed, "changed"),
            (Failed, Passed, "changed"),
            (Reproduced, Fixed, "changed"),
            (Passed, Skipped, "changed"),
            (Passed, Inconclusive, "inconclusive"),
        ] {
            let state = fixtures::state_after(&fixtures::run_with_baseline(&[("a", expected)], &[verdict]));
            let row = case_row(&state, &state.ended[0]);
            let found = match &row.status {
                TestCaseStatus::Success { .. } => "success",
                TestCaseStatus::Skipped { .. } => "skipped",
                TestCaseStatus::NonSuccess { ty, .. } => ty.as_ref().map_or("", |ty| ty.as_str()),
            };
            assert_eq!(found, status, "{expected} {verdict}");
            if status == "changed" {
                let start = format!("{verdict}, expected by the baseline: {expected}.\n\nso it was\n");
                assert!(content(&row).starts_with(&start), "{}", content(&row));
            }
        }
    }

    #[test]
    fn flaky_cases_can_fail() {
        let mut started = fixtures::run_started(&["v1.32.13"], &["a"]);
        let RunEventKind::RunStarted { flaky_result, .. } = &mut started else { unreachable!("it started") };
        *flaky_result = FlakyResult::Fail;
        let ended = fixtures::case_ended("a", "v1.32.13", 1, Verdict::Flaky, "passed at try 2");
        let state = fixtures::state_after(&[fixtures::event(0.0, started), fixtures::event(1.0, ended)]);
        assert!(matches!(
            case_status(&state, &state.ended[0]),
            TestCaseStatus::NonSuccess { kind: NonSuccessKind::Failure, .. }
        ));
    }

    /// Test cases of a cluster, with their status, by its events.
    #[test]
    fn cluster_test_cases() {
        let cluster = || "c".to_owned();
        let started = |reused| RunEventKind::ClusterStarted {
            cluster: cluster(),
            kubelets: vec!["v1.32.13".to_owned()],
            reused,
        };
        let ready = || RunEventKind::ClusterReady { cluster: cluster(), seconds: 1.0, nodes: vec![] };
        let failed = || RunEventKind::ClusterFailed {
            cluster: cluster(),
            seconds: 1.0,
            error: "no image".to_owned(),
            cause: None,
        };
        let deleted = |kept: Option<&str>, error: Option<&str>| RunEventKind::ClusterDeleted {
            cluster: cluster(),
            seconds: 1.0,
            kept: kept.map(str::to_owned),
            error: error.map(str::to_owned),
        };
        let error = || fixtures::case_ended("a", "v1.32.13", 1, Verdict::Error, "API server gone");
        for (events, rows) in [
            (vec![started(false), ready(), deleted(None, None)], "create ok, run ok, delete ok"),
            (
                vec![started(false), failed()],
                "create error no image, run skipped no cluster, delete skipped no cluster",
            ),
            (
                vec![started(false), ready(), error(), deleted(None, None)],
                "create ok, run error 1 error in the harness, delete ok",
            ),
            (
                vec![started(false), ready(), deleted(Some("--keep"), None)],
                "create ok, run ok, delete skipped kept: --keep",
            ),
            (
                vec![started(false), ready(), deleted(None, Some("no Docker"))],
                "create ok, run ok, delete error no Docker",
            ),
            (
                vec![started(true), ready()],
                "reuse ok, run ok, delete skipped the cluster existed before the run",
            ),
            (
                vec![started(false), RunEventKind::Interrupted { stage: 1 }, deleted(None, None)],
                "create skipped run interrupted, run skipped no cluster, delete ok",
            ),
        ] {
            let whole = std::iter::once(fixtures::run_started(&["v1.32.13"], &["a"])).chain(events);
            let events: Vec<_> = whole.map(|kind| fixtures::event(1.0, kind)).collect();
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
    fn the_error_of_a_cluster_is_the_content_of_its_test_case() {
        let row = cluster_row("create", error_status("no image"), 1.0);
        assert_eq!(content(&row), "no image");
    }

    #[test]
    fn a_case_of_the_baseline_that_did_not_run_is_a_failure() {
        let expected = [("a", Verdict::Passed), ("b", Verdict::Passed)];
        let mut events = fixtures::run_with_baseline(&expected, &[Verdict::Passed]);
        let RunEventKind::RunStarted { cases, .. } = &mut events[0].kind else { unreachable!("it started") };
        cases[1].file = String::new();
        let row = |events: &[RunEvent]| {
            let back = quick_junit::Report::deserialize_from_str(&written(events)).unwrap();
            back.test_suites[0].test_cases.iter().find(|row| row.name.as_str() == "b").unwrap().clone()
        };
        let missing = row(&events);
        let TestCaseStatus::NonSuccess { kind: NonSuccessKind::Failure, message, .. } = &missing.status
        else {
            panic!("{missing:?}")
        };
        let text = "did not run, no file contains the case, expected by the baseline: passed";
        assert_eq!(message.as_ref().unwrap().as_str(), text);
        assert_eq!(content(&missing), text);
        assert!(missing.extra.is_empty(), "{missing:?}");
        for end in [RunEventKind::Interrupted { stage: 1 }, RunEventKind::TimedOut] {
            let events = [&events[..], &[fixtures::event(1.0, end)]].concat();
            assert!(matches!(row(&events).status, TestCaseStatus::Skipped { .. }));
        }
    }

    #[test]
    fn case_without_verdict_has_a_reason() {
        let cluster = || "c".to_owned();
        let start = fixtures::run_started(&["v1.32.13"], &["a"]);
        let started = RunEventKind::ClusterStarted {
            cluster: cluster(),
            kubelets: vec!["v1.32.13".to_owned()],
            reused: false,
        };
        let failed = RunEventKind::ClusterFailed {
            cluster: cluster(),
            seconds: 1.0,
            error: "no image".to_owned(),
            cause: None,
        };
        for (events, why) in [
            (vec![start.clone(), started, failed], "not run: failed to create cluster c"),
            (vec![start.clone(), RunEventKind::Interrupted { stage: 1 }], "not run: run interrupted"),
            (vec![start], "not run: the run ended early"),
        ] {
            let events: Vec<_> = events.into_iter().map(|kind| fixtures::event(1.0, kind)).collect();
            let text = written(&events);
            assert!(text.contains(&format!("<skipped message=\"{why}\">{why}</skipped>")), "{text}");
        }
    }
}
