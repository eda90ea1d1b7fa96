//! A run directory, read back.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::{EVENTS_FILE, RecordedRunError};
use super::lines::Lines;
use super::observations::read_observations;
use crate::backend_name::BackendName;
use crate::confined::open_below;
use crate::run_dir::RunDir;
use crate::run_event::{CaseId, CaseInfo, RunEvent, RunEventKind};
use crate::run_state::{EndedCase, RunState};
use crate::sink::{Finished, Report, replay};
use evictlab_evidence::Observations;
use evictlab_judge::Verdict;

/// The selection that runs the unsuccessful cases of a run again.
#[derive(Debug)]
pub struct Unsuccessful {
    /// The cases that a name selects, as `suite/case`.
    pub cases: Vec<String>,
    /// Paths that select the other cases.
    pub paths: Vec<String>,
    /// Their kubelets by label, with the `--kubelet` argument of each; `None` if it is not known.
    /// The argument can name a program or an image, and the run may be untrusted.
    pub kubelets: BTreeMap<String, Option<String>>,
    /// Backend of the run.
    pub backend: BackendName,
}

/// A run read from its directory.
#[derive(Debug)]
pub struct RecordedRun {
    run_dir: RunDir,
    state: RunState,
}

impl RecordedRun {
    /// Reads the events of a run; the evidence of a case is read on demand. A run that is still
    /// going on, or that was killed, is read up to its last event.
    ///
    /// # Errors
    /// The directory does not contain a run, or its events cannot be read.
    pub fn read(dir: &Path) -> Result<Self, RecordedRunError> {
        let mut state = RunState::default();
        read_events(dir, |event| state.apply(&event))?;
        Self::with_state(dir, state)
    }

    /// Reads a run from the text of its events, with the evidence below `dir`.
    ///
    /// # Errors
    /// The text contains no events, or something else.
    pub fn from_events(dir: &Path, text: &str) -> Result<Self, RecordedRunError> {
        let mut state = RunState::default();
        parse_events(&dir.join(EVENTS_FILE), text.as_bytes(), |event| state.apply(&event))?;
        Self::with_state(dir, state)
    }

    /// Reads the events of a run, up to the last complete one.
    ///
    /// # Errors
    /// The directory does not contain a run, or its events cannot be read.
    pub fn events(dir: &Path) -> Result<Vec<RunEvent>, RecordedRunError> {
        let mut events = Vec::new();
        read_events(dir, |event| events.push(event))?;
        Ok(events)
    }

    fn with_state(dir: &Path, state: RunState) -> Result<Self, RecordedRunError> {
        match state.run {
            Some(_) => Ok(Self { run_dir: RunDir::existing(dir), state }),
            None => Err(RecordedRunError::Empty(dir.join(EVENTS_FILE))),
        }
    }

    /// Returns whether the run ended.
    pub fn is_over(&self) -> bool {
        self.state.end.is_some()
    }

    /// Returns the selection that runs cases again that are `failed`, `error` or
    /// `inconclusive` on a kubelet, or have no verdict there.
    pub fn unsuccessful(&self) -> Unsuccessful {
        let run = self.state.run.as_ref().expect("`with_state` checked that the run started");
        let (cases, paths, kubelets) = (Vec::new(), Vec::new(), BTreeMap::new());
        let mut found = Unsuccessful { cases, paths, kubelets, backend: run.backend };
        for info in &run.cases {
            let needs_rerun = |kubelet: &&String| self.needs_rerun(info, kubelet);
            let kubelets: Vec<&String> = run.kubelets.iter().filter(needs_rerun).collect();
            match &info.path {
                _ if kubelets.is_empty() => {}
                Some(path) => found.paths.push(path.clone()),
                None => found.cases.push(info.suite_and_case()),
            }
            found.kubelets.extend(kubelets.into_iter().map(|label| (label.clone(), run.kubelet_arg(label))));
        }
        found
    }

    fn needs_rerun(&self, info: &CaseInfo, kubelet: &str) -> bool {
        let mut verdicts = self.state.attempts(info, kubelet).map(|ended| ended.result.verdict).peekable();
        verdicts.peek().is_none() || verdicts.any(Verdict::needs_attention)
    }

