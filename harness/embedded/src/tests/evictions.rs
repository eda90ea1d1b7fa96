//! Eviction manager on a simulated node: measurements, evictions, status, events and logs.

use std::time::Duration;

use crate::FaultScope;
use crate::resource::Kind;
use crate::sim::SimTime;
use crate::simulation::Simulation;
use crate::{CgroupVersion, ClusterOptions, Housekeeping, NodeOptions};
use evictlab_fault::Fault;
use evictlab_rules::KubeletVersion;
use serde_json::{Value, json};

const AGNHOST: &str = "registry.k8s.io/e2e-test-images/agnhost:2.52";
const MI: i64 = 1 << 20;

struct Lab {
    simulation: Simulation,
}

impl Lab {
    fn new(minor: u32, cgroup: CgroupVersion) -> Self {
        Self::seeded(minor, cgroup, 5)
    }

    fn seeded(minor: u32, cgroup: CgroupVersion, seed: u64) -> Self {
        let node = NodeOptions { cgroup, ..NodeOptions::new("n1", KubeletVersion::from_minor(minor)) };
        let epoch = "2026-01-01T00:00:00Z".parse().unwrap();
        let options = ClusterOptions::new(seed, epoch, vec![node]);
        let mut simulation = Simulation::new(options).unwrap();
        for name in ["default", "kube-system", "test"] {
            let namespace = json!({"metadata": {"name": name}, "status": {"phase": "Active"}});
            let _exists = simulation.store.create(Kind::Namespace, namespace, SimTime::ZERO);
        }
        let mut lab = Self { simulation };
        lab.seconds(10.0);
        lab
    }

    fn tune(&mut self, changes: Value) {
        self.simulation.with(|_, nodes, ctx| {
            nodes.get_mut("n1").unwrap().kubelet.configure(
                changes.as_object().unwrap(),
                Housekeeping::Fast,
                ctx,
            );
        });
        self.seconds(1.2);
    }

    /// Configures a hard threshold that leaves `mi` MiB of memory to use.
    fn budget(&mut self, mi: i64, more: Value) {
        let available = self.summary()["node"]["memory"]["availableBytes"].as_i64().unwrap() / MI;
        let mut changes = json!({"evictionHard": {"memory.available": format!("{}Mi", available - mi)},
            "evictionPressureTransitionPeriod": "1s", "nodeStatusUpdateFrequency": "2s"});
        changes.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.tune(changes);
    }

    fn seconds(&mut self, seconds: f64) {
        let until = self.simulation.now + Duration::from_secs_f64(seconds);
        self.simulation.run(until);
    }

    /// Runs until a condition holds, for at most `seconds`; returns the time.
    fn until(&mut self, seconds: u64, so: impl Fn(&Self) -> bool) -> SimTime {
        let end = self.simulation.now + Duration::from_secs(seconds);
        while !so(self) {
            assert!(self.simulation.now < end, "it is not so after {seconds} s: {:#?}", self.log());
            self.seconds(0.1);
        }
        self.simulation.now
    }

    fn summary(&mut self) -> Value {
        self.simulation.with(|_, nodes, ctx| {
            let node = nodes.get_mut("n1").unwrap();
            let answer = node.kubelet.answer("stats/summary", &node.machine, ctx);
            assert_eq!(answer.code, 200, "{}", answer.body);
            serde_json::from_str(&answer.body).unwrap()
        })
    }

    fn get(&mut self, path: &str) -> String {
        self.simulation.with(|_, nodes, ctx| {
            let node = nodes.get_mut("n1").unwrap();
            node.kubelet.answer(path, &node.machine, ctx).body
        })
    }

