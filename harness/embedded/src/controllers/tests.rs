//! Control plane on objects: nodes have no machines.

use std::time::Duration;

use serde_json::{Value, json};

use crate::apiserver::{self, DeleteOptions, FieldValidation};
use crate::options::ClusterOptions;
use crate::resource::{Kind, ObjectExt};
use crate::sim::SimTime;
use crate::simulation::Simulation;

/// Cluster without kubelets: tests write the statuses.
pub(super) struct TestCluster(pub(super) Simulation);

impl TestCluster {
    pub(super) fn new() -> Self {
        let epoch = "2026-01-01T00:00:00Z".parse().unwrap();
        Self(Simulation::new(ClusterOptions::new(1, epoch, Vec::new())).unwrap())
    }

    /// Creates nodes with 4 CPUs, 8 GiB of memory and room for 3 pods.
    pub(super) fn with_nodes(names: &[&str]) -> Self {
        let mut cluster = Self::new();
        for name in names {
            cluster.node(name, "v1.36.2");
        }
        cluster
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
        self.0
            .with_context(|ctx| apiserver::create(ctx, kind, namespace, object, FieldValidation::default()))
            .unwrap();
    }

    pub(super) fn pod(&mut self, name: &str, mut spec: Value) {
        let memory = spec["memory"].take();
        let amounts = if memory.is_null() { json!({}) } else { json!({"memory": memory}) };
        spec.as_object_mut().unwrap().remove("memory");
        spec["containers"] = json!([{"name": "c", "image": "i", "resources": {"requests": amounts}}]);
        let pod = json!({"metadata": {"name": name, "labels": {"app": "a"}}, "spec": spec});
        self.create(Kind::Pod, "default", pod);
    }

    pub(super) fn run_until(&mut self, seconds: f64) {
        self.0.run(SimTime::from_start(Duration::from_secs_f64(seconds)));
    }

    pub(super) fn get(&self, kind: Kind, name: &str) -> Option<&Value> {
        let namespace = if matches!(kind, Kind::Node | Kind::Namespace) { "" } else { "default" };
        self.0.store.get(kind, namespace, name).map(|object| &**object)
    }

    pub(super) fn place(&self, pod: &str) -> &str {
        self.get(Kind::Pod, pod).unwrap()["spec"]["nodeName"].as_str().unwrap_or_default()
    }

    fn change_node(&mut self, name: &str, change: impl FnOnce(&mut Value)) {
        self.0.store.update(Kind::Node, "", name, change).unwrap();
    }

    /// Returns object and message of the events with a reason.
    pub(super) fn event_messages(&self, reason: &str) -> Vec<String> {
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
        self.get(Kind::Pod, pod).unwrap().condition("PodScheduled").unwrap()
    }

    fn taints(&self, node: &str) -> Value {
        self.get(Kind::Node, node).unwrap()["spec"]["taints"].clone()
    }

    /// Sets a pod to running.
    pub(super) fn running(&mut self, name: &str) {
        self.0.store.update(Kind::Pod, "default", name, |pod| {
            pod["status"]["phase"] = json!("Running");
            pod["status"]["startTime"] = json!("2026-01-01T00:00:00Z");
            pod["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
        });
    }

    pub(super) fn finish(&mut self, name: &str) {
        let uid = self.get(Kind::Pod, name).unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
        self.0.with_context(|ctx| apiserver::finish_pod_deletion(ctx, "default", name, &uid));
    }
}

#[test]
fn cluster_starts_with_namespaces_and_priority_classes() {
    let cluster = TestCluster::new();
    for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        let namespace = cluster.get(Kind::Namespace, name).unwrap();
        assert_eq!(namespace["status"]["phase"], "Active");
        assert_eq!(namespace["metadata"]["labels"]["kubernetes.io/metadata.name"], name);
        assert!(cluster.0.store.get(Kind::ServiceAccount, name, "default").is_some());
        assert!(cluster.0.store.get(Kind::ConfigMap, name, "kube-root-ca.crt").is_some());
    }
    let class = cluster.0.store.get(Kind::PriorityClass, "", "system-node-critical").unwrap();
    assert_eq!(class["value"], 2_000_001_000);
}

