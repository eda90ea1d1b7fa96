//! `evictlab gc --results` and `run --keep-runs`

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::documents;
use crate::full_disk::on_a_small_disk;

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

#[test]
fn old_runs_are_deleted_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let runs = || -> BTreeSet<String> {
        let entries = fs::read_dir(folder.path().join("results")).unwrap().map(Result::unwrap);
        let dirs = entries.filter(|entry| entry.file_type().unwrap().is_dir());
        dirs.map(|entry| entry.file_name().into_string().unwrap()).collect()
    };
    let evictlab = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
        let output = command.current_dir(folder.path()).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let run = ["run", "message/sidecars-are-named", "--kubelet", "v1.32"];
    for _ in 0..3 {
        evictlab(&run);
    }
    let three = runs();
    evictlab(&[&run[..], &["--keep-runs", "2"]].concat());
    let two = runs();
    assert_eq!((three.len(), two.len(), two.intersection(&three).count()), (3, 2, 1));
    let gc = |arguments: &[&str]| evictlab(&[&["gc"], arguments].concat());
    let planned = gc(&["--results", "--keep-runs", "1", "--dry-run"]);
    assert!(planned.contains("would be deleted") && runs() == two, "{planned}");
    gc(&["--results", "--keep-runs", "1"]);
    assert_eq!(runs().len(), 1);
    assert_eq!(gc(&["--results", "--keep-runs", "1"]), "no old runs in results\n");
}

/// A directory in which a file system is mounted cannot be deleted.
#[test]
fn a_run_that_cannot_be_deleted_does_not_keep_the_others() {
    let evictlab = env!("CARGO_BIN_EXE_evictlab");
    let script = format!(
        "for day in 20 21 22; do run=results/2026-11-${{day}}T03-00-00Z; mkdir -p $run/artifacts; echo > $run/finished.json; done; \
         mount -t tmpfs tmpfs results/2026-11-20T03-00-00Z/artifacts; \
         {evictlab} gc --results --keep-runs 1 --json; echo $?; ls results"
    );
    let Some((status, out, err)) = on_a_small_disk(&script) else {
        eprintln!("skipped: this host allows no mount namespace of one's own");
        return;
    };
    assert_eq!(status, Some(0), "{err}");
    let (entries, rest) = out.rsplit_once("]\n").unwrap();
    let entries = documents::parse("gc", format!("{entries}]").as_bytes());
    assert_eq!((&entries[0]["outcome"], &entries[1]["outcome"]), (&json!("failed"), &json!("removed")));
    assert_eq!(rest, "4\n2026-11-20T03-00-00Z\n2026-11-22T03-00-00Z\n");
    assert!(err.contains("failed to delete results/2026-11-20T03-00-00Z: "), "{err}");
}
