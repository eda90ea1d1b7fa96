//! The control plane at work on objects, in time; nodes are objects only, without machines.

use std::time::Duration;

use serde_json::{Value, json};

use super::has_ended;
use crate::options::Options;
use crate::registry::{self, Create, DeleteOptions, Update, condition};
use crate::store::Kind;
use crate::time::Time;
use crate::world::World;

/// A cluster whose nodes run nothing: what kubelets would tell is told by the test.
pub(super) struct Bench(pub(super) World);

impl Bench {
    pub(super) fn new() -> Self {
        let epoch = "2026-01-01T00:00:00Z".parse().unwrap();
        Self(World::new(Options::new(1, epoch, Vec::new())).unwrap())
    }

    /// With nodes of 4 CPUs, 8 GiB and 3 pods.
    pub(super) fn with_nodes(names: &[&str]) -> Self {
        let mut bench = Self::new();
        for name in names {
            bench.node(name, "v1.36.2");
        }
        bench
    }

    pub(super) fn node(&mut self, name: &str, version: &str) {
        let condition = |kind: &str, status: &str| {
            json!({"type": kind, "status": status, "reason": "R", "message": "m",
                "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        let node = json!({
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "status": {
                "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "3"},
                "conditions": [condition("MemoryPressure", "False"), condition("Ready", "True")],
                "nodeInfo": {"kubeletVersion": version},
            },
        });
        let now = self.0.now;
        self.0.store.create(Kind::Node, node, now).unwrap();
    }

    pub(super) fn create(&mut self, kind: Kind, namespace: &str, object: Value) {
        self.0.with(|_, _, ctx| registry::create(ctx, kind, namespace, object, Create::default())).unwrap();
    }

    fn pod(&mut self, name: &str, mut spec: Value) {
        let memory = spec["memory"].take();
        let amounts = if memory.is_null() { json!({}) } else { json!({"memory": memory}) };
        spec.as_object_mut().unwrap().remove("memory");
        spec["containers"] = json!([{"name": "c", "image": "i", "resources": {"requests": amounts}}]);
        let pod = json!({"metadata": {"name": name, "labels": {"app": "a"}}, "spec": spec});
        self.create(Kind::Pod, "default", pod);
    }

    pub(super) fn run_until(&mut self, seconds: f64) {
        self.0.run(Time::after(Duration::from_secs_f64(seconds)));
    }

    pub(super) fn get(&self, kind: Kind, name: &str) -> Option<&Value> {
        let namespace = if matches!(kind, Kind::Node | Kind::Namespace) { "" } else { "default" };
        self.0.store.get(kind, namespace, name).map(|object| &**object)
    }

    fn place(&self, pod: &str) -> &str {
        self.get(Kind::Pod, pod).unwrap()["spec"]["nodeName"].as_str().unwrap_or_default()
    }

    fn change_node(&mut self, name: &str, change: impl FnOnce(&mut Value)) {
        self.0.store.update(Kind::Node, "", name, change).unwrap();
    }

    /// Events of a reason: what they are about, and what they say.
    pub(super) fn told(&self, reason: &str) -> Vec<String> {
        let all = self.0.store.list(Kind::Event, None).filter(|event| event["reason"] == reason);
        all.map(|event| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            format!("{}: {}", text(&event["involvedObject"]["name"]), text(&event["message"]))
        })
        .collect()
    }

    fn event(&self, reason: &str) -> &Value {
        self.0.store.list(Kind::Event, None).find(|event| event["reason"] == reason).unwrap()
    }

    fn scheduled_condition(&self, pod: &str) -> &Value {
        condition::find(self.get(Kind::Pod, pod).unwrap(), "PodScheduled").unwrap()
    }

    fn taints(&self, node: &str) -> Value {
        self.get(Kind::Node, node).unwrap()["spec"]["taints"].clone()
    }

