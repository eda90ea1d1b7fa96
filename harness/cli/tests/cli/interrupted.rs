//! Signals and time limits of a run that computes, or that waits for the reader of its output.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// A case whose end condition iterates over all tuples of a list, at each change.
const COSTLY: &str = "
name: costly
about: An expression that iterates for long.
pods: [{metadata: {name: p}, spec: {containers: [{name: c, image: pause}]}}]
until: 'TUPLES && t < 0.0'
expect: {evicted: []}
";

/// Writes the case with tuples of this many of fifteen numbers.
fn write_case(folder: &Path, length: usize) {
    let list: Vec<String> = (0..15).map(|number| number.to_string()).collect();
    let tuples =
        ["a", "b", "c", "d", "e"][..length].iter().rfold("a >= 0 && t >= 0.0".to_owned(), |inner, name| {
            format!("[{}].all({name}, {inner})", list.join(", "))
        });
    fs::create_dir(folder.join("mine")).unwrap();
    let text = COSTLY.replace("TUPLES", &tuples);
    fs::write(folder.join("mine/costly.yaml"), text).unwrap();
}

fn run(folder: &Path, arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
    command.current_dir(folder).env_remove("EVICTLAB_CASES").env_remove("ARTIFACTS_DIR");
    command
        .args(["run", "mine/costly.yaml", "--kubelet", "v1.32"])
        .args(if arguments.contains(&"--output-dir") { &[][..] } else { &["--output-dir", "results"] })
        .args(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits for the end of a run; fails after a time that no machine needs.
fn wait(mut child: Child) -> (Option<i32>, String) {
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > Duration::from_secs(300) {
            child.kill().unwrap();
            panic!("the run does not end");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    (child.wait().unwrap().code(), text)
}

/// A condition above the limit of the cost does not count as one that does not hold.
#[test]
fn a_condition_that_is_too_costly_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    write_case(folder.path(), 5);
    let file = folder.path().join("mine/costly.yaml");
    let text = fs::read_to_string(&file).unwrap();
    let condition = text.lines().find_map(|line| line.strip_prefix("until: ")).unwrap();
    let keys = [
        ("until", String::new()),
        ("trigger", format!("until: 't > 60.0'\ntrigger: {condition}")),
        ("when", format!("do: [{{when: {condition}, delete: {{pod: p}}}}]")),
    ];
    for (key, lines) in keys {
        let case =
            if key == "until" { text.clone() } else { text.replace(&format!("until: {condition}"), &lines) };
        fs::write(&file, case).unwrap();
        let (code, output) = wait(run(folder.path(), &["--output-dir", key]));
        assert_eq!(code, Some(4), "{key}: {output}");
        let why = format!("failed to evaluate `{key}`: the expression is too costly");
        assert!(output.contains(&why), "{key}: {output}");
    }
}

/// Each evaluation is below the cost limit and takes a moment; many of them take long.
#[test]
fn a_run_that_evaluates_expressions_ends_at_its_limit_and_by_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    write_case(folder.path(), 4);
    let (code, text) = wait(run(folder.path(), &["--timeout", "30s"]));
    assert!(matches!(code, Some(3 | 4)), "{code:?} {text}");
    fs::remove_dir_all(folder.path().join("results")).unwrap();
    let child = run(folder.path(), &["--repeat", "1000"]);
    let events = folder.path().join("results/artifacts/events.jsonl");
    while !fs::read_to_string(&events).is_ok_and(|text| text.contains("\"observe\"")) {
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let (code, text) = wait(child);
    assert_eq!(code, Some(130), "{text}");
    assert!(folder.path().join("results/finished.json").exists());
    // The notice that the run stops comes first.
    let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
    assert!(place("stopping and cleaning up") < place("no verdict"), "{text}");
}

/// The cases of mutants run in this process and leave nothing to clean up.
#[test]
fn mutants_end_by_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
    command.current_dir(folder.path()).env_remove("EVICTLAB_CASES").env_remove("ARTIFACTS_DIR");
    command.args(["mutants", "run", "--kubelet", "all", "--full", "--output-dir", "results"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !folder.path().join("results/artifacts").exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it created its directory");
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let (code, text) = wait(child);
    assert_eq!(code, Some(130), "{text}");
    assert!(text.contains("error: interrupted\n"), "{text}");
}

/// A measurement ends its process and removes its files.
#[test]
fn an_interrupt_ends_a_measurement() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
    command.args(["bench", "--backend", "embedded"]).current_dir(folder.path());
    command.env("TMPDIR", folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let bench = command.spawn().unwrap();
    let files = || fs::read_dir(folder.path()).unwrap().count();
    let began = Instant::now();
    while files() == 0 && began.elapsed() < Duration::from_secs(300) {
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&bench), Signal::INT).unwrap();
    let (code, text) = wait(bench);
    assert_eq!(code, Some(130), "{text}");
    assert!(text.contains("error: interrupted"), "{text}");
    assert_eq!(files(), 0, "{text}");
}
