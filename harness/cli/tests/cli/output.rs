//! `--format`, `--quiet`, `--verbose` and `--color`.

use std::fs;
use std::mem::{Discriminant, discriminant};
use std::process::Command;

use evictlab_report::{RunEvent, RunEventKind};
use tempfile::TempDir;

const RUN: [&str; 4] = ["run", "message/sidecars-are-named", "--kubelet", "v1.31,v1.32"];

/// Standard output of a run that exits with 0.
fn output(folder: &TempDir, arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
    command.current_dir(folder.path()).env_clear().envs(variables.iter().copied());
    let output = command.args(RUN).args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn plain_output_has_one_line_for_each_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let normal = output(&folder, &[], &[]);
    let of_case: Vec<&str> = normal.lines().filter(|line| line.contains("  sidecars-are-named  ")).collect();
    assert_eq!(of_case.len(), 2, "{normal}");
    let verbose = output(&folder, &["-v"], &[]);
    assert!(verbose.contains("  sidecars-are-named  observe  "), "{verbose}");
    let quiet = output(&folder, &["--quiet"], &[]);
    assert!(quiet.contains("1 passed, 1 reproduced") && !quiet.contains("| case"), "{quiet}");
    // The build log has every step, whatever was printed.
    let log = fs::read_to_string(folder.path().join("results/latest/build-log.txt")).unwrap();
    assert!(log.contains("  sidecars-are-named  observe  "), "{log}");
}

#[test]
fn json_output_is_the_event_stream() {
    let folder = tempfile::tempdir().unwrap();
    let printed = output(&folder, &["--format", "json"], &[]);
    let events = fs::read_to_string(folder.path().join("results/latest/artifacts/events.jsonl")).unwrap();
    assert_eq!(printed, events);
    let short = output(&folder, &["--json"], &[]);
    let kinds = |text: &str| -> Vec<Discriminant<RunEventKind>> {
        let event = |line: &str| serde_json::from_str::<RunEvent>(line).unwrap();
        text.lines().map(|line| discriminant(&event(line).kind)).collect()
    };
    assert_eq!(kinds(&short), kinds(&events));
}

#[test]
fn short_options_and_colors_are_the_same_in_every_command() {
    let evictlab = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_evictlab")).args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    for command in
        ["run", "stress", "verify", "bisect", "list", "lint", "history", "doctor", "watch", "bench"]
    {
        assert!(evictlab(&[command, "--help"]).contains("--color <WHEN>"), "{command}");
    }
    for (command, options) in [
        ("run", &["-k, --kubelet", "-b, --backend", "-f, --focus", "-l, --label-filter", "-r, --repeat"][..]),
        ("stress", &["-k, --kubelet", "-b, --backend", "-f, --focus", "-l, --label-filter", "-r, --repeat"]),
        ("verify", &["-b, --backend", "-f, --focus", "-l, --label-filter"]),
        ("bisect", &["-k, --kubelet", "-b, --backend"]),
        ("bench", &["-k, --kubelet", "-b, --backend", "-r, --repeat"]),
        ("doctor", &["-k, --kubelet"]),
        ("list", &["-f, --focus", "-l, --label-filter"]),
    ] {
        let help = evictlab(&[command, "--help"]);
        let missing: Vec<_> = options.iter().filter(|option| !help.contains(**option)).collect();
        assert!(missing.is_empty(), "{command}: {missing:?}");
    }
}

#[test]
fn actions_get_groups_and_colors_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let github = output(&folder, &["--color", "always"], &[("GITHUB_ACTIONS", "true")]);
    assert!(github.contains("\n::stop-commands::evictlab-") && github.contains('\x1b'), "{github}");
    let plain = output(&folder, &["--format", "plain", "--color", "never"], &[("GITHUB_ACTIONS", "true")]);
    assert!(!plain.contains("::stop-commands::") && !plain.contains('\x1b'), "{plain}");
}

#[test]
fn other_commands_get_colors_on_request() {
    const MESSAGE: &str = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 52Mi.";
    let folder = tempfile::tempdir().unwrap();
    // Standard output, and standard error of a command that fails.
    for (arguments, colored) in [
        (&["list", "message"][..], "\x1b[1m SUITE"),
        (&["explain", MESSAGE], "\x1b[1mA pod\x1b[0m"),
        (&["lint", "no-such-suite"], "\x1b[31merror:\x1b[0m"),
    ] {
        let text = |variables: &[(&str, &str)], color: &str| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
            command.current_dir(folder.path()).env_clear().envs(variables.iter().copied());
            let output = command.args(arguments).args(["--color", color]).output().unwrap();
            [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat()
        };
        let always = text(&[], "always");
        assert!(always.contains(colored), "{arguments:?}: {always:?}");
        for plain in [text(&[], "auto"), text(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], "auto")] {
            assert!(!plain.contains('\x1b'), "{arguments:?}: {plain:?}");
        }
        assert!(text(&[("CLICOLOR_FORCE", "1")], "auto").contains(colored), "{arguments:?}");
    }
}