    /// A pod runs on its node.
    pub(super) fn running(&mut self, name: &str) {
        self.0.store.update(Kind::Pod, "default", name, |pod| {
            pod["status"]["phase"] = json!("Running");
            pod["status"]["startTime"] = json!("2026-01-01T00:00:00Z");
            pod["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
        });
    }

    pub(super) fn finish(&mut self, name: &str) {
        let uid = self.get(Kind::Pod, name).unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
        self.0.with(|_, _, ctx| registry::finish_pod(ctx, "default", name, &uid));
    }
}

#[test]
fn a_cluster_begins_with_namespaces_and_classes() {
    let bench = Bench::new();
    for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        let namespace = bench.get(Kind::Namespace, name).unwrap();
        assert_eq!(namespace["status"]["phase"], "Active");
        assert_eq!(namespace["metadata"]["labels"]["kubernetes.io/metadata.name"], name);
        assert!(bench.0.store.get(Kind::ServiceAccount, name, "default").is_some());
        assert!(bench.0.store.get(Kind::ConfigMap, name, "kube-root-ca.crt").is_some());
    }
    let class = bench.0.store.get(Kind::PriorityClass, "", "system-node-critical").unwrap();
    assert_eq!(class["value"], 2_000_001_000);
}

#[test]
fn a_namespace_is_furnished_a_moment_after_it_is_made() {
    let mut bench = Bench::new();
    bench.create(Kind::Namespace, "", json!({"metadata": {"name": "x"}}));
    let account = |bench: &Bench| bench.0.store.get(Kind::ServiceAccount, "x", "default").is_some();
    assert!(!account(&bench));
    bench.run_until(0.1);
    assert!(account(&bench));
}

#[test]
fn a_namespace_goes_when_its_last_pod_has_gone() {
    let mut bench = Bench::with_nodes(&["n1"]);
    bench.create(Kind::Namespace, "", json!({"metadata": {"name": "x"}}));
    bench.run_until(0.1);
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    bench.create(Kind::Pod, "x", pod);
    bench.run_until(1.0);
    bench
        .0
        .with(|_, _, ctx| registry::delete(ctx, Kind::Namespace, "", "x", DeleteOptions::default()))
        .unwrap();
    bench.run_until(2.0);
    assert_eq!(bench.get(Kind::Namespace, "x").unwrap()["status"]["phase"], "Terminating");
    assert_eq!(bench.0.store.list(Kind::ConfigMap, Some("x")).count(), 0);
    let dying = bench.0.store.get(Kind::Pod, "x", "p").unwrap().clone();
    assert_eq!(dying["metadata"]["deletionGracePeriodSeconds"], 30);
    let uid = dying["metadata"]["uid"].as_str().unwrap().to_owned();
    bench.0.with(|_, _, ctx| registry::finish_pod(ctx, "x", "p", &uid));
    bench.run_until(2.1);
    assert!(bench.get(Kind::Namespace, "x").is_none());
}

#[test]
fn a_pod_goes_where_most_is_free() {
    let mut bench = Bench::with_nodes(&["n1", "n2"]);
    bench.pod("a", json!({"memory": "2Gi"}));
    bench.run_until(1.0);
    bench.pod("b", json!({"memory": "1Gi"}));
    bench.run_until(2.0);
    bench.pod("c", json!({"memory": "1Gi"}));
    bench.run_until(3.0);
    assert_eq!([bench.place("a"), bench.place("b"), bench.place("c")], ["n1", "n2", "n2"]);
    assert_eq!(bench.scheduled_condition("a")["status"], "True");
    assert_eq!(bench.told("Scheduled")[0], "a: Successfully assigned default/a to n1");
    let event = bench.event("Scheduled");
    assert_eq!(event["reportingComponent"], "default-scheduler");
    assert_eq!((&event["action"], &event["source"]), (&json!("Binding"), &json!({})));
    assert!(event["eventTime"].is_string() && event["firstTimestamp"].is_null());
}