    fn pod(&mut self, name: &str, spec: Value) {
        let mut spec = spec;
        for (field, value) in [
            ("nodeName", json!("n1")),
            ("restartPolicy", json!("Never")),
            ("terminationGracePeriodSeconds", json!(1)),
            ("priority", json!(0)),
        ] {
            if spec[field].is_null() {
                spec[field] = value;
            }
        }
        for list in ["containers", "initContainers"] {
            for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                container["image"] = json!(AGNHOST);
            }
        }
        let pod = json!({"metadata": {"name": name, "namespace": "test"}, "spec": spec, "status": {"phase": "Pending"}});
        let now = self.simulation.now;
        self.simulation.with_context(|ctx| ctx.store.create(Kind::Pod, pod, now)).unwrap();
    }

    fn status(&self, pod: &str) -> Value {
        self.simulation.store.get(Kind::Pod, "test", pod).unwrap()["status"].clone()
    }

    fn is_evicted(&self, pod: &str) -> bool {
        self.status(pod)["reason"] == "Evicted"
    }

    fn events(&self, reason: &str) -> Vec<Value> {
        let events = self.simulation.store.list(Kind::Event, None);
        events.filter(|event| event["reason"] == *reason).map(|event| Value::clone(event)).collect()
    }

    /// Returns the log without times and process IDs.
    fn log(&self) -> Vec<String> {
        let lines = self.simulation.nodes["n1"].kubelet.log.since(SimTime::ZERO);
        lines.filter_map(|line| Some(line.split_once(' ')?.1[16..].trim().to_owned())).collect()
    }

    fn condition(&self, kind: &str) -> String {
        let node = self.simulation.store.get(Kind::Node, "", "n1").unwrap();
        let all = node["status"]["conditions"].as_array().unwrap();
        all.iter().find(|one| one["type"] == kind).unwrap()["status"].as_str().unwrap().to_owned()
    }
}

fn stress(name: &str, total: &str) -> Value {
    json!({"name": name, "args": ["stress", "--mem-alloc-size", "10Mi", "--mem-alloc-sleep", "200ms", "--mem-total", total]})
}

fn idle(name: &str) -> Value {
    json!({"name": name, "command": ["sleep", "infinity"]})
}

/// Returns the statistics of a pod.
fn of<'a>(summary: &'a Value, pod: &str) -> &'a Value {
    let mut all = summary["pods"].as_array().unwrap().iter();
    all.find(|one| one["podRef"]["name"] == pod).unwrap_or(&Value::Null)
}

#[test]
fn sync_loop_evicts_pod_over_threshold() {
    let mut lab = Lab::new(32, CgroupVersion::V2);
    lab.budget(300, json!({}));
    lab.pod("hog", json!({"containers": [stress("el1", "1000Mi"), idle("el2")]}));
    lab.until(40, |lab| lab.is_evicted("hog"));
    let events = lab.events("Evicted");
    assert_eq!(events.len(), 1);
    let message = events[0]["message"].as_str().unwrap();
    let status = lab.status("hog");
    assert_eq!((&status["phase"], status["message"].as_str()), (&json!("Failed"), Some(message)));
    assert!(message.starts_with("The node was low on resource: memory. Threshold quantity: "), "{message}");
    assert!(
        message.contains("Container el1 was using ") && message.contains("Container el2 was using "),
        "{message}"
    );
    assert_eq!(events[0]["metadata"]["annotations"]["starved_resource"], "memory");
    assert_eq!(lab.events("EvictionThresholdMet").len(), 1);
    lab.until(3, |lab| lab.condition("MemoryPressure") == "True");
    lab.until(15, |lab| lab.condition("MemoryPressure") == "False");
    assert_eq!(lab.events("NodeHasInsufficientMemory").len(), 1);
    let log = lab.log();
    let from = log.iter().position(|line| line.contains("attempting")).unwrap();
    let wanted = [
        "eviction_manager.go:381] \"Eviction manager: attempting to reclaim\" resourceName=\"memory\"",
        "eviction_manager.go:392] \"Eviction manager: must evict pod(s) to reclaim\" resourceName=\"memory\"",
        "eviction_manager.go:410] \"Eviction manager: pods ranked for eviction\" pods=[\"test/hog\",\"kube-system/kube-proxy-",
        "eviction_manager.go:635] \"Eviction manager: pod is evicted successfully\" pod=\"test/hog\"",
        "eviction_manager.go:213] \"Eviction manager: pods evicted, waiting for pod to be cleaned up\" pods=[\"test/hog\"]",
        "eviction_manager.go:464] \"Eviction manager: pods successfully cleaned up\" pods=[\"test/hog\"]",
    ];
    for (line, wanted) in log[from..].iter().zip(wanted) {
        let line = line.split_once(' ').map_or(line.as_str(), |(_, line)| line);
        assert!(line.starts_with(wanted), "{line}\n{wanted}");
    }
    // The pod crosses the threshold on the allocatable memory, too, which decides most often.
    let counted = ["memory.available", "allocatableMemory.available"].map(|signal| {
        let line = format!("kubelet_evictions{{eviction_signal=\"{signal}\"}} 1\n");
        lab.get("metrics").contains(&line)
    });
    assert_ne!(counted[0], counted[1], "one of both");
}

