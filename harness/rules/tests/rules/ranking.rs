//! Vectors of the kubelet's own tests of ranking and admission.

use evictlab_rules::KubeletVersion;
use evictlab_rules::pod::{Pod, QosClass};
use evictlab_rules::quantity::{MIB, Quantity};
use evictlab_rules::ranking::{AdmitAttributes, RankedPod, admission_rejection, rank_pods};
use evictlab_rules::summary::PodStats;
use evictlab_rules::threshold::{FsLayout, NodeCondition, Signal};
use serde_json::{Value, from_value, json};

const MI: i64 = MIB as i64;

/// Builds a pod from `priority usage/request`: usage in MiB or as a count, request in MiB. A usage
/// of `-` means a pod without statistics.
fn pod_with_stats(index: usize, text: &str) -> (Pod, Option<PodStats>) {
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
fn ranks_pods_as_the_kubelet_does() {
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
        let pods: Vec<_> = order.iter().enumerate().map(|(i, text)| pod_with_stats(i, text)).collect();
        let mut ranked: Vec<_> =
            pods.iter().map(|(pod, stats)| RankedPod { pod, stats: stats.as_ref() }).collect();
        ranked.reverse();
        rank_pods(&KubeletVersion::from_minor(32), signal, FsLayout::Single, &mut ranked);
        let names: Vec<usize> =
            ranked.iter().map(|ranked| ranked.pod.metadata.name.parse().unwrap()).collect();
        assert_eq!(names, (0..order.len()).collect::<Vec<_>>(), "{about}: {order:?}");
    }
}

#[test]
fn fs_layout_selects_the_counted_usage() {
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
        (Signal::NodefsAvailable, FsLayout::Single, "writes"),
        (Signal::NodefsAvailable, FsLayout::DedicatedImagefs, "logs"),
        (Signal::ImagefsAvailable, FsLayout::DedicatedImagefs, "writes"),
        (Signal::ContainerfsAvailable, FsLayout::DedicatedImagefs, "writes"),
        (Signal::NodefsAvailable, FsLayout::SplitImagefs, "writes"),
    ];
    for (signal, layout, first) in rows {
        let mut ranked = [
            RankedPod { pod: &pods[1], stats: Some(&logs) },
            RankedPod { pod: &pods[0], stats: Some(&writes) },
        ];
        rank_pods(&KubeletVersion::from_minor(32), signal, layout, &mut ranked);
        assert_eq!(ranked[0].pod.metadata.name, first, "{signal} {layout:?}");
    }
}

#[test]
fn pod_request_depends_on_version() {
    let container = |memory: &str| json!({"name": "c", "resources": {"requests": {"memory": memory}}});
    let sidecar = |memory: &str| json!({"name": "s", "restartPolicy": "Always", "resources": {"requests": {"memory": memory}}});
    let rows = [
        (
            "regular containers are summed",
            json!({"containers": [container("100Mi"), container("50Mi")]}),
            150,
            150,
        ),
        (
            "an init container with a greater request",
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
        (
            "overhead without a request",
            json!({"containers": [{"name": "a"}], "overhead": {"memory": "20Mi"}}),
            0,
            0,
        ),
    ];
    for (about, spec, older, newer) in rows {
        let pod: Pod = from_value(json!({"spec": spec})).unwrap();
        for minor in 26..=KubeletVersion::NEWEST_MINOR {
            let expected = Quantity::from_bytes(MI * if minor >= 34 { newer } else { older });
            let request = pod.request(&KubeletVersion::from_minor(minor), "memory");
            assert_eq!(request, expected, "{about}, 1.{minor}: {request}");
        }
    }
}

/// `memoryUsage` and `processUsage` in `helpers.go`: what the statistics of a pod lack is 0, and
/// only a pod that the Summary does not contain comes first.
#[test]
fn missing_figures_count_as_zero() {
    let version = KubeletVersion::from_minor(36);
    let pod = |name: &str| -> Pod {
        from_value(json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "a"}]}})).unwrap()
    };
    let pods = ["absent", "used", "empty"].map(pod);
    let empty: PodStats = from_value(json!({"podRef": {}})).unwrap();
    let used = json!({"podRef": {}, "memory": {"workingSetBytes": MI}, "process_stats": {"process_count": 1},
        "containers": [{"name": "a", "rootfs": {"usedBytes": MI}}]});
    let used: PodStats = from_value(used).unwrap();
    let stats = [None, Some(&used), Some(&empty)];
    for signal in [Signal::MemoryAvailable, Signal::PidAvailable, Signal::NodefsAvailable] {
        let pods = pods.iter().zip(stats).rev();
        let mut ranked: Vec<_> = pods.map(|(pod, stats)| RankedPod { pod, stats }).collect();
        rank_pods(&version, signal, FsLayout::Single, &mut ranked);
        let names: Vec<_> = ranked.iter().map(|pod| pod.pod.metadata.name.as_str()).collect();
        assert_eq!(names, ["absent", "used", "empty"], "{signal}");
    }
}