#[test]
fn a_pod_that_fits_nowhere_is_told_why_and_tried_again() {
    let mut bench = Bench::with_nodes(&["n1", "n2"]);
    bench.change_node("n2", |node| {
        node["spec"]["taints"] = json!([{"key": "k", "value": "v", "effect": "NoSchedule"}]);
    });
    bench.pod("p", json!({"memory": "9Gi"}));
    bench.run_until(1.0);
    let message = "0/2 nodes are available: 1 Insufficient memory, 1 node(s) had untolerated taint(s). preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.";
    assert_eq!(bench.told("FailedScheduling"), [format!("p: {message}")]);
    let condition = bench.scheduled_condition("p");
    assert_eq!((&condition["status"], &condition["reason"]), (&json!("False"), &json!("Unschedulable")));
    assert_eq!((&condition["message"], &condition["observedGeneration"]), (&json!(message), &json!(1)));
    // A heartbeat changes nothing, room does.
    bench.change_node("n1", |node| node["status"]["conditions"][0]["lastHeartbeatTime"] = json!("x"));
    bench.run_until(20.0);
    assert!(bench.event("FailedScheduling")["series"].is_null());
    bench.change_node("n1", |node| node["status"]["allocatable"]["memory"] = json!("16Gi"));
    bench.run_until(21.0);
    assert_eq!(bench.place("p"), "n1");
}

#[test]
fn taints_are_named_before_1_34() {
    let mut bench = Bench::new();
    bench.node("n1", "v1.33.0");
    bench.change_node("n1", |node| {
        node["spec"]["taints"] = json!([{"key": "k", "value": "v", "effect": "NoExecute"}]);
    });
    bench.pod("p", json!({}));
    bench.run_until(1.0);
    let message = "p: 0/1 nodes are available: 1 node(s) had untolerated taint {k: v}. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.";
    assert_eq!(bench.told("FailedScheduling"), [message]);
}

#[test]
fn selectors_affinity_counts_and_cordons_are_heeded() {
    let mut bench = Bench::with_nodes(&["n1", "n2"]);
    bench.pod("selects", json!({"nodeSelector": {"kubernetes.io/hostname": "n2"}}));
    let affine = |operator: &str| {
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": operator, "values": ["n2"]}]}
        ]}}}})
    };
    bench.pod("in", affine("In"));
    bench.pod("out", affine("NotIn"));
    bench.run_until(1.0);
    assert_eq!([bench.place("selects"), bench.place("in"), bench.place("out")], ["n2", "n2", "n1"]);
    bench.change_node("n1", |node| node["spec"]["unschedulable"] = json!(true));
    bench.run_until(2.0);
    assert_eq!(bench.taints("n1")[0]["key"], "node.kubernetes.io/unschedulable");
    bench.pod("third", json!({}));
    bench.pod("fourth", json!({}));
    bench.run_until(3.0);
    assert_eq!(bench.place("third").len() + bench.place("fourth").len(), 2);
    assert!(bench.told("FailedScheduling")[0].contains("0/2 nodes are available: 1 Too many pods, 1 node(s) were unschedulable. preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling."), "{:?}", bench.told("FailedScheduling"));
}

#[test]
fn the_more_important_pod_preempts_the_least_important() {
    let mut bench = Bench::with_nodes(&["n1", "n2"]);
    for (name, value) in [("low", 10), ("middle", 20), ("high", 100)] {
        bench.create(Kind::PriorityClass, "", json!({"metadata": {"name": name}, "value": value}));
    }
    bench.pod("middle", json!({"memory": "6Gi", "priorityClassName": "middle"}));
    bench.run_until(1.0);
    bench.pod("low", json!({"memory": "6Gi", "priorityClassName": "low"}));
    bench.run_until(2.0);
    assert_eq!([bench.place("middle"), bench.place("low")], ["n1", "n2"]);
    bench.running("low");
    bench.pod("high", json!({"memory": "4Gi", "priorityClassName": "high"}));
    bench.run_until(2.1);
    let victim = bench.get(Kind::Pod, "low").unwrap();
    let condition = condition::find(victim, "DisruptionTarget").unwrap();
    assert_eq!(condition["reason"], "PreemptionByScheduler");
    assert_eq!(condition["message"], "default-scheduler: preempting to accommodate a higher priority pod");
    assert_eq!(victim["metadata"]["deletionGracePeriodSeconds"], 30);
    let high = bench.get(Kind::Pod, "high").unwrap();
    assert_eq!(high["status"]["nominatedNodeName"], "n2");
    let uid = high["metadata"]["uid"].as_str().unwrap();
    assert_eq!(bench.told("Preempted"), [format!("low: Preempted by pod {uid} on node n2")]);
    assert_eq!(bench.told("FailedScheduling"), ["high: 0/2 nodes are available: 2 Insufficient memory."]);
    assert!(!bench.get(Kind::Pod, "middle").unwrap()["metadata"]["deletionTimestamp"].is_string());
    // The room is kept for it: a pod that comes while it still waits for its next try does not get it.
    bench.finish("low");
    bench.pod("late", json!({"memory": "5Gi", "priorityClassName": "low"}));
    bench.run_until(2.5);
    assert_eq!([bench.place("high"), bench.place("late")], ["", ""]);
    bench.run_until(10.0);
    assert_eq!([bench.place("high"), bench.place("late")], ["n2", ""]);
    assert!(bench.get(Kind::Pod, "high").unwrap()["status"]["nominatedNodeName"].is_null());
}

