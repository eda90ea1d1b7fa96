//! Workload controllers; tests write the statuses of pods.

use serde_json::{Value, json};

use super::super::tests::TestCluster;
use crate::apiserver::{self, DeleteOptions, FieldValidation, ObjectPath};
use crate::resource::{Kind, ObjectExt};

impl TestCluster {
    /// Creates a cluster with a node that has room for 100 pods.
    fn roomy() -> Self {
        let mut cluster = Self::with_nodes(&["n1"]);
        cluster.0.store.update(Kind::Node, "", "n1", |node| {
            node["status"]["allocatable"]["pods"] = json!("100");
        });
        cluster
    }

    fn make(&mut self, kind: Kind, name: &str, mut spec: Value) {
        if kind != Kind::Job {
            spec["selector"] = json!({"matchLabels": {"app": name}});
        }
        spec["template"]["metadata"]["labels"]["app"] = json!(name);
        spec["template"]["spec"]["containers"] = json!([{"name": "c", "image": "i"}]);
        self.create(kind, "default", json!({"metadata": {"name": name}, "spec": spec}));
    }

    fn job(&mut self, name: &str, mut spec: Value) {
        spec["template"]["spec"]["restartPolicy"] = json!("Never");
        self.make(Kind::Job, name, spec);
    }

    /// Returns the pods of an app in the order of creation.
    fn pods(&self, app: &str) -> Vec<&Value> {
        let all = self.0.store.list(Kind::Pod, Some("default"));
        let mut all: Vec<&Value> =
            all.map(|pod| &**pod).filter(|pod| pod["metadata"]["labels"]["app"] == app).collect();
        all.sort_by_key(|pod| pod["metadata"]["creationTimestamp"].to_string());
        all
    }

    fn names(&self, app: &str) -> Vec<String> {
        let name = |pod: &&Value| pod["metadata"]["name"].as_str().unwrap().to_owned();
        self.pods(app).iter().map(name).collect()
    }

    /// Sets all pods of an app to running.
    fn all_run(&mut self, app: &str) {
        for pod in self.names(app) {
            let ended = self.get(Kind::Pod, &pod).unwrap().is_terminal();
            if !ended {
                self.running(&pod);
            }
        }
    }

    /// Ends a pod now.
    fn end(&mut self, pod: &str, phase: &str, code: i64) {
        let now = self.0.store.epoch.rfc3339_seconds(self.0.now);
        self.0.store.update(Kind::Pod, "default", pod, |pod| {
            pod["status"]["phase"] = json!(phase);
            pod["status"]["containerStatuses"] =
                json!([{"name": "c", "state": {"terminated": {"exitCode": code, "finishedAt": now}}}]);
        });
    }

    fn delete(&mut self, kind: Kind, name: &str, foreground: bool) {
        let how = DeleteOptions { foreground, ..DeleteOptions::default() };
        self.0.with_context(|ctx| apiserver::delete(ctx, kind, "default", name, how)).unwrap();
    }

    fn change(&mut self, kind: Kind, name: &str, change: impl FnOnce(&mut Value)) {
        let mut object = self.get(kind, name).unwrap().clone();
        change(&mut object);
        let path = ObjectPath { kind, namespace: "default", name };
        self.0.with_context(|ctx| apiserver::update(ctx, path, object, FieldValidation::default())).unwrap();
    }

    fn set_of(&self, deployment: &str) -> Vec<&Value> {
        let all = self.0.store.list(Kind::ReplicaSet, Some("default"));
        all.map(|set| &**set)
            .filter(|set| set["metadata"]["ownerReferences"][0]["name"] == deployment)
            .collect()
    }

    /// Returns type and reason of the conditions that are true.
    fn conditions(&self, kind: Kind, name: &str) -> Vec<(String, String)> {
        let all = self.get(kind, name).unwrap()["status"]["conditions"].as_array().into_iter().flatten();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        all.filter(|one| one["status"] == "True")
            .map(|one| (text(&one["type"]), text(&one["reason"])))
            .collect()
    }
}