#[test]
fn never_evicts_static_pods() {
    let mut lab = Lab::new(32, CgroupVersion::V2);
    let mut grows = stress("c", "1000Mi");
    grows["image"] = json!(AGNHOST);
    let manifest = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "static", "namespace": "test"},
        "spec": {"containers": [grows]},
    });
    lab.budget(300, json!({}));
    lab.pod("innocent", json!({"containers": [idle("c")]}));
    lab.simulation
        .with(|_, nodes, ctx| nodes.get_mut("n1").unwrap().static_pod("static", Some(&manifest), ctx))
        .unwrap();
    lab.until(60, |lab| lab.is_evicted("innocent"));
    lab.seconds(20.0);
    assert_eq!(lab.status("static-n1")["phase"], "Running");
    let refused = "eviction manager: cannot evict a critical pod";
    assert!(lab.log().iter().any(|line| line.to_lowercase().contains(refused)), "{:#?}", lab.log());
}

#[test]
fn cgroup_v1_notifies_one_loop_per_threshold() {
    let mut doubled = 0;
    for seed in 1..=6 {
        let mut lab = Lab::seeded(31, CgroupVersion::V1, seed);
        lab.budget(300, json!({"kernelMemcgNotification": true}));
        lab.seconds(2.0);
        // A sidecar grows over both thresholds until the regular container has ended.
        let mut sidecar = stress("side", "1000Mi");
        sidecar["args"] = json!([
            "stress",
            "--mem-alloc-size",
            "100Mi",
            "--mem-alloc-sleep",
            "500ms",
            "--mem-total",
            "1000Mi"
        ]);
        sidecar["restartPolicy"] = json!("Always");
        lab.pod("hog", json!({"initContainers": [sidecar], "containers": [idle("el1")]}));
        lab.until(20, |lab| lab.is_evicted("hog"));
        let log = lab.log();
        let hard = log
            .iter()
            .position(|line| line.ends_with("\"eviction manager: hard memory eviction threshold crossed\""));
        let looked = log.iter().position(|line| line.contains("attempting to reclaim")).unwrap();
        assert!(hard.unwrap() < looked, "{log:#?}");
        assert!(log[hard.unwrap()].contains("eviction_manager.go:191]"));
        let succeeded = log.iter().filter(|line| line.contains("is evicted successfully")).count();
        let counted: u64 = lab.events("Evicted").iter().map(|event| event["count"].as_u64().unwrap()).sum();
        assert_eq!(u64::try_from(succeeded).unwrap(), counted, "one event for each eviction");
        doubled += usize::from(succeeded > 1);
        // The kill has reduced the usage below the mark, which notifies the kubelet again.
        let last = log.iter().rposition(|line| line.contains("is evicted successfully")).unwrap();
        assert!(log[last..].iter().any(|line| line.contains("threshold crossed")), "{log:#?}");
        let newest = lab
            .events("Evicted")
            .into_iter()
            .max_by_key(|event| event["metadata"]["resourceVersion"].as_str().map(str::len));
        assert!(newest.is_some());
    }
    assert!(doubled > 0, "a pod is evicted twice now and then");
    // Memory that is freed without an eviction notifies, too.
    let mut lab = Lab::new(31, CgroupVersion::V1);
    let available = lab.summary()["node"]["memory"]["availableBytes"].as_i64().unwrap() / MI;
    lab.tune(json!({"evictionHard": {"memory.available": format!("{}Mi", available - 300)},
        "evictionSoft": {"memory.available": format!("{}Mi", available - 40)},
        "evictionSoftGracePeriod": {"memory.available": "10m"}, "kernelMemcgNotification": true}));
    lab.seconds(2.0);
    let script = "dd if=/dev/zero of=/dev/shm/f bs=1M count=60; sleep 3; : > /dev/shm/f; sleep infinity";
    lab.pod("frees", json!({"containers": [{"name": "c", "command": ["sh", "-c", script]}]}));
    lab.seconds(12.0);
    let crossed = |line: &&String| line.contains("soft memory eviction threshold crossed");
    assert_eq!(lab.log().iter().filter(crossed).count(), 2, "upwards and downwards: {:#?}", lab.log());
    // No notifications on cgroup v2, nor without the setting.
    for (cgroup, asks) in [(CgroupVersion::V2, true), (CgroupVersion::V1, false)] {
        let mut lab = Lab::new(31, cgroup);
        lab.budget(300, json!({"kernelMemcgNotification": asks}));
        lab.pod("hog", json!({"containers": [stress("el1", "1000Mi")]}));
        lab.until(40, |lab| lab.is_evicted("hog"));
        assert!(!lab.log().iter().any(|line| line.contains("crossed")));
    }
}

