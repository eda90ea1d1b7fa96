//! Decisions of the eviction manager: the test vectors of `eviction_manager_test.go`.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{EvictionCandidate, Manager, ManagerSettings, Plan, SyncResult, Victim};
use crate::defect::Defect;
use crate::kubelet::config::FeatureGates;
use crate::sim::Rng;
use crate::sim::SimTime;
use evictlab_rules::KubeletVersion;
use evictlab_rules::pod::Pod;
use evictlab_rules::summary::Sample;
use evictlab_rules::threshold::{
    FsLayout, NodeCondition, ReclaimAction, Threshold, ThresholdConfig, parse_threshold_config,
};
use rand_chacha::rand_core::SeedableRng;
use serde_json::{Value, json};

const MI: i64 = 1 << 20;
const GI: i64 = 1 << 30;

/// Manager with pods and a clock.
struct Lab {
    manager: Manager,
    pods: Vec<(Pod, i64)>,
    stats: Vec<Value>,
    now: SimTime,
    rng: Rng,
}

/// Result of a pass.
#[derive(Debug, PartialEq)]
enum Outcome {
    Idle,
    /// Names, grace periods and messages of the evicted pods.
    Evicted(Vec<(String, i64, String)>),
    /// Thresholds are met, but no pod can be evicted.
    Nobody,
}

impl Lab {
    fn new(version: u32, settings: ManagerSettings) -> Self {
        let version = KubeletVersion::from_minor(version);
        let gates = FeatureGates::new(&BTreeMap::new(), &version);
        Self {
            manager: Manager::new(version, ManagerSettings { gates, ..settings }),
            pods: Vec::new(),
            stats: Vec::new(),
            now: SimTime::ZERO,
            rng: Rng::seed_from_u64(1),
        }
    }

    fn pod(&mut self, name: &str, priority: i64, resources: Value, stats: Value) -> &mut Self {
        let pod = json!({
            "metadata": {"name": name, "namespace": "test", "uid": name},
            "spec": {"priority": priority, "containers": [{"name": name, "resources": resources}]},
        });
        self.own_pod(pod, stats)
    }

    fn own_pod(&mut self, pod: Value, mut stats: Value) -> &mut Self {
        let uid = pod["metadata"]["uid"].clone();
        self.pods.push((serde_json::from_value(pod).unwrap(), 30));
        stats["podRef"] = json!({"uid": uid});
        self.stats.push(stats);
        self
    }

    fn sample(&self, node: &Value) -> Sample {
        serde_json::from_value(json!({"node": node, "pods": self.stats})).unwrap()
    }

    fn after(&mut self, minutes: u64) -> &mut Self {
        self.now = self.now + Duration::from_secs(60 * minutes);
        self
    }

    fn look(&mut self, node: &Value) -> (SyncResult, Sample) {
        let sample = self.sample(node);
        let candidates = candidates(&self.pods);
        self.manager.detect_fs_layout();
        let look = self.manager.evaluate(self.now, &sample, &candidates, &mut self.rng);
        (look, sample)
    }

    fn outcome(&mut self, node: &Value) -> Outcome {
        let (look, sample) = self.look(node);
        let of = |pods: &[(Pod, i64)], victim: Victim| {
            (pods[victim.at].0.metadata.name.clone(), victim.grace, victim.message)
        };
        match look {
            SyncResult::Idle => Outcome::Idle,
            SyncResult::OverLimits(victims) => {
                Outcome::Evicted(victims.into_iter().map(|victim| of(&self.pods, victim)).collect())
            }
            SyncResult::Pressure(pressure) => {
                let candidates = candidates(&self.pods);
                match self.manager.plan(&pressure, &sample, &candidates).victims.pop() {
                    Some(victim) => Outcome::Evicted(vec![of(&self.pods, victim)]),
                    None => Outcome::Nobody,
                }
            }
        }
    }

    /// Returns names and grace periods of the evicted pods.
    fn evicted(&mut self, node: &Value) -> Vec<(String, i64)> {
        match self.outcome(node) {
            Outcome::Evicted(all) => all.into_iter().map(|(name, grace, _)| (name, grace)).collect(),
            Outcome::Idle | Outcome::Nobody => Vec::new(),
        }
    }

    fn has(&self, condition: NodeCondition) -> bool {
        self.manager.conditions().contains(&condition)
    }