#[test]
fn deployment_creates_replica_set_and_pods() {
    let mut cluster = TestCluster::roomy();
    cluster.make(Kind::Deployment, "d", json!({"replicas": 2}));
    cluster.run_until(1.0);
    let set = cluster.set_of("d")[0].clone();
    let (set_name, hash) = (&set["metadata"]["name"], &set["metadata"]["labels"]["pod-template-hash"]);
    assert_eq!(*set_name, format!("d-{}", hash.as_str().unwrap()));
    assert_eq!(set["spec"]["selector"]["matchLabels"]["pod-template-hash"], *hash);
    let pods = cluster.pods("d");
    assert_eq!(pods.len(), 2);
    for pod in pods {
        assert_eq!(pod["metadata"]["labels"]["pod-template-hash"], *hash);
        let owner = &pod["metadata"]["ownerReferences"][0];
        assert_eq!((&owner["kind"], &owner["uid"]), (&json!("ReplicaSet"), &set["metadata"]["uid"]));
        assert!(
            pod["metadata"]["name"]
                .as_str()
                .unwrap()
                .starts_with(&format!("{}-", set_name.as_str().unwrap()))
        );
        assert_eq!(pod["spec"]["nodeName"], "n1");
    }
    let message = format!("d: Scaled up replica set {} from 0 to 2", set_name.as_str().unwrap());
    assert_eq!(cluster.event_messages("ScalingReplicaSet"), [message]);
    assert_eq!(cluster.event_messages("SuccessfulCreate").len(), 2);
    assert!(cluster.conditions(Kind::Deployment, "d").is_empty());
    cluster.all_run("d");
    cluster.run_until(2.0);
    let available = ("Available".to_owned(), "MinimumReplicasAvailable".to_owned());
    assert_eq!(cluster.conditions(Kind::Deployment, "d"), [available]);
    let status = &cluster.get(Kind::Deployment, "d").unwrap()["status"];
    for field in ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"] {
        assert_eq!(status[field], 2, "{field}");
    }
    // A steady state causes no changes.
    let version = cluster.0.store.version();
    cluster.run_until(4.0);
    assert_eq!(cluster.0.store.version(), version);
}

#[test]
fn replaces_and_keeps_failed_pod() {
    let mut cluster = TestCluster::roomy();
    cluster.make(Kind::ReplicaSet, "r", json!({}));
    cluster.run_until(1.0);
    cluster.all_run("r");
    let first = cluster.names("r")[0].clone();
    cluster.0.store.update(Kind::Pod, "default", &first, |pod| {
        pod["status"]["phase"] = json!("Failed");
        pod["status"]["reason"] = json!("Evicted");
    });
    cluster.run_until(2.0);
    assert_eq!(cluster.names("r").len(), 2);
    assert!(cluster.names("r").contains(&first));
    assert_eq!(cluster.get(Kind::ReplicaSet, "r").unwrap()["status"]["replicas"], 1);
    // A pod that is being deleted is replaced at once.
    let second = cluster.names("r").into_iter().find(|name| *name != first).unwrap();
    cluster.running(&second);
    cluster.delete(Kind::Pod, &second, false);
    cluster.run_until(3.0);
    assert_eq!(cluster.names("r").len(), 3);
    assert_eq!(cluster.get(Kind::ReplicaSet, "r").unwrap()["status"]["terminatingReplicas"], 1);
}

#[test]
fn deployment_replaces_replica_set_of_old_template() {
    let mut cluster = TestCluster::roomy();
    cluster.make(Kind::Deployment, "d", json!({"replicas": 2}));
    cluster.run_until(1.0);
    cluster.change(Kind::Deployment, "d", |d| {
        d["spec"]["template"]["spec"]["containers"][0]["image"] = json!("j")
    });
    cluster.run_until(2.0);
    let mut sizes: Vec<_> = cluster
        .set_of("d")
        .iter()
        .map(|set| {
            let image = set["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap();
            (image, set["spec"]["replicas"].as_i64().unwrap())
        })
        .collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [("i", 0), ("j", 2)]);
}

#[test]
fn deletes_dependents_by_propagation_policy() {
    let mut cluster = TestCluster::roomy();
    cluster.make(Kind::Deployment, "d", json!({}));
    cluster.run_until(1.0);
    cluster.delete(Kind::Deployment, "d", false);
    cluster.run_until(1.5);
    assert!(cluster.get(Kind::Deployment, "d").is_none() && cluster.set_of("d").is_empty());
    assert!(cluster.pods("d")[0]["metadata"]["deletionTimestamp"].is_string());
    // With foreground deletion, the owner waits for its dependents.
    cluster.make(Kind::ReplicaSet, "s", json!({}));
    cluster.run_until(2.0);
    cluster.delete(Kind::ReplicaSet, "s", true);
    cluster.run_until(3.0);
    assert!(cluster.get(Kind::ReplicaSet, "s").is_some());
    let pod = cluster.names("s").remove(0);
    assert!(cluster.pods("s")[0]["metadata"]["deletionTimestamp"].is_string());
    cluster.finish(&pod);
    cluster.run_until(4.0);
    assert!(cluster.get(Kind::ReplicaSet, "s").is_none() && cluster.pods("s").is_empty());
}

