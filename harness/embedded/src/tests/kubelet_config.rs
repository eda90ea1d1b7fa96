//! Kubelet configuration: defaults, changes, and rejected files.

use std::time::Duration;

use crate::kubelet::http::Answer;
use crate::resource::Kind;
use crate::sim::SimTime;
use crate::simulation::Simulation;
use crate::{CgroupVersion, ClusterOptions, Housekeeping, NodeOptions};
use evictlab_rules::KubeletVersion;
use serde_json::{Value, json};

struct Lab {
    simulation: Simulation,
}

impl Lab {
    fn new(minor: u32, cgroup: CgroupVersion) -> Self {
        let node = NodeOptions { cgroup, ..NodeOptions::new("n1", KubeletVersion::from_minor(minor)) };
        let epoch = "2026-01-01T00:00:00Z".parse().unwrap();
        let options = ClusterOptions::new(3, epoch, vec![node]);
        let mut simulation = Simulation::new(options).unwrap();
        // Namespace of node events.
        let namespace = json!({"metadata": {"name": "default"}, "status": {"phase": "Active"}});
        let _exists = simulation.store.create(Kind::Namespace, namespace, SimTime::ZERO);
        Self { simulation }
    }

    fn tune(&mut self, changes: Value) -> &mut Self {
        self.simulation.with(|_, nodes, ctx| {
            nodes.get_mut("n1").unwrap().kubelet.configure(
                changes.as_object().unwrap(),
                Housekeeping::Fast,
                ctx,
            );
        });
        self
    }

    fn seconds(&mut self, seconds: f64) -> &mut Self {
        let until = self.simulation.now + Duration::from_secs_f64(seconds);
        self.simulation.run(until);
        self
    }

    fn get(&mut self, path: &str) -> Answer {
        self.simulation.with(|_, nodes, ctx| {
            let node = nodes.get_mut("n1").unwrap();
            node.kubelet.answer(path, &node.machine, ctx)
        })
    }

    fn configz(&mut self) -> Value {
        let answer = self.get("configz");
        assert_eq!((answer.code, answer.content), (200, "application/json"));
        serde_json::from_str::<Value>(&answer.body).unwrap()["kubeletconfig"].clone()
    }

    fn log(&self) -> Vec<String> {
        self.simulation.nodes["n1"].kubelet.log.since(SimTime::ZERO).map(str::to_owned).collect()
    }
}

/// kubernetes/kubernetes#137652.
#[test]
fn the_capacity_of_the_disk_has_decimal_units_since_1_37() {
    let units = |minor| {
        let mut lab = Lab::new(minor, CgroupVersion::V2);
        lab.tune(json!({"evictionHard": {"nodefs.available": "1G"}})).seconds(20.0);
        let node = lab.simulation.store.get(Kind::Node, "", "n1").unwrap().clone();
        ["capacity", "allocatable"].map(|list| node["status"][list]["ephemeral-storage"].clone())
    };
    assert_eq!(units(36), ["100Gi", "106374182400"]);
    assert_eq!(units(37), ["107374182400", "106374182400"]);
}

#[test]
fn unset_fields_have_default_of_version() {
    let mut lab = Lab::new(32, CgroupVersion::V2);
    let all = lab.configz();
    for (field, value) in [
        ("maxPods", json!(110)),
        ("evictionPressureTransitionPeriod", json!("5m0s")),
        ("nodeStatusUpdateFrequency", json!("10s")),
        ("nodeStatusReportFrequency", json!("5m0s")),
        ("volumeStatsAggPeriod", json!("1m0s")),
        ("streamingConnectionIdleTimeout", json!("4h0m0s")),
        ("enforceNodeAllocatable", json!(["pods"])),
        ("cgroupDriver", json!("systemd")),
        ("failSwapOn", json!(false)),
        ("imageGCHighThresholdPercent", json!(100)),
        ("failCgroupV1", json!(false)),
        ("kernelMemcgNotification", Value::Null),
        ("mergeDefaultEvictionSettings", Value::Null),
    ] {
        assert_eq!(all[field], value, "{field}");
    }
    assert_eq!(
        all["evictionHard"],
        json!({"imagefs.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%"})
    );
    assert_eq!(all["authentication"]["webhook"], json!({"enabled": true, "cacheTTL": "2m0s"}));
    assert_eq!(Lab::new(30, CgroupVersion::V2).configz()["failCgroupV1"], Value::Null);
    for (minor, expected) in [(34, json!({})), (35, json!({"maxContainerRestartPeriod": "5m0s"}))] {
        assert_eq!(Lab::new(minor, CgroupVersion::V2).configz()["crashLoopBackOff"], expected, "1.{minor}");
    }
    assert_eq!(Lab::new(36, CgroupVersion::V2).configz()["failCgroupV1"], true);
    assert_eq!(Lab::new(36, CgroupVersion::V1).configz()["failCgroupV1"], false);
}