    fn plan(&mut self, node: &Value) -> Plan {
        let (look, sample) = self.look(node);
        let SyncResult::Pressure(pressure) = look else { panic!("{look:?}") };
        self.manager.plan(&pressure, &sample, &candidates(&self.pods))
    }
}

fn candidates(pods: &[(Pod, i64)]) -> Vec<EvictionCandidate<'_>> {
    pods.iter().map(|(pod, grace)| EvictionCandidate { pod, grace: *grace, stated: None }).collect()
}

fn thresholds(config: Value) -> Vec<Threshold> {
    parse_threshold_config(&serde_json::from_value::<ThresholdConfig>(config).unwrap()).unwrap()
}

fn settings(config: Value) -> ManagerSettings {
    ManagerSettings {
        defects: crate::Defects::default(),
        thresholds: thresholds(config),
        transition: Duration::from_secs(300),
        max_pod_grace: 5,
        local_storage: false,
        gates: FeatureGates::default(),
        disks: FsLayout::Single,
    }
}

/// Returns settings with hard 1Gi and soft 2Gi after two minutes, for one signal.
fn hard_and_soft(signal: &str, hard: &str, soft: &str) -> ManagerSettings {
    settings(json!({
        "evictionHard": {signal: hard},
        "evictionSoft": {signal: soft},
        "evictionSoftGracePeriod": {signal: "2m"},
        "enforceNodeAllocatable": ["none"],
    }))
}

fn memory(available: i64) -> Value {
    json!({"memory": {"availableBytes": available, "workingSetBytes": 10 * GI - available}})
}

fn requests(memory: &str) -> Value {
    json!({"requests": {"memory": memory}, "limits": {"memory": memory}})
}

fn working_set(bytes: i64) -> Value {
    json!({"memory": {"workingSetBytes": bytes}})
}

/// Adds the pods of `TestMemoryPressure`.
fn five_pods(lab: &mut Lab) {
    let request = |amount: &str| json!({"requests": {"memory": amount}});
    lab.pod("guaranteed-low", -1, requests("1Gi"), working_set(900 * MI))
        .pod("burstable-below", 0, request("100Mi"), working_set(50 * MI))
        .pod("burstable-above", 0, request("100Mi"), working_set(400 * MI))
        .pod("best-effort-high", 1, json!({}), working_set(400 * MI))
        .pod("best-effort-low", -1, json!({}), working_set(100 * MI));
}

fn is_evicted(evicted: Vec<(String, i64)>, name: &str, grace: i64) {
    assert_eq!(evicted, [(name.to_owned(), grace)]);
}

#[test]
fn evicts_for_memory_pressure() {
    for version in [27, 30, 31, 32, 36] {
        let mut lab = Lab::new(version, hard_and_soft("memory.available", "1Gi", "2Gi"));
        five_pods(&mut lab);
        let immediate = i64::from(version >= 31);
        assert!(lab.evicted(&memory(2 * GI)).is_empty());
        assert!(!lab.has(NodeCondition::MemoryPressure));
        // The soft threshold is met: a condition, but no eviction.
        assert!(lab.after(1).evicted(&memory(1500 * MI)).is_empty());
        assert!(lab.has(NodeCondition::MemoryPressure));
        is_evicted(lab.after(3).evicted(&memory(1500 * MI)), "best-effort-low", 5);
        assert!(lab.has(NodeCondition::MemoryPressure));
        assert!(lab.after(20).evicted(&memory(3 * GI)).is_empty());
        assert!(!lab.has(NodeCondition::MemoryPressure));
        is_evicted(lab.after(1).evicted(&memory(500 * MI)), "best-effort-low", immediate);
        assert!(lab.has(NodeCondition::MemoryPressure));
        // The condition is kept for the transition period.
        assert!(lab.after(1).evicted(&memory(2 * GI)).is_empty());
        assert!(lab.has(NodeCondition::MemoryPressure));
        assert!(lab.after(5).evicted(&memory(2 * GI)).is_empty());
        assert!(!lab.has(NodeCondition::MemoryPressure));
    }
}

#[test]
fn soft_threshold_never_extends_grace_period_since_1_32() {
    for (version, grace) in [(31, 5), (32, 2)] {
        let mut lab = Lab::new(version, hard_and_soft("memory.available", "1Gi", "2Gi"));
        five_pods(&mut lab);
        lab.pods.iter_mut().for_each(|(_, own)| *own = 2);
        assert!(lab.evicted(&memory(1500 * MI)).is_empty());
        is_evicted(lab.after(3).evicted(&memory(1500 * MI)), "best-effort-low", grace);
    }
}

