//! Preemption, on nodes without machines.

use std::sync::Arc;

use serde_json::{Value, json};

use super::nodes::{PodInfo, PodRequests};
use super::preemption::split_by_budget;
use crate::controllers::tests::TestCluster;
use crate::resource::{Kind, ObjectExt};
use crate::sim::SimTime;

fn cluster_with_classes(nodes: &[&str]) -> TestCluster {
    let mut cluster = TestCluster::with_nodes(nodes);
    for (name, value) in [("low", 10), ("middle", 20), ("high", 100)] {
        cluster.create(Kind::PriorityClass, "", json!({"metadata": {"name": name}, "value": value}));
    }
    cluster
}

/// Returns whether the pods are being deleted.
fn are_deleted<const N: usize>(cluster: &TestCluster, names: [&str; N]) -> [bool; N] {
    names.map(|name| cluster.get(Kind::Pod, name).unwrap().is_deleting())
}

#[test]
fn preempts_least_important_pod() {
    let mut cluster = cluster_with_classes(&["n1", "n2"]);
    cluster.pod("middle", json!({"memory": "6Gi", "priorityClassName": "middle"}));
    cluster.run_until(1.0);
    cluster.pod("low", json!({"memory": "6Gi", "priorityClassName": "low"}));
    cluster.run_until(2.0);
    assert_eq!([cluster.place("middle"), cluster.place("low")], ["n1", "n2"]);
    cluster.running("low");
    cluster.pod("high", json!({"memory": "4Gi", "priorityClassName": "high"}));
    cluster.run_until(2.1);
    let victim = cluster.get(Kind::Pod, "low").unwrap();
    let condition = victim.condition("DisruptionTarget").unwrap();
    assert_eq!(condition["reason"], "PreemptionByScheduler");
    assert_eq!(condition["message"], "default-scheduler: preempting to accommodate a higher priority pod");
    assert_eq!(victim["metadata"]["deletionGracePeriodSeconds"], 30);
    let high = cluster.get(Kind::Pod, "high").unwrap();
    assert_eq!(high["status"]["nominatedNodeName"], "n2");
    let uid = high["metadata"]["uid"].as_str().unwrap();
    assert_eq!(cluster.event_messages("Preempted"), [format!("low: Preempted by pod {uid} on node n2")]);
    assert_eq!(
        cluster.event_messages("FailedScheduling"),
        ["high: 0/2 nodes are available: 2 Insufficient memory."]
    );
    assert!(!cluster.get(Kind::Pod, "middle").unwrap()["metadata"]["deletionTimestamp"].is_string());
    // The nominated node is reserved: a pod that arrives during the backoff does not get it.
    cluster.finish("low");
    cluster.pod("late", json!({"memory": "5Gi", "priorityClassName": "low"}));
    cluster.run_until(2.5);
    assert_eq!([cluster.place("high"), cluster.place("late")], ["", ""]);
    cluster.run_until(10.0);
    assert_eq!([cluster.place("high"), cluster.place("late")], ["n2", ""]);
    assert!(cluster.get(Kind::Pod, "high").unwrap()["status"]["nominatedNodeName"].is_null());
}

#[test]
fn preempts_fewest_pods_on_node() {
    let mut cluster = cluster_with_classes(&["n1"]);
    cluster.pod("a", json!({"memory": "3Gi", "priorityClassName": "middle"}));
    cluster.pod("b", json!({"memory": "3Gi", "priorityClassName": "low"}));
    cluster.run_until(1.0);
    cluster.pod("c", json!({"memory": "4Gi", "priorityClassName": "high"}));
    cluster.run_until(2.0);
    assert_eq!(are_deleted(&cluster, ["a", "b"]), [false, true]);
}

#[test]
fn pod_with_preemption_policy_never_waits() {
    let mut cluster = TestCluster::with_nodes(&["n1"]);
    let class = json!({"metadata": {"name": "meek"}, "value": 100, "preemptionPolicy": "Never"});
    cluster.create(Kind::PriorityClass, "", class);
    cluster.pod("a", json!({"memory": "6Gi"}));
    cluster.run_until(1.0);
    cluster.pod("b", json!({"memory": "6Gi", "priorityClassName": "meek"}));
    cluster.run_until(2.0);
    assert_eq!(
        cluster.event_messages("FailedScheduling"),
        [
            "b: 0/1 nodes are available: 1 Insufficient memory. no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
        ]
    );
    // The end of a pod frees its resources.
    cluster.0.store.update(Kind::Pod, "default", "a", |pod| pod["status"]["phase"] = json!("Failed"));
    cluster.run_until(4.0);
    assert_eq!(cluster.place("b"), "n1");
}