#[test]
fn of_the_pods_of_a_node_only_the_least_important_goes() {
    let mut bench = Bench::with_nodes(&["n1"]);
    for (name, value) in [("low", 10), ("middle", 20), ("high", 100)] {
        bench.create(Kind::PriorityClass, "", json!({"metadata": {"name": name}, "value": value}));
    }
    bench.pod("a", json!({"memory": "3Gi", "priorityClassName": "middle"}));
    bench.pod("b", json!({"memory": "3Gi", "priorityClassName": "low"}));
    bench.run_until(1.0);
    bench.pod("c", json!({"memory": "4Gi", "priorityClassName": "high"}));
    bench.run_until(2.0);
    let dying = |name: &str| bench.get(Kind::Pod, name).unwrap()["metadata"]["deletionTimestamp"].is_string();
    assert_eq!([dying("a"), dying("b")], [false, true]);
}

#[test]
fn a_pod_that_may_not_preempt_waits() {
    let mut bench = Bench::with_nodes(&["n1"]);
    let class = json!({"metadata": {"name": "meek"}, "value": 100, "preemptionPolicy": "Never"});
    bench.create(Kind::PriorityClass, "", class);
    bench.pod("a", json!({"memory": "6Gi"}));
    bench.run_until(1.0);
    bench.pod("b", json!({"memory": "6Gi", "priorityClassName": "meek"}));
    bench.run_until(2.0);
    assert_eq!(
        bench.told("FailedScheduling"),
        [
            "b: 0/1 nodes are available: 1 Insufficient memory. preemption: not eligible due to preemptionPolicy=Never."
        ]
    );
    // The end of a pod makes room.
    bench.0.store.update(Kind::Pod, "default", "a", |pod| pod["status"]["phase"] = json!("Failed"));
    bench.run_until(4.0);
    assert_eq!(bench.place("b"), "n1");
}

#[test]
fn pressure_becomes_a_taint_and_goes_with_it() {
    let mut bench = Bench::with_nodes(&["n1"]);
    bench.run_until(2.0);
    bench.change_node("n1", |node| node["status"]["conditions"][0]["status"] = json!("True"));
    bench.run_until(3.0);
    assert_eq!(
        bench.taints("n1"),
        json!([{"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:02Z"}])
    );
    bench.change_node("n1", |node| node["status"]["conditions"][0]["status"] = json!("False"));
    bench.run_until(4.0);
    assert_eq!(bench.taints("n1"), Value::Null);
    assert_eq!(bench.told("RegisteredNode"), ["n1: Node n1 event: Registered Node n1 in Controller"]);
}