#[test]
fn namespace_gets_default_objects() {
    let mut cluster = TestCluster::new();
    cluster.create(Kind::Namespace, "", json!({"metadata": {"name": "x"}}));
    let account = |cluster: &TestCluster| cluster.0.store.get(Kind::ServiceAccount, "x", "default").is_some();
    assert!(!account(&cluster));
    cluster.run_until(0.1);
    assert!(account(&cluster));
}

#[test]
fn namespace_is_removed_after_last_pod() {
    let mut cluster = TestCluster::with_nodes(&["n1"]);
    cluster.create(Kind::Namespace, "", json!({"metadata": {"name": "x"}}));
    cluster.run_until(0.1);
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    cluster.create(Kind::Pod, "x", pod);
    cluster.run_until(1.0);
    cluster
        .0
        .with_context(|ctx| apiserver::delete(ctx, Kind::Namespace, "", "x", DeleteOptions::default()))
        .unwrap();
    cluster.run_until(2.0);
    assert_eq!(cluster.get(Kind::Namespace, "x").unwrap()["status"]["phase"], "Terminating");
    assert_eq!(cluster.0.store.list(Kind::ConfigMap, Some("x")).count(), 0);
    let dying = cluster.0.store.get(Kind::Pod, "x", "p").unwrap().clone();
    assert_eq!(dying["metadata"]["deletionGracePeriodSeconds"], 30);
    let uid = dying["metadata"]["uid"].as_str().unwrap().to_owned();
    cluster.0.with_context(|ctx| apiserver::finish_pod_deletion(ctx, "x", "p", &uid));
    cluster.run_until(2.1);
    assert!(cluster.get(Kind::Namespace, "x").is_none());
}

#[test]
fn schedules_to_node_with_most_free_resources() {
    let mut cluster = TestCluster::with_nodes(&["n1", "n2"]);
    cluster.pod("a", json!({"memory": "2Gi"}));
    cluster.run_until(1.0);
    cluster.pod("b", json!({"memory": "1Gi"}));
    cluster.run_until(2.0);
    cluster.pod("c", json!({"memory": "1Gi"}));
    cluster.run_until(3.0);
    assert_eq!([cluster.place("a"), cluster.place("b"), cluster.place("c")], ["n1", "n2", "n2"]);
    assert_eq!(cluster.scheduled_condition("a")["status"], "True");
    assert_eq!(cluster.event_messages("Scheduled")[0], "a: Successfully assigned default/a to n1");
    let event = cluster.event("Scheduled");
    assert_eq!(event["reportingComponent"], "default-scheduler");
    assert_eq!((&event["action"], &event["source"]), (&json!("Binding"), &json!({})));
    assert!(event["eventTime"].is_string() && event["firstTimestamp"].is_null());
}

#[test]
fn unschedulable_pod_is_reported_and_retried() {
    let mut cluster = TestCluster::with_nodes(&["n1", "n2"]);
    cluster.change_node("n2", |node| {
        node["spec"]["taints"] = json!([{"key": "k", "value": "v", "effect": "NoSchedule"}]);
    });
    cluster.pod("p", json!({"memory": "9Gi"}));
    cluster.run_until(1.0);
    let message = "0/2 nodes are available: 1 Insufficient memory, 1 node(s) had untolerated taint(s). no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.";
    assert_eq!(cluster.event_messages("FailedScheduling"), [format!("p: {message}")]);
    let condition = cluster.scheduled_condition("p");
    assert_eq!((&condition["status"], &condition["reason"]), (&json!("False"), &json!("Unschedulable")));
    assert_eq!((&condition["message"], &condition["observedGeneration"]), (&json!(message), &json!(1)));
    // A heartbeat does not trigger scheduling, free resources do.
    cluster.change_node("n1", |node| node["status"]["conditions"][0]["lastHeartbeatTime"] = json!("x"));
    cluster.run_until(20.0);
    assert!(cluster.event("FailedScheduling")["series"].is_null());
    cluster.change_node("n1", |node| node["status"]["allocatable"]["memory"] = json!("16Gi"));
    cluster.run_until(21.0);
    assert_eq!(cluster.place("p"), "n1");
}