#[test]
fn rejects_pods_under_pressure() {
    use NodeCondition::{DiskPressure, MemoryPressure, PidPressure};
    use QosClass::{BestEffort, Burstable, Guaranteed};
    // Conditions; admission of Guaranteed, Burstable, BestEffort, BestEffort with toleration,
    // critical.
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
    let pods = [
        (Guaranteed, false, false),
        (Burstable, false, false),
        (BestEffort, false, false),
        (BestEffort, true, false),
        (BestEffort, false, true),
    ];
    for (conditions, expected, list) in rows {
        for ((qos, tolerates_memory_pressure, critical), expected) in pods.into_iter().zip(expected) {
            let message =
                admission_rejection(conditions, AdmitAttributes { qos, critical, tolerates_memory_pressure });
            let rejection = format!("The node had condition: {list}. ");
            let expected = (!expected).then_some(rejection);
            assert_eq!(message.map(|message| message.to_string()), expected, "{conditions:?} {qos:?}");
        }
    }
}

#[test]
fn computes_qos_class_and_criticality() {
    let qos = |spec| from_value::<Pod>(json!({"spec": spec})).unwrap().qos_class();
    let resources =
        |requests, limits| json!({"name": "a", "resources": {"requests": requests, "limits": limits}});
    let full = json!({"cpu": "1", "memory": "1Gi"});
    assert_eq!(qos(json!({"containers": [resources(json!({}), json!({}))]})), QosClass::BestEffort);
    assert_eq!(
        qos(json!({"containers": [resources(json!({"memory": "1Gi"}), json!({}))]})),
        QosClass::Burstable
    );
    assert_eq!(qos(json!({"containers": [resources(full.clone(), full.clone())]})), QosClass::Guaranteed);
    let beside = json!({"containers": [resources(full.clone(), full)], "initContainers": [{"name": "b"}]});
    assert_eq!(qos(beside), QosClass::Burstable);
    // `ComputePodQOS`: empty pod-level resources decide, too.
    let requested = resources(json!({"memory": "1Gi"}), json!({}));
    assert_eq!(qos(json!({"resources": {}, "containers": [requested]})), QosClass::BestEffort);

    let critical = |pod| from_value::<Pod>(pod).unwrap().is_critical();
    assert!(critical(json!({"spec": {"priority": 2_000_000_000}})));
    assert!(!critical(json!({"spec": {"priority": 1_000_000_000}})));
    assert!(critical(json!({"metadata": {"annotations": {"kubernetes.io/config.source": "file"}}})));
}

/// `ResourceConfigForPod` in `pkg/kubelet/cm/helpers_linux.go`.
#[test]
fn pod_cgroup_has_a_memory_limit_if_all_containers_have_one() {
    let container = |memory: &str| match memory {
        "-" => json!({"name": "c"}),
        memory => json!({"name": "c", "resources": {"limits": {"memory": memory}}}),
    };
    let sidecar = |memory: &str| {
        let mut sidecar = container(memory);
        sidecar["restartPolicy"] = json!("Always");
        sidecar
    };
    let spec = |init: &[Value], regular: &[&str]| {
        let regular: Vec<Value> = regular.iter().map(|memory| container(memory)).collect();
        json!({"initContainers": init, "containers": regular})
    };
    let with = |mut spec: Value, field: &str, value: Value| {
        spec[field] = value;
        spec
    };
    let rows = [
        (spec(&[], &["1Gi", "2Gi"]), Some("3Gi")),
        (spec(&[], &["1Gi", "-"]), None),
        (spec(&[], &["1Gi", "0"]), None),
        // The maximum of plain init containers and of the others.
        (spec(&[container("4Gi")], &["1Gi", "2Gi"]), Some("4Gi")),
        (spec(&[container("2Gi"), container("2Gi")], &["1Gi", "2Gi"]), Some("3Gi")),
        (spec(&[container("-")], &["1Gi"]), None),
        // An init container has the limits of earlier sidecars.
        (spec(&[sidecar("1Gi"), container("-")], &["1Gi"]), Some("2Gi")),
        (with(spec(&[], &["1Gi"]), "overhead", json!({"memory": "1Gi"})), Some("2Gi")),
        (with(spec(&[], &["-"]), "resources", json!({"limits": {"memory": "5Gi"}})), Some("5Gi")),
        (with(spec(&[], &["1Gi"]), "resources", json!({"requests": {"memory": "5Gi"}})), Some("1Gi")),
        // BestEffort.
        (with(spec(&[], &["1Gi"]), "resources", json!({})), None),
    ];
    for (spec, expected) in rows {
        let pod: Pod = from_value(json!({"spec": spec})).unwrap();
        let limit = pod.memory_limit().map(|limit| limit.to_string());
        assert_eq!(limit.as_deref(), expected, "{spec}");
    }
}
