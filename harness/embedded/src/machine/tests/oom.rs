//! The OOM killer.

use crate::machine::{Cgroup, ContainerSpec, MachineEvent};
use crate::options::CgroupVersion;

use super::lab::{Lab, MIB, options, sh, spec};

const GROW: &str = "/agnhost stress --mem-alloc-size 10Mi --mem-alloc-sleep 100ms --mem-total 4000Mi";

fn limited(script: &str, group: bool) -> ContainerSpec {
    ContainerSpec { memory_limit: Some(100 * MIB), oom_group: group, ..sh("p", script) }
}

fn lab(cgroup: CgroupVersion) -> Lab {
    let mut options = options();
    options.cgroup = cgroup;
    Lab::of(&options)
}

#[test]
fn memory_limit_kills_the_first_process() {
    let mut lab = lab(CgroupVersion::V2);
    lab.start("c", limited(&format!("exec {GROW}"), true));
    lab.seconds(10);
    assert_eq!(lab.killed(), [("c".to_owned(), "agnhost".to_owned())]);
    let (code, oom, _) = lab.exit("c").unwrap();
    assert_eq!((code, oom), (137, true));
    assert!(lab.machine.memory(&Cgroup::Container("c".to_owned())).is_none());
}

#[test]
fn cgroup_v1_kills_a_child_alone() {
    let mut lab = lab(CgroupVersion::V1);
    lab.start("c", limited(&format!("{GROW} & wait $!; echo status $?; sleep 5; exit 3"), true));
    lab.seconds(4);
    assert_eq!(lab.killed().len(), 1);
    assert_eq!(lab.code("c"), None);
    assert_eq!(lab.log("c").last().unwrap(), "status 137");
    lab.seconds(10);
    let (code, oom, _) = lab.exit("c").unwrap();
    assert_eq!((code, oom), (3, true));
}

#[test]
fn cgroup_v2_kills_all_processes_of_an_oom_group() {
    for (group, code) in [(true, Some(137)), (false, None)] {
        let mut lab = lab(CgroupVersion::V2);
        lab.start("c", limited(&format!("{GROW} & sleep 1000"), group));
        lab.seconds(10);
        assert_eq!(lab.code("c"), code, "oom group {group}");
        assert_eq!(lab.processes("c"), if group { 0 } else { 2 });
        // Each invocation of the OOM killer reports the process that it chose.
        assert_eq!(lab.killed(), [("c".to_owned(), "agnhost".to_owned())]);
    }
}

#[test]
fn node_without_memory_kills_by_score() {
    let mut options = options();
    options.memory = 1024 * MIB;
    let mut lab = Lab::of(&options);
    let adjusted =
        |script: &str, pod: &str, adjustment| ContainerSpec { oom_score_adj: adjustment, ..sh(pod, script) };
    // The score of the larger container is lower.
    lab.start("guaranteed", adjusted(&format!("exec {GROW}"), "a", -997));
    lab.start(
        "besteffort",
        adjusted("exec /agnhost stress --mem-alloc-size 50Mi --mem-total 100Mi", "b", 1000),
    );
    lab.start("never", adjusted("sleep 1000", "c", -1000));
    lab.seconds(30);
    let killed: Vec<String> = lab.killed().into_iter().map(|(container, _)| container).collect();
    assert_eq!(killed, ["besteffort", "guaranteed"]);
    assert_eq!(lab.code("never"), None);
    assert!(lab.machine.memory(&Cgroup::Root).unwrap().usage <= options.memory);
}

#[test]
fn limit_of_all_pods_kills_in_a_pod() {
    let mut lab = Lab::new();
    lab.machine.limit_memory(&Cgroup::Pods, Some(200 * MIB));
    lab.start("hog", sh("a", &format!("exec {GROW}")));
    lab.start("small", spec("b", &["sleep", "infinity"]));
    lab.seconds(10);
    assert_eq!(lab.killed(), [("hog".to_owned(), "agnhost".to_owned())]);
    assert_eq!(lab.code("small"), None);
}

#[test]
fn limit_of_the_root_kills_and_is_invisible() {
    let mut lab = Lab::new();
    let total = lab.machine.memory_total();
    let used = lab.machine.memory(&Cgroup::Root).unwrap().usage;
    lab.machine.limit_memory(&Cgroup::Root, Some(used + 200 * MIB));
    lab.start("hog", sh("a", &format!("exec {GROW}")));
    lab.start("small", spec("b", &["sleep", "infinity"]));
    lab.seconds(10);
    assert_eq!(lab.killed(), [("hog".to_owned(), "agnhost".to_owned())]);
    assert_eq!(lab.code("small"), None);
    assert_eq!(lab.machine.memory_total(), total);
    lab.machine.limit_memory(&Cgroup::Root, None);
    lab.start("another", sh("c", "exec /agnhost stress --mem-alloc-size 50Mi --mem-total 300Mi"));
    lab.seconds(10);
    assert_eq!(lab.code("another"), None, "the limit was removed");
}

#[test]
fn memory_limit_kills_buffers() {
    for script in ["dd if=/dev/zero of=/dev/null bs=500M", "x=$(dd if=/dev/zero bs=1M count=500); sleep 100"]
    {
        let mut lab = Lab::new();
        lab.start("c", limited(script, true));
        lab.seconds(10);
        assert_eq!(lab.exit("c").map(|(code, oom, _)| (code, oom)), Some((137, true)), "{script}");
    }
}

#[test]
fn trigger_oom_kills_the_process_with_the_highest_score() {
    let mut lab = Lab::new();
    lab.start("a", spec("a", &["sleep", "infinity"]));
    lab.start("b", sh("b", "exec /agnhost stress --mem-alloc-size 50Mi --mem-total 50Mi"));
    lab.seconds(5);
    let now = lab.now;
    lab.machine.trigger_oom(now);
    assert_eq!(lab.machine.next(), Some(now));
    lab.seconds(1);
    assert!(matches!(&lab.events[0], MachineEvent::OomKilled { container, .. } if container == "b"));
    assert_eq!(lab.code("b"), Some(137));
}
