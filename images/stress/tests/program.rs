//! The built program: the resources that it consumes, and its exit codes.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a panic in a test is its report")]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

const MIB: u64 = 1 << 20;

/// A running program. Drop kills it.
struct Stress {
    child: Child,
    stderr: BufReader<ChildStderr>,
}

impl Stress {
    fn start(line: &str) -> Self {
        Self::spawn(
            Command::new(env!("CARGO_BIN_EXE_stress")).args(line.split_whitespace()).stdout(Stdio::null()),
        )
    }

    fn spawn(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child, stderr }
    }

    /// Waits for a line that contains a text.
    fn wait_for_line(&mut self, text: &str) {
        let mut all = String::new();
        while !all.lines().last().unwrap_or_default().contains(text) {
            let read = self.stderr.read_line(&mut all).unwrap();
            assert!(read > 0, "exited without a line with {text:?}: {all}");
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the exit; returns `None` after a signal.
    fn exit_code(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// Returns the anonymous memory, in bytes.
    fn anon(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    /// Returns the running child processes.
    fn children(&self) -> Vec<u32> {
        children(self.child.id())
    }
}

impl Drop for Stress {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the child processes of a process, without zombies.
fn children(parent: u32) -> Vec<u32> {
    let all =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_child = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The state and the parent follow the name, which is in parentheses.
        let mut rest = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        rest.next().is_some_and(|state| state != "Z") && rest.next() == Some(parent.to_string().as_str())
    };
    all.filter(is_child).collect()
}

fn count_files(directory: &Path) -> usize {
    fs::read_dir(directory).unwrap().count()
}

#[test]
fn memory_is_allocated_and_released() {
    let line = "memory --total 40Mi --step 16Mi --pause 1ms";
    let mut stress = Stress::start(line);
    stress.wait_for_line("memory: all 40Mi after");
    assert!((40 * MIB..48 * MIB).contains(&stress.anon()), "{}", stress.anon());
    let mut stress = Stress::start(&format!("{line} --hold 1ms --then free"));
    stress.wait_for_line("memory: released 40Mi after");
    assert!(stress.anon() < 4 * MIB, "{} bytes were not released", stress.anon());
}

#[test]
fn agnhosts_flags_allocate_whole_steps() {
    let mut stress =
        Stress::start("stress --mem-total 40Mi --mem-alloc-size 16Mi --mem-alloc-sleep 1ms --cpus 1");
    stress
        .wait_for_line(r#"Allocating "40Mi" memory, in "16Mi" chunks, with a 1ms sleep between allocations"#);
    stress.wait_for_line(r#"Allocated "40Mi" memory"#);
    assert!((32 * MIB..40 * MIB).contains(&stress.anon()), "{}", stress.anon());
    stress.signal(Signal::TERM);
    assert_eq!(stress.exit_code(), Some(2));
}

#[test]
fn disk_space_is_written_or_allocated() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new");
    for (flags, name) in [("", "disk-0/file"), ("--allocate", "disk-1/file")] {
        let mut stress = Stress::start(&format!(
            "disk --total 5Mi --step 2Mi --pause 1ms --path {} {flags}",
            path.display()
        ));
        stress.wait_for_line("disk: all 5Mi after");
        let file = fs::metadata(path.join(name)).unwrap();
        assert_eq!(file.len(), 5 * MIB, "{flags}");
        assert!(file.blocks() * 512 >= 5 * MIB, "{flags}: {} blocks", file.blocks());
    }
    let mut stress =
        Stress::start(&format!("disk --total 1Mi --hold 1ms --then free --path {}", path.display()));
    stress.wait_for_line("disk: released 1Mi");
    assert_eq!(count_files(&path), 2, "files of other runs stay");
}

#[test]
fn inodes_are_files() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().display();
    let mut stress = Stress::start(&format!("inodes --total 250 --step 100 --pause 1ms --path {path}"));
    stress.wait_for_line("inodes: all 250 after");
    assert_eq!(count_files(&directory.path().join("inodes-0")), 250);
}

#[test]
fn page_cache_is_a_file_that_is_read_twice() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().display();
    let mut stress = Stress::start(&format!("page-cache --total 3Mi --step 1Mi --pause 1ms --path {path}"));
    stress.wait_for_line("page-cache: all 3Mi after");
    assert_eq!(fs::metadata(directory.path().join("page-cache-0/file")).unwrap().len(), 3 * MIB);
    let read = fs::read_to_string(format!("/proc/{}/io", stress.child.id())).unwrap();
    let read: u64 = read.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse().ok()).unwrap();
    assert!(read >= 6 * MIB, "{read} bytes were read");
}

#[test]
fn log_lines_are_complete_and_distinct() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stress"));
    let output = command.args(["logs", "--total", "10Ki", "--hold", "0s"]).output().unwrap();
    assert_eq!((output.stdout.len(), output.status.code()), (10 << 10, Some(0)));
    let lines: BTreeSet<&str> = str::from_utf8(&output.stdout).unwrap().lines().collect();
    assert_eq!(lines.len(), 10);
    assert!(lines.iter().all(|line| line.len() == 1023), "{lines:?}");
}