#[test]
fn merges_changes_at_restart() {
    let mut lab = Lab::new(33, CgroupVersion::V2);
    lab.seconds(20.0).tune(json!({
        "evictionHard": {"memory.available": "1.5Gi"},
        "evictionPressureTransitionPeriod": "90s",
        "nodeStatusUpdateFrequency": "2s",
        "volumeStatsAggPeriod": "0s",
        "kubeReserved": {"memory": "1Gi"},
        "mergeDefaultEvictionSettings": true,
    }));
    assert_eq!(lab.get("configz").code, 503);
    assert_eq!(lab.seconds(0.55).get("configz").code, 503);
    let all = lab.seconds(0.4).configz();
    assert_eq!(all["evictionPressureTransitionPeriod"], "1m30s");
    assert_eq!(all["nodeStatusUpdateFrequency"], "2s");
    assert_eq!(all["nodeStatusReportFrequency"], "2s", "it follows");
    assert_eq!(all["volumeStatsAggPeriod"], "1m0s", "0 means the default");
    assert_eq!(
        all["evictionHard"],
        json!({"imagefs.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%",
            "memory.available": "1.5Gi", "imagefs.inodesFree": "5%"})
    );
    let node = lab.simulation.store.get(Kind::Node, "", "n1").unwrap();
    assert_eq!(node["status"]["capacity"]["memory"], "16Gi");
    assert_eq!(
        node["status"]["allocatable"]["memory"], "13824Mi",
        "less what is reserved and the hard threshold"
    );

    lab.tune(json!({"maxPods": 5})).seconds(1.0);
    let all = lab.configz();
    assert_eq!(
        (&all["maxPods"], &all["kubeReserved"]),
        (&json!(5), &Value::Null),
        "changes apply to the original file"
    );
    lab.simulation.with(|_, nodes, ctx| nodes.get_mut("n1").unwrap().kubelet.restore_config(ctx));
    assert_eq!(lab.seconds(1.0).configz()["maxPods"], 110);
}

