//! The events of a run, one JSON object per line: `artifacts/events.jsonl`, and standard output on
//! request.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use crate::run_dir::{RunDir, create_private};
use crate::run_event::RunEvent;
use crate::run_state::RunState;
use crate::sink::{Report, ReportError};

/// Writes each event as one line, in one write: a killed process truncates at most the last line. A
/// full disk truncates a line, too; the next one begins on a line of its own.
#[derive(Debug)]
pub struct JsonLines<W> {
    /// Path of the file; `None` for standard output.
    path: Option<PathBuf>,
    out: W,
    /// True if the last write failed, perhaps after a part of its line.
    is_truncated: bool,
}

impl JsonLines<File> {
    /// Creates `artifacts/events.jsonl` in the run directory.
    ///
    /// # Errors
    /// The file could not be created.
    pub fn create(run_dir: &RunDir) -> Result<Self, ReportError> {
        let path = run_dir.artifacts().join("events.jsonl");
        match create_private(&path) {
            Ok(out) => Ok(Self { path: Some(path), out, is_truncated: false }),
            Err(source) => Err(ReportError::Write { path, source }),
        }
    }
}

impl<W: Write> JsonLines<W> {
    /// Writes to `out`, the standard output.
    pub(crate) fn on_stdout(out: W) -> Self {
        Self { path: None, out, is_truncated: false }
    }
}