    /// The state after the last event.
    pub(crate) fn state(&self) -> &RunState {
        &self.state
    }

    /// Reads the evidence of a case; `None` if the case has none.
    pub(crate) fn evidence(&self, ended: &EndedCase) -> Result<Option<Observations>, RecordedRunError> {
        read_observations(self.run_dir.path(), &self.run_dir.case_dir(&ended.id))
    }
}

/// Passes the events of a recorded run to reports, with the evidence of the cases for which
/// `needs_evidence` is true.
///
/// # Errors
/// The directory does not contain a run, or its events or evidence cannot be read.
pub fn replay_recorded(
    dir: &Path,
    needs_evidence: impl Fn(&CaseId) -> bool,
    reports: Vec<Box<dyn Report>>,
) -> Result<Finished, RecordedRunError> {
    let run_dir = RunDir::existing(dir);
    let mut events = RecordedRun::events(dir)?;
    events.retain(|event| !matches!(event.kind, RunEventKind::RunEnded { .. }));
    for event in &mut events {
        if let RunEventKind::CaseEnded { id, evidence, .. } = &mut event.kind
            && needs_evidence(id)
        {
            *evidence = read_observations(dir, &run_dir.case_dir(id))?.map(Arc::new);
        }
    }
    Ok(replay(&events, reports))
}

/// Passes the events of the run in `dir` to `each`, up to the last complete one.
pub(crate) fn read_events(dir: &Path, each: impl FnMut(RunEvent)) -> Result<(), RecordedRunError> {
    let path = dir.join(EVENTS_FILE);
    let file = open_below(dir, &path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            RecordedRunError::NoRun { dir: dir.to_owned(), runs: runs_below(dir) }
        }
        _ => RecordedRunError::Read { path: path.clone(), source },
    })?;
    parse_events(&path, BufReader::new(file), each)
}

/// Returns the runs in the artifacts of a directory, where commands of several runs write them.
fn runs_below(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir.join("artifacts")).into_iter().flatten().flatten();
    let mut runs: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.join(EVENTS_FILE).is_file()).collect();
    runs.sort();
    runs
}