#[test]
fn namespace_deletion_removes_workloads() {
    let mut cluster = TestCluster::roomy();
    cluster.create(Kind::Namespace, "", json!({"metadata": {"name": "x"}}));
    cluster.run_until(0.1);
    let template = |policy: &str| json!({"metadata": {"labels": {"app": "a"}}, "spec": {"restartPolicy": policy, "containers": [{"name": "c", "image": "i"}]}});
    let selector = json!({"matchLabels": {"app": "a"}});
    for (kind, spec) in [
        (Kind::Deployment, json!({"selector": selector, "template": template("Always")})),
        (Kind::Job, json!({"template": template("Never")})),
    ] {
        cluster.create(kind, "x", json!({"metadata": {"name": "a"}, "spec": spec}));
    }
    cluster.run_until(1.0);
    assert_eq!(cluster.0.store.list(Kind::Pod, Some("x")).count(), 2);
    cluster
        .0
        .with_context(|ctx| apiserver::delete(ctx, Kind::Namespace, "", "x", DeleteOptions::default()))
        .unwrap();
    cluster.run_until(2.0);
    let pods: Vec<_> = cluster.0.store.list(Kind::Pod, Some("x")).cloned().collect();
    for pod in pods {
        let text = |field: &str| pod["metadata"][field].as_str().unwrap().to_owned();
        cluster.0.with_context(|ctx| apiserver::finish_pod_deletion(ctx, "x", &text("name"), &text("uid")));
    }
    cluster.run_until(8.0);
    assert!(cluster.get(Kind::Namespace, "x").is_none());
    assert!(cluster.event_messages("FailedCreate").is_empty());
}

#[test]
fn job_retries_with_backoff_and_fails() {
    let mut cluster = TestCluster::roomy();
    cluster.job("j", json!({"backoffLimit": 1}));
    cluster.run_until(2.5);
    let first = cluster.names("j").remove(0);
    cluster.running(&first);
    cluster.end(&first, "Failed", 3);
    cluster.run_until(9.0);
    assert_eq!(cluster.names("j").len(), 1);
    assert_eq!(cluster.get(Kind::Job, "j").unwrap()["status"]["failed"], 1);
    cluster.run_until(14.0);
    assert_eq!(cluster.names("j").len(), 2, "10 s after the failure");
    let second = cluster.names("j").into_iter().find(|name| *name != first).unwrap();
    cluster.end(&second, "Failed", 3);
    cluster.run_until(60.0);
    assert_eq!(cluster.names("j").len(), 2);
    let failed = ("Failed".to_owned(), "BackoffLimitExceeded".to_owned());
    assert_eq!(cluster.conditions(Kind::Job, "j"), [failed]);
    assert_eq!(
        cluster.event_messages("BackoffLimitExceeded"),
        ["j: Job has reached the specified backoff limit"]
    );
}

#[test]
fn job_completes_after_enough_successes() {
    let mut cluster = TestCluster::roomy();
    cluster.job("j", json!({"completions": 3, "parallelism": 2}));
    cluster.run_until(1.0);
    assert_eq!(cluster.names("j").len(), 2);
    for round in 1..4 {
        for pod in cluster.names("j") {
            cluster.end(&pod, "Succeeded", 0);
        }
        cluster.run_until(1.0 + 3.0 * f64::from(round));
    }
    assert_eq!(cluster.names("j").len(), 3);
    let job = cluster.get(Kind::Job, "j").unwrap();
    assert_eq!((&job["status"]["succeeded"], &job["status"]["active"]), (&json!(3), &Value::Null));
    assert!(job["status"]["completionTime"].is_string());
    let complete = ("Complete".to_owned(), "CompletionsReached".to_owned());
    assert_eq!(cluster.conditions(Kind::Job, "j"), [complete]);
    assert_eq!(cluster.event_messages("Completed"), ["j: Job completed"]);
}

