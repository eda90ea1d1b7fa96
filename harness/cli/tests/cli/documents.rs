//! Documents in JSON and YAML: each key that is written has a description in the schema.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use boon::{Compiler, SchemaIndex, Schemas};
use evictlab_cluster::{ClusterRecord, JobIndex, Owner};
use evictlab_report::closed_schema;
use evictlab_tools::bench::{Figure, FigureResult, GrowthPoint, Target, Unit};
use evictlab_tools::documents::Document;
use evictlab_tools::job::IndexReport;
use serde::Deserialize;
use serde_json::{Value, json};

/// Files of evidence that contain objects of Kubernetes as they were received.
const OF_KUBERNETES: [&str; 8] = [
    "configz.yaml",
    "events.yaml",
    "node.yaml",
    "objects.yaml",
    "pods-created.yaml",
    "pods-final.yaml",
    "api-rejection.yaml",
    "summary-before.json",
];

/// The schema of a document, without keys beyond those that it describes.
pub(crate) struct Checker {
    name: String,
    schemas: Schemas,
    schema: SchemaIndex,
}

impl Checker {
    pub(crate) fn new(name: &str) -> Self {
        let document = Document::named(name).unwrap_or_else(|| panic!("{name} is not a document"));
        let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
        compiler.add_resource("document.json", closed_schema(document.schema())).unwrap();
        let schema = compiler.compile("document.json", &mut schemas).unwrap();
        Self { name: name.to_owned(), schemas, schema }
    }

    /// Requires that the schema describes a document.
    pub(crate) fn check(&self, document: &Value) {
        if let Err(error) = self.schemas.validate(document, self.schema) {
            panic!("{}: {error:#}\n{document:#}", self.name);
        }
    }
}

/// Parses a document, and requires that its schema describes it.
pub(crate) fn parse(name: &str, text: impl AsRef<[u8]>) -> Value {
    let document = serde_json::from_slice(text.as_ref()).unwrap();
    Checker::new(name).check(&document);
    document
}

fn evictlab(dir: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
    command.current_dir(dir).env_remove("EVICTLAB_CASES").env_remove("ARTIFACTS_DIR");
    String::from_utf8(command.args(arguments).output().unwrap().stdout).unwrap()
}

/// Returns the JSON and YAML files below a directory.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|end| ["json", "jsonl", "yaml"].iter().any(|one| end == *one))
        {
            found.push(path);
        }
    }
    found
}

/// Returns the documents in a file.
fn documents(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    match path.extension().unwrap().to_str().unwrap() {
        "json" => vec![serde_json::from_str(&text).unwrap()],
        "jsonl" => text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
        _ => serde_yaml::Deserializer::from_str(&text)
            .map(|document| Value::deserialize(document).unwrap())
            .collect(),
    }
}

#[test]
fn every_key_of_a_run_is_described() {
    let dir = tempfile::tempdir().unwrap();
    let cases = [
        "relatives",
        "end-state",
        "ephemeral-resources-are-refused",
        "imagefs-inodes-have-a-default",
        "oom-score-adj-by-qos",
        "sidecars-are-named",
    ];
    let options = ["--output-dir", "run", "--record", "recordings", "--write-baseline=baseline.json", "-q"];
    evictlab(dir.path(), &[&["run"], &cases[..], &["--kubelet", "v1.31"], &options].concat());
    let mut checkers: BTreeMap<String, Checker> = BTreeMap::new();
    for path in files(dir.path()) {
        let file = path.file_name().unwrap().to_str().unwrap();
        let name = if path.starts_with(dir.path().join("recordings")) { "recording" } else { file };
        if OF_KUBERNETES.contains(&name) {
            continue;
        }
        let checker = checkers.entry(name.to_owned()).or_insert_with(|| Checker::new(name));
        // The samples of a case are alike.
        let last = if name == "samples.jsonl" { 3 } else { usize::MAX };
        for document in documents(&path).iter().take(last) {
            checker.check(document);
        }
    }
    let checked: Vec<&str> = checkers.keys().map(String::as_str).collect();
    let expected = [
        "answers.yaml",
        "baseline.json",
        "events.jsonl",
        "facts.yaml",
        "finished.json",
        "history.yaml",
        "recording",
        "result.json",
        "samples.jsonl",
        "started.json",
    ];
    assert_eq!(checked, expected);
    // Keys that few cases have.
    let recordings = files(&dir.path().join("recordings")).into_iter().flat_map(|path| documents(&path));
    let keys: BTreeSet<String> = recordings
        .flat_map(|recording| recording.as_object().unwrap().keys().cloned().collect::<Vec<_>>())
        .collect();
    for key in
        ["answers", "apiRejection", "containerLogs", "metrics", "objects", "podsGone", "triggerObserved"]
    {
        assert!(keys.contains(key), "no case has {key}");
    }
}

