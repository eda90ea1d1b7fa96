//! `/proc`, `/sys/fs/cgroup` and the files of the node.

use crate::machine::{ContainerSpec, Mount};
use crate::options::CgroupVersion;

use super::lab::{KIB, Lab, MIB, options, sh};

fn lab(cgroup: CgroupVersion) -> Lab {
    let mut options = options();
    options.cgroup = cgroup;
    Lab::of(&options)
}

/// Returns a container that allocates 50 MiB of anonymous memory and caches a file of 20 MiB.
fn loaded(script: &str) -> ContainerSpec {
    let load = "/agnhost stress --mem-alloc-size 50Mi --mem-total 50Mi --mem-alloc-sleep 1s & dd if=/dev/zero of=/f bs=1M count=20 2>/dev/null; sleep 5;";
    ContainerSpec {
        memory_limit: Some(200 * MIB),
        oom_score_adj: 950,
        oom_group: true,
        ..sh("p", &format!("{load} {script}"))
    }
}

fn output(cgroup: CgroupVersion, script: &str) -> Vec<String> {
    let mut lab = lab(cgroup);
    lab.start("c", loaded(script));
    lab.seconds(10);
    lab.log("c").into_iter().filter(|line| !line.starts_with('I')).collect()
}

fn numbers(cgroup: CgroupVersion, script: &str) -> Vec<u64> {
    output(cgroup, script).iter().map(|line| line.parse().unwrap_or_else(|_| panic!("{line}"))).collect()
}

/// Returns the values of keys in a file of one key and value a line.
fn values(cgroup: CgroupVersion, file: &str, keys: &[&str]) -> Vec<u64> {
    let lines = output(cgroup, &format!("cat {file}"));
    let value = |key: &&str| {
        let line = lines.iter().find_map(|line| line.strip_prefix(*key)?.strip_prefix(' '));
        line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{key} in {lines:?}"))
    };
    keys.iter().map(value).collect()
}

#[test]
fn container_reads_its_own_cgroup_on_v2() {
    let current = numbers(CgroupVersion::V2, "cat /sys/fs/cgroup/memory.current")[0];
    let stat = values(CgroupVersion::V2, "/sys/fs/cgroup/memory.stat", &["inactive_file", "anon"]);
    let [inactive, anon] = stat[..] else { panic!() };
    assert!((20 * MIB..22 * MIB).contains(&inactive), "{inactive}");
    assert!((50 * MIB..70 * MIB).contains(&anon), "{anon}");
    assert!(current >= anon + inactive && current < anon + inactive + 8 * MIB, "{current}");
    let script = "for f in memory.max memory.oom.group pids.max; do cat /sys/fs/cgroup/$f; done; [ -f /sys/fs/cgroup/cgroup.controllers ] && echo v2; [ -e /sys/fs/cgroup/memory ] || echo one";
    let limit = (200 * MIB).to_string();
    assert_eq!(output(CgroupVersion::V2, script), [&limit, "1", "18000", "v2", "one"]);
    let write = output(CgroupVersion::V2, "echo 1 > /sys/fs/cgroup/memory.max; echo $?");
    assert_eq!(write.last().unwrap(), "1");
}

#[test]
fn container_reads_its_own_cgroup_on_v1() {
    let script =
        "cat /sys/fs/cgroup/memory/memory.usage_in_bytes /sys/fs/cgroup/memory/memory.limit_in_bytes";
    let [usage, limit] = numbers(CgroupVersion::V1, script)[..] else { panic!() };
    let keys = ["total_rss", "total_inactive_file"];
    let stat = values(CgroupVersion::V1, "/sys/fs/cgroup/memory/memory.stat", &keys);
    let [rss, inactive] = stat[..] else { panic!() };
    assert_eq!(limit, 200 * MIB);
    assert!(usage >= rss + inactive && rss > 50 * MIB && inactive >= 20 * MIB, "{usage} {rss} {inactive}");
    assert_eq!(
        output(CgroupVersion::V1, "ls /sys/fs/cgroup; [ -e /sys/fs/cgroup/memory.current ] || echo v1"),
        ["memory", "pids", "v1"]
    );
}

