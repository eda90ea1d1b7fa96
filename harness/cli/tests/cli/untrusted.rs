//! Untrusted text that commands print: no control characters, and no commands to GitHub.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use serde_json::json;

/// Sets the clipboard, clears the screen, and reverses the text that follows.
const CONTROLS: &str = "\u{1b}]52;c;cm0=\u{7}\u{1b}[2J\u{9b}31m\u{202e}";

/// Runs a command on a file with this content; returns what it prints.
fn printed(content: &str, arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("suite")).unwrap();
    fs::write(folder.path().join("suite/a.yaml"), content).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
    command.current_dir(folder.path()).env_remove("EVICTLAB_CASES").env("GITHUB_ACTIONS", "true");
    let output = command.args(arguments).output().unwrap();
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

fn assert_harmless(text: &str) {
    let is_control = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
    assert!(!text.contains(is_control), "{text:?}");
    assert!(!text.lines().any(|line| line.trim_start().starts_with("::set-output")), "{text}");
}

#[test]
fn explanations_are_harmless() {
    let escaped = CONTROLS.replace('\u{1b}', "\\e").replace('\u{7}', "\\a").replace('\u{9b}', "\\x9b");
    let pod = format!(
        "kind: Pod\nmetadata: {{name: \"p{escaped}\\n::set-output name=a::b\"}}\nstatus:\n  phase: Failed\n  reason: Evicted\n  message: \"The node was low on resource: memory. {escaped}\"\n"
    );
    let valid = pod.replace(&format!("memory. {escaped}"), "memory. ");
    for text in [pod, valid] {
        let text = printed(&text, &["explain", "suite/a.yaml"]);
        assert!(text.contains("\\u{1b}"), "{text}");
        assert_harmless(&text);
    }
}

#[test]
fn problems_of_case_files_are_harmless() {
    let case = format!("name: a\nabout: \"b{}\nunknown{CONTROLS}: 1\n::set-output name=a::b\n", "\\e[2J\"");
    for arguments in [&["lint", "suite/a.yaml"][..], &["run", "suite/a.yaml"], &["export", "suite/a.yaml"]] {
        let text = printed(&case, arguments);
        assert!(!text.is_empty());
        assert_harmless(&text);
    }
}

#[test]
fn descriptions_of_cases_are_harmless() {
    let case = "name: a\nabout: \"about \\e]52;c;cm0=\\a \\u202e\\n::set-output name=a::b\"\npods: [{metadata: {name: p}, spec: {containers: [{name: c, image: pause}]}}]\nexpect: {evicted: []}\n";
    for arguments in
        [&["list", "suite/a.yaml"][..], &["list", "--json", "suite/a.yaml"], &["run", "suite/a.yaml"]]
    {
        assert_harmless(&printed(case, arguments));
    }
}

/// Makes a run on kind, of one case on one kubelet, that has no verdict.
fn untrusted_run(folder: &Path, kubelet: &str, path: Option<&str>) {
    let mut case = json!({"suite": "message", "case": "requests-decide", "about": "", "labels": [], "upstream": [], "file": "message/requests-decide.yaml"});
    if let Some(path) = path {
        case["path"] = path.into();
    }
    let at = "2026-11-21T09:30:12Z";
    let start = json!({"at": at, "type": "run-started", "run": "r", "evictlab": "0.1.0", "backend": "kind", "kubelets": ["v1.31.14"], "kubeletArgs": {"v1.31.14": kubelet}, "cases": [case]});
    let artifacts = folder.join("results/latest/artifacts");
    fs::create_dir_all(&artifacts).unwrap();
    fs::write(artifacts.join("events.jsonl"), format!("{start}\n")).unwrap();
}

/// Results name what ran: a program, an image, a file of a case.
#[test]
fn results_run_no_program_and_load_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("kubelet");
    fs::write(&program, "#!/bin/sh\ntouch ran\necho Kubernetes v1.31.14\n").unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let rows = [
        ("v1.31.14=./kubelet", None, "v1.31.14=./kubelet"),
        ("v1.31.14=example.org/node:v1.31.14", None, "v1.31.14=example.org/node:v1.31.14"),
        ("v1.31.14", Some("mine.yaml"), "mine.yaml"),
    ];
    for (kubelet, path, named) in rows {
        untrusted_run(folder.path(), kubelet, path);
        let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
        command.current_dir(folder.path()).env_remove("EVICTLAB_CASES");
        // The program would run before Docker is needed.
        command.args(["run", "--rerun-failed", "--backend", "kind", "--dry-run"]);
        let output = command.output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{err}");
        assert!(
            err.contains("help: if these are yours, repeat the options of that run") && err.contains(named),
            "{err}"
        );
        assert!(!folder.path().join("ran").exists(), "{kubelet}");
    }
}

/// Links in a run directory lead to files of the user: none is replaced, and none is in a report.
#[test]
fn links_in_results_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let evictlab = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
        command.current_dir(folder.path()).env_remove("EVICTLAB_CASES");
        let output = command.args(arguments).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let run = ["run", "message/requests-decide", "--kubelet", "v1.32.11", "--output-dir", "run"];
    assert_eq!(evictlab(&run).0, 0);
    let path = |name: &str| folder.path().join(name);
    symlink("run", path("latest")).unwrap();
    let keys = path("keys");
    fs::create_dir(&keys).unwrap();
    fs::write(keys.join("authorized"), "my secret").unwrap();
    let link = |from: &str| symlink(keys.join("authorized"), path(from)).unwrap();

    // The page and its partial file.
    link("run/report.html");
    link("run/report.html.partial");
    assert_eq!(evictlab(&["report", "latest"]).0, 0);
    assert!(!path("run/report.html").is_symlink());
    assert_eq!(fs::read_to_string(keys.join("authorized")).unwrap(), "my secret");

    // A file of the evidence.
    let case = "run/artifacts/message/requests-decide/v1.32.11";
    let log = format!("{case}/kubelet.log");
    fs::remove_file(path(&log)).unwrap();
    link(&log);
    let (status, err) = evictlab(&["report", "run"]);
    assert!(status == 2 && err.contains("kubelet.log is a symbolic link"), "{status} {err}");

    // The directory of a case.
    fs::rename(path(case), path("elsewhere")).unwrap();
    symlink(&keys, path(case)).unwrap();
    let merge = ["report", "merge", "run", "--output-dir", "merged"];
    let (status, err) = evictlab(&merge);
    assert_eq!(status, 0, "{err}");
    assert!(!path("merged/artifacts/message/requests-decide/v1.32.11/authorized").exists());

    // Events that would never end.
    fs::remove_file(path("run/artifacts/events.jsonl")).unwrap();
    let made = Command::new("mkfifo").arg(path("run/artifacts/events.jsonl")).status().unwrap();
    assert!(made.success());
    let (status, err) = evictlab(&["report", "run"]);
    assert!(status == 2 && err.contains("it is not a regular file"), "{status} {err}");
}