/// `thresholdsFirstObservedAt`, `nodeConditionsLastObservedAt`: each threshold and each condition
/// has its own time.
#[test]
fn grace_and_transition_periods_are_those_of_each_signal() {
    let config = json!({
        "evictionSoft": {"memory.available": "2Gi", "pid.available": "1500"},
        "evictionSoftGracePeriod": {"memory.available": "2m", "pid.available": "2m"},
    });
    let node = |available: i64, processes: i64| {
        let mut node = memory(available);
        node["rlimit"] = json!({"maxpid": 2000, "curproc": processes});
        node
    };
    for (defect, resource, ends) in [
        (None, "pids", true),
        (Some(Defect::SoftGraceOfAnother), "memory", true),
        (Some(Defect::TransitionOfAnother), "pids", false),
    ] {
        let defects = defect.into_iter().collect();
        let mut lab = Lab::new(36, ManagerSettings { defects, ..settings(config.clone()) });
        five_pods(&mut lab);
        let reclaimed = |lab: &mut Lab, node: &Value| match lab.look(node).0 {
            SyncResult::Pressure(pressure) => pressure.resource().to_string(),
            result => format!("{result:?}"),
        };
        assert!(lab.evicted(&node(3 * GI, 700)).is_empty());
        assert!(lab.after(1).evicted(&node(GI, 700)).is_empty());
        assert_eq!(reclaimed(lab.after(1), &node(GI, 700)), resource, "{defect:?}");
        assert_eq!(reclaimed(lab.after(1), &node(GI, 700)), "memory");
        assert_eq!(reclaimed(lab.after(4), &node(3 * GI, 700)), "pids");
        assert!(lab.has(NodeCondition::MemoryPressure), "before the transition period");
        assert_eq!(reclaimed(lab.after(1), &node(3 * GI, 700)), "pids");
        assert_eq!(!lab.has(NodeCondition::MemoryPressure), ends, "{defect:?}");
        assert!(lab.has(NodeCondition::PidPressure));
    }
}

#[test]
fn soft_grace_period_restarts_when_threshold_is_not_met() {
    let mut lab = Lab::new(32, hard_and_soft("memory.available", "1Gi", "2Gi"));
    five_pods(&mut lab);
    assert!(lab.evicted(&memory(1500 * MI)).is_empty());
    assert!(lab.after(1).evicted(&memory(3 * GI)).is_empty());
    assert!(lab.after(1).evicted(&memory(1500 * MI)).is_empty());
    assert!(lab.after(1).evicted(&memory(1500 * MI)).is_empty());
    is_evicted(lab.after(1).evicted(&memory(1500 * MI)), "best-effort-low", 5);
}

#[test]
fn keeps_condition_until_minimum_reclaim() {
    let config = json!({
        "evictionHard": {"memory.available": "1Gi"},
        "evictionMinimumReclaim": {"memory.available": "500Mi"},
        "enforceNodeAllocatable": ["none"],
    });
    let mut lab = Lab::new(32, settings(config));
    five_pods(&mut lab);
    assert!(lab.evicted(&memory(2 * GI)).is_empty());
    is_evicted(lab.after(1).evicted(&memory(500 * MI)), "best-effort-low", 1);
    // Above the threshold, but not by the minimum reclaim.
    is_evicted(lab.after(1).evicted(&memory(1228 * MI)), "best-effort-low", 1);
    assert!(lab.after(1).evicted(&memory(2 * GI)).is_empty());
    assert!(lab.has(NodeCondition::MemoryPressure));
    assert!(lab.after(5).evicted(&memory(2 * GI)).is_empty());
    assert!(!lab.has(NodeCondition::MemoryPressure));
}

#[test]
fn minimum_reclaim_alone_sets_no_condition() {
    let config = json!({
        "evictionHard": {"memory.available": "1Gi"},
        "evictionMinimumReclaim": {"memory.available": "500Mi"},
    });
    let mut lab = Lab::new(32, settings(config));
    five_pods(&mut lab);
    assert!(lab.evicted(&memory(1228 * MI)).is_empty());
    assert!(!lab.has(NodeCondition::MemoryPressure));
}

