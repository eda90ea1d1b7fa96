//! The built program: whether it takes what it says, and ends as it should.

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

/// The program while it runs; it ends with the test.
struct Stress {
    child: Child,
    said: BufReader<ChildStderr>,
}

impl Stress {
    fn start(line: &str) -> Self {
        Self::of(
            Command::new(env!("CARGO_BIN_EXE_stress")).args(line.split_whitespace()).stdout(Stdio::null()),
        )
    }

    fn of(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stderr.take().unwrap());
        Self { child, said }
    }

    /// Waits for a line with this text.
    fn says(&mut self, text: &str) {
        let mut all = String::new();
        while !all.lines().last().unwrap_or_default().contains(text) {
            let read = self.said.read_line(&mut all).unwrap();
            assert!(read > 0, "it ended without saying {text:?}: {all}");
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end; none if a signal ended it.
    fn code(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// Anonymous memory, in bytes.
    fn anon(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    /// Its children that run.
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

/// The processes of a parent that are no zombies.
fn children(parent: u32) -> Vec<u32> {
    let all =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let of = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // After the name, which is in brackets: the state, and the parent.
        let mut rest = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        rest.next().is_some_and(|state| state != "Z") && rest.next() == Some(parent.to_string().as_str())
    };
    all.filter(of).collect()
}

fn files(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

#[test]
fn memory_is_there_and_goes_back() {
    let line = "memory --total 40Mi --step 16Mi --pause 1ms";
    let mut stress = Stress::start(line);
    stress.says("memory: all 40Mi after");
    assert!((40 * MIB..48 * MIB).contains(&stress.anon()), "{}", stress.anon());
    let mut stress = Stress::start(&format!("{line} --hold 1ms --then free"));
    stress.says("memory: 40Mi given back after");
    assert!(stress.anon() < 4 * MIB, "{} bytes are left", stress.anon());
}

#[test]
fn agnhosts_flags_take_memory_in_whole_steps() {
    let mut stress =
        Stress::start("stress --mem-total 40Mi --mem-alloc-size 16Mi --mem-alloc-sleep 1ms --cpus 1");
    stress.says(r#"Allocating "40Mi" memory, in "16Mi" chunks, with a 1ms sleep between allocations"#);
    stress.says(r#"Allocated "40Mi" memory"#);
    assert!((32 * MIB..40 * MIB).contains(&stress.anon()), "{}", stress.anon());
    stress.signal(Signal::TERM);
    assert_eq!(stress.code(), Some(2));
}

#[test]
fn disk_is_taken_by_writing_and_without() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("new");
    for (flags, of) in [("", "disk-0/file"), ("--allocate", "disk-1/file")] {
        let mut stress = Stress::start(&format!(
            "disk --total 5Mi --step 2Mi --pause 1ms --path {} {flags}",
            at.display()
        ));
        stress.says("disk: all 5Mi after");
        let file = fs::metadata(at.join(of)).unwrap();
        assert_eq!(file.len(), 5 * MIB, "{flags}");
        assert!(file.blocks() * 512 >= 5 * MIB, "{flags}: {} blocks", file.blocks());
    }
    let mut stress =
        Stress::start(&format!("disk --total 1Mi --hold 1ms --then free --path {}", at.display()));
    stress.says("disk: 1Mi given back");
    assert_eq!(files(&at), 2, "only what it wrote itself");
}

#[test]
fn every_inode_is_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display();
    let mut stress = Stress::start(&format!("inodes --total 250 --step 100 --pause 1ms --path {path}"));
    stress.says("inodes: all 250 after");
    assert_eq!(files(&folder.path().join("inodes-0")), 250);
}

#[test]
fn page_cache_is_a_file_that_was_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display();
    let mut stress = Stress::start(&format!("page-cache --total 3Mi --step 1Mi --pause 1ms --path {path}"));
    stress.says("page-cache: all 3Mi after");
    assert_eq!(fs::metadata(folder.path().join("page-cache-0/file")).unwrap().len(), 3 * MIB);
    let read = fs::read_to_string(format!("/proc/{}/io", stress.child.id())).unwrap();
    let read: u64 = read.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse().ok()).unwrap();
    assert!(read >= 6 * MIB, "read twice: {read}");
}

#[test]
fn log_lines_are_whole_and_differ() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stress"));
    let output = command.args(["logs", "--total", "10Ki", "--hold", "0s"]).output().unwrap();
    assert_eq!((output.stdout.len(), output.status.code()), (10 << 10, Some(0)));
    let lines: BTreeSet<&str> = str::from_utf8(&output.stdout).unwrap().lines().collect();
    assert_eq!(lines.len(), 10);
    assert!(lines.iter().all(|line| line.len() == 1023), "{lines:?}");
}

#[test]
fn children_go_when_they_are_given_back_and_when_their_parent_is_killed() {
    let mut stress = Stress::start("pids --total 3 --hold 1ms --then free");
    stress.says("pids: 3 given back");
    assert_eq!(stress.children(), []);

    let mut stress = Stress::start("pids --total 12 --step 5 --pause 1ms");
    stress.says("pids: all 12 after");
    assert_eq!(stress.children().len(), 12);
    let left = stress.children();
    stress.signal(Signal::KILL);
    assert_eq!(stress.code(), None);
    while left
        .iter()
        .any(|pid| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "stress\n"))
    {
        std::thread::yield_now();
    }
}

#[test]
fn it_stops_as_it_was_told() {
    for (flags, code) in [("", 143), ("--term-exit 0", 0), ("--term-exit 7 --term-delay 10ms", 7)] {
        for signal in [Signal::TERM, Signal::INT] {
            let mut stress = Stress::start(&format!("memory --total 1Mi {flags}"));
            stress.says("all 1Mi");
            stress.signal(signal);
            assert_eq!(stress.code(), Some(code), "{flags} {signal:?}");
        }
    }
    let mut stress = Stress::start("memory --total 1Mi --ignore-term");
    stress.says("all 1Mi");
    for _ in 0..2 {
        stress.signal(Signal::TERM);
        stress.says("told to stop: going on");
    }
}

#[test]
fn it_ends_by_itself_only_if_it_was_told() {
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
            stress.says("all 1");
            assert_eq!(stress.child.try_wait().unwrap(), None);
            stress.signal(Signal::TERM);
        }
        assert_eq!(stress.code(), Some(code), "{line}");
    }
}

#[test]
fn what_the_system_refuses_is_told() {
    // A pipe that nobody reads any more.
    for (flags, end) in [("", "ending"), ("--on-refusal hold", "staying")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stress"));
        command.args("logs --step 100Ki --pause 1ms".split_whitespace()).args(flags.split_whitespace());
        let mut stress = Stress::of(command.stdout(Stdio::piped()));
        let mut reader = stress.child.stdout.take().unwrap();
        reader.read_exact(&mut [0; 5000]).unwrap();
        drop(reader);
        stress.says(&format!("Broken pipe (os error 32), {end}"));
        if end == "ending" {
            assert_eq!(stress.code(), Some(3));
        } else {
            assert_eq!(stress.child.try_wait().unwrap(), None);
        }
    }
}
