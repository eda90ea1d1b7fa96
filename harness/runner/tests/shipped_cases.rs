//! The suites that we ship, against the schema and the loader.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use evictlab_runner::case::{LoadedCase, SCHEMA_FILE, Source, json_schema, load};
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
fn the_schema_is_that_of_the_types() {
    let checked_in: Value =
        serde_json::from_str(&fs::read_to_string(root().join(SCHEMA_FILE)).unwrap()).unwrap();
    assert!(
        checked_in == json_schema(),
        "cases/{SCHEMA_FILE} is not what the types say: update it by `cargo run -q -- schema > cases/{SCHEMA_FILE}`"
    );
}

#[test]
fn every_case_fits_the_schema() {
    let schema = jsonschema::validator_for(&json_schema()).unwrap();
    for case in shipped() {
        let text = fs::read_to_string(root().join(&case.file)).unwrap();
        let value: Value = serde_saphyr::from_str(&text).unwrap();
        let errors: Vec<_> = schema.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{}: {errors:#?}", case.file);
    }
}

/// The schema says no where the loader does, as far as a schema can.
#[test]
fn the_schema_refuses_what_the_loader_refuses() {
    let schema = jsonschema::validator_for(&json_schema()).unwrap();
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
    for (right, wrong) in rows {
        let text = good.replacen(right, wrong, 1);
        assert_ne!(text, good, "{right}");
        assert!(!schema.is_valid(&serde_saphyr::from_str::<Value>(&text).unwrap()), "{wrong}");
    }
}

#[test]
fn every_case_says_what_its_failure_means() {
    for case in shipped() {
        assert!(case.case.when_it_fails.is_some(), "{}", case.file);
        assert!(
            case.case.about.ends_with('.') && !case.case.about.contains('\n'),
            "{}: {}",
            case.file,
            case.case.about
        );
        // Upstream's jobs select by these: what starves a node says so, and what says that it disturbs one has it for itself.
        let has = |label: &str| case.case.labels.iter().any(|one| one == label);
        let [serial, disruptive] = ["Serial", "Disruptive"].map(has);
        let starves = case.case.pressure.is_some();
        assert!(!starves || serial && disruptive, "{}: {:?}", case.file, case.case.labels);
        assert!(serial || !disruptive, "{}: {:?}", case.file, case.case.labels);
        assert!(!case.case.labels.is_empty(), "{}", case.file);
    }
}

/// What a manifest has and the API's type has not: `kubectl create` would refuse it. The API server is the judge of a
/// run; this finds a slip before there is one.
fn unknown<T: DeserializeOwned + Serialize>(manifest: &Map<String, Value>) -> Option<String> {
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
fn every_manifest_is_what_the_api_takes() {
    for case in shipped() {
        for pod in &case.case.pods {
            assert_eq!(unknown::<Pod>(pod), None, "{}", case.file);
        }
        for ephemeral in &case.case.ephemeral_containers {
            assert_eq!(unknown::<EphemeralContainer>(&ephemeral.container), None, "{}", case.file);
        }
    }
    let broken = r#"{"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "imagee": "x"}]}}"#;
    assert_eq!(
        unknown::<Pod>(&serde_json::from_str(broken).unwrap()).as_deref(),
        Some(".spec.containers[0].imagee")
    );
}

#[test]
fn the_suites_are_complete() {
    let mut suites: BTreeMap<String, usize> = BTreeMap::new();
    for case in shipped() {
        *suites.entry(case.suite.clone()).or_default() += 1;
    }
    let expected = [
        ("end-state", 8),
        ("limits", 8),
        ("message", 13),
        ("out-of-memory", 6),
        ("pids", 3),
        ("ranking", 12),
        ("relatives", 8),
        ("signals", 6),
        ("storage", 7),
        ("thresholds", 12),
    ];
    assert_eq!(suites, expected.map(|(suite, cases)| (suite.to_owned(), cases)).into());
}