#[test]
fn evicts_for_process_ids() {
    let mut lab = Lab::new(32, hard_and_soft("pid.available", "1200", "1500"));
    let processes = |count: i64| json!({"process_stats": {"process_count": count}});
    lab.pod("high", 1, json!({}), processes(900))
        .pod("default-few", 0, json!({}), processes(100))
        .pod("default-many", 0, json!({}), processes(400))
        .pod("low-many", -1, json!({}), processes(600))
        .pod("low-few", -1, json!({}), processes(50));
    let node = |used: i64| json!({"rlimit": {"maxpid": 2000, "curproc": used}});
    assert!(lab.evicted(&node(300)).is_empty());
    assert!(lab.after(1).evicted(&node(700)).is_empty());
    assert!(lab.has(NodeCondition::PidPressure));
    is_evicted(lab.after(3).evicted(&node(700)), "low-many", 5);
    assert!(lab.after(20).evicted(&node(300)).is_empty());
    assert!(!lab.has(NodeCondition::PidPressure));
    is_evicted(lab.after(1).evicted(&node(1200)), "low-many", 1);
}

#[test]
fn eviction_messages() {
    let mut lab = Lab::new(36, settings(json!({"evictionHard": {"memory.available": "2Gi"}})));
    lab.pod("below-requests", 0, json!({"requests": {"memory": "1Gi"}}), working_set(900 * MI)).pod(
        "above-requests",
        0,
        json!({"requests": {"memory": "100Mi"}}),
        working_set(700 * MI),
    );
    let message = "The node was low on resource: memory. Threshold quantity: 2Gi, available: 1500Mi. ";
    let above = || "above-requests".to_owned();
    assert_eq!(lab.outcome(&memory(1500 * MI)), Outcome::Evicted(vec![(above(), 1, message.to_owned())]));

    let mut lab = Lab::new(36, settings(json!({"evictionHard": {"pid.available": "1200"}})));
    lab.pod("one", 0, json!({}), json!({"process_stats": {"process_count": 7}}));
    let node = json!({"rlimit": {"maxpid": 1500, "curproc": 1000}});
    let message = "The node was low on resource: pids. Threshold quantity: 1200, available: 500. ";
    assert_eq!(lab.outcome(&node), Outcome::Evicted(vec![("one".to_owned(), 1, message.to_owned())]));

    let disk = |available: i64| json!({"availableBytes": available, "capacityBytes": 100 * GI});
    let rows = [
        (
            FsLayout::Single,
            "nodefs.available",
            ("2Gi", 1536 * MI),
            ("100Mi", 700 * MI),
            "Threshold quantity: 2Gi, available: 1536Mi. Container above-requests was using 700Mi, request is 100Mi",
        ),
        (
            FsLayout::DedicatedImagefs,
            "imagefs.available",
            ("50Gi", 10 * GI),
            ("50Gi", 80 * GI),
            "Threshold quantity: 50Gi, available: 10Gi. Container above-requests was using 80Gi, request is 50Gi",
        ),
        (
            FsLayout::SplitImagefs,
            "nodefs.available",
            ("50Gi", 10 * GI),
            ("50Gi", 80 * GI),
            "Threshold quantity: 50Gi, available: 10Gi. Container above-requests was using 80Gi, request is 50Gi",
        ),
    ];
    for (disks, signal, (threshold, available), (request, used), says) in rows {
        let settings = ManagerSettings { disks, ..settings(json!({"evictionHard": {signal: threshold}})) };
        let mut lab = Lab::new(36, settings);
        let stats = |name: &str, used: i64| json!({"containers": [{"name": name, "rootfs": {"usedBytes": used}, "logs": {"usedBytes": 0}}]});
        let asks = |request: &str| json!({"requests": {"ephemeral-storage": request}});
        lab.pod("below-requests", 0, asks("100Gi"), stats("below-requests", GI)).pod(
            "above-requests",
            0,
            asks(request),
            stats("above-requests", used),
        );
        let node = match signal {
            "imagefs.available" => json!({"fs": disk(90 * GI), "runtime": {"imageFs": disk(available)}}),
            _ => json!({"fs": disk(available), "runtime": {"imageFs": disk(90 * GI)}}),
        };
        let message = format!(
            "The node was low on resource: ephemeral-storage. {says}, has larger consumption of ephemeral-storage. "
        );
        assert_eq!(lab.outcome(&node), Outcome::Evicted(vec![(above(), 1, message)]), "{disks:?}");
    }
}

