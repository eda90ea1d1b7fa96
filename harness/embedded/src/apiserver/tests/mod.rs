//! Tests against the behaviour and the messages of a real API server.

mod recordings;

use std::sync::Arc;
use std::time::Duration;

use rand_chacha::rand_core::SeedableRng;
use serde_json::{Value, json};

use super::*;
use crate::context::SimContext;
use crate::fault::ActiveFaults;
use crate::resource::{Kind, ObjectExt, Scope};
use crate::sim::{Epoch, Rng, Sequence, SimTime};
use crate::storage::Store;

/// A store without controllers and kubelets.
struct Bench {
    store: Store,
    sequence: Sequence,
    rng: Rng,
    faults: ActiveFaults,
}

impl Bench {
    /// Creates a node of a kubelet version, and the namespace `default` with its service account.
    fn new(version: &str) -> Self {
        let epoch = Epoch("2026-01-01T00:00:00Z".parse().unwrap());
        let mut bench = Self {
            store: Store::new(1, epoch),
            sequence: Sequence::default(),
            rng: Rng::seed_from_u64(1),
            faults: ActiveFaults::default(),
        };
        let node = json!({
            "metadata": {"name": "n1"},
            "status": {"nodeInfo": {"kubeletVersion": version}},
        });
        bench.store.create(Kind::Node, node, SimTime::ZERO).unwrap();
        bench.create(Kind::Namespace, "", json!({"metadata": {"name": "default"}})).unwrap();
        bench.create(Kind::ServiceAccount, "default", json!({"metadata": {"name": "default"}})).unwrap();
        bench
    }

    fn ctx(&mut self) -> SimContext<'_> {
        SimContext {
            now: SimTime::ZERO,
            store: &mut self.store,
            sequence: &mut self.sequence,
            rng: &mut self.rng,
            faults: &mut self.faults,
        }
    }

    fn create(&mut self, kind: Kind, namespace: &str, object: Value) -> Result<Arc<Value>, Status> {
        create(&mut self.ctx(), kind, namespace, object, FieldValidation::default())
            .map(|stored| stored.object)
    }

    fn pod(&mut self, name: &str, spec: Value) -> Result<Arc<Value>, Status> {
        self.create(Kind::Pod, "default", pod(name, spec))
    }

    fn delete(&mut self, kind: Kind, name: &str, grace: Option<u64>) -> Result<DeleteResult, Status> {
        let namespace = if kind.scope() == Scope::Cluster { "" } else { "default" };
        delete(&mut self.ctx(), kind, namespace, name, DeleteOptions { grace, ..DeleteOptions::default() })
    }

    fn update(
        &mut self,
        kind: Kind,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) -> Result<Arc<Value>, Status> {
        let namespace = if kind.scope() == Scope::Cluster { "" } else { "default" };
        let mut object = Value::clone(self.store.get(kind, namespace, name).unwrap());
        change(&mut object);
        let path = ObjectPath { kind, namespace, name };
        update(&mut self.ctx(), path, object, FieldValidation::default()).map(|stored| stored.object)
    }

    /// Sets the status of a running pod.
    fn running(&mut self, name: &str, ready: &str) {
        self.store.update(Kind::Pod, "default", name, |pod| {
            pod["spec"]["nodeName"] = json!("n1");
            pod["status"]["phase"] = json!("Running");
            pod["status"]["conditions"] = json!([{"type": "Ready", "status": ready}]);
        });
    }

    fn evict(&mut self, name: &str) -> Result<Value, Status> {
        evict(&mut self.ctx(), "default", name, &json!({"metadata": {"name": name}}))
    }

    fn budget(&mut self, name: &str, current: i64, desired: i64) {
        let budget = json!({
            "metadata": {"name": name},
            "spec": {"minAvailable": desired, "selector": {"matchLabels": {"app": "a"}}},
        });
        self.create(Kind::PodDisruptionBudget, "default", budget).unwrap();
        self.store.update(Kind::PodDisruptionBudget, "default", name, |budget| {
            budget["status"] = json!({
                "currentHealthy": current,
                "desiredHealthy": desired,
                "disruptionsAllowed": (current - desired).max(0),
                "observedGeneration": 1,
            });
        });
    }
}