#[test]
fn statistics_are_as_old_as_last_housekeeping() {
    let mut lab = Lab::new(32, CgroupVersion::V2);
    // Default configuration: containers are measured every 10 to 20 s.
    lab.pod("hog", json!({"containers": [stress("el1", "2000Mi")]}));
    lab.seconds(4.0);
    let container = |lab: &mut Lab| of(&lab.summary(), "hog")["containers"][0]["memory"].clone();
    // cAdvisor has one measurement, so the current one of the runtime is used.
    let first = container(&mut lab);
    lab.seconds(1.0);
    let second = container(&mut lab);
    assert_ne!(first["workingSetBytes"], second["workingSetBytes"]);
    assert!(first.get("usageBytes").is_none(), "the runtime's figures are few before 1.34");
    assert_eq!(
        of(&lab.summary(), "hog")["memory"]["workingSetBytes"].as_i64().map(|bytes| bytes < 2 * MI),
        Some(true)
    );
    lab.seconds(20.0);
    let mut values = std::collections::BTreeSet::new();
    for _ in 0..40 {
        values.insert(container(&mut lab)["workingSetBytes"].as_i64().unwrap());
        lab.seconds(0.5);
    }
    assert!((1..=4).contains(&values.len()), "{values:?}");

    // With the flag, every 1 to 2 s.
    let mut lab = Lab::new(32, CgroupVersion::V2);
    lab.tune(json!({}));
    lab.pod("hog", json!({"containers": [stress("el1", "2000Mi")]}));
    lab.seconds(6.0);
    let mut values = std::collections::BTreeSet::new();
    for _ in 0..40 {
        values.insert(container(&mut lab)["workingSetBytes"].as_i64().unwrap());
        lab.seconds(0.5);
    }
    assert!((9..=21).contains(&values.len()), "{values:?}");
}

#[test]
fn restart_resets_conditions() {
    let mut lab = Lab::new(32, CgroupVersion::V2);
    lab.budget(200, json!({"evictionPressureTransitionPeriod": "0s"}));
    lab.pod("hog", json!({"containers": [stress("el1", "1000Mi")]}));
    lab.until(30, |lab| lab.is_evicted("hog"));
    lab.seconds(60.0);
    assert_eq!(lab.condition("MemoryPressure"), "True", "0 means five minutes");
    let waits = json!({"metadata": {"namespace": "test"}, "spec": {"containers": [{"name": "c"}]}});
    let rejection = |lab: &Lab| lab.simulation.nodes["n1"].kubelet.rejection_under_pressure(&waits);
    assert_eq!(rejection(&lab).as_deref(), Some("The node had condition: [MemoryPressure]. "));
    let tolerant = json!({"spec": {"containers": [{"name": "c"}], "tolerations": [{"operator": "Exists"}]}});
    assert_eq!(lab.simulation.nodes["n1"].kubelet.rejection_under_pressure(&tolerant), None);
    lab.simulation.with(|_, nodes, ctx| nodes.get_mut("n1").unwrap().kubelet.restore_config(ctx));
    lab.seconds(1.0);
    assert_eq!(lab.condition("MemoryPressure"), "False");
    assert_eq!(rejection(&lab), None);
}

/// A restarted kubelet admits its pods again (kubernetes/kubernetes#83612), seen on 1.33 and 1.36.
#[test]
fn restart_under_pressure_rejects_running_pods() {
    let mut lab = Lab::new(36, CgroupVersion::V2);
    let available = lab.summary()["node"]["memory"]["availableBytes"].as_i64().unwrap() / MI;
    lab.tune(json!({
        "evictionSoft": {"memory.available": format!("{}Mi", available - 200)},
        "evictionSoftGracePeriod": {"memory.available": "5m"},
        "nodeStatusUpdateFrequency": "1s",
    }));
    let tolerations = json!([{"operator": "Exists"}]);
    lab.pod("quiet", json!({"containers": [idle("el1")]}));
    lab.pod("tolerant", json!({"tolerations": tolerations, "containers": [idle("el1")]}));
    lab.pod("hog", json!({"tolerations": tolerations, "containers": [stress("el1", "500Mi")]}));
    lab.until(40, |lab| lab.condition("MemoryPressure") == "True");
    lab.simulation.with(|_, nodes, ctx| nodes.get_mut("n1").unwrap().kubelet.restart(ctx));
    lab.seconds(12.0);
    let status = lab.status("quiet");
    let expected =
        json!(["Failed", "Evicted", "Pod was rejected: The node had condition: [MemoryPressure]. "]);
    assert_eq!(json!([status["phase"], status["reason"], status["message"]]), expected);
    assert_eq!(lab.events("Evicted").len(), 1);
    for pod in ["tolerant", "hog"] {
        assert_eq!(lab.status(pod)["phase"], "Running", "{pod}");
    }
}