#[test]
fn acts_on_each_measurement_once() {
    let mut lab = Lab::new(32, settings(json!({"evictionHard": {"memory.available": "1Gi"}})));
    five_pods(&mut lab);
    let at =
        |time: &str| json!({"memory": {"time": time, "availableBytes": 500 * MI, "workingSetBytes": 9 * GI}});
    let rows = [
        ("2026-01-01T00:00:10Z", true),
        ("2026-01-01T00:00:10Z", false),
        ("2026-01-01T00:00:09Z", false),
        ("2026-01-01T00:00:10.000001Z", true),
    ];
    for (time, evicts) in rows {
        assert_eq!(!lab.evicted(&at(time)).is_empty(), evicts, "{time}");
        assert!(lab.has(NodeCondition::MemoryPressure), "a condition does not ask for the age");
    }
    // Statistics without a time always count as new.
    assert!(!lab.evicted(&memory(500 * MI)).is_empty());
    assert!(!lab.evicted(&memory(500 * MI)).is_empty());
}

#[test]
fn skips_critical_pods() {
    let mut lab = Lab::new(32, settings(json!({"evictionHard": {"memory.available": "1Gi"}})));
    lab.pod("critical", 2_000_000_000, json!({}), json!({})).pod(
        "harmless",
        0,
        requests("1Gi"),
        working_set(10 * MI),
    );
    // A pod that the Summary does not contain ranks first.
    lab.stats.remove(0);
    let plan = lab.plan(&memory(500 * MI));
    assert_eq!((&plan.ranked[..], &plan.critical[..]), (&[0, 1][..], &[0][..]));
    assert_eq!(plan.victims[0].at, 1);

    lab.pods.remove(1);
    assert_eq!(lab.outcome(&memory(500 * MI)), Outcome::Nobody);
}

#[test]
fn pod_without_statistics_ranks_first_without_container_details() {
    let mut lab = Lab::new(32, settings(json!({"evictionHard": {"memory.available": "1Gi"}})));
    lab.pod("hog", -1, json!({}), working_set(9 * GI)).pod("waiting", 1, json!({}), json!({}));
    lab.stats.pop();
    let victim = lab.plan(&memory(500 * MI)).victims.remove(0);
    assert_eq!((victim.at, victim.annotations), (1, None));
    assert_eq!(
        victim.message,
        "The node was low on resource: memory. Threshold quantity: 1Gi, available: 500Mi. "
    );
    assert!(victim.disruption);
}

#[test]
fn memory_ranks_before_other_signals() {
    let config = json!({
        "evictionHard": {"pid.available": "10", "nodefs.available": "2Gi", "nodefs.inodesFree": "10",
            "memory.available": "1Gi"},
        "enforceNodeAllocatable": ["none"],
    });
    let disk = json!({"availableBytes": 1, "capacityBytes": 100 * GI, "inodesFree": 1, "inodes": 100});
    let mut node = memory(500 * MI);
    node["fs"] = disk;
    node["rlimit"] = json!({"maxpid": 100, "curproc": 99});
    let mut first = std::collections::BTreeSet::new();
    for seed in 0..40 {
        let mut lab = Lab::new(32, settings(config.clone()));
        lab.rng = Rng::seed_from_u64(seed);
        lab.pod("one", 0, json!({}), working_set(GI));
        let (SyncResult::Pressure(pressure), _) = lab.look(&node) else { panic!() };
        assert_eq!(pressure.resource().as_str(), "memory");
        assert_eq!(lab.manager.conditions().len(), 3);
        node["memory"]["availableBytes"] = json!(5 * GI);
        let mut lab = Lab::new(32, settings(config.clone()));
        lab.rng = Rng::seed_from_u64(seed);
        let (SyncResult::Pressure(pressure), _) = lab.look(&node) else { panic!() };
        first.insert(pressure.resource().as_str());
        node["memory"]["availableBytes"] = json!(500 * MI);
    }
    assert_eq!(Vec::from_iter(first), ["ephemeral-storage", "inodes", "pids"]);
}