#[test]
fn logs_reason_of_rejected_configuration() {
    let decode = "err=\"failed to load kubelet config file, path: /var/lib/kubelet/config.yaml, error: failed to load Kubelet \
                  config file /var/lib/kubelet/config.yaml, error failed to decode: json: cannot unmarshal string into Go struct field \
                  KubeletConfiguration.maxPods of type int32\"";
    let rows = [
        (
            json!({"evictionHard": {"memory.available": "-1"}}),
            "run.go:72] \"command failed\" err=\"failed to run Kubelet: eviction threshold memory.available must be positive: -1\"",
        ),
        (
            json!({"evictionSoft": {"memory.available": "1Gi"}}),
            "err=\"failed to run Kubelet: failed to create kubelet: grace period must be specified for the soft eviction \
             threshold memory.available\"",
        ),
        (
            json!({"evictionHard": {"memory.available": "17Gi"}}),
            "kubelet.go:1583] \"Failed to start ContainerManager\" err=\"invalid Node Allocatable configuration. Resource \\\"memory\\\" has a \
             reservation of {{18253611008 0} {<nil>}  BinarySI} but capacity of {{17179869184 0} {<nil>}  BinarySI}. Expected capacity >= \
             reservation.\"",
        ),
        (
            json!({"nodeLeaseDurationSeconds": -1, "imageGCHighThresholdPercent": 101}),
            "error: [invalid configuration: nodeLeaseDurationSeconds must be greater than 0, invalid configuration: \
             imageGCHighThresholdPercent",
        ),
        (
            json!({"imageGCHighThresholdPercent": 101}),
            "invalid configuration: imageGCHighThresholdPercent (--image-gc-high-threshold) 101 must be between 0 and 100, inclusive",
        ),
        (
            json!({"imageGCHighThresholdPercent": 50, "imageGCLowThresholdPercent": 50}),
            "imageGCLowThresholdPercent (--image-gc-low-threshold) 50 must be less than imageGCHighThresholdPercent \
             (--image-gc-high-threshold) 50",
        ),
        (
            json!({"containerLogMaxFiles": 1}),
            "failed to initialize container log manager: invalid MaxFiles 1, must be > 1",
        ),
        (
            json!({"containerLogMaxSize": "big"}),
            "failed to parse container log max size \\\"big\\\": quantities must match",
        ),
        (
            json!({"enforceNodeAllocatable": ["everything"]}),
            "option \\\"everything\\\" specified for enforceNodeAllocatable",
        ),
        (json!({"maxPods": "many"}), decode),
        (
            json!({"evictionMaxPodGracePeriod": "many"}),
            "cannot unmarshal string into Go struct field KubeletConfiguration.evictionMaxPodGracePeriod of type int32",
        ),
        (
            json!({"evictionSoft": ["memory.available<1Gi"]}),
            "cannot unmarshal array into Go struct field KubeletConfiguration.evictionSoft of type map[string]string",
        ),
        (json!({"imageMaximumGCAge": "old"}), "time: invalid duration \\\"old\\\""),
        (json!({"nodeStatusUpdateFrequency": "soon"}), "time: invalid duration \\\"soon\\\""),
        (json!({"kubeReserved": {"memory": "much"}}), "--kube-reserved value failed to parse"),
    ];
    for (changes, says) in rows {
        let mut lab = Lab::new(32, CgroupVersion::V2);
        lab.seconds(5.0).tune(changes).seconds(2.0);
        let last = lab.log().pop().unwrap_or_default();
        assert!(last.starts_with("E0101 00:00:05.") && last.contains(says), "{last}\n{says}");
        let answer = lab.get("configz");
        assert_eq!(answer.code, 503);
        assert!(
            answer.body.contains("dial tcp 172.18.0.2:10250: connect: connection refused"),
            "{}",
            answer.body
        );
        assert!(!lab.simulation.nodes["n1"].kubelet.running);
        assert_eq!(lab.tune(json!({})).seconds(1.0).get("healthz").body, "ok");
    }
}

/// `run` of server.go parses `evictionHard` alone for the reservation.
#[test]
fn only_hard_thresholds_are_reserved() {
    let mut lab = Lab::new(36, CgroupVersion::V2);
    lab.tune(
        json!({"evictionHard": {"nodefs.available": "1Gi"}, "evictionSoft": {"memory.available": "1Gi"},
        "evictionSoftGracePeriod": {"memory.available": "0s"}}),
    )
    .seconds(20.0);
    let node = lab.simulation.store.get(Kind::Node, "", "n1").unwrap();
    assert_eq!(node["status"]["allocatable"]["memory"], "16Gi");
}

#[test]
fn rejects_cgroup_v1_by_default_since_1_35() {
    for (minor, runs) in [(31, true), (34, true), (35, false), (36, false)] {
        let mut lab = Lab::new(minor, CgroupVersion::V1);
        assert_eq!(lab.get("healthz").code, 200, "kind's nodes say so");
        let changes = if runs { json!({}) } else { json!({"failCgroupV1": true}) };
        assert_eq!(lab.tune(changes).seconds(1.0).get("healthz").code == 200, runs);
    }
    let mut lab = Lab::new(31, CgroupVersion::V1);
    lab.tune(json!({"failCgroupV1": true})).seconds(1.0);
    assert!(lab.log().pop().unwrap().contains("cgroup v1 support is in maintenance mode"));
}

