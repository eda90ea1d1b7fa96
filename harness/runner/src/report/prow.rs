//! `started.json` and `finished.json`, the frame of a run in Prow, TestGrid and Spyglass.
//! See <https://docs.prow.k8s.io/docs/metadata-artifacts/>; the shape is TestGrid's `metadata/job.go`.

use serde_json::{Value, json};

use super::exit_code::{INTERRUPTED, SUCCESS};
use super::ledger::Ledger;
use super::run_dir::write_file;
use super::{Report, ReportError, RunDir, RunEvent, What, account};

/// Writes `started.json` as the run starts, `finished.json` when it is over.
#[derive(Debug)]
pub struct Prow {
    run_dir: RunDir,
    ledger: Ledger,
}

impl Prow {
    /// Writes to the top of `run_dir`.
    pub fn new(run_dir: RunDir) -> Self {
        Self { run_dir, ledger: Ledger::default() }
    }

    fn write(&self, name: &str, value: &Value) -> Result<(), ReportError> {
        write_file(&self.run_dir.path().join(name), format!("{value:#}\n").as_bytes())
    }
}

impl Report for Prow {
    fn name(&self) -> &'static str {
        "prow"
    }

    fn take(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        self.ledger.take(event);
        match (&event.what, &self.ledger.run) {
            (What::RunStarted { .. }, Some(run)) => {
                let mut metadata = json!({
                    "run": run.id,
                    "evictlab": run.evictlab,
                    "backend": run.backend,
                    "kubelets": run.kubelets.join(" "),
                });
                if let Some(model) = &run.model {
                    metadata["model"] = account::of_model(model).into();
                }
                let started = json!({"timestamp": event.at.as_second(), "metadata": metadata});
                self.write("started.json", &started)
            }
            _ => Ok(()),
        }
    }

    fn finish(self: Box<Self>) -> Result<(), ReportError> {
        let Some(over) = &self.ledger.over else { return Ok(()) };
        let passed = over.exit_code == SUCCESS;
        let result = match over.exit_code {
            SUCCESS => "SUCCESS",
            INTERRUPTED => "ABORTED",
            _ => "FAILURE",
        };
        let counts = self.ledger.counts().into_iter();
        let mut metadata: serde_json::Map<String, Value> =
            counts.map(|(verdict, count)| (verdict.to_string(), count.to_string().into())).collect();
        metadata.insert("exit-code".to_owned(), over.exit_code.to_string().into());
        self.write(
            "finished.json",
            &json!({"timestamp": over.at.as_second(), "passed": passed, "result": result, "metadata": metadata}),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::judge::Verdict;
    use crate::report::story;

    fn written(events: &[RunEvent]) -> (Value, Option<Value>) {
        let dir = tempfile::tempdir().unwrap();
        let mut report = Box::new(Prow::new(RunDir::at(dir.path()).unwrap()));
        let read =
            |name| fs::read(dir.path().join(name)).ok().map(|text| serde_json::from_slice(&text).unwrap());
        report.take(&events[0]).unwrap();
        let started = read("started.json").unwrap();
        events[1..].iter().for_each(|event| report.take(event).unwrap());
        assert_eq!(read("finished.json"), None);
        report.finish().unwrap();
        (started, read("finished.json"))
    }

    #[test]
    fn a_run_is_framed() {
        let (started, finished) = written(&story::whole());
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
    fn the_result_follows_the_exit_status() {
        for (exit_code, passed, result) in [
            (0, true, "SUCCESS"),
            (1, false, "FAILURE"),
            (3, false, "FAILURE"),
            (4, false, "FAILURE"),
            (130, false, "ABORTED"),
        ] {
            let (_, finished) = written(&[
                story::event(0.0, story::run_started(&["v1.32.13"], &["a"])),
                story::event(1.0, story::case_ended("message", "a", "v1.32.13", 1, Verdict::Passed, "")),
                story::event(2.0, What::RunEnded { exit_code, seconds: 2.0 }),
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
