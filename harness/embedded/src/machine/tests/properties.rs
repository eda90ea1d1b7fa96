//! Invariants for random sequences of operations.

use crate::machine::{Cgroup, ContainerSpec, MachineEvent, MemoryUse};
use crate::options::CgroupVersion;
use proptest::prelude::*;

use super::lab::{Lab, MIB, mount, options, sh};

const SCRIPTS: [&str; 13] = [
    "sleep 3",
    "sleep infinity",
    "exec /agnhost stress --mem-alloc-size 20Mi --mem-alloc-sleep 100ms --mem-total 150Mi",
    "/agnhost stress --mem-alloc-size 20Mi --mem-alloc-sleep 50ms --mem-total 100Mi & sleep 4; exit 1",
    "dd if=/dev/zero of=/f bs=1M count=60; sleep 2; cat /f > /dev/null; sleep 1; : > /f; sleep 100",
    "while true; do dd if=/dev/zero of=/data/f bs=1M count=20 2>/dev/null; sleep 1; done",
    "dd if=/dev/zero of=/mem/f bs=1M count=80; sleep 1; : > /mem/f; dd if=/dev/zero of=/mem/g bs=1M count=30; sleep 100",
    "i=0; while [ $i -lt 200 ]; do sleep 300 & mkdir /data/$i; i=$((i+1)); done; wait",
    "while true; do echo some words; done",
    "x=$(dd if=/dev/zero bs=1M count=30); dd if=/dev/zero of=/data/y bs=1M count=30; : > /data/y; sleep 100",
    "(dd if=/dev/zero of=/dev/shm/f bs=1M count=70; sleep 1) & wait; exit 3",
    "trap 'exit 0' TERM; while true; do x=$(echo 1; echo 2); for n in $x; do :; done; done",
    "fallocate -l 50M /data/big; cat /data/big > /copy; sleep 1; : > /data/big; sleep 100",
];

#[derive(Clone, Debug)]
enum Operation {
    Start { script: usize, pod: usize, limit: Option<u64>, group: bool },
    Term(usize),
    Remove(usize),
    RemovePod(usize),
    Oom,
    Pass(u64),
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let operation = prop_oneof![
        4 => (0..SCRIPTS.len(), 0..3usize, prop::option::of(30..200u64), any::<bool>())
            .prop_map(|(script, pod, limit, group)| Operation::Start { script, pod, limit, group }),
        1 => (0..8usize).prop_map(Operation::Term),
        1 => (0..8usize).prop_map(Operation::Remove),
        1 => (0..3usize).prop_map(Operation::RemovePod),
        1 => Just(Operation::Oom),
        6 => (1..3000u64).prop_map(Operation::Pass),
    ];
    prop::collection::vec(operation, 1..25)
}

/// Asserts that each cgroup contains the memory of its children, and that nothing exceeds its size.
fn check(lab: &Lab, containers: &[(String, String)]) {
    let usage = |group: Cgroup| lab.machine.memory(&group).unwrap_or_default();
    let within = |small: MemoryUse, large: MemoryUse| {
        assert!(
            small.usage <= large.usage && small.working_set <= large.working_set && small.rss <= large.rss
        );
        assert!(large.working_set <= large.usage && large.rss <= large.working_set);
    };
    let sum = |all: &[MemoryUse]| MemoryUse {
        usage: all.iter().map(|used| used.usage).sum(),
        working_set: all.iter().map(|used| used.working_set).sum(),
        rss: all.iter().map(|used| used.rss).sum(),
    };
    within(usage(Cgroup::Pods), usage(Cgroup::Root));
    let mut pods = Vec::new();
    for pod in ["0", "1", "2"] {
        let of: Vec<MemoryUse> = containers
            .iter()
            .filter(|(_, of)| of == pod)
            .map(|(id, _)| usage(Cgroup::Container(id.clone())))
            .collect();
        let own = usage(Cgroup::Pod(pod.to_owned()));
        within(sum(&of), own);
        pods.push(own);
    }
    within(sum(&pods), usage(Cgroup::Pods));
    let files = lab.machine.filesystem();
    assert!(files.used.bytes <= files.capacity.bytes && files.used.inodes <= files.capacity.inodes);
    assert!(usage(Cgroup::Root).usage <= lab.machine.memory_total());
}

fn run(operations: &[Operation], cgroup: CgroupVersion) -> (Vec<MachineEvent>, Vec<MemoryUse>) {
    let mut options = options();
    options.memory = 700 * MIB;
    options.disk = options.disk_used + 400 * MIB;
    (options.max_pid, options.processes) = (1500, 700);
    options.cgroup = cgroup;
    let mut lab = Lab::of(&options);
    let empty = (
        lab.machine.memory(&Cgroup::Root).unwrap(),
        lab.machine.filesystem(),
        lab.machine.processes(&Cgroup::Root),
    );
    let mut containers: Vec<(String, String)> = Vec::new();
    let mut seen = Vec::new();
    for operation in operations {
        match operation {
            Operation::Start { script, pod, limit, group } => {
                let id = format!("c{}", lab.now.since_start().as_micros() + containers.len() as u64 as u128);
                if containers.iter().any(|(other, _)| *other == id) {
                    continue;
                }
                let mut spec = ContainerSpec {
                    memory_limit: limit.map(|limit| limit * MIB),
                    oom_group: *group,
                    oom_score_adj: 500,
                    ..sh(&pod.to_string(), SCRIPTS[*script])
                };
                spec.mounts = vec![mount("/data", "data", false), mount("/mem", "mem", true)];
                lab.start(&id, spec);
                containers.push((id, pod.to_string()));
            }
            Operation::Term(at) => {
                if let Some((id, _)) = containers.get(*at) {
                    lab.machine.signal(id, crate::machine::SIGTERM, lab.now);
                }
            }
            Operation::Remove(at) => {
                if *at < containers.len() {
                    let (id, _) = containers.remove(*at);
                    lab.machine.remove(&id);
                }
            }
            Operation::RemovePod(pod) => lab.machine.remove_volumes(&pod.to_string()),
            Operation::Oom => lab.machine.trigger_oom(lab.now),
            Operation::Pass(millis) => lab.pass(std::time::Duration::from_millis(*millis)),
        }
        check(&lab, &containers);
        seen.push(lab.machine.memory(&Cgroup::Root).unwrap());
    }
    for (id, _) in &containers {
        lab.machine.remove(id);
    }
    for pod in ["0", "1", "2"] {
        lab.machine.remove_volumes(pod);
    }
    let now = lab.machine.memory(&Cgroup::Root).unwrap();
    assert_eq!(now.working_set, empty.0.working_set, "memory was not freed");
    assert_eq!(now.rss, empty.0.rss);
    // The system's page cache may have been dropped meanwhile.
    assert!(now.usage <= empty.0.usage);
    assert_eq!(lab.machine.filesystem(), empty.1, "disk space was not freed");
    assert_eq!(lab.machine.processes(&Cgroup::Root), empty.2, "processes were not removed");
    assert_eq!(lab.machine.memory(&Cgroup::Pods).unwrap(), MemoryUse::default());
    lab.seconds(1);
    (lab.events, seen)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn cgroups_contain_their_children_and_free_everything(operations in operations(), v1 in any::<bool>()) {
        let cgroup = if v1 { CgroupVersion::V1 } else { CgroupVersion::V2 };
        let once = run(&operations, cgroup);
        prop_assert_eq!(once, run(&operations, cgroup), "two runs differ");
    }
}
