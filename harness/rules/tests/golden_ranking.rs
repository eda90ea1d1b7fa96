//! The golden vectors of the kubelet's own tests: ranking and admission.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use evictlab_rules::KubeletVersion;
use evictlab_rules::pod::{Pod, PodStats, Qos};
use evictlab_rules::quantity::Quantity;
use evictlab_rules::ranking::{Applicant, Disks, Ranked, rank, rejection};
use evictlab_rules::threshold::{NodeCondition, Signal};
use serde_json::{from_value, json};

const MI: i64 = 1 << 20;

/// `priority usage/request`: usage in Mi or a count, a request in Mi. Usage `-` is a pod without stats.
fn candidate(index: usize, text: &str) -> (Pod, Option<PodStats>) {
    let (priority, figures) = text.split_once(' ').unwrap();
    let (usage, request) = figures.split_once('/').unwrap_or((figures, "0"));
    let request = format!("{request}Mi");
    let priority = match priority {
        "low" => -1,
        "high" => 1,
        _ => 0,
    };
    let pod = json!({"metadata": {"name": index.to_string()}, "spec": {"priority": priority, "containers": [
        {"name": "a", "resources": {"requests": {"memory": request, "ephemeral-storage": request}}}]}});
    let stats = usage.parse::<i64>().ok().map(|usage| {
        from_value(json!({"podRef": {}, "memory": {"workingSetBytes": usage * MI},
            "process_stats": {"process_count": usage},
            "containers": [{"name": "a", "rootfs": {"usedBytes": usage * MI, "inodesUsed": usage}}]}))
        .unwrap()
    });
    (from_value(pod).unwrap(), stats)
}

#[test]
fn pods_are_evicted_in_the_order_of_these_rows() {
    use Signal::{MemoryAvailable, NodefsAvailable, NodefsInodesFree, PidAvailable};
    let rows: [(&str, Signal, &[&str]); 12] = [
        (
            "OrderedByPriorityMemory",
            MemoryAvailable,
            &[
                "low 500",
                "low 50",
                "high 600/100",
                "high 150/100",
                "low 800/1024",
                "low 200/1024",
                "high 800/1024",
                "high 200/1024",
            ],
        ),
        (
            "OrderedByMemory",
            MemoryAvailable,
            &["- 800/100", "- 500", "- 300", "- 300/100", "- 800/1024", "- 200/1024"],
        ),
        (
            "TestMemoryPressure",
            MemoryAvailable,
            &["low 100", "- 400/100", "high 400", "low 900/1024", "- 50/100"],
        ),
        ("TestPIDPressure", PidAvailable, &["low 600", "low 50", "- 400", "- 100", "high 900"]),
        (
            "OrderedbyDisk",
            NodefsAvailable,
            &["- 300", "- 350/100", "- 100", "- 110/100", "- 375/400", "- 120/400"],
        ),
        (
            "OrderedByPriorityDisk",
            NodefsAvailable,
            &[
                "low 500",
                "low 50",
                "high 600/100",
                "high 150/100",
                "low 800/1024",
                "low 200/1024",
                "high 800/1024",
                "high 200/1024",
            ],
        ),
        ("OrderedbyInodes", NodefsInodesFree, &["- 400000", "- 300000", "- 200000"]),
        (
            "OrderedByPriorityInodes",
            NodefsInodesFree,
            &["low 400000", "low 100000", "high 350000", "high 150000"],
        ),
        ("OrderedByPriorityProcess", PidAvailable, &["low 20", "low 6", "high 20", "high 5"]),
        ("ExceedsRequest", MemoryAvailable, &["high 101/100", "low 199/200"]),
        ("without stats first", MemoryAvailable, &["high -", "low 500", "- 100"]),
        ("priority before missing stats", PidAvailable, &["low 1", "high -", "high 9"]),
    ];
    for (about, signal, order) in rows {
        let pods: Vec<_> = order.iter().enumerate().map(|(i, text)| candidate(i, text)).collect();
        let mut ranked: Vec<_> =
            pods.iter().map(|(pod, stats)| Ranked { pod, stats: stats.as_ref() }).collect();
        ranked.reverse();
        rank(&KubeletVersion::minor(32), signal, Disks::Single, &mut ranked);
        let names: Vec<usize> =
            ranked.iter().map(|ranked| ranked.pod.metadata.name.parse().unwrap()).collect();
        assert_eq!(names, (0..order.len()).collect::<Vec<_>>(), "{about}: {order:?}");
    }
}

