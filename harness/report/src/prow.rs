//! `started.json` and `finished.json`: metadata for Prow, TestGrid and Spyglass.
//!
//! See <https://docs.prow.k8s.io/docs/metadata-artifacts/>; the format is defined in TestGrid's
//! `metadata/job.go`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::backend_name::BackendName;
use crate::exit_code::{INTERRUPTED, SUCCESS};
use crate::markdown::model_notice;
use crate::run_dir::{RunDir, write_file};
use crate::run_event::{RunEvent, RunEventKind};
use crate::run_state::RunState;
use crate::sink::{Report, ReportError};
use evictlab_judge::Verdict;

/// `started.json`: the start of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ProwStarted {
    /// Real time of the start, in seconds since 1970.
    timestamp: i64,
    /// Description of the run.
    metadata: ProwStartedMetadata,
}

/// Description of a run.
#[derive(Debug, Serialize, JsonSchema)]
struct ProwStartedMetadata {
    /// Id of the run.
    run: String,
    /// Version of evictlab.
    evictlab: String,
    /// Backend of the run.
    backend: BackendName,
    /// Labels of the kubelets, separated by spaces.
    kubelets: String,
    /// Notice that the run used a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
}

/// `finished.json`: the end of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ProwFinished {
    /// Real time of the end, in seconds since 1970.
    timestamp: i64,
    /// True if the exit status is 0.
    passed: bool,
    /// The result as Prow names it.
    result: ProwResult,
    /// Numbers of the verdicts.
    metadata: ProwFinishedMetadata,
}

/// Results, as Prow names them.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
enum ProwResult {
    /// The exit status is 0.
    Success,
    /// The run was interrupted.
    Aborted,
    /// Any other exit status.
    Failure,
}

/// Number of cases with each verdict, as text; a number of 0 is left out.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
struct ProwFinishedMetadata {
    /// Number of `passed` cases.
    #[serde(skip_serializing_if = "Option::is_none")]
    passed: Option<String>,
    /// Number of `flaky` cases.
    #[serde(skip_serializing_if = "Option::is_none")]
    flaky: Option<String>,
    /// Number of `reproduced` cases.
    #[serde(skip_serializing_if = "Option::is_none")]
    reproduced: Option<String>,
    /// Number of `fixed` cases.
    #[serde(skip_serializing_if = "Option::is_none")]
    fixed: Option<String>,
    /// Number of `failed` cases.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
    /// Number of cases that ended in an `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Number of `inconclusive` cases.
    #[serde(skip_serializing_if = "Option::is_none")]
    inconclusive: Option<String>,
    /// Number of `skipped` cases.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<String>,
    /// Number of cases without a verdict: the run ended before, or while they ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_run: Option<String>,
    /// Exit status of the run, as text.
    exit_code: String,
}

impl ProwFinishedMetadata {
    fn new(run: &RunState, exit_code: u8) -> Self {
        let mut metadata = Self { exit_code: exit_code.to_string(), ..Self::default() };
        for (verdict, count) in run.verdict_counts() {
            let place = match verdict {
                Verdict::Passed => &mut metadata.passed,
                Verdict::Flaky => &mut metadata.flaky,
                Verdict::Reproduced => &mut metadata.reproduced,
                Verdict::Fixed => &mut metadata.fixed,
                Verdict::Failed => &mut metadata.failed,
                Verdict::Error => &mut metadata.error,
                Verdict::Inconclusive => &mut metadata.inconclusive,
                Verdict::Skipped => &mut metadata.skipped,
            };
            *place = Some(count.to_string());
        }
        let not_run = run.without_verdict().count();
        metadata.not_run = (not_run > 0).then(|| not_run.to_string());
        metadata
    }
}

/// Writes `started.json` at the start of the run and `finished.json` at its end.
#[derive(Debug)]
pub struct Prow {
    run_dir: RunDir,
}