#[test]
fn soft_thresholds_have_grace_periods() {
    let mut lab = Lab::new(32, CgroupVersion::V2);
    let available = lab.summary()["node"]["memory"]["availableBytes"].as_i64().unwrap() / MI;
    lab.tune(json!({
        "evictionSoft": {"memory.available": format!("{}Mi", available - 200)},
        "evictionSoftGracePeriod": {"memory.available": "5s"},
        "evictionMaxPodGracePeriod": 3,
        "nodeStatusUpdateFrequency": "1s",
    }));
    let trap = json!({"name": "trap", "command": ["sh", "-c", "trap '' TERM; while true; do sleep 1; done"]});
    lab.pod(
        "soft",
        json!({"terminationGracePeriodSeconds": 30, "containers": [stress("el1", "500Mi"), trap]}),
    );
    let pressure = lab.until(40, |lab| lab.condition("MemoryPressure") == "True");
    assert!(lab.events("Evicted").is_empty());
    let evicted_at = lab.until(20, |lab| !lab.events("Evicted").is_empty());
    let waited = evicted_at.since(pressure).as_secs_f64();
    assert!((4.0..=16.5).contains(&waited), "{waited}");
    let ended = lab.until(10, |lab| lab.is_evicted("soft"));
    let took = ended.since(evicted_at).as_secs_f64();
    assert!((2.9..=5.0).contains(&took), "{took}");
    assert!(lab.status("soft")["conditions"].to_string().contains("DisruptionTarget"));
}

/// Gates of the kubelet's configuration change evictions.
#[test]
fn feature_gates_change_evictions() {
    let evicted = |minor: u32, gates: Value, pod: Value| {
        let mut lab = Lab::new(minor, CgroupVersion::V2);
        lab.budget(300, json!({"featureGates": gates}));
        lab.pod("hog", pod);
        lab.until(40, |lab| lab.is_evicted("hog"));
        lab.status("hog")
    };
    let plain = || json!({"containers": [stress("el1", "1000Mi")]});
    for (minor, gate, has_condition) in [(27, true, true), (27, false, false), (30, false, false)] {
        let status = evicted(minor, json!({"PodDisruptionConditions": gate}), plain());
        assert_eq!(status["conditions"].to_string().contains("DisruptionTarget"), has_condition, "1.{minor}");
    }
    // The API server drops what the kubelet has allocated.
    let requesting = || {
        let mut container = stress("el1", "1000Mi");
        container["resources"] = json!({"requests": {"memory": "10Mi"}});
        json!({"containers": [container]})
    };
    for (minor, gate, request) in [(31, false, "10Mi"), (31, true, "0"), (32, true, "10Mi")] {
        let status = evicted(minor, json!({"InPlacePodVerticalScaling": gate}), requesting());
        let message = status["message"].as_str().unwrap();
        assert!(message.contains(&format!(", request is {request}, ")), "1.{minor}: {message}");
    }
    // The sentence about the pod belongs to pod-level resources.
    let pod_level =
        || json!({"resources": {"requests": {"memory": "10Mi"}}, "containers": [stress("el1", "1000Mi")]});
    let status = evicted(34, json!({"PodLevelResources": true}), pod_level());
    let message = status["message"].as_str().unwrap();
    assert!(message.contains("Pod "), "{message}");
}

/// `enforceNodeAllocatableCgroups` limits the pods to the capacity if it does not enforce what is
/// allocatable.
#[test]
fn all_pods_have_a_limit() {
    let mut lab = Lab::new(36, CgroupVersion::V2);
    let memory = NodeOptions::new("n1", KubeletVersion::from_minor(36)).memory as i64;
    for (enforced, reserved) in [("pods", 1024 * MI), ("none", 0)] {
        lab.tune(json!({"enforceNodeAllocatable": [enforced], "kubeReserved": {"memory": "1Gi"}}));
        lab.seconds(15.0);
        let summary = lab.summary();
        let containers = summary["node"]["systemContainers"].as_array().unwrap();
        let pods = containers.iter().find(|container| container["name"] == "pods").unwrap();
        let amount = |name: &str| pods["memory"][name].as_i64().unwrap();
        let limit = amount("availableBytes") + amount("workingSetBytes");
        assert_eq!(limit, memory - reserved, "{enforced}");
    }
}

