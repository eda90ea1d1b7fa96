//! Controllers at work on pods whose states the tests tell.

use serde_json::{Value, json};

use super::super::tests::Bench;
use super::job::is_tracked;
use crate::registry::{self, DeleteOptions, Propagation, Update};
use crate::store::Kind;

impl Bench {
    /// With a node that has room for 100 pods.
    fn roomy() -> Self {
        let mut bench = Self::with_nodes(&["n1"]);
        bench.0.store.update(Kind::Node, "", "n1", |node| {
            node["status"]["allocatable"]["pods"] = json!("100");
        });
        bench
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

    /// The pods of an app, as they were made.
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

    /// All pods of an app run.
    fn all_run(&mut self, app: &str) {
        for pod in self.names(app) {
            let ended = super::super::has_ended(self.get(Kind::Pod, &pod).unwrap());
            if !ended {
                self.running(&pod);
            }
        }
    }

    /// A pod has ended, now.
    fn end(&mut self, pod: &str, phase: &str, code: i64) {
        let now = self.0.store.epoch.seconds(self.0.now);
        self.0.store.update(Kind::Pod, "default", pod, |pod| {
            pod["status"]["phase"] = json!(phase);
            pod["status"]["containerStatuses"] =
                json!([{"name": "c", "state": {"terminated": {"exitCode": code, "finishedAt": now}}}]);
        });
    }

    fn delete(&mut self, kind: Kind, name: &str, propagation: Option<Propagation>) {
        let how = DeleteOptions { propagation, ..DeleteOptions::default() };
        self.0.with(|_, _, ctx| registry::delete(ctx, kind, "default", name, how)).unwrap();
    }

    fn change(&mut self, kind: Kind, name: &str, change: impl FnOnce(&mut Value)) {
        let mut object = self.get(kind, name).unwrap().clone();
        change(&mut object);
        self.0
            .with(|_, _, ctx| registry::update(ctx, kind, "default", name, object, Update::default()))
            .unwrap();
    }

    fn set_of(&self, deployment: &str) -> Vec<&Value> {
        let all = self.0.store.list(Kind::ReplicaSet, Some("default"));
        all.map(|set| &**set)
            .filter(|set| set["metadata"]["ownerReferences"][0]["name"] == deployment)
            .collect()
    }

    /// The conditions of an object that are true, with their reasons.
    fn conditions(&self, kind: Kind, name: &str) -> Vec<(String, String)> {
        let all = self.get(kind, name).unwrap()["status"]["conditions"].as_array().into_iter().flatten();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        all.filter(|one| one["status"] == "True")
            .map(|one| (text(&one["type"]), text(&one["reason"])))
            .collect()
    }
}

#[test]
fn a_deployment_makes_a_set_and_that_its_pods() {
    let mut bench = Bench::roomy();
    bench.make(Kind::Deployment, "d", json!({"replicas": 2}));
    bench.run_until(1.0);
    let set = bench.set_of("d")[0].clone();
    let (set_name, hash) = (&set["metadata"]["name"], &set["metadata"]["labels"]["pod-template-hash"]);
    assert_eq!(*set_name, format!("d-{}", hash.as_str().unwrap()));
    assert_eq!(set["spec"]["selector"]["matchLabels"]["pod-template-hash"], *hash);
    let pods = bench.pods("d");
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
    let told = format!("d: Scaled up replica set {} from 0 to 2", set_name.as_str().unwrap());
    assert_eq!(bench.told("ScalingReplicaSet"), [told]);
    assert_eq!(bench.told("SuccessfulCreate").len(), 2);
    let reasons = |bench: &Bench| {
        bench.conditions(Kind::Deployment, "d").into_iter().map(|(_, reason)| reason).collect::<Vec<_>>()
    };
    assert_eq!(reasons(&bench), ["ReplicaSetUpdated"]);
    bench.all_run("d");
    bench.run_until(2.0);
    assert_eq!(reasons(&bench), ["MinimumReplicasAvailable", "NewReplicaSetAvailable"]);
    let status = &bench.get(Kind::Deployment, "d").unwrap()["status"];
    for field in ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"] {
        assert_eq!(status[field], 2, "{field}");
    }
    // Nothing changes what has come to rest.
    let version = bench.0.store.version();
    bench.run_until(4.0);
    assert_eq!(bench.0.store.version(), version);
}