/// A run of the scheduler at the same time without end would not return.
#[test]
fn pod_whose_deletion_is_not_in_the_history_is_forgotten() {
    let mut cluster = TestCluster::with_nodes(&["n1"]);
    cluster.pod("p", json!({"memory": "64Gi"}));
    cluster.run_until(1.0);
    cluster.0.store.remove(Kind::Pod, "default", "p");
    cluster.0.store.forget_history();
    cluster.pod("q", json!({"memory": "1Gi"}));
    cluster.run_until(400.0);
    assert_eq!(cluster.place("q"), "n1");
}

#[test]
fn message_names_taint_before_1_34() {
    let mut cluster = TestCluster::new();
    cluster.node("n1", "v1.33.0");
    cluster.change_node("n1", |node| {
        node["spec"]["taints"] = json!([{"key": "k", "value": "v", "effect": "NoExecute"}]);
    });
    cluster.pod("p", json!({}));
    cluster.run_until(1.0);
    let message = "p: 0/1 nodes are available: 1 node(s) had untolerated taint {k: v}. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.";
    assert_eq!(cluster.event_messages("FailedScheduling"), [message]);
}

#[test]
fn respects_selectors_affinity_pod_limits_and_cordons() {
    let mut cluster = TestCluster::with_nodes(&["n1", "n2"]);
    cluster.pod("selects", json!({"nodeSelector": {"kubernetes.io/hostname": "n2"}}));
    let affine = |operator: &str| {
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": operator, "values": ["n2"]}]}
        ]}}}})
    };
    cluster.pod("in", affine("In"));
    cluster.pod("out", affine("NotIn"));
    cluster.run_until(1.0);
    assert_eq!([cluster.place("selects"), cluster.place("in"), cluster.place("out")], ["n2", "n2", "n1"]);
    cluster.change_node("n1", |node| node["spec"]["unschedulable"] = json!(true));
    cluster.run_until(2.0);
    assert_eq!(cluster.taints("n1")[0]["key"], "node.kubernetes.io/unschedulable");
    cluster.pod("third", json!({}));
    cluster.pod("fourth", json!({}));
    cluster.run_until(3.0);
    assert_eq!(cluster.place("third").len() + cluster.place("fourth").len(), 2);
    assert!(cluster.event_messages("FailedScheduling")[0].contains("0/2 nodes are available: 1 Too many pods, 1 node(s) were unschedulable. no new claims to deallocate, preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling."), "{:?}", cluster.event_messages("FailedScheduling"));
}

#[test]
fn pressure_condition_sets_taint() {
    let mut cluster = TestCluster::with_nodes(&["n1"]);
    cluster.run_until(2.0);
    cluster.change_node("n1", |node| node["status"]["conditions"][0]["status"] = json!("True"));
    cluster.run_until(3.0);
    assert_eq!(
        cluster.taints("n1"),
        json!([{"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:02Z"}])
    );
    cluster.change_node("n1", |node| node["status"]["conditions"][0]["status"] = json!("False"));
    cluster.run_until(4.0);
    assert_eq!(cluster.taints("n1"), Value::Null);
    assert_eq!(
        cluster.event_messages("RegisteredNode"),
        ["n1: Node n1 event: Registered Node n1 in Controller"]
    );
}

