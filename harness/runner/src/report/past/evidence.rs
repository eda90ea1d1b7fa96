//! The evidence of a case, read back.

use std::fs;
use std::io;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::PastError;
use crate::observe::Observations;

/// What [`Evidence`](crate::report::Evidence) has written of a case; none without `facts.yaml`, which is always there where something was seen.
pub(super) fn read(dir: &Path) -> Result<Option<Observations>, PastError> {
    let Some(facts) = documents(dir, "facts.yaml")? else { return Ok(None) };
    let mut all = match facts.into_iter().next() {
        Some(Value::Object(facts)) => facts,
        _ => Map::new(),
    };
    for (file, name) in
        [("pods-created.yaml", "podsCreated"), ("pods-final.yaml", "podsFinal"), ("events.yaml", "events")]
    {
        all.insert(name.to_owned(), documents(dir, file)?.unwrap_or_default().into());
    }
    for (file, name) in [
        ("node.yaml", "nodeStatus"),
        ("configz.yaml", "configz"),
        ("refused.yaml", "refused"),
        ("answers.yaml", "answers"),
    ] {
        if let Some(document) = documents(dir, file)?.and_then(|documents| documents.into_iter().next()) {
            all.insert(name.to_owned(), document);
        }
    }
    if let Some(history) = documents(dir, "history.yaml")?.and_then(|documents| documents.into_iter().next())
    {
        for (part, name) in [("pods", "podHistory"), ("node", "nodeHistory")] {
            if !history[part].is_null() {
                all.insert(name.to_owned(), history[part].clone());
            }
        }
    }
    let mut samples = Vec::new();
    for (place, line) in text(dir, "samples.jsonl")?.unwrap_or_default().lines().enumerate() {
        samples.push(json(dir, "samples.jsonl", place + 1, line)?);
    }
    all.insert("samples".to_owned(), samples.into());
    if let Some(summary) = text(dir, "summary-before.json")? {
        all.insert("summaryBefore".to_owned(), json(dir, "summary-before.json", 1, &summary)?);
    }
    let log = text(dir, "kubelet.log")?.unwrap_or_default();
    all.insert("kubeletLog".to_owned(), log.lines().map(Value::from).collect());
    let form = |error: serde_json::Error| PastError::Form {
        path: dir.join("facts.yaml"),
        line: 1,
        why: format!("no evidence of a case, {error}"),
    };
    Observations::deserialize(Value::Object(all)).map(Some).map_err(form)
}

fn text(dir: &Path, file: &str) -> Result<Option<String>, PastError> {
    let path = dir.join(file);
    match fs::read_to_string(&path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(PastError::Read { path, source }),
    }
}

fn documents(dir: &Path, file: &str) -> Result<Option<Vec<Value>>, PastError> {
    let Some(text) = text(dir, file)? else { return Ok(None) };
    let form = |error: serde_yaml::Error| PastError::Form {
        path: dir.join(file),
        line: error.location().map_or(1, |location| location.line()),
        why: format!("no YAML, {error}"),
    };
    let documents = serde_yaml::Deserializer::from_str(&text).map(|it| Value::deserialize(it).map_err(form));
    let documents: Vec<Value> = documents.collect::<Result<_, _>>()?;
    Ok(Some(documents.into_iter().filter(|document| !document.is_null()).collect()))
}

fn json(dir: &Path, file: &str, line: usize, text: &str) -> Result<Value, PastError> {
    serde_json::from_str(text).map_err(|error| PastError::Form {
        path: dir.join(file),
        line: line + error.line() - 1,
        why: format!("no JSON, {error}"),
    })
}