/// Go iterates over a map of three from its first entry in six of eight cases, and its insertion
/// sort reverses memory thresholds: the copy for node allocatable decides most often.
#[test]
fn the_first_of_several_thresholds_is_that_of_go() {
    let hard = json!({"pid.available": "10", "nodefs.available": "2Gi", "nodefs.inodesFree": "10",
        "memory.available": "1Gi"});
    let disk = json!({"availableBytes": 1, "capacityBytes": 100 * GI, "inodesFree": 1, "inodes": 100});
    let disks = json!({"fs": disk, "rlimit": {"maxpid": 100, "curproc": 99}});
    let mut two = memory(500 * MI);
    two["systemContainers"] =
        json!([{"name": "pods", "memory": {"availableBytes": MI, "workingSetBytes": GI}}]);
    let rows = [
        (&disks, &[("nodefs.available", 600), ("nodefs.inodesFree", 100), ("pid.available", 100)][..]),
        (&two, &[("allocatableMemory.available", 700), ("memory.available", 100)][..]),
    ];
    for (node, expected) in rows {
        let mut counts = BTreeMap::new();
        for seed in 0..800 {
            let mut lab = Lab::new(36, settings(json!({"evictionHard": hard})));
            lab.rng = Rng::seed_from_u64(seed);
            let (SyncResult::Pressure(pressure), _) = lab.look(node) else { panic!() };
            *counts.entry(pressure.signal().as_str()).or_insert(0_i32) += 1;
        }
        assert_eq!(counts.len(), expected.len(), "{counts:?}");
        for (signal, count) in expected {
            assert!((counts[signal] - count).abs() < 40, "{signal} {counts:?}");
        }
    }
}

#[test]
fn reclaimed_resources_count() {
    let settings = settings(json!({"evictionHard": {"nodefs.available": "1Gi"}}));
    let disk = |available: i64| json!({"fs": {"availableBytes": available, "capacityBytes": 100 * GI}});
    let rows = [
        (FsLayout::Single, &[ReclaimAction::DeleteContainers, ReclaimAction::DeleteImages][..]),
        (FsLayout::DedicatedImagefs, &[][..]),
        (FsLayout::SplitImagefs, &[ReclaimAction::DeleteContainers][..]),
    ];
    for (disks, ways) in rows {
        let mut lab = Lab::new(32, ManagerSettings { disks, ..settings.clone() });
        lab.pod("one", 0, json!({}), json!({}));
        let (SyncResult::Pressure(pressure), _) = lab.look(&disk(750 * MI)) else { panic!() };
        assert_eq!(lab.manager.node_level_reclaim(&pressure), ways);
        assert!(lab.manager.relieved(&lab.sample(&disk(16 * GI))));
        assert!(!lab.manager.relieved(&lab.sample(&disk(900 * MI))));
    }
}

#[test]
fn containerfs_follows_from_the_second_pass() {
    let node = json!({
        "fs": {"availableBytes": 5 * GI, "capacityBytes": 100 * GI},
        "runtime": {"containerFs": {"availableBytes": MI, "capacityBytes": 100 * GI}},
    });
    let config = json!({"evictionHard": {"nodefs.available": "1Gi"}});
    for (version, counts, ways) in
        [(28, false, 0), (29, true, 0), (31, true, 0), (32, true, 2), (36, true, 2)]
    {
        let mut lab = Lab::new(version, settings(config.clone()));
        lab.pod("one", 0, json!({}), json!({}));
        assert!(
            matches!(lab.look(&node).0, SyncResult::Idle),
            "1.{version}: the first look does not know of it"
        );
        match lab.look(&node).0 {
            SyncResult::Pressure(pressure) => {
                assert!(counts, "1.{version}");
                assert_eq!(pressure.signal().as_str(), "containerfs.available");
                assert_eq!(lab.manager.node_level_reclaim(&pressure).len(), ways, "1.{version}");
            }
            _ => assert!(!counts, "1.{version}"),
        }
    }
}

/// `UpdateContainerFsThresholds` overwrites configured thresholds in the array that `synchronize`
/// already reads, so that its first pass uses their replacement.
#[test]
fn ignores_containerfs_configuration() {
    let config = json!({"evictionHard": {"containerfs.available": "50Gi", "nodefs.available": "1Gi"}});
    let node = |available: i64| {
        let disk = json!({"availableBytes": available, "capacityBytes": 100 * GI});
        json!({"runtime": {"containerFs": disk}})
    };
    for version in [29, 32, 36] {
        let mut lab = Lab::new(version, settings(config.clone()));
        let conflict = lab.manager.detect_fs_layout();
        assert_eq!(conflict.as_deref(), Some("found containerfs.available for hard eviction. ignoring"));
        assert!(matches!(lab.look(&node(2 * GI)).0, SyncResult::Idle), "1.{version}");
        assert!(matches!(lab.look(&node(2 * GI)).0, SyncResult::Idle), "1.{version}");

        let mut lab = Lab::new(version, settings(config.clone()));
        assert!(matches!(lab.look(&node(MI)).0, SyncResult::Pressure(_)), "1.{version}");
        assert_eq!(lab.manager.detect_fs_layout(), None, "reported once");
    }
}