#[test]
fn children_exit_on_release_and_with_their_parent() {
    let mut stress = Stress::start("pids --total 3 --hold 1ms --then free");
    stress.wait_for_line("pids: released 3");
    assert_eq!(stress.children(), []);

    let mut stress = Stress::start("pids --total 12 --step 5 --pause 1ms");
    stress.wait_for_line("pids: all 12 after");
    assert_eq!(stress.children().len(), 12);
    let children = stress.children();
    stress.signal(Signal::KILL);
    assert_eq!(stress.exit_code(), None);
    while children
        .iter()
        .any(|pid| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "stress\n"))
    {
        std::thread::yield_now();
    }
}

#[test]
fn signals_end_it_as_configured() {
    for (flags, code) in [("", 143), ("--term-exit 0", 0), ("--term-exit 7 --term-delay 10ms", 7)] {
        for signal in [Signal::TERM, Signal::INT] {
            let mut stress = Stress::start(&format!("memory --total 1Mi {flags}"));
            stress.wait_for_line("all 1Mi");
            stress.signal(signal);
            assert_eq!(stress.exit_code(), Some(code), "{flags} {signal:?}");
        }
    }
    let mut stress = Stress::start("memory --total 1Mi --ignore-term");
    stress.wait_for_line("all 1Mi");
    for _ in 0..2 {
        stress.signal(Signal::TERM);
        stress.wait_for_line("ignoring the signal");
    }
}

#[test]
fn exits_only_after_hold_or_an_error() {
    for (line, code) in [
        ("idle --hold 1ms", 0),
        ("memory --total 1Mi --hold 1ms --exit 4", 4),
        ("disk --total 1 --path /proc/nowhere", 3),
        ("memory --total 1", 143),
        ("memory", 2),
        ("help", 0),
        ("stress --mem 1", 1),
    ] {
        let mut stress = Stress::start(line);
        if code == 143 {
            stress.wait_for_line("all 1");
            assert_eq!(stress.child.try_wait().unwrap(), None);
            stress.signal(Signal::TERM);
        }
        assert_eq!(stress.exit_code(), Some(code), "{line}");
    }
}

#[test]
fn refusal_by_the_system_is_reported() {
    // Writing to a pipe without a reader fails.
    for (flags, end) in [("", "exiting"), ("--on-refusal hold", "staying")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stress"));
        command.args("logs --step 100Ki --pause 1ms".split_whitespace()).args(flags.split_whitespace());
        let mut stress = Stress::spawn(command.stdout(Stdio::piped()));
        let mut reader = stress.child.stdout.take().unwrap();
        reader.read_exact(&mut [0; 5000]).unwrap();
        drop(reader);
        stress.wait_for_line(&format!("Broken pipe (os error 32), {end}"));
        if end == "exiting" {
            assert_eq!(stress.exit_code(), Some(3));
        } else {
            assert_eq!(stress.child.try_wait().unwrap(), None);
        }
    }
}