#[test]
fn unreachable_node_loses_its_pods() {
    let mut cluster = TestCluster::with_nodes(&["n1"]);
    cluster.pod("p", json!({}));
    cluster.run_until(1.0);
    cluster.running("p");
    cluster.run_until(48.0);
    assert_eq!(cluster.taints("n1"), Value::Null);
    cluster.run_until(60.0);
    let node = cluster.get(Kind::Node, "n1").unwrap();
    for kind in ["Ready", "MemoryPressure"] {
        let condition = node.condition(kind).unwrap();
        assert_eq!(
            (&condition["status"], &condition["reason"]),
            (&json!("Unknown"), &json!("NodeStatusUnknown"))
        );
        assert_eq!(condition["message"], "Kubelet stopped posting node status.");
    }
    assert_eq!(node.condition("PIDPressure").unwrap()["reason"], "NodeStatusNeverUpdated");
    let effects = cluster.taints("n1");
    let effects: Vec<_> =
        effects.as_array().unwrap().iter().map(|taint| (&taint["key"], &taint["effect"])).collect();
    let key = json!("node.kubernetes.io/unreachable");
    assert_eq!(effects, [(&key, &json!("NoExecute")), (&key, &json!("NoSchedule"))]);
    let mut messages = cluster.event_messages("NodeNotReady");
    messages.sort();
    assert_eq!(messages, ["n1: Node n1 status is now: NodeNotReady", "p: Node is not ready"]);
    assert_eq!(cluster.get(Kind::Pod, "p").unwrap().condition("Ready").unwrap()["status"], "False");
    // 300 s after the taint.
    cluster.run_until(350.0);
    assert!(cluster.event_messages("TaintManagerEviction").is_empty());
    cluster.run_until(360.0);
    assert_eq!(cluster.event_messages("TaintManagerEviction"), ["p: Marking for deletion Pod default/p"]);
    let pod = cluster.get(Kind::Pod, "p").unwrap();
    let condition = pod.condition("DisruptionTarget").unwrap();
    assert_eq!(condition["reason"], "DeletionByTaintManager");
    assert_eq!(condition["message"], "Taint manager: deleting due to NoExecute taint");
    assert!(pod.is_deleting());
}

#[test]
fn recovered_node_keeps_its_pods() {
    let mut cluster = TestCluster::with_nodes(&["n1"]);
    cluster.pod("p", json!({}));
    cluster.run_until(60.0);
    cluster.change_node("n1", |node| {
        for condition in node["status"]["conditions"].as_array_mut().unwrap() {
            condition["status"] = json!(if condition["type"] == "Ready" { "True" } else { "False" });
            condition["lastHeartbeatTime"] = json!("2026-01-01T00:01:00Z");
        }
    });
    cluster.run_until(70.0);
    assert_eq!(cluster.taints("n1"), Value::Null);
    assert_eq!(cluster.event_messages("TaintManagerEviction"), ["p: Cancelling deletion of Pod default/p"]);
    // A renewed lease is a heartbeat, too.
    for second in [100, 140] {
        cluster.run_until(f64::from(second));
        let now = cluster.0.now;
        let renewed = cluster.0.store.epoch.micro_time(now);
        let metadata = json!({"name": "n1", "namespace": "kube-node-lease"});
        let lease = json!({"metadata": metadata, "spec": {"renewTime": renewed}});
        cluster.0.store.remove(Kind::Lease, "kube-node-lease", "n1");
        cluster.0.store.create(Kind::Lease, lease, now).unwrap();
    }
    cluster.run_until(180.0);
    assert_eq!(cluster.taints("n1"), Value::Null);
}