/// A pass without a Summary detects the file systems, too.
#[test]
fn containerfs_follows_after_a_pass_without_summary() {
    let config = json!({"evictionHard": {"nodefs.available": "1Gi"}});
    let node = json!({"runtime": {"containerFs": {"availableBytes": MI, "capacityBytes": 100 * GI}}});
    let mut lab = Lab::new(29, settings(config));
    lab.manager.detect_fs_layout();
    assert!(matches!(lab.look(&node).0, SyncResult::Pressure(_)));
}

fn limited(limit: &str) -> Value {
    json!({"requests": {"ephemeral-storage": limit}, "limits": {"ephemeral-storage": limit}})
}

fn local(stats: Value, total: i64) -> Value {
    let mut stats = stats;
    stats["ephemeral-storage"] = json!({"usedBytes": total});
    stats
}

#[test]
fn evicts_pods_over_their_storage_limits() {
    let rows = [
        ("rootfs", json!({"rootfs": {"usedBytes": 2 * GI}, "logs": {"usedBytes": 0}})),
        ("logs", json!({"rootfs": {"usedBytes": 0}, "logs": {"usedBytes": 2 * GI}})),
    ];
    for (what, mut container) in rows {
        container["name"] = json!("one");
        for version in [30, 31] {
            let mut lab = Lab::new(version, ManagerSettings { local_storage: true, ..settings(json!({})) });
            lab.pod("one", 0, limited("1Gi"), local(json!({"containers": [container]}), 2 * GI));
            is_evicted(lab.evicted(&json!({})), "one", i64::from(version >= 31));
            let mut off = Lab::new(version, settings(json!({})));
            off.pods = lab.pods.clone();
            off.stats = lab.stats.clone();
            assert!(off.evicted(&json!({})).is_empty(), "{what}");
            assert!(!off.manager.has_work());
        }
    }
}

/// `localStorageEviction`: one pass evicts all pods over their limits, before any for a threshold.
#[test]
fn limits_are_checked_in_every_pass() {
    let config = json!({"evictionHard": {"memory.available": "2Gi"}});
    let cases: [(&[Defect], [usize; 3]); 5] = [
        (&[], [2, 2, 2]),
        (&[Defect::LimitsNeedThresholds], [0, 2, 2]),
        (&[Defect::LimitsNeedPressure], [0, 0, 2]),
        (&[Defect::LimitsIgnoredUnderPressure], [2, 2, 0]),
        (&[Defect::LimitsEvictOne], [1, 1, 1]),
    ];
    for (defects, expected) in cases {
        let evicted = |config: &Value, available: i64| {
            let defects = defects.iter().copied().collect();
            let mut lab =
                Lab::new(36, ManagerSettings { local_storage: true, defects, ..settings(config.clone()) });
            for name in ["one", "two"] {
                lab.pod(name, 0, limited("1Gi"), local(json!({}), 2 * GI));
            }
            lab.pod("third", 0, json!({}), working_set(MI));
            if !lab.manager.has_work() {
                return 0;
            }
            match lab.look(&memory(available)).0 {
                SyncResult::OverLimits(victims) => victims.len(),
                SyncResult::Idle | SyncResult::Pressure(_) => 0,
            }
        };
        let counts = [evicted(&json!({}), GI), evicted(&config, 3 * GI), evicted(&config, GI)];
        assert_eq!(counts, expected, "{defects:?}");
    }
}

/// `containerEphemeralStorageLimitEviction`: with images on a file system of their own, the
/// writable layer does not count, also where the layer is on nodefs.
#[test]
fn container_limit_excludes_layer_unless_layout_is_single() {
    let container = json!({"name": "other", "rootfs": {"usedBytes": 2 * GI}, "logs": {"usedBytes": 0}});
    let pod = json!({
        "metadata": {"name": "one", "uid": "one"},
        "spec": {"containers": [{"name": "other", "resources": limited("1Gi")}, {"name": "roomy", "resources": limited("9Gi")}]},
    });
    let layouts =
        [(FsLayout::Single, true), (FsLayout::DedicatedImagefs, false), (FsLayout::SplitImagefs, false)];
    for (disks, is_evicted) in layouts {
        for version in [27, 31, 36] {
            let mut lab =
                Lab::new(version, ManagerSettings { local_storage: true, disks, ..settings(json!({})) });
            lab.own_pod(pod.clone(), local(json!({"containers": [container]}), 2 * GI));
            assert_eq!(!lab.evicted(&json!({})).is_empty(), is_evicted, "{disks:?} 1.{version}");
        }
    }
}

