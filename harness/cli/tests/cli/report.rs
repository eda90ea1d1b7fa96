//! `evictlab report`

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::documents;

fn evictlab(folder: &TempDir, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
    command.current_dir(folder.path()).env_remove("EVICTLAB_CASES").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_owned()).unwrap()
}

#[test]
fn renders_a_run_as_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let run = evictlab(
        &folder,
        &["run", "message", "--kubelet", "v1.31", "--kubelet", "v1.32", "--focus", "sidecars-are-named"],
    );
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let made = evictlab(&folder, &["report"]);
    assert_eq!(
        (made.status.code(), text(&made.stdout)),
        (Some(0), "results/latest/report.html\n".to_owned())
    );
    let file = folder.path().join("results/latest/report.html");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o077, 0, "it contains evidence");
    let page = fs::read_to_string(&file).unwrap();
    // Both kubelets, each with its picture, its pods and its log.
    assert_eq!(page.matches("<article ").count(), 2);
    assert_eq!(page.matches("<svg ").count(), 2);
    for part in ["memory.available", "evicted", "starved_resource", "a model", "Pods as created"] {
        assert!(page.contains(part), "{part}");
    }
    // Events without their metadata.
    assert!(page.contains("<th>last seen</th>") && !page.contains("involvedObject"), "events are a table");
    // Every case links to its files, from the page beside them and from another place.
    let other = evictlab(&folder, &["report", "results/latest", "--output", "page.html"]);
    assert_eq!(text(&other.stdout), "page.html\n");
    for (dir, file) in [("results/latest", "report.html"), ("", "page.html")] {
        let dir = folder.path().join(dir);
        let page = fs::read_to_string(dir.join(file)).unwrap();
        let links: Vec<&str> =
            page.split("href=\"").skip(1).filter_map(|part| part.split('"').next()).collect();
        let files: Vec<_> = links.iter().filter(|link| link.contains("artifacts/")).collect();
        assert_eq!(files.len(), 2 * 7, "{links:?}");
        assert!(files.iter().all(|link| dir.join(link).is_file()), "{files:?}");
    }
    let printed = evictlab(&folder, &["report", "results/latest", "--output", "-"]);
    assert!(!text(&printed.stdout).contains("href=\"artifacts/"), "the place of the page is unknown");
}

#[test]
fn runs_again_what_failed() {
    let folder = tempfile::tempdir().unwrap();
    let again = ["run", "--rerun-failed"];
    let broken = evictlab(&folder, &["run", "message", "--defect", "message-omits-sidecars"]);
    assert_eq!(broken.status.code(), Some(1), "{}", text(&broken.stderr));
    let cases = |output: &Output| {
        let matrix = text(&output.stdout);
        matrix.lines().filter(|line| line.starts_with("| message/")).count()
    };
    let rerun = evictlab(&folder, &again);
    assert_eq!(rerun.status.code(), Some(0), "{}", text(&rerun.stderr));
    assert!(0 < cases(&rerun) && cases(&rerun) < cases(&broken), "{}", text(&rerun.stdout));
    let kubelets = ["--kubelet", "v1.36.2", "--kubelet", "v1.36.2"];
    let broken = ["run", "sidecars-are-named", "--defect", "message-omits-sidecars"];
    assert_eq!(evictlab(&folder, &[&broken[..], &kubelets].concat()).status.code(), Some(1));
    let plan = evictlab(&folder, &["run", "--rerun-failed", "--dry-run"]);
    let plan_text = text(&plan.stdout);
    // Two nodes of one version, and not one of a pre-release `v1.36.2-2`.
    assert!(plan_text.contains("v1.36.2-2") && plan.stderr.is_empty(), "{plan_text}{}", text(&plan.stderr));
    assert_eq!(evictlab(&folder, &again).status.code(), Some(0));
    let nothing = evictlab(&folder, &again);
    assert_eq!(nothing.status.code(), Some(0));
    assert_eq!(text(&nothing.stderr), "no case of results/latest is to run again\n");
    let refused = evictlab(&folder, &["run", "--rerun-failed=nowhere"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("failed to read run nowhere: "), "{}", text(&refused.stderr));
}

#[test]
fn reads_runs_of_older_versions() {
    let folder = tempfile::tempdir().unwrap();
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/run-of-format-2");
    let made = evictlab(&folder, &["report", sample, "--output", "page.html"]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert_eq!((page.matches("<svg ").count(), page.matches("backend").count() > 0), (2, true));
}

#[test]
fn compares_two_runs() {
    let folder = tempfile::tempdir().unwrap();
    for (kubelet, dir) in [("v1.31", "old"), ("v1.31", "same")] {
        let run = evictlab(
            &folder,
            &["run", "message", "--focus", "nobody-offends", "--kubelet", kubelet, "--output-dir", dir],
        );
        assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    }
    let compared = evictlab(&folder, &["report", "--compare", "old", "same"]);
    let report = text(&compared.stdout);
    assert_eq!(compared.status.code(), Some(0), "{}", text(&compared.stderr));
    assert!(report.contains("0 changed, 1 unchanged.") && report.contains("1 passed"), "{report}");
    let json = evictlab(&folder, &["report", "--compare", "old", "same", "--json", "--exit-code"]);
    let json = documents::parse("report-compare", &json.stdout);
    assert_eq!((&json["changed"], &json["unchanged"]), (&serde_json::json!([]), &serde_json::json!(1)));
    let case = ["run", "sidecars-are-named", "--output-dir"];
    evictlab(&folder, &[&case[..], &["sound"]].concat());
    evictlab(&folder, &[&case[..], &["broken", "--defect", "message-omits-sidecars"]].concat());
    let changed =
        evictlab(&folder, &["report", "--compare", "sound", "broken", "--exit-code", "-o", "changes.md"]);
    assert_eq!((changed.status.code(), text(&changed.stdout)), (Some(1), "changes.md\n".to_owned()));
    assert!(fs::read_to_string(folder.path().join("changes.md")).unwrap().contains("1 changed"));
    evictlab(&folder, &["report", "--compare", "sound", "broken", "-o", "changes.html"]);
    let page = fs::read_to_string(folder.path().join("changes.html")).unwrap();
    assert!(page.contains("<td>message/sidecars-are-named</td>"), "{page}");
    let refused = evictlab(&folder, &["report", "--compare", "old", "nowhere"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("failed to read run nowhere: "), "{}", text(&refused.stderr));
}

#[test]
fn rejects_directories_without_a_run() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    for (dir, why) in [("empty", "failed to read run empty: "), ("nowhere", "failed to read run nowhere: ")] {
        let refused = evictlab(&folder, &["report", dir]);
        assert_eq!(refused.status.code(), Some(2));
        let stdout = text(&refused.stderr);
        assert!(stdout.contains(why) && stdout.contains("results/latest"), "{stdout}");
    }
    let run = evictlab(&folder, &["run", "message", "--focus", "nobody-offends", "--output-dir", "run"]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let refused = evictlab(&folder, &["report", "run", "--output", "no/such/page.html"]);
    assert_eq!(refused.status.code(), Some(4));
    let error = text(&refused.stderr);
    assert!(error.contains("failed to write no/such/page.html"), "{error}");
    assert!(error.contains("help: create its directory, or choose another file with --output\n"), "{error}");
}