#[test]
fn rejects_containerfs_thresholds_before_1_29() {
    for (minor, runs) in [(27, false), (28, false), (29, true), (36, true)] {
        let mut lab = Lab::new(minor, CgroupVersion::V2);
        lab.seconds(5.0).tune(json!({"evictionHard": {"containerfs.available": "1Gi"}})).seconds(2.0);
        assert_eq!(lab.get("healthz").code == 200, runs, "1.{minor}");
        let reason = "\"command failed\" err=\"failed to run Kubelet: unsupported eviction signal containerfs.available\"";
        let last = lab.log().pop().unwrap_or_default();
        assert_eq!(last.ends_with(reason), !runs, "1.{minor}: {last}");
    }
}

#[test]
fn rejects_feature_gates_unknown_to_version() {
    let rows = [
        (32, json!({"Nonsense": true}), Some("unrecognized feature gate: Nonsense")),
        (
            31,
            json!({"PodDisruptionConditions": false}),
            Some("cannot set feature gate PodDisruptionConditions to false, feature is locked to true"),
        ),
        (30, json!({"PodDisruptionConditions": false}), None),
        (32, json!({"AllowOverwriteTerminationGracePeriodSeconds": true}), None),
    ];
    for (minor, gates, reason) in rows {
        let mut lab = Lab::new(minor, CgroupVersion::V2);
        // Gates are set before the configuration is validated.
        let percent = if reason.is_some() { 101 } else { 100 };
        lab.tune(json!({"featureGates": gates, "imageGCHighThresholdPercent": percent})).seconds(2.0);
        let last = lab.log().pop().unwrap_or_default();
        match reason {
            Some(reason) => {
                let error = format!("failed to set feature gates from initial flags-based config: {reason}");
                assert!(last.ends_with(&format!("\"command failed\" err={error:?}")), "{last}");
            }
            None => assert_eq!(lab.configz()["featureGates"], gates),
        }
    }
}

#[test]
fn ignores_fields_unknown_to_version() {
    let mut lab = Lab::new(32, CgroupVersion::V2);
    lab.tune(json!({"mergeDefaultEvictionSettings": true, "evictionHardd": {}})).seconds(1.0);
    let all = lab.configz();
    assert!(all.get("mergeDefaultEvictionSettings").is_none() && all.get("evictionHardd").is_none());
    let line = lab.log().into_iter().find(|line| line.contains("lenient")).unwrap();
    let unknown = "err=\"strict decoding error: unknown field \\\"mergeDefaultEvictionSettings\\\", unknown field \\\"evictionHardd\\\"\"";
    assert!(line.ends_with(unknown), "{line}");
    // Fields without a default.
    for (field, value, minor, known) in [
        ("imageMaximumGCAge", json!("1h0m0s"), 28, false),
        ("imageMaximumGCAge", json!("1h0m0s"), 30, true),
        ("tlsCurvePreferences", json!([29]), 35, false),
        ("tlsCurvePreferences", json!([29]), 36, true),
        ("maxParallelImagePulls", json!(2), 27, true),
    ] {
        let mut lab = Lab::new(minor, CgroupVersion::V2);
        lab.tune(json!({field: value})).seconds(1.0);
        let served = lab.configz().get(field).cloned();
        assert_eq!(served, known.then_some(value), "{field} 1.{minor}");
        assert_eq!(lab.log().iter().any(|line| line.contains("unknown field")), !known, "{field} 1.{minor}");
    }
}