/// `evictPod` is called for each kind of limit until it evicts, which it never does to a critical
/// pod.
#[test]
fn critical_pod_over_limits_is_spared_for_each_limit() {
    let over_two_kinds = |name: &str, priority: i64| {
        json!({
            "metadata": {"name": name, "uid": name},
            "spec": {
                "priority": priority,
                "containers": [{"name": "c", "resources": limited("100Mi")}],
                "volumes": [{"name": "data", "emptyDir": {"sizeLimit": "50Mi"}}],
            },
        })
    };
    let stats = || local(json!({"volume": [{"name": "data", "usedBytes": 101 * MI}]}), 101 * MI);
    let mut lab = Lab::new(32, ManagerSettings { local_storage: true, ..settings(json!({})) });
    lab.own_pod(over_two_kinds("critical", 2_000_000_000), stats());
    assert!(matches!(lab.look(&json!({})).0, SyncResult::Idle));
    assert_eq!(lab.manager.spared(), [0, 0]);
    lab.own_pod(over_two_kinds("other", 0), stats());
    let SyncResult::OverLimits(victims) = lab.look(&json!({})).0 else { panic!() };
    assert_eq!((victims.len(), victims[0].at, victims[0].signal), (1, 1, "emptydirfs.limit"));
    assert_eq!(lab.manager.spared(), [0, 0]);
    lab.stats.clear();
    assert!(matches!(lab.look(&json!({})).0, SyncResult::Idle));
    assert_eq!(lab.manager.spared(), [0; 0]);
}

#[test]
fn evicts_all_pods_over_their_limits_in_one_pass() {
    let config = json!({"evictionHard": {"memory.available": "1Gi"}});
    let mut lab = Lab::new(32, ManagerSettings { local_storage: true, ..settings(config) });
    let container = json!({"name": "other", "rootfs": {"usedBytes": 200 * MI}, "logs": {"usedBytes": 0}});
    let volume = json!({"name": "data", "usedBytes": 201 * MI});
    let two_containers = json!({
        "metadata": {"name": "container", "uid": "container"},
        "spec": {"containers": [
            {"name": "other", "resources": limited("100Mi")},
            {"name": "roomy", "resources": limited("900Mi")},
        ]},
    });
    let empty_dir = json!({
        "metadata": {"name": "volume", "uid": "volume"},
        "spec": {"containers": [{"name": "c"}], "volumes": [{"name": "data", "emptyDir": {"sizeLimit": "200Mi"}}]},
    });
    lab.pod("hog", 0, json!({}), working_set(9 * GI))
        .pod("pod", 0, limited("100Mi"), local(json!({}), 101 * MI))
        .pod("critical", 2_000_000_000, limited("100Mi"), local(json!({}), 101 * MI))
        .own_pod(two_containers, local(json!({"containers": [container]}), 200 * MI))
        .own_pod(empty_dir, json!({"volume": [volume]}));
    let Outcome::Evicted(all) = lab.outcome(&memory(500 * MI)) else { panic!() };
    let all: Vec<(&str, &str)> = all.iter().map(|(name, _, message)| (&name[..], &message[..])).collect();
    assert_eq!(
        all,
        [
            ("pod", "Pod ephemeral local storage usage exceeds the total limit of containers 100Mi. "),
            ("container", "Container other exceeded its local ephemeral storage limit \"100Mi\". "),
            ("volume", "Usage of EmptyDir volume \"data\" exceeds the limit \"200Mi\". "),
        ]
    );
    let SyncResult::OverLimits(victims) = lab.look(&memory(500 * MI)).0 else { panic!() };
    assert!(victims.iter().all(|victim| victim.annotations.is_none() && !victim.disruption));
    let signals: Vec<&str> = victims.iter().map(|victim| victim.signal).collect();
    assert_eq!(signals, ["ephemeralpodfs.limit", "ephemeralcontainerfs.limit", "emptydirfs.limit"]);
}
