//! Texts of all errors of this crate, in one snapshot.

#[path = "../../error_row.rs"]
mod error_row;

use std::io;
use std::path::PathBuf;

use error_row::row;
use serde_json::Value;

use crate::baseline::{Baseline, BaselineError};
use crate::{KubeletResultsError, MergeError, RecordedRunError, ReportError, ReportFailure, RetentionError};

fn run() -> PathBuf {
    PathBuf::from("results/latest")
}

fn events() -> PathBuf {
    run().join("events.jsonl")
}

fn denied() -> io::Error {
    io::Error::from(io::ErrorKind::PermissionDenied)
}

fn not_json() -> serde_json::Error {
    serde_json::from_str::<Value>("{\n  cases").unwrap_err()
}

fn problem() -> String {
    let text = r#"{"message/sidecars-are-named": {"v1.36": "pased"}}"#;
    evictlab_case::document_problem::<Baseline>("baseline.json", text).unwrap().to_string()
}

fn reading() -> Vec<String> {
    let baseline = || PathBuf::from("baseline.json");
    vec![
        row(BaselineError::Read { path: baseline(), source: io::Error::from(io::ErrorKind::NotFound) }),
        row(BaselineError::Form { path: baseline(), problem: problem() }),
        row(RecordedRunError::NoRun { dir: run(), runs: vec![] }),
        row(RecordedRunError::NoRun { dir: run(), runs: vec![run().join("artifacts/cluster-1")] }),
        row(RecordedRunError::Empty(events())),
        row(RecordedRunError::Read { path: events(), source: denied() }),
        row(RecordedRunError::Form {
            path: events(),
            line: 12,
            reason: "unknown variant `paused`".to_owned(),
        }),
        row(MergeError::Read(RecordedRunError::Empty(events()))),
        row(MergeError::Empty),
        row(MergeError::Different {
            property: "seed",
            runs: vec![
                (PathBuf::from("results/shard-1"), "7".to_owned()),
                (PathBuf::from("results/shard-2"), "8".to_owned()),
            ],
        }),
        row(KubeletResultsError::Modelled("results/latest".to_owned())),
        row(KubeletResultsError::Run(RecordedRunError::NoRun { dir: run(), runs: vec![] })),
        row(KubeletResultsError::Read { path: PathBuf::from("v1.36.2.json"), source: denied() }),
        row(KubeletResultsError::Form { path: PathBuf::from("v1.36.2.json"), source: not_json() }),
        row(KubeletResultsError::Write { path: PathBuf::from("v1.36.2.json"), source: denied() }),
    ]
}

fn writing() -> Vec<String> {
    let full = || io::Error::from(io::ErrorKind::StorageFull);
    vec![
        row(RetentionError::List { path: PathBuf::from("results"), source: denied() }),
        row(RetentionError::Delete { path: run(), source: denied() }),
        row(ReportError::Write { path: events(), source: full() }),
        row(ReportError::Read { path: events(), source: denied() }),
        row(ReportError::Output(full())),
        row(ReportError::Taken { dir: run(), found: "events.jsonl" }),
        row(ReportError::Form { what: "event", reason: "key must be a string".to_owned() }),
        row(ReportError::Baseline(BaselineError::Form {
            path: PathBuf::from("baseline.json"),
            problem: problem(),
        })),
        row(ReportError::Panicked("index out of bounds".to_owned())),
        row(ReportFailure { report: "junit", first: ReportError::Output(full()), more: 0 }),
        row(ReportFailure { report: "jsonl", first: ReportError::Output(full()), more: 2 }),
    ]
}

#[test]
fn texts() {
    insta::assert_snapshot!([reading(), writing()].concat().concat());
}