#[test]
fn every_key_of_lists_and_explanations_is_described() {
    let dir = tempfile::tempdir().unwrap();
    parse("list", evictlab(dir.path(), &["list", "--json"]));
    parse("mutants-list", evictlab(dir.path(), &["mutants", "list", "--json"]));
    let mutants = ["mutants", "run", "--case", "sidecars-are-named", "--defect", "message-omits-sidecars"];
    parse("mutants.json", evictlab(dir.path(), &[&mutants[..], &["--kubelet", "v1.33", "--json"]].concat()));
    let message = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 52Mi. \
        Container web was using 300Mi, request is 64Mi, has larger consumption of memory. ";
    let explained = parse("explain", evictlab(dir.path(), &["explain", "--json", message]));
    assert_eq!(explained[0]["containers"][0]["name"], "web", "{explained}");
}

/// Documents that other tests do not write, or that need a cluster of kind.
#[test]
fn every_key_of_records_and_figures_is_described() {
    let index = JobIndex { job: "ci/evictlab".parse().unwrap(), index: 2 };
    let owner = Owner { job: Some(index), ..Owner::current() };
    let record = ClusterRecord::new("daemon", "lab", "7f3a", owner.clone(), vec!["v1.32.13".to_owned()]);
    let record = ClusterRecord { node_ids: vec!["id".to_owned()], ..record };
    let report = IndexReport { exit_code: 1, verdicts: [("failed".to_owned(), 1)].into() };
    let point = GrowthPoint { size: 10, seconds: 0.5, mebibytes: None };
    let figure =
        Figure::from_values("list", Target { unit: Unit::Milliseconds, at_most: 50.0 }, &[34.0], "no run");
    let figures = [
        FigureResult::from(&Figure { growth: vec![point], ..figure.clone() }),
        FigureResult::from(&Figure { measured: None, ..figure }),
    ];
    Checker::new("owner").check(&json!(owner));
    Checker::new("cluster-record").check(&json!(record));
    Checker::new("job-report").check(&json!(report));
    Checker::new("bench").check(&json!(figures));
    let images = concat!(env!("CARGO_MANIFEST_DIR"), "/../../images/images.lock");
    let images: Value = serde_yaml::from_str(&fs::read_to_string(images).unwrap()).unwrap();
    Checker::new("images.lock").check(&images);
    let real = Checker::new("kubelet-results");
    for path in files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/real")) {
        documents(&path).iter().for_each(|results| real.check(results));
    }
}

#[test]
fn the_schema_of_a_document_is_printed_by_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let printed: Value = serde_json::from_str(&evictlab(dir.path(), &["schema", "events.jsonl"])).unwrap();
    assert_eq!(printed, Document::named("events.jsonl").unwrap().schema());
    assert_eq!(evictlab(dir.path(), &["schema", "case"]), evictlab(dir.path(), &["schema"]));
    let help = evictlab(dir.path(), &["schema", "--help"]);
    assert!(help.contains("- dry-run:") && help.contains("Preview of a run"), "{help}");
}

/// A key that no type describes is an error, in any object.
#[test]
#[should_panic(expected = "unevaluated")]
fn a_key_without_a_description_is_an_error() {
    let diagnosis = r#"{"fit": true, "checks": [{"about": "kind", "state": "ok", "found": "x", "new": 1}]}"#;
    parse("doctor", diagnosis);
}
