//! What a container finds of itself and of its node.

use evictlab_embedded::machine::{ContainerSpec, Mount};
use evictlab_embedded::options::CgroupVersion;

use crate::lab::{KIB, Lab, MIB, options, sh};

fn lab(cgroup: CgroupVersion) -> Lab {
    let mut options = options();
    options.cgroup = cgroup;
    Lab::of(&options)
}

/// A container that takes 50 MiB of anonymous memory, and reads of a file of 20 MiB.
fn loaded(script: &str) -> ContainerSpec {
    let load = "/agnhost stress --mem-alloc-size 50Mi --mem-total 50Mi --mem-alloc-sleep 1s & dd if=/dev/zero of=/f bs=1M count=20 2>/dev/null; sleep 5;";
    ContainerSpec {
        memory_limit: Some(200 * MIB),
        oom_score_adj: 950,
        oom_group: true,
        ..sh("p", &format!("{load} {script}"))
    }
}

fn said(cgroup: CgroupVersion, script: &str) -> Vec<String> {
    let mut lab = lab(cgroup);
    lab.start("c", loaded(script));
    lab.seconds(10);
    lab.log("c").into_iter().filter(|line| !line.starts_with('I')).collect()
}

fn numbers(cgroup: CgroupVersion, script: &str) -> Vec<u64> {
    said(cgroup, script).iter().map(|line| line.parse().unwrap_or_else(|_| panic!("{line}"))).collect()
}

#[test]
fn a_container_reads_its_own_group_on_v2() {
    let script = "cd /sys/fs/cgroup; cat memory.current; awk '$1 == \"inactive_file\" {print $2}' memory.stat; grep ^anon memory.stat | cut -d' ' -f2";
    let [current, inactive, anon] = numbers(CgroupVersion::V2, script)[..] else { panic!() };
    assert!((20 * MIB..22 * MIB).contains(&inactive), "{inactive}");
    assert!((50 * MIB..70 * MIB).contains(&anon), "{anon}");
    assert!(current >= anon + inactive && current < anon + inactive + 8 * MIB, "{current}");
    let script = "for f in memory.max memory.oom.group pids.max; do cat /sys/fs/cgroup/$f; done; [ -f /sys/fs/cgroup/cgroup.controllers ] && echo v2; [ -e /sys/fs/cgroup/memory ] || echo one";
    let limit = (200 * MIB).to_string();
    assert_eq!(said(CgroupVersion::V2, script), [&limit, "1", "18000", "v2", "one"]);
    assert_eq!(said(CgroupVersion::V2, "echo 1 > /sys/fs/cgroup/memory.max; echo $?").last().unwrap(), "1");
}

#[test]
fn a_container_reads_its_own_group_on_v1() {
    let script = "cd /sys/fs/cgroup/memory; cat memory.usage_in_bytes memory.limit_in_bytes; grep -E '^total_(rss|inactive_file) ' memory.stat | awk '{print $2}'";
    let [usage, limit, rss, inactive] = numbers(CgroupVersion::V1, script)[..] else { panic!() };
    assert_eq!(limit, 200 * MIB);
    assert!(usage >= rss + inactive && rss > 50 * MIB && inactive >= 20 * MIB, "{usage} {rss} {inactive}");
    assert_eq!(
        said(CgroupVersion::V1, "ls /sys/fs/cgroup; [ -e /sys/fs/cgroup/memory.current ] || echo v1"),
        ["memory", "pids", "v1"]
    );
}

#[test]
fn a_process_knows_its_score_and_how_many_there_are() {
    // The shell, the stress and its threads, and who asks.
    let counts = numbers(
        CgroupVersion::V2,
        "cat /sys/fs/cgroup/pids.current; kill %1; sleep 1; cat /sys/fs/cgroup/pids.current",
    );
    assert_eq!(counts[1], 2, "{counts:?}");
    assert!(counts[0] > 3, "{counts:?}");
    for path in ["/proc/self/oom_score_adj", "/proc/1/oom_score_adj"] {
        assert_eq!(said(CgroupVersion::V2, &format!("cat {path}")), ["950"]);
        assert_eq!(said(CgroupVersion::V1, &format!("read score < {path}; echo $score")), ["950"]);
    }
    assert!(said(CgroupVersion::V2, "cat /proc/99/oom_score_adj")[0].ends_with("No such file or directory"));
}

/// A container whose `/host` is a part of its node.
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
fn logs_lie_where_the_kubelet_has_them() {
    let mut lab = lab(CgroupVersion::V2);
    let before = lab.machine.filesystem().used;
    lab.start("a", visitor("p", "/var/log/pods", "echo hello; echo oops >&2; sleep 100"));
    lab.seconds(2);
    lab.start(
        "b",
        visitor(
            "q",
            "/var/log/pods",
            "cd /host; ls; ls ns_p_uid/c; cat ns_p_uid/c/0.log; cat ns_*/c/*.log | wc -l",
        ),
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
            "7",
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
    assert_eq!(lab.machine.filesystem().used, before, "nothing is counted twice, and all is given back");
}

#[test]
fn what_is_written_on_the_node_stays_there() {
    let mut lab = lab(CgroupVersion::V2);
    let write = "ls /host; echo one > /host/a.yaml; mkdir -p /host/deep/er; echo two > /host/deep/er/b";
    lab.start("a", visitor("p", "/etc/kubernetes/manifests", write));
    lab.seconds(1);
    lab.machine.remove("a");
    lab.machine.remove_volumes("p");
    lab.start(
        "b",
        visitor("q", "/etc", "cd /host/kubernetes/manifests; ls; cat a.yaml deep/er/b; rm a.yaml; ls"),
    );
    lab.start("c", visitor("r", "/opt/made/on/the/way", "pwd; cd /host && echo there"));
    lab.seconds(1);
    assert_eq!(lab.log("b"), ["a.yaml", "deep", "one", "two", "deep"]);
    assert_eq!(lab.log("c"), ["/", "there"]);
    assert!(lab.machine.filesystem().used.bytes > 4 * KIB);
}

#[test]
fn lines_are_chosen_as_the_tools_do() {
    for (script, told, code) in [
        ("printf 'a b\\nc d\\n' | grep c", "c d", 0),
        ("printf 'a b\\nc d\\n' | grep -v c", "a b", 0),
        ("printf 'a\\nb\\na\\n' | grep -c a", "2", 0),
        ("echo abc | grep -q x", "", 1),
        ("echo 'a+b' | grep 'a+b'", "a+b", 0),
        ("echo aab | grep 'a\\+b'", "aab", 0),
        ("echo aab | grep -E '^a+b$'", "aab", 0),
        ("grep x /nowhere", "grep: /nowhere: No such file or directory", 2),
        ("echo 'one  two three' | awk '{print $2}'", "two", 0),
        ("printf 'x 1\\ny 2\\n' | awk '/y/ {print $2}'", "2", 0),
        ("echo a:b:c | awk -F: '{ print $3 }'", "c", 0),
        ("echo a,b | cut -d, -f2", "b", 0),
        ("echo no-separator | cut -d, -f2", "no-separator", 0),
        ("x=$(echo 5 x | awk '{print $1}'); [ $x -gt 4 ] && echo more", "more", 0),
        ("yes | head -n 5 | grep -c y", "5", 0),
    ] {
        let mut lab = Lab::script(script);
        lab.seconds(5);
        assert_eq!((lab.log("c").join("|").as_str(), lab.code("c")), (told, Some(code)), "{script}");
    }
}