#[test]
fn container_reads_its_tasks_and_its_oom_score_adjustment() {
    // The shell, the stress with its threads and `cat`.
    let count = numbers(CgroupVersion::V2, "cat /sys/fs/cgroup/pids.current")[0];
    assert!(count > 3, "{count}");
    for path in ["/proc/self/oom_score_adj", "/proc/1/oom_score_adj"] {
        assert_eq!(output(CgroupVersion::V2, &format!("cat {path}")), ["950"]);
        assert_eq!(output(CgroupVersion::V1, &format!("read score < {path}; echo $score")), ["950"]);
    }
    let missing = output(CgroupVersion::V2, "cat /proc/99/oom_score_adj");
    assert!(missing[0].ends_with("No such file or directory"));
}

#[test]
fn container_reads_the_memory_of_the_node() {
    let free = output(CgroupVersion::V2, "cat /proc/meminfo");
    let [total, free, available] = ["MemTotal:", "MemFree:", "MemAvailable:"].map(|name| {
        let line = free.iter().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
    });
    // The container holds more than 50 MiB, and 20 MiB of page cache that can be reclaimed.
    assert_eq!(total, lab(CgroupVersion::V2).machine.memory_total());
    assert!(available + 50 * MIB < total && free + 20 * MIB <= available, "{total} {free} {available}");
}

/// Returns a container with a `hostPath` volume at `/host`.
fn visitor(pod: &str, host: &str, script: &str) -> ContainerSpec {
    let mount =
        Mount { path: "/host".into(), volume: "v".into(), host: Some(host.into()), ..Mount::default() };
    ContainerSpec {
        mounts: vec![mount],
        log_path: format!("/var/log/pods/ns_{pod}_uid/c/0.log"),
        ..sh(pod, script)
    }
}

#[test]
fn container_logs_are_files_of_the_node() {
    let mut lab = lab(CgroupVersion::V2);
    let before = lab.machine.filesystem().used;
    lab.start("a", visitor("p", "/var/log/pods", "echo hello; echo oops >&2; sleep 100"));
    lab.seconds(2);
    lab.start(
        "b",
        visitor("q", "/var/log/pods", "ls /host; ls /host/ns_p_uid/c; cat /host/ns_p_uid/c/0.log"),
    );
    lab.seconds(2);
    assert_eq!(
        lab.log("b"),
        [
            "ns_p_uid",
            "ns_q_uid",
            "0.log",
            "1970-01-01T00:00:00.001000000Z stdout F hello",
            "1970-01-01T00:00:00.001000000Z stderr F oops",
        ]
    );
    lab.machine.remove("a");
    lab.start("d", visitor("r", "/var/log/pods", "ls /host"));
    lab.seconds(1);
    assert_eq!(lab.log("d"), ["ns_q_uid", "ns_r_uid"]);
    for container in ["b", "d"] {
        lab.machine.remove(container);
    }
    for pod in ["p", "q", "r"] {
        lab.machine.remove_volumes(pod);
    }
    assert_eq!(lab.machine.filesystem().used, before, "no space is accounted twice, and all is freed");
}

#[test]
fn host_path_files_outlive_the_pod() {
    let mut lab = lab(CgroupVersion::V2);
    let write = "ls /host; echo one > /host/a.yaml; mkdir -p /host/deep/er; echo two > /host/deep/er/b";
    lab.start("a", visitor("p", "/etc/kubernetes/manifests", write));
    lab.seconds(1);
    lab.machine.remove("a");
    lab.machine.remove_volumes("p");
    lab.start(
        "b",
        visitor("q", "/etc", "ls /host/kubernetes/manifests; cat /host/kubernetes/manifests/a.yaml /host/kubernetes/manifests/deep/er/b"),
    );
    lab.start("c", visitor("r", "/opt/made/on/the/way", "[ -d /host ] && echo exists"));
    lab.seconds(1);
    assert_eq!(lab.log("b"), ["a.yaml", "deep", "one", "two"]);
    assert_eq!(lab.log("c"), ["exists"]);
    assert!(lab.machine.filesystem().used.bytes > 4 * KIB);
}

#[test]
fn parts_of_a_host_path_may_be_empty() {
    let mut lab = lab(CgroupVersion::V2);
    lab.start(
        "a",
        visitor("p", "//var/./lib//data/", "mkdir /host/deep && echo one > /host/deep/a; ls /host"),
    );
    lab.start("b", visitor("q", "/var/lib", "sleep 1; cat /host/data/deep/a"));
    lab.seconds(3);
    assert_eq!([lab.log("a"), lab.log("b")], [["deep"], ["one"]]);
}