impl Prow {
    /// Writes to the top of `run_dir`.
    pub fn new(run_dir: RunDir) -> Self {
        Self { run_dir }
    }

    fn write(&self, name: &'static str, document: &impl Serialize) -> Result<(), ReportError> {
        let mut text = serde_json::to_vec_pretty(document)
            .map_err(|error| ReportError::Form { what: name, reason: error.to_string() })?;
        text.push(b'\n');
        write_file(&self.run_dir.path().join(name), &text)
    }
}

impl Report for Prow {
    fn name(&self) -> &'static str {
        "prow"
    }

    fn on_event(&mut self, event: &RunEvent, run: &RunState) -> Result<(), ReportError> {
        let (RunEventKind::RunStarted { .. }, Some(run)) = (&event.kind, &run.run) else { return Ok(()) };
        let metadata = ProwStartedMetadata {
            run: run.id.clone(),
            evictlab: run.evictlab.clone(),
            backend: run.backend,
            kubelets: run.kubelets.join(" "),
            model: run.model.as_ref().map(model_notice),
        };
        self.write("started.json", &ProwStarted { timestamp: run.real_start.as_second(), metadata })
    }

    fn finish(self: Box<Self>, run: &RunState) -> Result<(), ReportError> {
        let (Some(end), Some(start)) = (&run.end, &run.run) else { return Ok(()) };
        let passed = end.exit_code == SUCCESS;
        let result = match end.exit_code {
            SUCCESS => ProwResult::Success,
            INTERRUPTED => ProwResult::Aborted,
            _ => ProwResult::Failure,
        };
        let timestamp = start.real_time(end.at).as_second();
        let metadata = ProwFinishedMetadata::new(run, end.exit_code);
        self.write("finished.json", &ProwFinished { timestamp, passed, result, metadata })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};

    use super::*;
    use crate::fixtures;

    fn written(events: &[RunEvent]) -> (Value, Option<Value>) {
        let dir = tempfile::tempdir().unwrap();
        let mut report = Box::new(Prow::new(RunDir::at(dir.path()).unwrap()));
        let read =
            |name| fs::read(dir.path().join(name)).ok().map(|text| serde_json::from_slice(&text).unwrap());
        fixtures::deliver(&mut *report, &events[..1]);
        let started = read("started.json").unwrap();
        let state = fixtures::deliver(&mut *report, events);
        assert_eq!(read("finished.json"), None);
        report.finish(&state).unwrap();
        (started, read("finished.json"))
    }

    #[test]
    fn writes_metadata_of_a_run() {
        let (started, finished) = written(&fixtures::full_run());
        assert_eq!(
            started,
            json!({
                "timestamp": 1_795_253_412,
                "metadata": {"run": "7f3a", "evictlab": "0.1.0", "backend": "kind", "kubelets": "v1.31.14 v1.32.13"},
            })
        );
        let finished = finished.unwrap();
        assert_eq!(finished["timestamp"], 1_795_253_464);
        assert_eq!(finished["metadata"]["passed"], "3");
        assert_eq!(finished["metadata"]["exit-code"], "130");
    }

    #[test]
    fn result_follows_the_exit_status() {
        for (exit_code, passed, result) in [
            (0, true, "SUCCESS"),
            (1, false, "FAILURE"),
            (3, false, "FAILURE"),
            (4, false, "FAILURE"),
            (130, false, "ABORTED"),
        ] {
            let (_, finished) = written(&[
                fixtures::event(0.0, fixtures::run_started(&["v1.32.13"], &["a"])),
                fixtures::event(1.0, fixtures::case_ended("a", "v1.32.13", 1, Verdict::Passed, "")),
                fixtures::event(2.0, RunEventKind::RunEnded { exit_code, seconds: 2.0 }),
            ]);
            let finished = finished.unwrap();
            assert_eq!(
                (&finished["passed"], &finished["result"]),
                (&json!(passed), &json!(result)),
                "{exit_code}"
            );
        }
    }
}