#[test]
fn job_failure_policy_ignores_disruptions() {
    let mut cluster = TestCluster::roomy();
    let policy = json!({"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]});
    cluster.job("j", json!({"backoffLimit": 0, "podFailurePolicy": policy}));
    cluster.run_until(1.0);
    let first = cluster.names("j").remove(0);
    cluster.0.store.update(Kind::Pod, "default", &first, |pod| {
        pod["status"]["conditions"] = json!([{"type": "DisruptionTarget", "status": "True"}]);
    });
    cluster.end(&first, "Failed", 137);
    cluster.run_until(15.0);
    assert_eq!(cluster.names("j").len(), 2, "ignored, and replaced");
    assert!(cluster.get(Kind::Job, "j").unwrap()["status"]["failed"].is_null());
    let second = cluster.names("j").into_iter().find(|name| *name != first).unwrap();
    cluster.end(&second, "Failed", 42);
    cluster.run_until(40.0);
    let failed = ("Failed".to_owned(), "BackoffLimitExceeded".to_owned());
    assert_eq!(cluster.conditions(Kind::Job, "j"), [failed]);
    assert_eq!(cluster.names("j").len(), 2);
}

#[test]
fn a_job_without_pods_fails_at_its_deadline_and_is_deleted_with_what_it_owns() {
    let mut cluster = TestCluster::roomy();
    cluster.job("j", json!({"parallelism": 0, "activeDeadlineSeconds": 20, "ttlSecondsAfterFinished": 5}));
    cluster.make(Kind::Deployment, "d", json!({"replicas": 2}));
    let owner = json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "j",
        "uid": cluster.get(Kind::Job, "j").unwrap()["metadata"]["uid"]}]);
    cluster.0.store.update(Kind::Deployment, "default", "d", |deployment| {
        deployment["metadata"]["ownerReferences"] = owner.clone();
    });
    cluster.run_until(18.0);
    assert_eq!((cluster.names("d").len(), cluster.names("j").len()), (2, 0));
    assert!(cluster.conditions(Kind::Job, "j").is_empty());
    cluster.run_until(22.0);
    let failed = ("Failed".to_owned(), "DeadlineExceeded".to_owned());
    assert_eq!(cluster.conditions(Kind::Job, "j"), [failed]);
    assert_eq!(
        cluster.event_messages("DeadlineExceeded"),
        ["j: Job was active longer than specified deadline"]
    );
    assert!(cluster.get(Kind::Deployment, "d").is_some(), "until the time to live is over");
    cluster.run_until(30.0);
    assert!(cluster.get(Kind::Job, "j").is_none() && cluster.get(Kind::Deployment, "d").is_none());
}

#[test]
fn failed_job_deletes_its_other_pods() {
    let mut cluster = TestCluster::roomy();
    cluster.job("j", json!({"backoffLimit": 0, "parallelism": 2, "completions": 2}));
    cluster.run_until(2.0);
    cluster.all_run("j");
    let [first, second] = cluster.names("j").try_into().unwrap();
    cluster.end(&first, "Failed", 1);
    cluster.run_until(5.0);
    assert_eq!(cluster.conditions(Kind::Job, "j").len(), 1, "Failed");
    assert!(cluster.get(Kind::Pod, &second).unwrap()["metadata"]["deletionTimestamp"].is_string());
    let status = &cluster.get(Kind::Job, "j").unwrap()["status"];
    assert_eq!((&status["terminating"], &status["failed"]), (&json!(1), &json!(2)));
}

#[test]
fn disruption_budget_uses_deployment_replicas() {
    let mut cluster = TestCluster::roomy();
    let budget = json!({
        "metadata": {"name": "b"},
        "spec": {"maxUnavailable": "50%", "selector": {"matchLabels": {"app": "d"}}},
    });
    cluster.create(Kind::PodDisruptionBudget, "default", budget);
    cluster.make(Kind::Deployment, "d", json!({"replicas": 3}));
    cluster.run_until(1.0);
    cluster.all_run("d");
    cluster.run_until(2.0);
    let status = &cluster.get(Kind::PodDisruptionBudget, "b").unwrap()["status"];
    let counts = ["currentHealthy", "desiredHealthy", "expectedPods", "disruptionsAllowed"];
    assert_eq!(counts.map(|field| status[field].as_i64().unwrap()), [3, 1, 3, 2]);
}
