//! `started.json` and `finished.json`: metadata for Prow, TestGrid and Spyglass.
//!
//! See <https://docs.prow.k8s.io/docs/metadata-artifacts/>; the format is defined in TestGrid's
//! `metadata/job.go`.

use serde_json::{Map, Value, json};

use crate::exit_code::{INTERRUPTED, SUCCESS};
use crate::markdown::model_notice;
use crate::run_dir::{RunDir, write_file};
use crate::run_state::RunState;
use crate::sink::{Report, ReportError};
use crate::stream::{RunEvent, RunEventKind};

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

    fn write(&self, name: &str, value: &Value) -> Result<(), ReportError> {
        write_file(&self.run_dir.path().join(name), format!("{value:#}\n").as_bytes())
    }
}

impl Report for Prow {
    fn name(&self) -> &'static str {
        "prow"
    }

    fn on_event(&mut self, event: &RunEvent, run: &RunState) -> Result<(), ReportError> {
        let (RunEventKind::RunStarted { .. }, Some(run)) = (&event.what, &run.run) else { return Ok(()) };
        let mut metadata = Map::from_iter([
            ("run".to_owned(), run.id.as_str().into()),
            ("evictlab".to_owned(), run.evictlab.as_str().into()),
            ("backend".to_owned(), run.backend.as_str().into()),
            ("kubelets".to_owned(), run.kubelets.join(" ").into()),
        ]);
        if let Some(model) = &run.model {
            metadata.insert("model".to_owned(), model_notice(model).into());
        }
        let timestamp = run.real_start.as_second();
        self.write("started.json", &json!({"timestamp": timestamp, "metadata": metadata}))
    }

    fn finish(self: Box<Self>, run: &RunState) -> Result<(), ReportError> {
        let (Some(end), Some(start)) = (&run.end, &run.run) else { return Ok(()) };
        let passed = end.exit_code == SUCCESS;
        let result = match end.exit_code {
            SUCCESS => "SUCCESS",
            INTERRUPTED => "ABORTED",
            _ => "FAILURE",
        };
        let counts = run.verdict_counts().into_iter();
        let mut metadata: Map<String, Value> =
            counts.map(|(verdict, count)| (verdict.to_string(), count.to_string().into())).collect();
        metadata.insert("exit-code".to_owned(), end.exit_code.to_string().into());
        let timestamp = start.real_time(end.at).as_second();
        self.write(
            "finished.json",
            &json!({"timestamp": timestamp, "passed": passed, "result": result, "metadata": metadata}),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::fixtures;
    use evictlab_judge::Verdict;

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