/// `isPodLevelResourcesSupported`
#[test]
fn a_kubelet_without_their_gate_rejects_pod_level_resources() {
    for (minor, gate, rejects) in
        [(33, false, false), (34, false, true), (36, false, true), (36, true, false)]
    {
        let mut lab = Lab::new(minor, CgroupVersion::V2);
        lab.tune(json!({"featureGates": {"PodLevelResources": gate}}));
        let whole = json!({"limits": {"memory": "100Mi"}});
        lab.pod("whole", json!({"resources": whole, "containers": [idle("el1")]}));
        lab.pod("plain", json!({"containers": [idle("el1")]}));
        lab.seconds(5.0);
        assert_eq!(lab.status("plain")["phase"], "Running");
        let status = lab.status("whole");
        assert_eq!(status["reason"] == "PodLevelResourcesNotSupported", rejects, "1.{minor}: {status}");
        assert_eq!(status["phase"], if rejects { "Failed" } else { "Running" }, "1.{minor}");
    }
}

/// `AllowOverwriteTerminationGracePeriodSeconds`, from 1.32 to 1.34.
#[test]
fn soft_threshold_extends_grace_period_with_gate() {
    for (minor, gate, seconds) in [(32, false, 1), (32, true, 9), (34, true, 9), (35, false, 1)] {
        let mut lab = Lab::new(minor, CgroupVersion::V2);
        let available = lab.summary()["node"]["memory"]["availableBytes"].as_i64().unwrap() / MI;
        lab.tune(json!({
            "evictionSoft": {"memory.available": format!("{}Mi", available - 100)},
            "evictionSoftGracePeriod": {"memory.available": "1s"},
            "evictionMaxPodGracePeriod": 9,
            "featureGates": {"AllowOverwriteTerminationGracePeriodSeconds": gate},
        }));
        let script = "trap '' TERM; dd if=/dev/zero of=/mem/f bs=1M count=200; while true; do sleep 1; done";
        let container = json!({"name": "el1", "command": ["sh", "-c", script],
            "volumeMounts": [{"name": "mem", "mountPath": "/mem"}]});
        let volumes = json!([{"name": "mem", "emptyDir": {"medium": "Memory"}}]);
        lab.pod("stubborn", json!({"containers": [container], "volumes": volumes}));
        let begun = lab.until(60, |lab| !lab.events("Evicted").is_empty());
        let ended = lab.until(60, |lab| lab.is_evicted("stubborn"));
        let took = ended.since(begun).as_secs();
        assert!((seconds..seconds + 4).contains(&took), "1.{minor} {gate}: {took} s");
    }
}

#[test]
fn evicts_pod_over_empty_dir_limit_after_volume_measurement() {
    for (minor, grace) in [(30, 30.0), (31, 2.0)] {
        let mut lab = Lab::new(minor, CgroupVersion::V2);
        lab.tune(json!({"volumeStatsAggPeriod": "5s"}));
        let writer = json!({
            "name": "el1",
            "command": ["sh", "-c", "trap '' TERM; dd if=/dev/zero of=/data/f bs=1M count=40; while true; do sleep 1; done"],
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        });
        lab.pod(
            "full",
            json!({
                "terminationGracePeriodSeconds": 30,
                "containers": [writer],
                "volumes": [{"name": "data", "emptyDir": {"sizeLimit": "20Mi"}}],
            }),
        );
        let evicted_at = lab.until(30, |lab| !lab.events("Evicted").is_empty());
        let summary = lab.summary();
        let volume = &of(&summary, "full")["volume"][0];
        assert_eq!((&volume["name"], &volume["usedBytes"]), (&json!("data"), &json!(41_947_136)));
        let event = lab.events("Evicted").remove(0);
        assert_eq!(event["message"], "Usage of EmptyDir volume \"data\" exceeds the limit \"20Mi\". ");
        assert!(event["metadata"].get("annotations").is_none());
        let ended = lab.until(40, |lab| lab.is_evicted("full"));
        assert!(
            (ended.since(evicted_at).as_secs_f64() - grace).abs() < 2.0,
            "1.{minor}: {:?}",
            ended.since(evicted_at)
        );
        assert!(!lab.status("full")["conditions"].to_string().contains("DisruptionTarget"));
        // Until 1.30 the pod's own grace period is used, longer than the kubelet waits.
        assert_eq!(lab.events("ExceededGracePeriod").len(), usize::from(minor < 31));
        assert_eq!(lab.log().iter().any(|line| line.contains("pod failed to evict")), minor < 31);
        assert!(lab.get("metrics").contains("kubelet_evictions{eviction_signal=\"emptydirfs.limit\"} 1\n"));
    }
}