#[test]
fn registers_node_with_events() {
    let mut lab = Lab::new(36, CgroupVersion::V1);
    let node = lab.simulation.store.get(Kind::Node, "", "n1").unwrap().clone();
    assert_eq!(node["metadata"]["labels"]["kubernetes.io/hostname"], "n1");
    assert_eq!(node["status"]["nodeInfo"]["kubeletVersion"], "v1.36.0");
    let conditions: Vec<(&str, &str)> = node["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["type"].as_str().unwrap(), one["status"].as_str().unwrap()))
        .collect();
    let wanted =
        [("MemoryPressure", "False"), ("DiskPressure", "False"), ("PIDPressure", "False"), ("Ready", "True")];
    assert_eq!(conditions, wanted);
    lab.seconds(1.0);
    let mut reasons: Vec<String> = lab
        .simulation
        .store
        .list(Kind::Event, None)
        .filter(|event| {
            event["involvedObject"]["kind"] == "Node" && event["source"]["component"] == "kubelet"
        })
        .map(|event| event["reason"].as_str().unwrap().to_owned())
        .collect();
    reasons.sort();
    let wanted = [
        "CgroupV1",
        "NodeAllocatableEnforced",
        "NodeHasNoDiskPressure",
        "NodeHasSufficientMemory",
        "NodeHasSufficientPID",
        "NodeReady",
        "Starting",
    ];
    assert_eq!(reasons, wanted);
    let renewed = |lab: &Lab| {
        let lease = lab.simulation.store.get(Kind::Lease, "kube-node-lease", "n1").unwrap();
        lease["spec"]["renewTime"].as_str().unwrap().to_owned()
    };
    let before = renewed(&lab);
    lab.seconds(10.5);
    assert_ne!(renewed(&lab), before);
}

#[test]
fn lease_has_configured_duration() {
    let lease = |lab: &Lab| {
        let lease = lab.simulation.store.get(Kind::Lease, "kube-node-lease", "n1").unwrap();
        (lease["spec"]["leaseDurationSeconds"].clone(), lease["spec"]["renewTime"].clone())
    };
    let mut lab = Lab::new(36, CgroupVersion::V2);
    assert_eq!(lease(lab.seconds(1.0)).0, 40);
    lab.tune(json!({"nodeLeaseDurationSeconds": 120})).seconds(2.0);
    let (duration, before) = lease(&lab);
    assert_eq!(duration, 120, "the restarted kubelet changes its Lease");
    assert_eq!(lease(lab.seconds(28.0)).1, before);
    assert_ne!(lease(lab.seconds(3.5)).1, before, "a quarter of the duration is over");
}

#[test]
fn negative_durations_are_accepted() {
    let mut lab = Lab::new(36, CgroupVersion::V2);
    lab.tune(json!({"volumeStatsAggPeriod": "-90s", "nodeStatusUpdateFrequency": "-1s"})).seconds(5.0);
    assert_eq!(lab.configz()["volumeStatsAggPeriod"], "-1m30s");
    let kubelet = &lab.simulation.nodes["n1"].kubelet;
    assert!(kubelet.is_running());
    assert_eq!(kubelet.config.settings.volume_period, None);
    // The validation rejects some.
    lab.tune(json!({"imageMinimumGCAge": "-1s"})).seconds(5.0);
    let message = "invalid configuration: imageMinimumGCAge -1s must not be negative";
    assert!(lab.log().iter().any(|line| line.contains(message)), "{:?}", lab.log());
}

#[test]
fn heartbeats_follow_configured_frequency() {
    let heartbeat = |lab: &Lab| {
        let node = lab.simulation.store.get(Kind::Node, "", "n1").unwrap();
        node["status"]["conditions"][0]["lastHeartbeatTime"].as_str().unwrap().to_owned()
    };
    let mut lab = Lab::new(32, CgroupVersion::V2);
    let first = heartbeat(&lab);
    lab.seconds(290.0);
    assert_eq!(heartbeat(&lab), first, "nothing has changed");
    lab.seconds(25.0);
    assert_ne!(heartbeat(&lab), first, "five minutes are over");
    lab.tune(json!({"nodeStatusUpdateFrequency": "2s"})).seconds(5.0);
    let before = heartbeat(&lab);
    lab.seconds(3.0);
    assert_ne!(heartbeat(&lab), before, "each update is a report");
}