fn pod(name: &str, mut spec: Value) -> Value {
    if spec["containers"].is_null() {
        spec["containers"] = json!([{"name": "c", "image": "pause:3"}]);
    }
    json!({"metadata": {"name": name, "labels": {"app": "a"}}, "spec": spec})
}

#[test]
fn sets_the_defaults_of_pods() {
    let mut bench = Bench::new("v1.36.2");
    let created = bench
        .pod(
            "p",
            json!({
                "containers": [
                    {"name": "c", "image": "pause", "resources": {"limits": {"memory": "1024Mi"}}},
                    {"name": "d", "image": "a.b:5000/c@sha256:0"},
                ],
                "volumes": [{"name": "e"}],
            }),
        )
        .unwrap();
    let spec = &created["spec"];
    let token = spec["volumes"][1]["name"].as_str().unwrap();
    assert!(token.starts_with("kube-api-access-") && token.len() == "kube-api-access-gtlrb".len());
    assert_eq!(
        spec["containers"][0],
        json!({
            "name": "c",
            "image": "pause",
            "imagePullPolicy": "Always",
            "resources": {"limits": {"memory": "1Gi"}, "requests": {"memory": "1Gi"}},
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "volumeMounts": [{"name": token, "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
        })
    );
    assert_eq!(spec["containers"][1]["imagePullPolicy"], "IfNotPresent");
    assert_eq!(spec["volumes"][0], json!({"name": "e", "emptyDir": {}}));
    for (field, value) in [
        ("restartPolicy", json!("Always")),
        ("dnsPolicy", json!("ClusterFirst")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("schedulerName", json!("default-scheduler")),
        ("enableServiceLinks", json!(true)),
        ("securityContext", json!({})),
        ("serviceAccountName", json!("default")),
        ("serviceAccount", json!("default")),
        ("priority", json!(0)),
        ("preemptionPolicy", json!("PreemptLowerPriority")),
    ] {
        assert_eq!(spec[field], value, "{field}");
    }
    assert_eq!(
        spec["tolerations"],
        json!([
            {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
            {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
        ])
    );
    assert_eq!(created["status"], json!({"phase": "Pending", "qosClass": "Burstable"}));
    assert_eq!(created["metadata"]["generation"], 1);
}

#[test]
fn pod_level_resources_and_generations_depend_on_the_version() {
    let spec = || {
        json!({
            "automountServiceAccountToken": false,
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}],
            "resources": {"limits": {"memory": "1Gi", "cpu": "1"}},
        })
    };
    let new = Bench::new("v1.34.0").pod("p", spec()).unwrap();
    assert_eq!(new["spec"]["resources"]["requests"], json!({"cpu": "100m", "memory": "1Gi"}));
    assert!(new["spec"]["volumes"].is_null());
    let old = Bench::new("v1.32.0").pod("p", spec()).unwrap();
    assert!(old["spec"]["resources"].is_null() && old["metadata"]["generation"].is_null());
}

#[test]
fn containers_have_restart_policies_since_1_35() {
    let pod = |list: &str, policy: &str| {
        let mut pod = json!({"containers": [{"name": "c", "image": "i"}]});
        pod[list] = json!([{"name": "x", "image": "i", "restartPolicy": policy}]);
        pod
    };
    for list in ["containers", "initContainers"] {
        assert!(Bench::new("v1.35.0").pod("p", pod(list, "OnFailure")).is_ok(), "{list}");
    }
    let error =
        |list: &str, policy: &str| Bench::new("v1.34.0").pod("p", pod(list, policy)).unwrap_err().message;
    let expected = "spec.containers[0].restartPolicy: Forbidden: may not be set for non-init containers";
    assert!(error("containers", "Always").ends_with(expected));
    let expected =
        "spec.initContainers[0].restartPolicy: Unsupported value: \"Never\": supported values: \"Always\"";
    assert!(error("initContainers", "Never").ends_with(expected));
    let mut bench = Bench::new("v1.36.0");
    let rules = json!([{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]);
    let mut without = pod("containers", "");
    without["containers"][0] = json!({"name": "c", "image": "i", "restartPolicyRules": rules});
    let expected = "spec.containers[0].restartPolicy: Required value: must specify restartPolicy when restart rules are used";
    assert!(bench.pod("p", without).unwrap_err().message.ends_with(expected));
}

#[test]
fn rejects_invalid_pods_with_the_messages_of_a_real_server() {
    let mut bench = Bench::new("v1.36.2");
    let invalid = [
        (json!({"containers": []}), "spec.containers: Required value"),
        (json!({"containers": [{"name": "c"}]}), "spec.containers[0].image: Required value"),
        (
            json!({"containers": [{"name": "c", "image": "i"}, {"name": "c", "image": "i"}]}),
            "spec.containers[1].name: Duplicate value: \"c\"",
        ),
        (
            json!({"initContainers": [{"name": "i", "image": "i", "restartPolicy": "never"}]}),
            "spec.initContainers[0].restartPolicy: Unsupported value: \"never\": supported values: \"Always\", \"Never\", \"OnFailure\"",
        ),
        (
            json!({"restartPolicy": "Sometimes"}),
            "spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"OnFailure\", \"Never\"",
        ),
        (
            json!({"ephemeralContainers": [{"name": "e", "image": "i"}]}),
            "spec.ephemeralContainers: Forbidden: cannot be set on create",
        ),
        (
            json!({"containers": [{"name": "c", "image": "i", "resources": {"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}}}]}),
            "spec.containers[0].resources.requests: Invalid value: \"2Gi\": must be less than or equal to memory limit of 1Gi",
        ),
        (
            json!({"containers": [{"name": "c", "image": "i", "resources": {"requests": {"memory": "-1"}}}]}),
            "spec.containers[0].resources.requests[memory]: Invalid value: \"-1\": must be greater than or equal to 0",
        ),
        (
            json!({"containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]}),
            "spec.containers[0].volumeMounts[0].name: Not found: \"v\"",
        ),
        (
            json!({"tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 1}]}),
            "spec.tolerations[0].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when `tolerationSeconds` is set",
        ),
        (
            json!({"resources": {"requests": {"memory": "1Mi"}}, "containers": [{"name": "c", "image": "i", "resources": {"requests": {"memory": "2Mi"}}}]}),
            "spec.resources.requests[memory]: Invalid value: \"1Mi\": must be greater than or equal to aggregate container requests of 2Mi",
        ),
    ];
    for (spec, expected) in invalid {
        let error = bench.pod("p", spec).unwrap_err();
        assert_eq!(error.message, format!("Pod \"p\" is invalid: {expected}"));
        assert_eq!((error.code, error.reason), (422, StatusReason::Invalid));
    }
    let error = bench.pod("A_b", json!({"containers": [{"name": "c"}]})).unwrap_err();
    assert_eq!(
        error.message,
        r#"Pod "A_b" is invalid: [metadata.name: Invalid value: "A_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'), spec.containers[0].image: Required value]"#
    );
    let causes = &json!(error.details.unwrap())["causes"];
    assert_eq!(
        causes[1],
        json!({"reason": "FieldValueRequired", "message": "Required value", "field": "spec.containers[0].image"})
    );
    let unnamed =
        bench.create(Kind::Pod, "default", json!({"spec": {"containers": [{"name": "c", "image": "i"}]}}));
    assert_eq!(
        unnamed.unwrap_err().message,
        "Pod \"\" is invalid: metadata.name: Required value: name or generateName is required"
    );
}

#[test]
fn admission_requires_service_account_priority_class_and_namespace() {
    let mut bench = Bench::new("v1.36.2");
    let error = |result: Result<Arc<Value>, Status>| result.map_err(|status| (status.code, status.message));
    assert_eq!(
        error(bench.pod("p", json!({"serviceAccountName": "x"}))),
        Err((403, "pods \"p\" is forbidden: error looking up service account default/x: serviceaccount \"x\" not found".to_owned()))
    );
    assert_eq!(
        error(bench.pod("p", json!({"priorityClassName": "x"}))),
        Err((403, "pods \"p\" is forbidden: no PriorityClass with name x was found".to_owned()))
    );
    assert_eq!(
        error(bench.pod("p", json!({"priority": 5}))),
        Err((403, "pods \"p\" is forbidden: the integer value of priority (5) must not be provided in pod spec; priority admission controller computed 0 from the given PriorityClass name".to_owned()))
    );
    assert_eq!(
        error(bench.create(Kind::Pod, "nowhere", pod("p", json!({})))),
        Err((404, "namespaces \"nowhere\" not found".to_owned()))
    );
    bench.create(Kind::Namespace, "", json!({"metadata": {"name": "x"}})).unwrap();
    bench.delete(Kind::Namespace, "x", None).unwrap();
    assert_eq!(
        error(bench.create(Kind::ConfigMap, "x", json!({"metadata": {"name": "m"}}))),
        Err((403, "configmaps \"m\" is forbidden: unable to create new content in namespace x because it is being terminated".to_owned()))
    );
    assert_eq!(
        bench.delete(Kind::Namespace, "default", None).unwrap_err().message,
        "namespaces \"default\" is forbidden: this namespace may not be deleted"
    );
    let class = json!({"metadata": {"name": "high"}, "value": 1000});
    bench.create(Kind::PriorityClass, "", class).unwrap();
    assert_eq!(bench.pod("p", json!({"priorityClassName": "high"})).unwrap()["spec"]["priority"], 1000);
    assert_eq!(error(bench.pod("p", json!({}))), Err((409, "pods \"p\" already exists".to_owned())));
}

/// The admission plugin `RuntimeClass`.
#[test]
fn runtime_classes_set_the_overhead_of_pods() {
    let mut bench = Bench::new("v1.36.2");
    let error = |result: Result<Arc<Value>, Status>| result.map_err(|status| status.message).unwrap_err();
    let class = |name: &str, more: Value| {
        let mut class = json!({"metadata": {"name": name}});
        class.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        class
    };
    let invalid = bench.create(Kind::RuntimeClass, "", class("a", json!({})));
    assert_eq!(error(invalid), "RuntimeClass.node.k8s.io \"a\" is invalid: handler: Required value");
    bench.create(Kind::RuntimeClass, "", class("plain", json!({"handler": "runc"}))).unwrap();
    let padded = json!({"handler": "runc", "overhead": {"podFixed": {"memory": "64Mi"}}});
    bench.create(Kind::RuntimeClass, "", class("padded", padded)).unwrap();
    let overhead = |pod: Arc<Value>| pod["spec"]["overhead"].clone();
    assert_eq!(overhead(bench.pod("a", json!({"runtimeClassName": "plain"})).unwrap()), Value::Null);
    let padded = bench.pod("b", json!({"runtimeClassName": "padded"})).unwrap();
    assert_eq!(overhead(padded), json!({"memory": "64Mi"}));
    let same = json!({"runtimeClassName": "padded", "overhead": {"memory": "64Mi"}});
    assert_eq!(overhead(bench.pod("c", same).unwrap()), json!({"memory": "64Mi"}));
    let without = "Pod Overhead set without corresponding RuntimeClass defined Overhead";
    for (spec, reason) in [
        (json!({"runtimeClassName": "none"}), "RuntimeClass \"none\" not found"),
        (json!({"overhead": {"memory": "64Mi"}}), without),
        (json!({"runtimeClassName": "plain", "overhead": {"memory": "64Mi"}}), without),
        (
            json!({"runtimeClassName": "padded", "overhead": {"memory": "65Mi"}}),
            "Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
    ] {
        let expected = format!("pods \"d\" is forbidden: pod rejected: {reason}");
        assert_eq!(error(bench.pod("d", spec)), expected);
    }
    let error = bench.update(Kind::RuntimeClass, "plain", |class| class["handler"] = json!("x")).unwrap_err();
    assert_eq!(
        error.message,
        "RuntimeClass.node.k8s.io \"plain\" is invalid: handler: Invalid value: \"x\": field is immutable"
    );
}

#[test]
fn rejects_updates_of_immutable_pod_fields() {
    let mut bench = Bench::new("v1.36.2");
    bench.pod("p", json!({})).unwrap();
    let changed = bench.update(Kind::Pod, "p", |pod| {
        pod["spec"]["containers"][0]["image"] = json!("pause:4");
        pod["status"]["phase"] = json!("Failed");
    });
    let changed = changed.unwrap();
    assert_eq!(
        (&changed["metadata"]["generation"], &changed["status"]["phase"]),
        (&json!(2), &json!("Pending"))
    );
    let error =
        bench.update(Kind::Pod, "p", |pod| pod["spec"]["restartPolicy"] = json!("Never")).unwrap_err();
    let expected = "Pod \"p\" is invalid: spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n";
    assert!(error.message.starts_with(expected), "{}", error.message);
    let error =
        bench.update(Kind::Pod, "p", |pod| pod["metadata"]["resourceVersion"] = json!("1")).unwrap_err();
    assert_eq!(
        error.message,
        "Operation cannot be fulfilled on pods \"p\": the object has been modified; please apply your changes to the latest version and try again"
    );
    let error = bench.update(Kind::Pod, "p", |pod| {
        pod["spec"]["tolerations"].as_array_mut().unwrap().remove(0);
    });
    assert_eq!(
        error.unwrap_err().message,
        "Pod \"p\" is invalid: spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"
    );
    let path = ObjectPath { kind: Kind::Pod, namespace: "default", name: "q" };
    let missing = update(&mut bench.ctx(), path, pod("q", json!({})), FieldValidation::default());
    assert_eq!(missing.unwrap_err().message, "pods \"q\" not found");
}

#[test]
fn deletes_running_pods_with_a_grace_period_and_others_at_once() {
    let mut bench = Bench::new("v1.36.2");
    bench.pod("unscheduled", json!({})).unwrap();
    bench.delete(Kind::Pod, "unscheduled", None).unwrap();
    assert!(bench.store.get(Kind::Pod, "default", "unscheduled").is_none());

    let created = bench.pod("p", json!({"terminationGracePeriodSeconds": 20})).unwrap();
    bench.running("p", "True");
    let DeleteResult::Object(dying) = bench.delete(Kind::Pod, "p", None).unwrap() else { panic!("gone") };
    let metadata = &dying["metadata"];
    assert_eq!(metadata["deletionGracePeriodSeconds"], 20);
    assert_eq!(metadata["deletionTimestamp"], "2026-01-01T00:00:20Z");
    assert_eq!(metadata["generation"], 2);
    // A grace period can only be shortened.
    bench.delete(Kind::Pod, "p", Some(60)).unwrap();
    let DeleteResult::Object(dying) = bench.delete(Kind::Pod, "p", Some(5)).unwrap() else { panic!("gone") };
    assert_eq!(dying["metadata"]["deletionTimestamp"], "2026-01-01T00:00:05Z");
    finish_pod_deletion(&mut bench.ctx(), "default", "p", "another");
    assert!(bench.store.get(Kind::Pod, "default", "p").is_some());
    finish_pod_deletion(&mut bench.ctx(), "default", "p", created["metadata"]["uid"].as_str().unwrap());
    assert!(bench.store.get(Kind::Pod, "default", "p").is_none());
    assert_eq!(bench.delete(Kind::Pod, "p", None).unwrap_err().message, "pods \"p\" not found");

    // Since 1.33, no deletion timestamp moves into the past.
    for (version, expected) in [("v1.32.13", "2026-01-01T00:00:02Z"), ("v1.33.12", "2026-01-01T00:00:30Z")] {
        let mut bench = Bench::new(version);
        bench.pod("late", json!({"terminationGracePeriodSeconds": 5})).unwrap();
        bench.running("late", "True");
        bench.delete(Kind::Pod, "late", None).unwrap();
        let mut ctx = bench.ctx();
        ctx.now = SimTime::ZERO + Duration::from_secs(30);
        let options = DeleteOptions { grace: Some(2), ..DeleteOptions::default() };
        let DeleteResult::Object(dying) = delete(&mut ctx, Kind::Pod, "default", "late", options).unwrap()
        else {
            panic!("gone")
        };
        assert_eq!(dying["metadata"]["deletionTimestamp"], expected);
    }

    bench.pod("now", json!({})).unwrap();
    bench.running("now", "True");
    bench.delete(Kind::Pod, "now", Some(0)).unwrap();
    assert!(bench.store.get(Kind::Pod, "default", "now").is_none());
}

#[test]
fn finalizers_delay_the_deletion() {
    let mut bench = Bench::new("v1.36.2");
    for (kind, mut object) in
        [(Kind::Pod, pod("x", json!({}))), (Kind::ConfigMap, json!({"metadata": {"name": "x"}}))]
    {
        object["metadata"]["finalizers"] = json!(["a.b/c"]);
        bench.create(kind, "default", object).unwrap();
        let DeleteResult::Object(kept) = bench.delete(kind, "x", None).unwrap() else { panic!("gone") };
        assert_eq!(kept["metadata"]["deletionGracePeriodSeconds"], 0);
        bench.update(kind, "x", |object| object["metadata"]["finalizers"] = json!([])).unwrap();
        assert!(bench.store.get(kind, "default", "x").is_none());
    }
}

#[test]
fn rejects_deletions_with_a_violated_precondition() {
    let mut bench = Bench::new("v1.36.2");
    let created = bench.pod("p", json!({})).unwrap();
    let uid = created["metadata"]["uid"].as_str().unwrap();
    let preconditions = Preconditions { uid: Some("x".to_owned()), resource_version: None };
    let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
    let error = delete(&mut bench.ctx(), Kind::Pod, "default", "p", options).unwrap_err();
    assert_eq!(
        error.message,
        format!(
            "Operation cannot be fulfilled on pods \"p\": the UID in the precondition (x) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
        )
    );
}

#[test]
fn ephemeral_containers_are_immutable() {
    let mut bench = Bench::new("v1.36.2");
    bench.pod("p", json!({})).unwrap();
    let mut with = |containers: Value| {
        let object = json!({"metadata": {"name": "p"}, "spec": {"ephemeralContainers": containers}});
        update_ephemeral_containers(&mut bench.ctx(), "default", "p", object, FieldValidation::default())
            .map(|stored| stored.object)
    };
    let error =
        with(json!([{"name": "e", "image": "i", "resources": {"limits": {"memory": "1Gi"}}}])).unwrap_err();
    assert_eq!(
        error.message,
        "Pod \"p\" is invalid: spec.ephemeralContainers[0].resources: Forbidden: cannot be set for an Ephemeral Container"
    );
    assert_eq!(
        json!(error.details.unwrap()),
        json!({"name": "p", "kind": "Pod", "causes": [{
            "reason": "FieldValueForbidden",
            "message": "Forbidden: cannot be set for an Ephemeral Container",
            "field": "spec.ephemeralContainers[0].resources",
        }]})
    );
    let error = with(json!([{"name": "c", "image": "i", "targetContainerName": "x"}])).unwrap_err();
    assert_eq!(
        error.message,
        "Pod \"p\" is invalid: [spec.ephemeralContainers[0].name: Duplicate value: \"c\", spec.ephemeralContainers[0].targetContainerName: Not found: \"x\"]"
    );
    let pod = with(json!([{"name": "e", "image": "i", "targetContainerName": "c"}])).unwrap();
    assert_eq!(pod["spec"]["ephemeralContainers"][0]["terminationMessagePolicy"], "File");
    assert_eq!(pod["metadata"]["generation"], 2);
    let error = with(json!([])).unwrap_err();
    assert_eq!(
        error.message,
        "Pod \"p\" is invalid: spec.ephemeralContainers: Forbidden: existing ephemeral containers \"e\" may not be removed\n"
    );
    let error = with(json!([{"name": "e", "image": "j", "targetContainerName": "c"}])).unwrap_err();
    assert!(error.message.contains("existing ephemeral containers \"e\" may not be changed\n"));
}

#[test]
fn evictions_respect_disruption_budgets() {
    let mut bench = Bench::new("v1.36.2");
    bench.pod("p", json!({})).unwrap();
    bench.running("p", "True");
    let other = evict(&mut bench.ctx(), "default", "p", &json!({"metadata": {"name": "q"}}));
    assert_eq!(other.unwrap_err().message, "name in URL does not match name in Eviction object");

    bench.budget("b", 1, 1);
    let error = bench.evict("p").unwrap_err();
    assert_eq!((error.code, error.reason), (429, StatusReason::TooManyRequests));
    assert_eq!(error.message, "Cannot evict pod as it would violate the pod's disruption budget.");
    assert_eq!(
        json!(error.details.unwrap())["causes"],
        json!([{"reason": "DisruptionBudget", "message": "The disruption budget b needs 1 healthy pods and has 1 currently"}])
    );
    bench.budget("other", 2, 1);
    let error = bench.evict("p").unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (
            500,
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
    );
    bench.delete(Kind::PodDisruptionBudget, "b", None).unwrap();

    let done = bench.evict("p").unwrap();
    assert_eq!(
        done,
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
    );
    let pod = bench.store.get(Kind::Pod, "default", "p").unwrap();
    let condition = pod.condition("DisruptionTarget").unwrap();
    assert_eq!(condition["reason"], "EvictionByEvictionAPI");
    assert_eq!(condition["message"], "Eviction API: evicting");
    assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], 30);
    let budget = bench.store.get(Kind::PodDisruptionBudget, "default", "other").unwrap();
    assert_eq!(budget["status"]["disruptionsAllowed"], 0);
    assert_eq!(budget["status"]["disruptedPods"]["p"], "2026-01-01T00:00:00Z");
}

#[test]
fn validates_priority_classes() {
    let mut bench = Bench::new("v1.36.2");
    let mut class = |name: &str, value: i64| {
        bench.create(Kind::PriorityClass, "", json!({"metadata": {"name": name}, "value": value}))
    };
    assert_eq!(
        class("a", 1_000_000_001).unwrap_err().message,
        "PriorityClass.scheduling.k8s.io \"a\" is invalid: value: Forbidden: maximum allowed value of a user defined priority is 1000000000"
    );
    class("system-node-critical", 2_000_001_000).unwrap();
    class("a", 5).unwrap();
    let error = bench.update(Kind::PriorityClass, "a", |class| class["value"] = json!(6)).unwrap_err();
    assert_eq!(
        error.message,
        "PriorityClass.scheduling.k8s.io \"a\" is invalid: value: Forbidden: may not be changed in an update."
    );
    // Of several default classes, the one with the smallest value applies.
    for (name, value) in [("high", 7), ("low", 3)] {
        let class = json!({"metadata": {"name": name}, "value": value, "globalDefault": true});
        bench.create(Kind::PriorityClass, "", class).unwrap();
    }
    for (stated, class, priority) in [(json!({}), "low", 3), (json!({"priorityClassName": "a"}), "a", 5)] {
        let spec = bench.pod(class, stated).unwrap()["spec"].clone();
        assert_eq!((&spec["priorityClassName"], &spec["priority"]), (&json!(class), &json!(priority)));
    }
    let missing = bench.delete(Kind::PriorityClass, "b", None).unwrap_err();
    assert_eq!(missing.message, "priorityclasses.scheduling.k8s.io \"b\" not found");
}

#[test]
fn events_have_the_fields_of_core_v1() {
    let mut bench = Bench::new("v1.36.2");
    let event = json!({"metadata": {"name": "e"}, "involvedObject": {"kind": "Node", "name": "n1"}});
    let created = bench.create(Kind::Event, "default", event).unwrap();
    assert!(created["firstTimestamp"].is_null() && created["source"] == json!({}));
}

#[test]
fn generates_names() {
    let mut bench = Bench::new("v1.36.2");
    let created = bench
        .create(Kind::Pod, "default", json!({"metadata": {"generateName": "p-"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}))
        .unwrap();
    let name = created["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("p-") && name.len() == 7, "{name}");
}

#[test]
fn a_quota_limits_the_number_of_pods() {
    let mut bench = Bench::new("v1.36.2");
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"count/pods": "1"}}});
    bench.create(Kind::ResourceQuota, "default", quota).unwrap();
    let spec = json!({"containers": [{"name": "c", "image": "i"}]});
    bench.pod("a", spec.clone()).unwrap();
    let refused = bench.pod("b", spec).unwrap_err();
    let expected = "pods \"b\" is forbidden: exceeded quota: q, requested: count/pods=1, used: count/pods=1, limited: count/pods=1";
    assert_eq!((refused.code, refused.message.as_str()), (403, expected));
    let other = json!({"metadata": {"name": "r"}, "spec": {"hard": {"limits.memory": "1Gi"}}});
    let refused = bench.create(Kind::ResourceQuota, "default", other).unwrap_err();
    assert!(refused.message.contains("the model enforces only count/pods, not limits.memory"), "{refused:?}");
}

/// `Convert_v1_Pod_To_core_Pod` of conversion.go.
#[test]
fn a_negative_grace_period_of_a_pod_is_one_second() {
    let mut bench = Bench::new("v1.36.2");
    for (stated, kept) in [(-7, 1), (0, 0), (7, 7)] {
        let pod = bench.pod(&format!("p{kept}"), json!({"terminationGracePeriodSeconds": stated})).unwrap();
        assert_eq!(pod["spec"]["terminationGracePeriodSeconds"], kept);
    }
}

#[test]
fn a_resize_changes_pod_level_resources_since_1_36() {
    let spec = |memory: &str| {
        json!({
            "containers": [{"name": "c", "image": "i"}],
            "resources": {"requests": {"memory": memory}},
        })
    };
    let resized = |version: &str, spec: Value| {
        let mut bench = Bench::new(version);
        let mut first = spec.clone();
        first["resources"] = json!({"requests": {"memory": "1Mi", "cpu": "1"}});
        bench.pod("p", first).unwrap();
        let object = json!({"metadata": {"name": "p"}, "spec": spec});
        resize(&mut bench.ctx(), "default", "p", object, FieldValidation::default())
            .map(|stored| stored.object)
    };
    let removed = resized("v1.36.2", spec("2Mi")).unwrap_err();
    assert!(removed.message.contains("pod-level resource requests cannot be removed"), "{removed:?}");
    let mut whole = spec("2Mi");
    whole["resources"]["requests"]["cpu"] = json!("1");
    let pod = resized("v1.36.2", whole.clone()).unwrap();
    assert_eq!(pod["spec"]["resources"]["requests"]["memory"], "2Mi");
    for (version, expected) in [
        ("v1.34.1", "pods with pod-level resources cannot be resized"),
        ("v1.35.0", "resize of pods with pod-level resources is forbidden"),
    ] {
        let error = resized(version, whole.clone()).unwrap_err();
        assert!(error.code == 422 && error.message.contains(expected), "{error:?}");
    }
}

#[test]
fn a_resize_changes_cpu_and_memory_only() {
    let mut bench = Bench::new("v1.36.2");
    let container = |requests: Value| json!({"name": "c", "image": "i", "resources": {"requests": requests}});
    bench
        .pod("p", json!({"containers": [container(json!({"memory": "1Mi", "ephemeral-storage": "1Gi"}))]}))
        .unwrap();
    let mut resized = |containers: Value| {
        let object = json!({"metadata": {"name": "p"}, "spec": {"containers": containers}});
        resize(&mut bench.ctx(), "default", "p", object, FieldValidation::default())
            .map(|stored| stored.object)
    };
    let requests = |requests: Value| json!([container(requests)]);
    for (containers, expected) in [
        (
            requests(json!({"ephemeral-storage": "1Gi"})),
            "requests: Forbidden: resource requests cannot be removed",
        ),
        (
            requests(json!({"memory": "1Mi", "ephemeral-storage": "2Gi"})),
            "spec: Forbidden: only cpu and memory resources are mutable",
        ),
        (
            json!([{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Mi", "ephemeral-storage": "1Gi"},
                "limits": {"cpu": "1", "memory": "1Mi"}}}]),
            "Pod QOS Class may not change as a result of resizing",
        ),
    ] {
        let error = resized(containers).unwrap_err();
        assert!(error.code == 422 && error.message.contains(expected), "{expected}: {}", error.message);
    }
    // Other fields of the object are ignored.
    let pod = resized(json!([{"name": "c", "image": "other",
        "resources": {"requests": {"memory": "2Mi", "ephemeral-storage": "1Gi"}}}]))
    .unwrap();
    let container = &pod["spec"]["containers"][0];
    assert_eq!(
        (&container["image"], &container["resources"]["requests"]["memory"]),
        (&json!("i"), &json!("2Mi"))
    );
    assert_eq!(pod["metadata"]["generation"], 2);

    let mut old = Bench::new("v1.32.13");
    old.pod("p", json!({})).unwrap();
    let object = json!({"metadata": {"name": "p"}, "spec": {"containers": []}});
    let error = resize(&mut old.ctx(), "default", "p", object, FieldValidation::default()).unwrap_err();
    assert_eq!(error.code, 404);
}