fn parse_events(
    path: &Path,
    events: impl BufRead,
    mut each: impl FnMut(RunEvent),
) -> Result<(), RecordedRunError> {
    let mut lines = Lines::new(path, events);
    // The last line may be truncated if the process was killed, and any line by a full disk.
    while let Some(line) = lines.next()?.filter(|line| line.is_complete) {
        match serde_json::from_str(line.text) {
            Ok(event) => each(event),
            Err(error) if error.is_eof() => {}
            Err(error) => {
                let reason = format!("not an event: {error}");
                return Err(RecordedRunError::Form { path: path.to_owned(), line: line.number, reason });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{EvidenceWriter, JsonLines, fixtures};

    fn write_run(dir: &Path) {
        let run_dir = RunDir::at(dir).unwrap();
        let events = fixtures::full_run();
        fixtures::deliver(&mut JsonLines::create(&run_dir).unwrap(), &events);
        fixtures::deliver(&mut EvidenceWriter::new(run_dir), &events);
    }

    #[test]
    fn reads_a_run_back() {
        let dir = tempfile::tempdir().unwrap();
        write_run(dir.path());
        let run = RecordedRun::read(dir.path()).unwrap();
        let state = fixtures::state_after(&fixtures::full_run());
        assert_eq!(format!("{:?}", run.state), format!("{state:?}"));
        assert!(run.is_over());
        let failed = run.state.ended.iter().find(|ended| ended.id.case == "requests-decide").unwrap();
        let read = run.evidence(failed).unwrap().unwrap();
        let json = |observations| serde_json::to_value(observations).unwrap();
        assert_eq!(json(read), json(fixtures::evidence()));
    }

    /// A label does not select a kubelet: it is the version of a binary and of an image, too.
    #[test]
    fn kubelets_are_selected_again_by_their_arguments() {
        let dir = tempfile::tempdir().unwrap();
        let labels = ["v1.36.4", "v1.36.4-2"];
        let binary = BTreeMap::from([("v1.36.4".to_owned(), "v1.36.4=./kubelet".to_owned())]);
        let rows = [
            (None, &binary, [Some("v1.36.4=./kubelet"), None]),
            (None, &BTreeMap::new(), [None, None]),
            (Some(fixtures::model()), &BTreeMap::new(), [Some("v1.36.4"), None]),
        ];
        for (of_model, args, expected) in rows {
            let mut kind = fixtures::run_started(&labels, &["nobody-offends"]);
            let RunEventKind::RunStarted { model, kubelet_args, .. } = &mut kind else { unreachable!() };
            (*model, *kubelet_args) = (of_model, args.clone());
            let text = serde_json::to_string(&fixtures::event(0.0, kind)).unwrap() + "\n";
            let kubelets = RecordedRun::from_events(dir.path(), &text).unwrap().unsuccessful().kubelets;
            let found: Vec<Option<&str>> = kubelets.values().map(Option::as_deref).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn reads_a_truncated_run() {
        let dir = tempfile::tempdir().unwrap();
        write_run(dir.path());
        let events = dir.path().join(EVENTS_FILE);
        let text = fs::read_to_string(&events).unwrap();
        fs::write(&events, &text[..text.find("\"nobody-offends\",\"kubelet\"").unwrap()]).unwrap();
        let run = RecordedRun::read(dir.path()).unwrap();
        assert!(!run.is_over() && !run.state.ended.is_empty());
    }

    #[test]
    fn samples_are_read_up_to_a_truncated_line() {
        let dir = tempfile::tempdir().unwrap();
        write_run(dir.path());
        let run = RecordedRun::read(dir.path()).unwrap();
        let failed = run.state.ended.iter().find(|ended| ended.id.case == "requests-decide").unwrap();
        let samples = run.run_dir.case_dir(&failed.id).join("samples.jsonl");
        let text = fs::read_to_string(&samples).unwrap();
        let count = || run.evidence(failed).unwrap().unwrap().samples.iter().count();
        let complete = count();
        fs::write(&samples, &text[..text.len() - 3]).unwrap();
        assert!(complete > 1 && count() == complete - 1);
    }

    #[test]
    fn rejects_other_directories() {
        let dir = tempfile::tempdir().unwrap();
        let error = |dir: &Path| {
            RecordedRun::read(dir).unwrap_err().to_string().replace(&dir.display().to_string(), "DIR")
        };
        assert_eq!(
            error(dir.path()),
            "failed to read run DIR: artifacts/events.jsonl not found\n\
             help: name the directory of a run, such as results/latest"
        );
        write_run(&dir.path().join("artifacts/cluster-1"));
        assert!(
            error(dir.path())
                .ends_with("help: name one of the runs that the directory contains: DIR/artifacts/cluster-1")
        );
        write_run(dir.path());
        let events = dir.path().join(EVENTS_FILE);
        let text = fs::read_to_string(&events).unwrap();
        fs::write(&events, text.replacen("\"cluster-step\"", "\"cluster-stop\"", 1)).unwrap();
        let message = error(dir.path());
        assert!(
            message.starts_with(
                "failed to parse DIR/artifacts/events.jsonl:3: not an event: unknown variant `cluster-stop`"
            ),
            "{message}"
        );
        fs::write(&events, "").unwrap();
        assert!(error(dir.path()).contains("contains no events"));
    }

    #[test]
    fn errors_name_file_and_line() {
        let dir = tempfile::tempdir().unwrap();
        write_run(dir.path());
        let run = RecordedRun::read(dir.path()).unwrap();
        let failed = run.state.ended.iter().find(|ended| ended.id.case == "requests-decide").unwrap();
        let case = run.run_dir.case_dir(&failed.id);
        fs::write(case.join("samples.jsonl"), "{\"t\":1}\n{\"t\":\n").unwrap();
        let message = run.evidence(failed).unwrap_err().to_string();
        assert!(message.contains("samples.jsonl:2: invalid JSON"), "{message}");
        fs::write(case.join("events.yaml"), "a: 1\nb: [\n").unwrap();
        let message = run.evidence(failed).unwrap_err().to_string();
        assert!(message.contains("events.yaml:") && message.contains("invalid YAML"), "{message}");
    }
}