#[test]
fn the_layout_of_disks_decides_what_counts() {
    let pods = json!([
        {"metadata": {"name": "writes"}, "spec": {"volumes": [{"name": "v", "emptyDir": {}}]}},
        {"metadata": {"name": "logs"}, "spec": {"volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]}}
    ]);
    let pods: Vec<Pod> = from_value(pods).unwrap();
    let stats = |rootfs: i64, logs: i64| -> PodStats {
        from_value(json!({"podRef": {}, "volume": [{"name": "v", "usedBytes": 3}],
            "containers": [{"name": "a", "rootfs": {"usedBytes": rootfs}, "logs": {"usedBytes": logs}}]}))
        .unwrap()
    };
    let (writes, logs) = (stats(10, 0), stats(0, 9));
    let rows = [
        (Signal::NodefsAvailable, Disks::Single, "writes"),
        (Signal::NodefsAvailable, Disks::DedicatedImages, "logs"),
        (Signal::ImagefsAvailable, Disks::DedicatedImages, "writes"),
        (Signal::ContainerfsAvailable, Disks::DedicatedImages, "writes"),
        (Signal::NodefsAvailable, Disks::Split, "writes"),
    ];
    for (signal, disks, first) in rows {
        let mut ranked =
            [Ranked { pod: &pods[1], stats: Some(&logs) }, Ranked { pod: &pods[0], stats: Some(&writes) }];
        rank(&KubeletVersion::minor(32), signal, disks, &mut ranked);
        assert_eq!(ranked[0].pod.metadata.name, first, "{signal} {disks:?}");
    }
}

#[test]
fn requests_by_version() {
    let container = |memory: &str| json!({"name": "c", "resources": {"requests": {"memory": memory}}});
    let sidecar = |memory: &str| json!({"name": "s", "restartPolicy": "Always", "resources": {"requests": {"memory": memory}}});
    let rows = [
        ("regular ones add up", json!({"containers": [container("100Mi"), container("50Mi")]}), 150, 150),
        (
            "a greater init container",
            json!({"containers": [container("100Mi")], "initContainers": [container("300Mi")]}),
            300,
            300,
        ),
        (
            "sidecars",
            json!({"containers": [container("100Mi")], "initContainers": [sidecar("80Mi"), sidecar("90Mi")]}),
            100,
            270,
        ),
        (
            "an init container after a sidecar",
            json!({"containers": [container("10Mi")], "initContainers": [sidecar("80Mi"), container("90Mi")]}),
            90,
            170,
        ),
        (
            "pod level",
            json!({"containers": [container("100Mi")], "resources": {"requests": {"memory": "250Mi"}}}),
            100,
            250,
        ),
        (
            "pod level of something else",
            json!({"containers": [container("100Mi")], "resources": {"limits": {"cpu": "1"}}}),
            100,
            0,
        ),
        ("overhead", json!({"containers": [container("100Mi")], "overhead": {"memory": "20Mi"}}), 120, 120),
    ];
    for (about, spec, older, newer) in rows {
        let pod: Pod = from_value(json!({"spec": spec})).unwrap();
        for minor in 26..=36 {
            let expected = Quantity::from_bytes(MI * if minor >= 34 { newer } else { older });
            let request = pod.request(&KubeletVersion::minor(minor), "memory");
            assert_eq!(request, expected, "{about}, 1.{minor}: {request}");
        }
    }
}

#[test]
fn admission() {
    use NodeCondition::{DiskPressure, MemoryPressure, PidPressure};
    use Qos::{BestEffort, Burstable, Guaranteed};
    // Conditions, then Guaranteed, Burstable, BestEffort, BestEffort that tolerates, critical.
    let rows: [(&[NodeCondition], [bool; 5], &str); 4] = [
        (&[], [true; 5], ""),
        (&[MemoryPressure], [true, true, false, true, true], "[MemoryPressure]"),
        (
            &[MemoryPressure, DiskPressure],
            [false, false, false, false, true],
            "[MemoryPressure DiskPressure]",
        ),
        (&[PidPressure], [false, false, false, false, true], "[PIDPressure]"),
    ];
    let applicants = [
        (Guaranteed, false, false),
        (Burstable, false, false),
        (BestEffort, false, false),
        (BestEffort, true, false),
        (BestEffort, false, true),
    ];
    for (conditions, expected, list) in rows {
        for ((qos, tolerates_memory_pressure, critical), expected) in applicants.into_iter().zip(expected) {
            let said = rejection(conditions, Applicant { qos, critical, tolerates_memory_pressure });
            let rejection = format!("The node had condition: {list}. ");
            let expected = (!expected).then_some(rejection);
            assert_eq!(said.map(|message| message.to_string()), expected, "{conditions:?} {qos:?}");
        }
    }
}

#[test]
fn classes_and_critical_pods() {
    let qos = |spec| from_value::<Pod>(json!({"spec": spec})).unwrap().qos();
    let resources =
        |requests, limits| json!({"name": "a", "resources": {"requests": requests, "limits": limits}});
    let full = json!({"cpu": "1", "memory": "1Gi"});
    assert_eq!(qos(json!({"containers": [resources(json!({}), json!({}))]})), Qos::BestEffort);
    assert_eq!(qos(json!({"containers": [resources(json!({"memory": "1Gi"}), json!({}))]})), Qos::Burstable);
    assert_eq!(qos(json!({"containers": [resources(full.clone(), full.clone())]})), Qos::Guaranteed);
    let beside = json!({"containers": [resources(full.clone(), full)], "initContainers": [{"name": "b"}]});
    assert_eq!(qos(beside), Qos::Burstable);

    let critical = |pod| from_value::<Pod>(pod).unwrap().is_critical();
    assert!(critical(json!({"spec": {"priority": 2_000_000_000}})));
    assert!(!critical(json!({"spec": {"priority": 1_000_000_000}})));
    assert!(critical(json!({"metadata": {"annotations": {"kubernetes.io/config.source": "file"}}})));
}