/// `evictPod` logs a critical pod over a limit in every pass.
#[test]
fn critical_pod_over_limit_is_logged() {
    let mut lab = Lab::new(32, CgroupVersion::V2);
    lab.tune(json!({"volumeStatsAggPeriod": "5s"}));
    let writer = json!({
        "name": "el1",
        "command": ["sh", "-c", "dd if=/dev/zero of=/data/f bs=1M count=40; sleep infinity"],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    });
    let volumes = json!([{"name": "data", "emptyDir": {"sizeLimit": "20Mi"}}]);
    lab.pod("full", json!({"priority": 2_000_000_000, "containers": [writer], "volumes": volumes}));
    lab.seconds(35.0);
    let line = "eviction_manager.go:616] \"Eviction manager: cannot evict a critical pod\" pod=\"test/full\"";
    assert!(lab.log().iter().filter(|one| one.ends_with(line)).count() > 1, "{:#?}", lab.log());
    assert!(!lab.is_evicted("full"));
}

#[test]
fn disk_pressure_deletes_images_before_pods() {
    let mut lab = Lab::new(32, CgroupVersion::V2);
    // 5 MiB per second: the snapshotter, which runs every 10 s, sees the growth.
    let writer = |seconds: u32| {
        let step = "dd if=/dev/zero of=/f$i bs=1M count=5; sleep 1; i=$((i+1))";
        let script = format!("i=0; while [ $i -lt {seconds} ]; do {step}; done; sleep infinity");
        json!({"name": "el1", "command": ["sh", "-c", script]})
    };
    let available = lab.summary()["node"]["fs"]["availableBytes"].as_i64().unwrap() / MI;
    lab.tune(json!({"evictionHard": {"nodefs.available": format!("{}Mi", available - 60)},
        "evictionPressureTransitionPeriod": "1s", "imageMinimumGCAge": "1s"}));
    lab.pod("writes", json!({"containers": [writer(14)]}));
    lab.seconds(50.0);
    assert!(!lab.is_evicted("writes"), "what images took was enough: {:#?}", lab.log());
    assert!(
        lab.log().iter().any(|line| line.contains("able to reduce resource pressure without evicting pods."))
    );
    lab.pod("more", json!({"containers": [writer(180)]}));
    lab.until(180, |lab| lab.is_evicted("more"));
    let message = lab.status("more")["message"].as_str().unwrap().to_owned();
    assert!(
        message.starts_with("The node was low on resource: ephemeral-storage. Threshold quantity: "),
        "{message}"
    );
    assert!(!lab.is_evicted("writes"), "{:#?}", lab.log());
}

#[test]
fn pid_pressure_evicts_pod_with_most_processes() {
    let mut lab = Lab::new(33, CgroupVersion::V2);
    let rlimit = lab.summary()["node"]["rlimit"].clone();
    let left = rlimit["maxpid"].as_i64().unwrap() - rlimit["curproc"].as_i64().unwrap();
    lab.tune(json!({"evictionHard": {"pid.available": (left - 200).to_string()}}));
    let bomb = json!({"name": "el1", "command": ["sh", "-c", "i=0; while [ $i -lt 300 ]; do sleep 1000 & i=$((i+1)); done; wait"]});
    lab.pod("idle", json!({"containers": [idle("el1")]}));
    lab.pod("forks", json!({"containers": [bomb]}));
    lab.until(40, |lab| lab.is_evicted("forks") || lab.is_evicted("idle"));
    assert!(lab.is_evicted("forks"));
    let event = lab.events("Evicted").remove(0);
    assert_eq!(event["metadata"]["annotations"]["offending_containers"], "");
    assert!(
        event["message"]
            .as_str()
            .unwrap()
            .starts_with("The node was low on resource: pids. Threshold quantity: ")
    );
}

#[test]
fn same_seed_makes_same_run() {
    let run = |seed| {
        let mut lab = Lab::seeded(32, CgroupVersion::V1, seed);
        lab.budget(300, json!({"kernelMemcgNotification": true}));
        lab.pod("hog", json!({"containers": [stress("el1", "1000Mi"), idle("el2"), idle("el3")]}));
        let mut all = String::new();
        for _ in 0..60 {
            lab.seconds(0.5);
            all += &lab.summary().to_string();
        }
        for line in lab.simulation.nodes["n1"].kubelet.log.since(SimTime::ZERO) {
            all += line;
        }
        all
    };
    assert_eq!(run(4), run(4));
    assert_ne!(run(4), run(5));
}

