//! PIDs and their limits.

use crate::machine::{Cgroup, ContainerSpec};

use super::lab::{Lab, options, sh};

#[test]
fn pids_limit_fails_forks() {
    let mut lab = Lab::new();
    let script = "i=0; while [ $i -lt 900 ]; do sleep 300 & i=$((i+1)); done; wait";
    lab.start("c", ContainerSpec { pids_limit: Some(50), ..sh("p", script) });
    lab.seconds(5);
    assert_eq!(lab.log("c"), ["sh: can't fork: Resource temporarily unavailable"]);
    assert_eq!(lab.code("c"), Some(2));
}

#[test]
fn pids_limit_applies_to_all_containers_of_a_pod() {
    let mut lab = Lab::new();
    let limited = |script: &str| ContainerSpec { pids_limit: Some(20), ..sh("p", script) };
    lab.start("c", limited("for i in 1 2 3 4 5 6 7 8 9 10; do sleep 300 & done; wait"));
    lab.seconds(1);
    lab.start("d", limited("for i in 1 2 3 4 5 6 7 8 9 10; do sleep 300 & done; wait"));
    lab.seconds(1);
    assert_eq!((lab.processes("c"), lab.code("c")), (11, None));
    assert_eq!(lab.code("d"), Some(2));
    lab.start("e", sh("q", "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 300 & done; wait"));
    lab.seconds(1);
    assert_eq!(lab.processes("e"), 11, "another pod has a limit of its own");
}

#[test]
fn max_pid_limits_the_tasks_of_the_node() {
    let mut options = options();
    (options.max_pid, options.processes) = (3000, 700);
    let mut lab = Lab::of(&options);
    lab.start("c", sh("p", "while true; do (sleep 1000 & sleep 1000) & done"));
    lab.start("d", sh("q", "while true; do sleep 1000 & done"));
    for _ in 0..20 {
        lab.seconds(1);
        assert!(lab.machine.processes(&Cgroup::Root) <= 3000);
    }
    assert!(lab.log("d").iter().all(|line| line.contains("can't fork")), "{:?}", lab.log("d"));
}

#[test]
fn a_fork_fails_if_every_pid_is_taken() {
    let mut options = options();
    // PIDs are reused from 300 to 400, which are fewer than the 390 tasks that may run.
    (options.max_pid, options.processes) = (400, 10);
    let mut lab = Lab::of(&options);
    let sleeps = |count: u64| format!("i=0; while [ $i -lt {count} ]; do sleep 600 & i=$((i+1)); done; wait");
    lab.start("a", sh("p", "i=0; while [ $i -lt 390 ]; do sleep 0; i=$((i+1)); done; sleep 600"));
    lab.seconds(60);
    for id in ["b", "c"] {
        lab.start(id, sh("p", &sleeps(48)));
        lab.seconds(1);
        assert_eq!(lab.log(id), [""; 0]);
    }
    lab.start("d", sh("p", &sleeps(48)));
    lab.seconds(1);
    assert_eq!(lab.log("d"), ["sh: can't fork: Resource temporarily unavailable"]);
}

#[test]
fn processes_are_counted_by_cgroup() {
    let mut lab = Lab::new();
    let before = lab.machine.processes(&Cgroup::Root);
    lab.start("c", sh("p", "sleep 5 & sleep 100 & wait"));
    lab.start("d", sh("p", "sleep 100"));
    lab.seconds(1);
    assert_eq!(lab.processes("c"), 3);
    assert_eq!(lab.machine.processes(&Cgroup::Pod("p".to_owned())), 5);
    assert_eq!(lab.machine.processes(&Cgroup::Pods), 5);
    // Five processes, the pause process and the shim's threads.
    assert_eq!(lab.machine.processes(&Cgroup::Root) - before, 5 + 1 + 12);
    lab.seconds(5);
    assert_eq!(lab.processes("c"), 2);
    lab.machine.remove("c");
    lab.machine.remove("d");
    lab.machine.remove_volumes("p");
    assert_eq!(lab.machine.processes(&Cgroup::Root), before);
}