#[test]
fn a_silent_node_is_unreachable_and_loses_its_pods() {
    let mut bench = Bench::with_nodes(&["n1"]);
    bench.pod("p", json!({}));
    bench.run_until(1.0);
    bench.running("p");
    bench.run_until(48.0);
    assert_eq!(bench.taints("n1"), Value::Null);
    bench.run_until(60.0);
    let node = bench.get(Kind::Node, "n1").unwrap();
    for kind in ["Ready", "MemoryPressure"] {
        let condition = condition::find(node, kind).unwrap();
        assert_eq!(
            (&condition["status"], &condition["reason"]),
            (&json!("Unknown"), &json!("NodeStatusUnknown"))
        );
        assert_eq!(condition["message"], "Kubelet stopped posting node status.");
    }
    assert_eq!(condition::find(node, "PIDPressure").unwrap()["reason"], "NodeStatusNeverUpdated");
    let effects = bench.taints("n1");
    let effects: Vec<_> =
        effects.as_array().unwrap().iter().map(|taint| (&taint["key"], &taint["effect"])).collect();
    let key = json!("node.kubernetes.io/unreachable");
    assert_eq!(effects, [(&key, &json!("NoExecute")), (&key, &json!("NoSchedule"))]);
    let mut told = bench.told("NodeNotReady");
    told.sort();
    assert_eq!(told, ["n1: Node n1 status is now: NodeNotReady", "p: Node is not ready"]);
    assert_eq!(condition::status(bench.get(Kind::Pod, "p").unwrap(), "Ready"), "False");
    // 300 s after the taint.
    bench.run_until(350.0);
    assert!(bench.told("TaintManagerEviction").is_empty());
    bench.run_until(360.0);
    assert_eq!(bench.told("TaintManagerEviction"), ["p: Marking for deletion Pod default/p"]);
    let pod = bench.get(Kind::Pod, "p").unwrap();
    let condition = condition::find(pod, "DisruptionTarget").unwrap();
    assert_eq!(condition["reason"], "DeletionByTaintManager");
    assert_eq!(condition["message"], "Taint manager: deleting due to NoExecute taint");
    assert!(pod["metadata"]["deletionTimestamp"].is_string());
}

#[test]
fn a_node_that_speaks_again_keeps_its_pods() {
    let mut bench = Bench::with_nodes(&["n1"]);
    bench.pod("p", json!({}));
    bench.run_until(60.0);
    bench.change_node("n1", |node| {
        for condition in node["status"]["conditions"].as_array_mut().unwrap() {
            condition["status"] = json!(if condition["type"] == "Ready" { "True" } else { "False" });
            condition["lastHeartbeatTime"] = json!("2026-01-01T00:01:00Z");
        }
    });
    bench.run_until(70.0);
    assert_eq!(bench.taints("n1"), Value::Null);
    assert_eq!(bench.told("TaintManagerEviction"), ["p: Cancelling deletion of Pod default/p"]);
    // A lease that is renewed is a sign of life too.
    for second in [100, 140] {
        bench.run_until(f64::from(second));
        let lease = json!({"metadata": {"name": "n1"}, "spec": {"renewTime": format!("2026-01-01T00:00:{second:06}.0Z")}});
        bench.0.store.remove(Kind::Lease, "kube-node-lease", "n1");
        let mut lease = lease;
        lease["metadata"]["namespace"] = json!("kube-node-lease");
        let now = bench.0.now;
        bench.0.store.create(Kind::Lease, lease, now).unwrap();
    }
    bench.run_until(180.0);
    assert_eq!(bench.taints("n1"), Value::Null);
}

#[test]
fn a_taint_evicts_at_once_who_does_not_tolerate_it() {
    let mut bench = Bench::with_nodes(&["n1"]);
    let tolerates = |seconds: Value| {
        let mut toleration = json!({"key": "k", "operator": "Exists", "effect": "NoExecute"});
        if seconds.is_i64() {
            toleration["tolerationSeconds"] = seconds;
        }
        json!({"tolerations": [toleration]})
    };
    bench.pod("never", json!({}));
    bench.pod("a-while", tolerates(json!(10)));
    bench.pod("ever", tolerates(Value::Null));
    bench.run_until(1.0);
    bench.change_node("n1", |node| node["spec"]["taints"] = json!([{"key": "k", "effect": "NoExecute"}]));
    let dying = |bench: &Bench, name: &str| {
        bench.get(Kind::Pod, name).unwrap()["metadata"]["deletionTimestamp"].is_string()
    };
    bench.run_until(2.0);
    assert_eq!(["never", "a-while", "ever"].map(|name| dying(&bench, name)), [true, false, false]);
    bench.run_until(12.0);
    assert_eq!(["a-while", "ever"].map(|name| dying(&bench, name)), [true, false]);
    let event = bench.event("TaintManagerEviction");
    assert_eq!(event["source"]["component"], "taint-eviction-controller");
    assert_eq!((&event["count"], &event["eventTime"]), (&json!(1), &Value::Null));
}

