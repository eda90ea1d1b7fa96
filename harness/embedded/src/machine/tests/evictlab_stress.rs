//! `stress` of evictlab's image.

use std::time::Duration;

use crate::machine::{Cgroup, ContainerSpec};

use super::lab::{Lab, MIB, mount, options};

fn spec(line: &str) -> ContainerSpec {
    ContainerSpec {
        pod: "pod".to_owned(),
        image: "localhost/evictlab/stress:1".to_owned(),
        args: line.split_whitespace().map(str::to_owned).collect(),
        mounts: vec![mount("/data", "data", false)],
        ..ContainerSpec::default()
    }
}

fn stress(line: &str) -> Lab {
    let mut lab = Lab::new();
    lab.start("c", spec(line));
    lab
}

#[test]
fn memory_grows_step_by_step_and_is_released() {
    let mut lab = stress("memory --total 250Mi --step 100Mi --pause 1s --delay 2s --hold 5s --then free");
    lab.pass(Duration::from_millis(1900));
    let base = lab.memory("c").rss;
    lab.pass(Duration::from_millis(600));
    assert_eq!(lab.memory("c").rss - base, 100 * MIB);
    lab.seconds(1);
    assert_eq!(lab.memory("c").rss - base, 200 * MIB);
    lab.seconds(3);
    assert_eq!(lab.memory("c").rss - base, 250 * MIB, "the last step is the remainder");
    lab.seconds(5);
    assert_eq!(lab.memory("c").rss, base);
    assert_eq!(
        lab.log("c"),
        [
            "memory: 200Mi of 250Mi after 1.1s",
            "memory: all 250Mi after 2.1s, releasing it in 5.0s",
            "memory: released 250Mi after 7.1s, staying"
        ]
    );
    assert_eq!(lab.exit("c"), None);
}

#[test]
fn memory_without_a_total_grows_until_an_oom_kill() {
    let mut lab = stress("memory --step 1Gi --pause 10ms");
    lab.seconds(60);
    assert_eq!(lab.killed(), [("c".to_owned(), "stress".to_owned())]);
}

#[test]
fn allocated_disk_space_is_not_cached() {
    for flags in ["", "--allocate"] {
        let mut lab = stress(&format!("disk --total 100Mi --step 30Mi --path /data {flags}"));
        let before = lab.memory("c").usage;
        lab.seconds(10);
        assert_eq!(lab.machine.volume("pod", "data").bytes / MIB, 100, "{flags}");
        let cached = (lab.memory("c").usage - before) / MIB;
        assert_eq!(cached >= 100, flags.is_empty(), "{flags}: {cached} MiB of page cache");
    }
}

#[test]
fn full_disk_is_reported() {
    let mut lab = Lab::of(&crate::options::NodeOptions { disk: 40 << 30, ..options() });
    let room = lab.machine.filesystem();
    let room = room.capacity.bytes - room.used.bytes;
    lab.start("c", spec("disk --step 1Gi --pause 1ms --path /data --on-refusal hold"));
    lab.start(
        "d",
        ContainerSpec { pod: "other".to_owned(), ..spec("disk --step 1Gi --delay 5m --path /data") },
    );
    lab.seconds(400);
    assert!(lab.log("c").last().unwrap().ends_with("No space left on device (os error 28), staying"));
    assert!(lab.machine.volume("pod", "data").bytes > room - 8 * MIB);
    assert_eq!((lab.code("c"), lab.code("d")), (None, Some(3)));
}

#[test]
fn inodes_are_files_and_are_released() {
    let mut lab =
        stress("inodes --total 20k --step 500 --pause 10ms --path /data/deep --hold 1m --then free");
    lab.seconds(20);
    // The root of the volume and two directories.
    assert_eq!(lab.machine.volume("pod", "data").inodes, 20_000 + 3);
    lab.seconds(60);
    assert_eq!(lab.machine.volume("pod", "data").inodes, 2);
}

#[test]
fn log_lines_are_a_kibibyte() {
    let mut lab = stress("logs --total 10Mi --step 1Mi --pause 10ms");
    lab.seconds(5);
    let bytes = lab.machine.log_use("c").bytes;
    assert!((10 * MIB..11 * MIB).contains(&bytes), "{bytes}");
    assert_eq!(lab.log("c")[0].len(), 1023);
}

#[test]
fn pids_are_child_processes() {
    let mut lab = stress("pids --total 300 --step 100 --pause 10ms --hold 10s --then free");
    let node = lab.machine.processes(&Cgroup::Root);
    lab.seconds(5);
    assert_eq!(lab.processes("c"), 301);
    assert_eq!(lab.machine.processes(&Cgroup::Root), node + 300);
    lab.seconds(10);
    assert_eq!(lab.processes("c"), 1);

    let mut lab = Lab::new();
    lab.start("c", ContainerSpec { pids_limit: Some(50), ..spec("pids --step 10 --on-refusal hold") });
    lab.seconds(60);
    // The limit applies to the pod, whose sandbox has a process too.
    assert_eq!(lab.processes("c"), 49);
    assert!(lab.log("c").last().unwrap().contains("no more than 48 after"), "{:?}", lab.log("c"));
}

#[test]
fn page_cache_counts_in_the_working_set() {
    let mut lab = stress("page-cache --total 100Mi --step 10Mi --pause 10ms --path /data");
    let before = lab.memory("c");
    lab.seconds(10);
    let with = lab.memory("c");
    assert!(with.working_set - before.working_set >= 100 * MIB);
    assert!(with.rss - before.rss < MIB);
}

#[test]
fn sigterm_and_hold_end_it() {
    for (line, immediately, later) in [
        ("memory --total 1Mi", Some(143), Some(143)),
        ("idle --term-exit 0", Some(0), Some(0)),
        ("pids --total 5 --term-delay 3s --term-exit 7", None, Some(7)),
        ("idle --ignore-term", None, None),
        ("stress --mem-total 10Mi", Some(2), Some(2)),
    ] {
        let mut lab = stress(line);
        lab.seconds(1);
        lab.term("c");
        lab.seconds(1);
        assert_eq!(lab.code("c"), immediately, "{line}");
        lab.seconds(10);
        assert_eq!(lab.code("c"), later, "{line}");
    }
    for (line, code) in [("idle --hold 2s --exit 4", 4), ("memory --total 1Mi --hold 1s", 0), ("memory", 2)] {
        let mut lab = stress(line);
        lab.seconds(10);
        assert_eq!(lab.code("c"), Some(code), "{line}: {:?}", lab.log("c"));
    }
}

#[test]
fn idles_without_arguments_and_accepts_agnhosts() {
    let mut lab = stress("");
    lab.seconds(10);
    assert_eq!((lab.exit("c"), lab.log("c")), (None, vec![]));
    let mut lab = stress("stress --mem-total 50Mi --mem-alloc-size 20Mi");
    let base = lab.memory("c").rss;
    lab.seconds(5);
    assert_eq!((lab.memory("c").rss - base) / MIB, 40);
    assert_eq!(lab.log("c")[1], r#"Allocated "50Mi" memory"#);
}
