//! A run whose standard output no process reads, as behind a stopped terminal or a pager.

use std::fs;
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process};

/// Returns a pipe that takes nothing more until it is read, and its content.
pub(crate) fn full_pipe() -> (PipeReader, PipeWriter, usize) {
    let (reader, mut writer) = io::pipe().unwrap();
    fcntl_setfl(&writer, OFlags::NONBLOCK).unwrap();
    let mut filled = 0;
    loop {
        match writer.write(&[b'.'; 512]) {
            Ok(written) => filled += written,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    fcntl_setfl(&writer, OFlags::empty()).unwrap();
    (reader, writer, filled)
}

fn run(folder: &Path, arguments: &[&str], stdout: PipeWriter) -> Child {
    let case = ["run", "message/requests-decide", "--kubelet", "v1.32", "--output-dir", "results"];
    start(folder, &[&case, arguments].concat(), stdout)
}

fn start(folder: &Path, arguments: &[&str], stdout: PipeWriter) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
    command.current_dir(folder).env_remove("EVICTLAB_CASES").env_remove("ARTIFACTS_DIR");
    command.args(arguments).stdout(stdout).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits for a condition; fails after a time that no machine needs.
pub(crate) fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(300), "{what}");
        thread::sleep(Duration::from_millis(50));
    }
}

fn stderr(child: &mut Child) -> String {
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_run_writes_its_files_and_waits_for_the_reader() {
    let folder = tempfile::tempdir().unwrap();
    let (mut reader, writer, filled) = full_pipe();
    let mut child = run(folder.path(), &[], writer);
    let junit = folder.path().join("results/artifacts/junit_evictlab.xml");
    wait_for("no JUnit file", || fs::read_to_string(&junit).is_ok_and(|text| text.contains("</testsuites>")));
    assert!(child.try_wait().unwrap().is_none(), "the output is lost: {}", stderr(&mut child));
    let mut output = String::new();
    reader.read_to_string(&mut output).unwrap();
    assert!(output[filled..].contains("passed"), "{}", &output[filled..]);
    assert_eq!(child.wait().unwrap().code(), Some(0), "{}", stderr(&mut child));
}

/// The run has ended before the signals: only its output is left, so nothing else receives them.
#[test]
fn a_finished_run_ends_by_a_signal_without_the_reader() {
    for signals in [1, 2] {
        let folder = tempfile::tempdir().unwrap();
        let (_reader, writer, _) = full_pipe();
        let mut child = run(folder.path(), &[], writer);
        let finished = folder.path().join("results/finished.json");
        wait_for("the run does not end", || finished.is_file());
        let junit = folder.path().join("results/artifacts/junit_evictlab.xml");
        wait_for("no JUnit file", || {
            fs::read_to_string(&junit).is_ok_and(|text| text.contains("</testsuites>"))
        });
        for _ in 0..signals {
            kill_process(Pid::from_child(&child), Signal::INT).unwrap();
            thread::sleep(Duration::from_millis(100));
        }
        wait_for("the signal has no effect", || child.try_wait().unwrap().is_some());
        let error = stderr(&mut child);
        assert_eq!(child.wait().unwrap().code(), Some(130), "{signals} signals: {error}");
        assert!(error.contains("standard output was not read for 5 s"), "{error}");
    }
}

#[test]
fn a_run_at_its_time_limit_ends_without_the_reader() {
    let folder = tempfile::tempdir().unwrap();
    let (_reader, writer, _) = full_pipe();
    let mut child = run(folder.path(), &["--timeout", "1s"], writer);
    wait_for("the run does not end", || child.try_wait().unwrap().is_some());
    let error = stderr(&mut child);
    assert!(error.contains("standard output was not read for 5 s"), "{error}");
    assert!(folder.path().join("results/artifacts/junit_evictlab.xml").is_file());
}

/// The first signal ends a command that only waits for its reader; the third does so at once.
#[test]
fn verify_and_bisect_end_by_signals_without_the_reader() {
    let verify =
        ["verify", "sidecars-are-named", "--before", "v1.31", "--after", "v1.32", "--output-dir", "results"];
    let bisect =
        ["bisect", "sidecars-are-named", "--bad", "v1.31", "--good", "v1.32", "--output-dir", "results"];
    let rows: [(&[&str], &[&str], &str); 4] = [
        (&verify, &["--json"], "results/verify.md"),
        (&verify, &[], "results/verify.md"),
        (&bisect, &["--json"], "results/bisect.md"),
        // Its first line waits for the reader.
        (&bisect, &[], "results/artifacts"),
    ];
    for (command, more, file) in rows {
        for is_repeated in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let (_reader, writer, _) = full_pipe();
            let mut child = start(folder.path(), &[command, more].concat(), writer);
            wait_for("the command does not get to its output", || folder.path().join(file).exists());
            kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
            // A busy command sees signals that follow each other closely as one.
            while is_repeated && child.try_wait().unwrap().is_none() {
                kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
                thread::sleep(Duration::from_millis(100));
            }
            wait_for("the signal has no effect", || child.try_wait().unwrap().is_some());
            let error = stderr(&mut child);
            let name = format!("{command:?} {more:?}, repeated: {is_repeated}: {error}");
            assert_eq!(child.wait().unwrap().code(), Some(130), "{name}");
            assert_eq!(error.contains("standard output was not read for 5 s"), !is_repeated, "{name}");
        }
    }
}