#[test]
fn a_pod_that_failed_is_replaced_and_stays() {
    let mut bench = Bench::roomy();
    bench.make(Kind::ReplicaSet, "r", json!({}));
    bench.run_until(1.0);
    bench.all_run("r");
    let first = bench.names("r")[0].clone();
    bench.0.store.update(Kind::Pod, "default", &first, |pod| {
        pod["status"]["phase"] = json!("Failed");
        pod["status"]["reason"] = json!("Evicted");
    });
    bench.run_until(2.0);
    assert_eq!(bench.names("r").len(), 2);
    assert!(bench.names("r").contains(&first));
    assert_eq!(bench.get(Kind::ReplicaSet, "r").unwrap()["status"]["replicas"], 1);
    // One that is about to go is replaced before it has gone.
    let second = bench.names("r").into_iter().find(|name| *name != first).unwrap();
    bench.running(&second);
    bench.delete(Kind::Pod, &second, None);
    bench.run_until(3.0);
    assert_eq!(bench.names("r").len(), 3);
    assert_eq!(bench.get(Kind::ReplicaSet, "r").unwrap()["status"]["terminatingReplicas"], 1);
}

#[test]
fn a_new_template_rolls_out_without_leaving_too_few() {
    let mut bench = Bench::roomy();
    bench.make(Kind::Deployment, "d", json!({"replicas": 4}));
    bench.run_until(1.0);
    bench.all_run("d");
    bench.run_until(2.0);
    bench.change(Kind::Deployment, "d", |d| {
        d["spec"]["template"]["spec"]["containers"][0]["image"] = json!("j")
    });
    bench.run_until(3.0);
    let sizes = |bench: &Bench| {
        let mut sizes: Vec<_> = bench
            .set_of("d")
            .iter()
            .map(|set| {
                let image = set["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap();
                (image.to_owned(), set["spec"]["replicas"].as_i64().unwrap())
            })
            .collect();
        sizes.sort();
        sizes
    };
    // A quarter more and a quarter less.
    assert_eq!(sizes(&bench), [("i".to_owned(), 3), ("j".to_owned(), 2)]);
    let doomed: Vec<String> = bench.names("d").into_iter().collect();
    for second in 4..9 {
        bench.all_run("d");
        bench.run_until(f64::from(second));
    }
    assert_eq!(sizes(&bench), [("i".to_owned(), 0), ("j".to_owned(), 4)]);
    assert!(!doomed.is_empty());
    assert_eq!(
        bench.get(Kind::Deployment, "d").unwrap()["metadata"]["annotations"]["deployment.kubernetes.io/revision"],
        "2"
    );
    // Back to the first.
    bench.change(Kind::Deployment, "d", |d| {
        d["spec"]["template"]["spec"]["containers"][0]["image"] = json!("i")
    });
    bench.run_until(10.0);
    assert_eq!(bench.set_of("d").len(), 2);
    assert_eq!(sizes(&bench)[0].1, 2);
}

#[test]
fn what_is_owned_goes_with_its_owner() {
    let mut bench = Bench::roomy();
    bench.make(Kind::Deployment, "d", json!({}));
    bench.make(Kind::ReplicaSet, "r", json!({}));
    bench.job("j", json!({}));
    bench.run_until(1.0);
    bench.delete(Kind::Deployment, "d", None);
    bench.delete(Kind::ReplicaSet, "r", Some(Propagation::Orphan));
    bench.delete(Kind::Job, "j", None);
    bench.run_until(1.5);
    assert!(bench.get(Kind::Deployment, "d").is_none() && bench.set_of("d").is_empty());
    assert!(bench.pods("d")[0]["metadata"]["deletionTimestamp"].is_string());
    assert!(bench.get(Kind::ReplicaSet, "r").is_none());
    // Jobs leave their pods if nobody says otherwise.
    for app in ["r", "j"] {
        let pod = bench.pods(app)[0];
        assert!(pod["metadata"]["deletionTimestamp"].is_null() && !is_tracked(pod), "{app}");
        assert!(pod["metadata"]["ownerReferences"].as_array().is_none_or(Vec::is_empty), "{app}");
    }
    // In the foreground, the owner waits.
    bench.make(Kind::ReplicaSet, "s", json!({}));
    bench.run_until(2.0);
    bench.delete(Kind::ReplicaSet, "s", Some(Propagation::Foreground));
    bench.run_until(3.0);
    assert!(bench.get(Kind::ReplicaSet, "s").is_some());
    let pod = bench.names("s").remove(0);
    assert!(bench.pods("s")[0]["metadata"]["deletionTimestamp"].is_string());
    bench.finish(&pod);
    bench.run_until(4.0);
    assert!(bench.get(Kind::ReplicaSet, "s").is_none() && bench.pods("s").is_empty());
}

#[test]
fn a_namespace_takes_its_workloads_along() {
    let mut bench = Bench::roomy();
    bench.create(Kind::Namespace, "", json!({"metadata": {"name": "x"}}));
    bench.run_until(0.1);
    let template = |policy: &str| json!({"metadata": {"labels": {"app": "a"}}, "spec": {"restartPolicy": policy, "containers": [{"name": "c", "image": "i"}]}});
    let selector = json!({"matchLabels": {"app": "a"}});
    for (kind, spec) in [
        (Kind::Deployment, json!({"selector": selector, "template": template("Always")})),
        (Kind::Job, json!({"template": template("Never")})),
    ] {
        bench.create(kind, "x", json!({"metadata": {"name": "a"}, "spec": spec}));
    }
    bench.run_until(1.0);
    assert_eq!(bench.0.store.list(Kind::Pod, Some("x")).count(), 2);
    bench
        .0
        .with(|_, _, ctx| registry::delete(ctx, Kind::Namespace, "", "x", DeleteOptions::default()))
        .unwrap();
    bench.run_until(2.0);
    let pods: Vec<_> = bench.0.store.list(Kind::Pod, Some("x")).cloned().collect();
    for pod in pods {
        let text = |field: &str| pod["metadata"][field].as_str().unwrap().to_owned();
        bench.0.with(|_, _, ctx| registry::finish_pod(ctx, "x", &text("name"), &text("uid")));
    }
    bench.run_until(8.0);
    assert!(bench.get(Kind::Namespace, "x").is_none());
    assert!(bench.told("FailedCreate").is_empty());
}

#[test]
fn a_job_replaces_what_failed_later_each_time_and_then_fails() {
    let mut bench = Bench::roomy();
    bench.job("j", json!({"backoffLimit": 1}));
    bench.run_until(2.5);
    let first = bench.names("j").remove(0);
    assert!(is_tracked(bench.pods("j")[0]));
    bench.running(&first);
    bench.end(&first, "Failed", 3);
    bench.run_until(9.0);
    assert_eq!(bench.names("j").len(), 1);
    assert_eq!(bench.get(Kind::Job, "j").unwrap()["status"]["failed"], 1);
    assert!(!is_tracked(bench.pods("j")[0]), "it is counted");
    bench.run_until(14.0);
    assert_eq!(bench.names("j").len(), 2, "10 s after the failure");
    let second = bench.names("j").into_iter().find(|name| *name != first).unwrap();
    bench.end(&second, "Failed", 3);
    bench.run_until(60.0);
    assert_eq!(bench.names("j").len(), 2);
    let text = |kind: &str| (kind.to_owned(), "BackoffLimitExceeded".to_owned());
    assert_eq!(bench.conditions(Kind::Job, "j"), [text("FailureTarget"), text("Failed")]);
    assert_eq!(bench.told("BackoffLimitExceeded"), ["j: Job has reached the specified backoff limit"]);
}

#[test]
fn a_job_is_complete_when_enough_have_succeeded() {
    let mut bench = Bench::roomy();
    bench.job("j", json!({"completions": 3, "parallelism": 2, "ttlSecondsAfterFinished": 30}));
    bench.run_until(1.0);
    assert_eq!(bench.names("j").len(), 2);
    for round in 1..4 {
        for pod in bench.names("j") {
            bench.end(&pod, "Succeeded", 0);
        }
        bench.run_until(1.0 + 3.0 * f64::from(round));
    }
    assert_eq!(bench.names("j").len(), 3);
    let job = bench.get(Kind::Job, "j").unwrap();
    assert_eq!((&job["status"]["succeeded"], &job["status"]["active"]), (&json!(3), &Value::Null));
    assert!(job["status"]["completionTime"].is_string());
    let text = |kind: &str| (kind.to_owned(), "CompletionsReached".to_owned());
    assert_eq!(bench.conditions(Kind::Job, "j"), [text("SuccessCriteriaMet"), text("Complete")]);
    assert_eq!(bench.told("Completed"), ["j: Job completed"]);
    // Deleted in the foreground; the pods have ended, so they go at once.
    bench.run_until(60.0);
    assert!(bench.get(Kind::Job, "j").is_none() && bench.pods("j").is_empty());
}

#[test]
fn a_failure_policy_tells_disruptions_and_exit_codes_apart() {
    let mut bench = Bench::roomy();
    let policy = json!({"rules": [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
        {"action": "FailJob", "onExitCodes": {"containerName": "c", "operator": "In", "values": [42]}},
    ]});
    bench.job("j", json!({"backoffLimit": 0, "podFailurePolicy": policy}));
    bench.run_until(1.0);
    let first = bench.names("j").remove(0);
    bench.0.store.update(Kind::Pod, "default", &first, |pod| {
        pod["status"]["conditions"] = json!([{"type": "DisruptionTarget", "status": "True"}]);
    });
    bench.end(&first, "Failed", 137);
    bench.run_until(15.0);
    assert_eq!(bench.names("j").len(), 2, "ignored, and replaced");
    assert!(bench.get(Kind::Job, "j").unwrap()["status"]["failed"].is_null());
    let second = bench.names("j").into_iter().find(|name| *name != first).unwrap();
    bench.end(&second, "Failed", 42);
    bench.run_until(40.0);
    let text = |kind: &str| (kind.to_owned(), "PodFailurePolicy".to_owned());
    assert_eq!(bench.conditions(Kind::Job, "j"), [text("FailureTarget"), text("Failed")]);
    let message = format!(
        "j: Container c for pod default/{second} failed with exit code 42 matching FailJob rule at index 1"
    );
    assert_eq!(bench.told("PodFailurePolicy"), [message]);
    assert_eq!(bench.names("j").len(), 2);
}

#[test]
fn a_job_that_has_failed_waits_for_its_last_pod() {
    let mut bench = Bench::roomy();
    bench.job("j", json!({"backoffLimit": 0, "parallelism": 2, "completions": 2}));
    bench.run_until(2.0);
    bench.all_run("j");
    let [first, second] = bench.names("j").try_into().unwrap();
    bench.end(&first, "Failed", 1);
    bench.run_until(5.0);
    assert_eq!(bench.conditions(Kind::Job, "j").len(), 1, "FailureTarget");
    assert!(bench.get(Kind::Pod, &second).unwrap()["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(bench.get(Kind::Job, "j").unwrap()["status"]["terminating"], 1);
    bench.end(&second, "Failed", 143);
    bench.finish(&second);
    bench.run_until(8.0);
    assert_eq!(bench.conditions(Kind::Job, "j").len(), 2, "Failed");
    assert_eq!(bench.get(Kind::Job, "j").unwrap()["status"]["failed"], 2);
}

#[test]
fn a_budget_counts_what_a_deployment_wants() {
    let mut bench = Bench::roomy();
    let budget = json!({
        "metadata": {"name": "b"},
        "spec": {"maxUnavailable": "50%", "selector": {"matchLabels": {"app": "d"}}},
    });
    bench.create(Kind::PodDisruptionBudget, "default", budget);
    bench.make(Kind::Deployment, "d", json!({"replicas": 3}));
    bench.run_until(1.0);
    bench.all_run("d");
    bench.run_until(2.0);
    let status = &bench.get(Kind::PodDisruptionBudget, "b").unwrap()["status"];
    let counts = ["currentHealthy", "desiredHealthy", "expectedPods", "disruptionsAllowed"];
    assert_eq!(counts.map(|field| status[field].as_i64().unwrap()), [3, 1, 3, 2]);
}