#[test]
fn pods_of_a_node_that_is_gone_are_collected() {
    let mut bench = Bench::with_nodes(&["n1"]);
    bench.pod("p", json!({}));
    bench.run_until(1.0);
    bench.0.store.remove(Kind::Node, "", "n1");
    bench.run_until(50.0);
    assert!(!has_ended(bench.get(Kind::Pod, "p").unwrap()));
    bench.run_until(90.0);
    assert!(bench.get(Kind::Pod, "p").is_none());
    assert_eq!(bench.told("RemovingNode"), ["n1: Node n1 event: Removing Node n1 from Controller"]);
}

#[test]
fn a_budget_counts_the_pods_that_are_ready() {
    let mut bench = Bench::with_nodes(&["n1"]);
    let budget = json!({
        "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}},
    });
    bench.create(Kind::PodDisruptionBudget, "default", budget);
    bench.run_until(1.0);
    bench.pod("p", json!({}));
    bench.pod("q", json!({}));
    bench.pod("unready", json!({}));
    bench.run_until(2.0);
    bench.running("p");
    bench.running("q");
    bench.run_until(3.0);
    let status = bench.get(Kind::PodDisruptionBudget, "b").unwrap()["status"].clone();
    let counts =
        ["currentHealthy", "desiredHealthy", "expectedPods", "disruptionsAllowed", "observedGeneration"];
    assert_eq!(counts.map(|field| status[field].as_i64().unwrap()), [2, 1, 3, 1, 1]);
    assert_eq!(status["conditions"][0]["reason"], "SufficientPods");
    let mut evict = |name: &str| {
        let eviction = json!({"metadata": {"name": name}});
        bench
            .0
            .with(|_, _, ctx| registry::evict(ctx, "default", name, &eviction))
            .map_err(|status| status.code)
    };
    assert!(evict("p").is_ok());
    assert_eq!(evict("q"), Err(429));
    bench.run_until(4.0);
    let status = &bench.get(Kind::PodDisruptionBudget, "b").unwrap()["status"];
    assert_eq!(counts.map(|field| status[field].as_i64().unwrap()), [1, 1, 3, 0, 1]);
    assert_eq!(status["conditions"][0]["reason"], "InsufficientPods");
    assert!(status["disruptedPods"].is_null());
}

#[test]
fn a_gated_pod_waits_for_its_gates() {
    let mut bench = Bench::with_nodes(&["n1"]);
    bench.pod("p", json!({"schedulingGates": [{"name": "a.b/c"}]}));
    bench.run_until(1.0);
    assert_eq!(
        (bench.place("p"), &bench.scheduled_condition("p")["reason"]),
        ("", &json!("SchedulingGated"))
    );
    let mut pod = bench.get(Kind::Pod, "p").unwrap().clone();
    pod["spec"]["schedulingGates"] = json!([]);
    bench
        .0
        .with(|_, _, ctx| registry::update(ctx, Kind::Pod, "default", "p", pod, Update::default()))
        .unwrap();
    bench.run_until(2.0);
    assert_eq!(bench.place("p"), "n1");
}

#[test]
fn the_same_seed_makes_the_same_cluster() {
    let story = || {
        let mut bench = Bench::with_nodes(&["n1", "n2"]);
        for name in ["a", "b", "c", "d"] {
            bench.pod(name, json!({"memory": "3Gi"}));
        }
        bench.create(Kind::Namespace, "", json!({"metadata": {"name": "x"}}));
        bench.run_until(100.0);
        let kinds = Kind::ALL.into_iter();
        kinds
            .flat_map(|kind| bench.0.store.list(kind, None).map(|object| object.to_string()))
            .collect::<Vec<_>>()
    };
    assert_eq!(story(), story());
}