impl<W: Write + Send> Report for JsonLines<W> {
    fn name(&self) -> &'static str {
        if self.path.is_some() { "events" } else { "terminal" }
    }

    fn on_event(&mut self, event: &RunEvent, _run: &RunState) -> Result<(), ReportError> {
        let mut json = serde_json::to_string(event)
            .map_err(|error| ReportError::Form { what: "an event", reason: error.to_string() })?;
        if self.path.is_none() {
            // The runner of GitHub Actions executes `##[command]` anywhere in a line of a log.
            json = json.replace("##[", "##\\u005b");
        }
        let line = format!("{}{json}\n", if self.is_truncated { "\n" } else { "" });
        let written = self.out.write_all(line.as_bytes()).and_then(|()| self.out.flush());
        self.is_truncated = written.is_err();
        written.map_err(|source| match &self.path {
            Some(path) => ReportError::Write { path: path.clone(), source },
            None => ReportError::Output(source),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use evictlab_judge::{CaseResult, EarlierTry, Rate, Verdict};

    use super::*;
    use crate::run_event::{FlakyResult, ShardInfo};
    use crate::{RunEventKind, fixtures};

    #[test]
    fn every_key_of_an_event_is_described() {
        let (mut compiler, mut schemas) = (boon::Compiler::new(), boon::Schemas::new());
        let schema = crate::closed_schema(crate::output_schema::<RunEvent>());
        compiler.add_resource("event.json", schema).unwrap();
        let schema = compiler.compile("event.json", &mut schemas).unwrap();
        for event in fixtures::full_run() {
            let event = serde_json::to_value(event).unwrap();
            if let Err(error) = schemas.validate(&event, schema) {
                panic!("{error:#}\n{event:#}");
            }
        }
    }

    /// Events with the keys that few runs have.
    fn events_with_all_keys() -> [RunEvent; 3] {
        let mut started = fixtures::run_started(&["v1.32.13"], &["hard"]);
        if let RunEventKind::RunStarted { model, flaky_result, real_start, shard, .. } = &mut started {
            *model = Some(fixtures::model());
            *flaky_result = FlakyResult::Fail;
            *real_start = Some(jiff::Timestamp::UNIX_EPOCH);
            *shard = Some(ShardInfo { part: 1, of: 2, other_cases: vec![] });
        }
        let mut result = CaseResult::without_evidence(Verdict::Passed, "evicted");
        result.rate = Some(Rate { label: "evicted".to_owned(), count: 1, total: 2 });
        result.earlier_tries =
            vec![EarlierTry { verdict: Verdict::Failed, why: "late".to_owned(), inconclusive_reason: None }];
        let result = Arc::new(result);
        let id = fixtures::id("message", "hard", "v1.32.13", 1);
        let retried = RunEventKind::CaseRetried {
            id: id.clone(),
            try_number: 1,
            text: "retrying".to_owned(),
            result: result.clone(),
            evidence: None,
        };
        let ended = RunEventKind::CaseEnded { id, node: None, seconds: 8.0, result, evidence: None };
        [started, retried, ended].map(|kind| fixtures::event(0.0, kind))
    }

    #[test]
    fn keys_of_earlier_formats_are_read() {
        let format_2 = [
            ("earlierTries", "earlier_tries"),
            ("exitCode", "exit_code"),
            ("flakyResult", "flaky_result"),
            ("knownBug", "known_bug"),
            ("onRealKubelets", "on-real-kubelets"),
            ("realStart", "real_start"),
            ("tryNumber", "try_number"),
            ("whenItFails", "when_it_fails"),
        ];
        let format_3 = [
            ("count", "right"),
            ("evictions", "testimony"),
            ("inconclusiveReason", "doubt"),
            ("label", "what"),
            ("otherCases", "others"),
            ("result", "judgement"),
            ("total", "of"),
            ("type", "what"),
        ];
        let values_of_format_3 = [
            ("await-node", "lease"),
            ("configure", "tune"),
            ("create-pods", "stage"),
            ("killed-before-eviction", "killed-for-memory"),
            ("recover", "reset"),
            ("stale-statistics", "stats-outrun"),
        ];
        let mut unseen = Vec::from_iter([&format_2[..], &format_3].concat());
        for event in fixtures::full_run().into_iter().chain(events_with_all_keys()) {
            let text = serde_json::to_string(&event).unwrap();
            unseen.retain(|(new, _)| !text.contains(&format!("\"{new}\":")));
            for keys in [&format_2[..], &format_3] {
                let keys = keys.iter().map(|(new, old)| (format!("\"{new}\":"), format!("\"{old}\":")));
                let values = values_of_format_3.iter();
                let values = values.map(|(new, old)| (format!(":\"{new}\""), format!(":\"{old}\"")));
                let of_format =
                    keys.chain(values).fold(text.clone(), |text, (new, old)| text.replace(&new, &old));
                let read: RunEvent = serde_json::from_str(&of_format).unwrap();
                assert_eq!(serde_json::to_string(&read).unwrap(), text);
            }
        }
        assert!(unseen.is_empty(), "no event has these keys: {unseen:?}");
    }

    /// A disk with room for some bytes, which is then full for one write.
    struct FullDisk {
        text: Vec<u8>,
        room: Option<usize>,
    }

    impl Write for FullDisk {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let Some(room) = self.room else {
                self.text.extend_from_slice(bytes);
                return Ok(bytes.len());
            };
            let part = &bytes[..bytes.len().min(room)];
            self.text.extend_from_slice(part);
            self.room = Some(room - part.len()).filter(|_| !part.is_empty());
            if part.is_empty() { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(part.len()) }
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn only_the_event_that_met_a_full_disk_is_lost() {
        let events = fixtures::full_run();
        let line = serde_json::to_string(&events[0]).unwrap().len() + 1;
        let mut report = JsonLines::on_stdout(FullDisk { text: Vec::new(), room: Some(line + 20) });
        let lost = events.iter().filter(|event| report.on_event(event, &RunState::default()).is_err());
        assert_eq!(lost.count(), 1);
        let dir = tempfile::tempdir().unwrap();
        let text = String::from_utf8(report.out.text).unwrap();
        let run = crate::RecordedRun::from_events(dir.path(), &text).unwrap();
        assert!(run.is_over());
    }

    #[test]
    fn commands_in_text_reach_no_log() {
        let name = "##[add-mask]passed";
        let event = fixtures::event(0.0, fixtures::run_started(&["v1.32.13"], &[name]));
        let mut report = JsonLines::on_stdout(Vec::new());
        report.on_event(&event, &RunState::default()).unwrap();
        let text = String::from_utf8(report.out).unwrap();
        let read: RunEvent = serde_json::from_str(&text).unwrap();
        let RunEventKind::RunStarted { cases, .. } = read.kind else { panic!("{text}") };
        assert!(cases[0].case == name && !text.contains("##["), "{text}");
    }

    #[test]
    fn every_event_is_written_immediately() {
        let dir = tempfile::tempdir().unwrap();
        let run_dir = RunDir::at(dir.path()).unwrap();
        let mut report = JsonLines::create(&run_dir).unwrap();
        for (nth, event) in fixtures::full_run().iter().enumerate() {
            report.on_event(event, &RunState::default()).unwrap();
            let text = std::fs::read_to_string(run_dir.artifacts().join("events.jsonl")).unwrap();
            let lines: Vec<serde_json::Value> =
                text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!(lines.len(), nth + 1);
            assert_eq!(lines[nth]["at"], event.at.to_string());
        }
        // The lines are an interface: other programs read these names.
        let text = std::fs::read_to_string(run_dir.artifacts().join("events.jsonl")).unwrap();
        let ended = text.lines().find(|line| line.contains(r#""type":"case-ended""#)).unwrap();
        insta::assert_snapshot!(ended);
    }
}
