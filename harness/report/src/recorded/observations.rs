//! The evidence of a case, read back from its files.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::confined::open_below;
use crate::evidence_files;
use evictlab_rules::quantity::MIB;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::error::RecordedRunError;
use super::lines::Lines;
use evictlab_evidence::{Observations, yaml_documents};

/// Maximum size in bytes of a file that is read as a whole.
const MAX_FILE: u64 = 256 * MIB;

/// The directory of a case in that of a run.
#[derive(Clone, Copy)]
struct CaseDir<'a> {
    run: &'a Path,
    path: &'a Path,
}

impl CaseDir<'_> {
    fn join(self, file: &str) -> PathBuf {
        self.path.join(file)
    }

    /// Opens a file; `None` if it does not exist.
    fn open(self, file: &str) -> Result<Option<File>, RecordedRunError> {
        let path = self.join(file);
        match open_below(self.run, &path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(RecordedRunError::Read { path, source }),
        }
    }
}

/// Reads the files of [`EvidenceWriter`](crate::EvidenceWriter) in the directory of a case, which
/// is below that of its run; `None` without `facts.yaml`, which every case with evidence has.
pub(super) fn read_observations(run: &Path, path: &Path) -> Result<Option<Observations>, RecordedRunError> {
    let dir = CaseDir { run, path };
    let Some(facts) = documents(dir, evidence_files::FACTS)? else { return Ok(None) };
    let mut all = match facts.into_iter().next() {
        Some(Value::Object(facts)) => facts,
        _ => Map::new(),
    };
    for (file, name) in [
        (evidence_files::PODS_CREATED, "podsCreated"),
        (evidence_files::PODS_FINAL, "podsFinal"),
        (evidence_files::EVENTS, "events"),
    ] {
        all.insert(name.to_owned(), documents(dir, file)?.unwrap_or_default().into());
    }
    for (file, name) in [
        (evidence_files::NODE, "nodeStatus"),
        (evidence_files::CONFIGZ, "configz"),
        (evidence_files::API_REJECTION_OF_FORMAT_3, "apiRejection"),
        (evidence_files::API_REJECTION, "apiRejection"),
        (evidence_files::ANSWERS, "answers"),
    ] {
        if let Some(document) = documents(dir, file)?.and_then(|documents| documents.into_iter().next()) {
            all.insert(name.to_owned(), document);
        }
    }
    if let Some(history) =
        documents(dir, evidence_files::HISTORY)?.and_then(|documents| documents.into_iter().next())
    {
        let Value::Object(history) = history else { return Err(not_a_history(dir)) };
        for (part, value) in history.into_iter().filter(|(_, value)| !value.is_null()) {
            match part.as_str() {
                "pods" => all.insert("podHistory".to_owned(), value),
                "node" => all.insert("nodeHistory".to_owned(), value),
                "images" => all.insert(part, value),
                _ => None,
            };
        }
    }
    all.insert("samples".to_owned(), samples(dir)?.into());
    if let Some(summary) = text(dir, evidence_files::SUMMARY_BEFORE)? {
        all.insert("summaryBefore".to_owned(), json(dir, evidence_files::SUMMARY_BEFORE, 1, &summary)?);
    }
    let log = text(dir, evidence_files::KUBELET_LOG)?.unwrap_or_default();
    all.insert("kubeletLog".to_owned(), log.lines().map(Value::from).collect());
    let form = |error: serde_json::Error| RecordedRunError::Form {
        path: dir.join(evidence_files::FACTS),
        line: 1,
        reason: format!("not the evidence of a case: {error}"),
    };
    Observations::deserialize(Value::Object(all)).map(Some).map_err(form)
}

fn samples(dir: CaseDir<'_>) -> Result<Vec<Value>, RecordedRunError> {
    const NAME: &str = evidence_files::SAMPLES;
    let path = dir.join(NAME);
    let Some(file) = dir.open(NAME)? else { return Ok(Vec::new()) };
    let (mut lines, mut samples) = (Lines::new(&path, BufReader::new(file)), Vec::new());
    while let Some(line) = lines.next()? {
        match json(dir, NAME, line.number, line.text) {
            Ok(sample) => samples.push(sample),
            // The process was killed while it wrote the line.
            Err(_) if !line.is_complete => break,
            Err(error) => return Err(error),
        }
    }
    Ok(samples)
}

fn not_a_history(dir: CaseDir<'_>) -> RecordedRunError {
    let reason = "not a history: expected a mapping".to_owned();
    RecordedRunError::Form { path: dir.join(evidence_files::HISTORY), line: 1, reason }
}

fn text(dir: CaseDir<'_>, file: &str) -> Result<Option<String>, RecordedRunError> {
    let path = dir.join(file);
    let Some(file) = dir.open(file)? else { return Ok(None) };
    let mut text = String::new();
    let read = file.take(MAX_FILE + 1).read_to_string(&mut text).and_then(|bytes| match bytes as u64 {
        0..=MAX_FILE => Ok(()),
        _ => Err(io::Error::other(format!("larger than {} MiB", MAX_FILE >> 20))),
    });
    match read {
        Ok(()) => Ok(Some(text)),
        Err(source) => Err(RecordedRunError::Read { path, source }),
    }
}

fn documents(dir: CaseDir<'_>, file: &str) -> Result<Option<Vec<Value>>, RecordedRunError> {
    let Some(text) = text(dir, file)? else { return Ok(None) };
    let documents = yaml_documents(&text).map_err(|error| RecordedRunError::Form {
        path: dir.join(file),
        line: error.line,
        reason: format!("invalid YAML: {error}"),
    })?;
    Ok(Some(documents.into_iter().filter(|document| !document.is_null()).collect()))
}

fn json(dir: CaseDir<'_>, file: &str, line: usize, text: &str) -> Result<Value, RecordedRunError> {
    serde_json::from_str(text).map_err(|error| RecordedRunError::Form {
        path: dir.join(file),
        line: line + error.line() - 1,
        reason: format!("invalid JSON: {error}"),
    })
}