#[test]
fn taint_evicts_pods_without_toleration() {
    let mut cluster = TestCluster::with_nodes(&["n1"]);
    let tolerates = |seconds: Value| {
        let mut toleration = json!({"key": "k", "operator": "Exists", "effect": "NoExecute"});
        if seconds.is_i64() {
            toleration["tolerationSeconds"] = seconds;
        }
        json!({"tolerations": [toleration]})
    };
    cluster.pod("never", json!({}));
    cluster.pod("a-while", tolerates(json!(10)));
    cluster.pod("ever", tolerates(Value::Null));
    cluster.run_until(1.0);
    cluster.change_node("n1", |node| node["spec"]["taints"] = json!([{"key": "k", "effect": "NoExecute"}]));
    let dying = |cluster: &TestCluster, name: &str| {
        cluster.get(Kind::Pod, name).unwrap()["metadata"]["deletionTimestamp"].is_string()
    };
    cluster.run_until(2.0);
    assert_eq!(["never", "a-while", "ever"].map(|name| dying(&cluster, name)), [true, false, false]);
    cluster.run_until(12.0);
    assert_eq!(["a-while", "ever"].map(|name| dying(&cluster, name)), [true, false]);
    let event = cluster.event("TaintManagerEviction");
    assert_eq!(event["source"]["component"], "taint-eviction-controller");
    assert_eq!((&event["count"], &event["eventTime"]), (&json!(1), &Value::Null));
}

#[test]
fn removal_of_node_is_recorded() {
    let mut cluster = TestCluster::with_nodes(&["n1"]);
    cluster.run_until(1.0);
    cluster.0.store.remove(Kind::Node, "", "n1");
    cluster.run_until(50.0);
    assert_eq!(
        cluster.event_messages("RemovingNode"),
        ["n1: Node n1 event: Removing Node n1 from Controller"]
    );
}

#[test]
fn disruption_budget_counts_ready_pods() {
    let mut cluster = TestCluster::with_nodes(&["n1"]);
    let budget = json!({
        "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}},
    });
    cluster.create(Kind::PodDisruptionBudget, "default", budget);
    cluster.run_until(1.0);
    cluster.pod("p", json!({}));
    cluster.pod("q", json!({}));
    cluster.pod("unready", json!({}));
    cluster.run_until(2.0);
    cluster.running("p");
    cluster.running("q");
    cluster.run_until(3.0);
    let status = cluster.get(Kind::PodDisruptionBudget, "b").unwrap()["status"].clone();
    let counts =
        ["currentHealthy", "desiredHealthy", "expectedPods", "disruptionsAllowed", "observedGeneration"];
    assert_eq!(counts.map(|field| status[field].as_i64().unwrap()), [2, 1, 3, 1, 1]);
    assert_eq!(status["conditions"][0]["reason"], "SufficientPods");
    let mut evict = |name: &str| {
        let eviction = json!({"metadata": {"name": name}});
        cluster
            .0
            .with_context(|ctx| apiserver::evict(ctx, "default", name, &eviction))
            .map_err(|status| status.code)
    };
    assert!(evict("p").is_ok());
    assert_eq!(evict("q"), Err(429));
    cluster.run_until(4.0);
    let status = &cluster.get(Kind::PodDisruptionBudget, "b").unwrap()["status"];
    assert_eq!(counts.map(|field| status[field].as_i64().unwrap()), [1, 1, 3, 0, 1]);
    assert_eq!(status["conditions"][0]["reason"], "InsufficientPods");
    assert!(status["disruptedPods"].is_null());
}

#[test]
fn same_seed_makes_same_cluster() {
    let story = || {
        let mut cluster = TestCluster::with_nodes(&["n1", "n2"]);
        for name in ["a", "b", "c", "d"] {
            cluster.pod(name, json!({"memory": "3Gi"}));
        }
        cluster.create(Kind::Namespace, "", json!({"metadata": {"name": "x"}}));
        cluster.run_until(100.0);
        let kinds = Kind::ALL.into_iter();
        kinds
            .flat_map(|kind| cluster.0.store.list(kind, None).map(|object| object.to_string()))
            .collect::<Vec<_>>()
    };
    assert_eq!(story(), story());
}