/// Collects the paths of all values, without list indexes.
fn paths(value: &Value, at: &str, all: &mut std::collections::BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| paths(value, &format!("{at}.{name}"), all))
        }
        Value::Array(values) => values.iter().for_each(|value| paths(value, at, all)),
        _ => {
            all.insert(at.to_owned());
        }
    }
}

#[test]
fn summary_has_recorded_fields() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../rules/recordings");
    for (minor, file) in
        [(31, "v1.31.14/regular.json"), (32, "v1.32.13/regular.json"), (36, "v1.36.2/regular.json")]
    {
        let text = std::fs::read_to_string(format!("{folder}/{file}")).unwrap();
        let recorded: Value = serde_json::from_str(&text).unwrap();
        let mut real = std::collections::BTreeSet::new();
        paths(&recorded["summaryBefore"]["node"], "node", &mut real);
        let mut lab = Lab::new(minor, CgroupVersion::V1);
        let mut own = std::collections::BTreeSet::new();
        paths(&lab.summary()["node"], "node", &mut own);
        // Not modelled: page faults, pressure stall information and network. Recorded nodes may
        // report swap.
        const IGNORED: [&str; 5] = [".swap", ".psi", ".io", ".network", "ageFaults"];
        let is_ignored = |path: &&String| IGNORED.iter().any(|ignored| path.contains(ignored));
        let differ: Vec<_> = real.symmetric_difference(&own).filter(|path| !is_ignored(path)).collect();
        assert!(differ.is_empty(), "1.{minor}: {differ:#?}");
    }
}

/// containerd deletes the task of a container some time after its processes have ended.
#[test]
fn statistics_of_a_container_outlive_it_for_a_moment() {
    let mut lab = Lab::new(36, CgroupVersion::V1);
    lab.tune(json!({}));
    lab.pod("short", json!({"containers": [{"name": "el1", "command": ["sleep", "8"]}]}));
    lab.seconds(6.0);
    let uid = of(&lab.summary(), "short")["podRef"]["uid"].as_str().unwrap().to_owned();
    lab.until(9, |lab| lab.simulation.nodes["n1"].kubelet.pods.running(&uid).is_empty());
    let mut listed = 0;
    while let Some(bytes) = of(&lab.summary(), "short")["containers"][0]["memory"]["workingSetBytes"].as_i64()
    {
        assert!(bytes > 0, "its last usage");
        listed += 1;
        lab.seconds(0.01);
    }
    // The steps of `until` are 100 ms.
    assert!((5..=15).contains(&listed), "{listed} times 10 ms");
}

#[test]
fn missing_statistics_rank_first_without_details() {
    let mut lab = Lab::new(36, CgroupVersion::V2);
    lab.budget(300, json!({}));
    let missing: Fault =
        serde_json::from_value(json!({"stats-missing": {"pod": "quiet", "for": "5m"}})).unwrap();
    lab.simulation.inject_faults(&[missing], &FaultScope::default());
    lab.pod("quiet", json!({"containers": [idle("el1")]}));
    lab.pod("hog", json!({"containers": [stress("el1", "1000Mi")]}));
    lab.until(40, |lab| lab.is_evicted("quiet"));
    assert!(of(&lab.summary(), "quiet").is_null());
    let event = lab.events("Evicted").remove(0);
    assert_eq!(event["involvedObject"]["name"], "quiet");
    assert!(event["metadata"].get("annotations").is_none_or(|all| *all == json!({})), "{event}");
    assert!(!event["message"].as_str().unwrap().contains("Container"));
}

/// `podContainerLogMetrics` of host_stats_provider.go: all files of the container's directory.
#[test]
fn logs_of_earlier_attempts_count() {
    let mut lab = Lab::new(36, CgroupVersion::V2);
    let script = "if [ -f /v/f ]; then dd if=/dev/zero bs=6M count=1; sleep 1000; fi; echo > /v/f; \
                  dd if=/dev/zero bs=6M count=1; exit 1";
    lab.pod(
        "p",
        json!({
            "restartPolicy": "OnFailure",
            "containers": [{
                "name": "c",
                "command": ["sh", "-c", script],
                "resources": {"limits": {"ephemeral-storage": "10Mi"}},
                "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            }],
            "volumes": [{"name": "v", "emptyDir": {}}],
        }),
    );
    lab.until(60, |lab| lab.is_evicted("p"));
    let message = "Pod ephemeral local storage usage exceeds the total limit of containers 10Mi. ";
    assert_eq!(lab.status("p")["message"], message);
}
