//! `evictlab gc --results`

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::documents;

#[test]
fn json_has_the_outcome_of_each_leftover() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["2026-11-20T03-00-00Z", "2026-11-21T03-00-00Z", "2026-11-22T03-00-00Z"];
    for name in names {
        let dir = folder.path().join("results").join(name);
        fs::create_dir_all(dir.join("artifacts")).unwrap();
        fs::write(dir.join("finished.json"), "{}").unwrap();
    }
    let gc = |more: &[&str]| -> Value {
        let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
        command.current_dir(folder.path()).args(["gc", "--results", "--keep-runs", "1", "--json"]).args(more);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        documents::parse("gc", &output.stdout)
    };
    let expected = |outcome: &str| {
        let of =
            |name: &&str| json!({"kind": "directory", "name": format!("results/{name}"), "outcome": outcome});
        Value::from(names[..2].iter().map(of).collect::<Vec<_>>())
    };
    assert_eq!(gc(&["--dry-run"]), expected("would-be-removed"));
    assert_eq!(gc(&[]), expected("removed"));
    assert_eq!(gc(&[]), json!([]));
    assert_eq!(fs::read_dir(folder.path().join("results")).unwrap().count(), 1);
}