/// A budget that allows one disruption protects the less important of two pods.
#[test]
fn budget_counts_victims() {
    let mut cluster = cluster_with_classes(&["n1"]);
    let spec = json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}});
    cluster.create(Kind::PodDisruptionBudget, "default", json!({"metadata": {"name": "b"}, "spec": spec}));
    for name in ["a", "b"] {
        cluster.pod(name, json!({"memory": "3Gi", "priorityClassName": "low"}));
    }
    cluster.run_until(1.0);
    cluster.running("a");
    cluster.running("b");
    cluster.run_until(2.0);
    cluster.pod("c", json!({"memory": "4Gi", "priorityClassName": "high"}));
    cluster.run_until(3.0);
    assert_eq!(are_deleted(&cluster, ["a", "b"]), [true, false]);
}

#[test]
fn pod_that_has_not_started_is_the_youngest() {
    let mut cluster = cluster_with_classes(&["n1"]);
    for name in ["a", "b"] {
        cluster.pod(name, json!({"memory": "3Gi", "priorityClassName": "low"}));
    }
    cluster.run_until(1.0);
    cluster.running("b");
    cluster.pod("c", json!({"memory": "4Gi", "priorityClassName": "high"}));
    cluster.run_until(2.0);
    assert_eq!(are_deleted(&cluster, ["a", "b"]), [true, false]);
}

#[test]
fn preempts_on_node_with_youngest_victim() {
    let mut cluster = cluster_with_classes(&["n1", "n2"]);
    for name in ["a", "b"] {
        cluster.pod(name, json!({"memory": "6Gi", "priorityClassName": "low"}));
        cluster.run_until(if name == "a" { 1.0 } else { 2.0 });
    }
    assert_eq!([cluster.place("a"), cluster.place("b")], ["n1", "n2"]);
    cluster.running("a");
    cluster.pod("c", json!({"memory": "4Gi", "priorityClassName": "high"}));
    cluster.run_until(3.0);
    assert_eq!(are_deleted(&cluster, ["a", "b"]), [false, true]);
}

#[test]
fn pods_that_violate_a_budget() {
    let a = || json!({"matchLabels": {"app": "a"}});
    let exists = || json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]});
    let gone = || json!({"matchExpressions": [{"key": "gone", "operator": "DoesNotExist"}]});
    let budget = |selector: Value, allowed: i32| json!({"spec": {"selector": selector}, "status": {"disruptionsAllowed": allowed}});
    let disrupted = |mut budget: Value, pod: &str| {
        budget["status"]["disruptedPods"] = json!({pod: "2026-01-01T00:00:00Z"});
        budget
    };
    for (budgets, violating) in [
        (vec![budget(a(), 0)], "1 2 3"),
        (vec![budget(a(), 1)], "2 3"),
        (vec![budget(a(), 3)], ""),
        // A pod counts in every budget.
        (vec![budget(a(), 1), budget(exists(), 2)], "2 3 other"),
        (vec![budget(exists(), 3), budget(a(), 0)], "1 2 3 other"),
        // Without a selector, with an empty one, and for a pod without labels.
        (vec![budget(Value::Null, 0), budget(json!({}), 0), budget(json!({"matchLabels": {}}), 0)], ""),
        (vec![budget(gone(), 0)], "1 2 3 other"),
        // The API server has counted the pod.
        (vec![disrupted(budget(a(), 1), "1")], "3"),
    ] {
        let mut cluster = TestCluster::new();
        for (index, mut object) in budgets.iter().cloned().enumerate() {
            object["metadata"] = json!({"name": format!("b{index}"), "namespace": "default"});
            cluster.0.store.create(Kind::PodDisruptionBudget, object, SimTime::ZERO).unwrap();
        }
        let pod = |name: &str, namespace: &str, labels: Value| PodInfo {
            pod: Arc::new(json!({"metadata": {"name": name, "namespace": namespace, "labels": labels}})),
            requests: PodRequests::default(),
        };
        let pods = vec![
            pod("1", "default", json!({"app": "a"})),
            pod("2", "default", json!({"app": "a"})),
            pod("3", "default", json!({"app": "a"})),
            pod("other", "default", json!({"app": "b"})),
            pod("unlabelled", "default", Value::Null),
            pod("elsewhere", "kube-system", json!({"app": "a"})),
        ];
        let (split, _) = cluster.0.with_context(|ctx| split_by_budget(pods, ctx));
        let names: Vec<_> = split.iter().map(|pod_info| pod_info.pod.name()).collect();
        assert_eq!(names.join(" "), violating, "{budgets:?}");
    }
}
