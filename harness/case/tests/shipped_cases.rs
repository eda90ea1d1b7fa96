//! Tests of the shipped suites with the schema and the loader.

#![expect(clippy::unwrap_used, reason = "a panic in a test is its report")]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use boon::{Compiler, SchemaIndex, Schemas};
use evictlab_case::{LoadedCase, PressureSignal, SCHEMA_FILE, Source, json_schema, load};
use k8s_openapi::api::core::v1::{EphemeralContainer, Pod};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../cases"))
}

fn shipped() -> Vec<Arc<LoadedCase>> {
    load(&Source::Dir(root())).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn checked_in_schema_is_current() {
    let checked_in: Value =
        serde_json::from_str(&fs::read_to_string(root().join(SCHEMA_FILE)).unwrap()).unwrap();
    assert!(
        checked_in == json_schema(),
        "cases/{SCHEMA_FILE} is outdated: update it with `cargo run -q -- schema > cases/{SCHEMA_FILE}`"
    );
}

#[test]
fn default_distances_are_documented() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let readme = readme.split_whitespace().collect::<Vec<_>>().join(" ");
    let mebibytes = |signal: PressureSignal| format!("{}Mi", signal.default_distance() >> 20);
    let memory = mebibytes(PressureSignal::MemoryAvailable);
    assert!(readme.contains(&format!("by default {memory} for memory")), "cases/README.md states {memory}");
    let schema = json_schema();
    let distance = schema["$defs"]["Pressure"]["properties"]["distance"]["description"].as_str().unwrap();
    let disk = mebibytes(PressureSignal::NodefsAvailable);
    let [inodes, pids] = [PressureSignal::NodefsInodesFree, PressureSignal::PidAvailable]
        .map(|signal| format!("{},000", signal.default_distance() / 1000));
    let expected = format!("{memory} for memory, {disk} of a disk, {inodes} inodes, {pids} process IDs.");
    assert!(distance.ends_with(&expected), "{distance}");
}

fn compiled_schema() -> (Schemas, SchemaIndex) {
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    compiler.add_resource(SCHEMA_FILE, json_schema()).unwrap();
    let index = compiler.compile(SCHEMA_FILE, &mut schemas).unwrap();
    (schemas, index)
}

#[test]
fn every_case_is_valid_by_the_schema() {
    let (schemas, schema) = compiled_schema();
    for case in shipped() {
        let text = fs::read_to_string(root().join(&case.file)).unwrap();
        let value: Value = serde_saphyr::from_str(&text).unwrap();
        if let Err(error) = schemas.validate(&value, schema) {
            panic!("{}: {error:#}", case.file);
        }
    }
}

/// The schema rejects what the loader rejects, as far as a schema can.
#[test]
fn schema_rejects_what_the_loader_rejects() {
    let (schemas, schema) = compiled_schema();
    let good = fs::read_to_string(root().join("message/sidecars-are-named.yaml")).unwrap();
    let rows = [
        ("request: \"0\"", "request: lots"),
        (">=100Mi", "100Mi"),
        ("\">=1.29\"", "\"1.29\""),
        ("memory.available", "memory.free"),
        ("kubernetes/kubernetes#124938,", "\"124938\","),
        ("about:", "abuot:"),
        ("name: sidecars-are-named", "name: Sidecars"),
        ("{signal: memory.available}", "{signal: memory.available, ramp: fast}"),
    ];
    for (valid, invalid) in rows {
        let text = good.replacen(valid, invalid, 1);
        assert_ne!(text, good, "{valid}");
        let value: Value = serde_saphyr::from_str(&text).unwrap();
        assert!(schemas.validate(&value, schema).is_err(), "{invalid}");
    }
}

#[test]
fn every_case_is_documented_and_labelled() {
    for case in shipped() {
        assert!(case.case.when_it_fails.is_some(), "{}", case.file);
        assert!(
            case.case.about.ends_with('.') && !case.case.about.contains('\n'),
            "{}: {}",
            case.file,
            case.case.about
        );
        // Upstream jobs select by these labels: cases with pressure are Serial and Disruptive, and
        // Disruptive cases are Serial.
        let has = |label: &str| case.case.labels.iter().any(|one| one == label);
        let [serial, disruptive] = ["Serial", "Disruptive"].map(has);
        let has_pressure = case.case.pressure.is_some();
        assert!(!has_pressure || serial && disruptive, "{}: {:?}", case.file, case.case.labels);
        assert!(serial || !disruptive, "{}: {:?}", case.file, case.case.labels);
        assert!(!case.case.labels.is_empty(), "{}", case.file);
    }
}

/// Returns a field of a manifest that the API type does not have, which `kubectl create` would
/// reject.
fn unknown_field<T: DeserializeOwned + Serialize>(manifest: &Map<String, Value>) -> Option<String> {
    fn lost(written: &Value, read: &Value, path: &str) -> Option<String> {
        match (written, read) {
            (Value::Object(written), Value::Object(read)) => written.iter().find_map(|(key, value)| {
                let path = format!("{path}.{key}");
                read.get(key).map_or_else(|| Some(path.clone()), |read| lost(value, read, &path))
            }),
            (Value::Array(written), Value::Array(read)) => {
                let mut items = written.iter().zip(read).enumerate();
                items.find_map(|(at, (value, read))| lost(value, read, &format!("{path}[{at}]")))
            }
            _ => (written != read).then(|| path.to_owned()),
        }
    }
    let manifest = Value::Object(manifest.clone());
    match serde_json::from_value::<T>(manifest.clone()) {
        Ok(typed) => lost(&manifest, &serde_json::to_value(typed).ok()?, ""),
        Err(why) => Some(why.to_string()),
    }
}

#[test]
fn every_manifest_has_only_fields_of_the_api() {
    for case in shipped() {
        for pod in case.case.pods.iter().chain(case.case.all_static_pods()) {
            assert_eq!(unknown_field::<Pod>(pod), None, "{}", case.file);
        }
        for ephemeral in &case.case.ephemeral_containers {
            assert_eq!(unknown_field::<EphemeralContainer>(&ephemeral.container), None, "{}", case.file);
        }
    }
    let broken = r#"{"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "imagee": "x"}]}}"#;
    assert_eq!(
        unknown_field::<Pod>(&serde_json::from_str(broken).unwrap()).as_deref(),
        Some(".spec.containers[0].imagee")
    );
}

#[test]
fn suites_are_complete() {
    let mut suites: BTreeMap<String, usize> = BTreeMap::new();
    for case in shipped() {
        *suites.entry(case.suite.clone()).or_default() += 1;
    }
    let expected = [
        ("end-state", 19),
        ("file-systems", 10),
        ("limits", 30),
        ("message", 15),
        ("out-of-memory", 10),
        ("pids", 6),
        ("ranking", 28),
        ("relatives", 35),
        ("signals", 13),
        ("storage", 15),
        ("thresholds", 44),
    ];
    assert_eq!(suites, expected.map(|(suite, cases)| (suite.to_owned(), cases)).into());
}
