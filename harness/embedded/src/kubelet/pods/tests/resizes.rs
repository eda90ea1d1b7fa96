use super::*;
use crate::apiserver::{DeleteOptions, FieldValidation, Status, delete, resize};

fn containers(memory: &str, limit: &str) -> Value {
    json!([{
        "name": "c",
        "command": ["sh", "-c", "sleep 9; cat /sys/fs/cgroup/memory.max; sleep infinity"],
        "resources": {"requests": {"memory": memory}, "limits": {"memory": limit}},
    }])
}

impl Lab {
    fn resize(&mut self, name: &str, memory: &str, limit: &str) -> Result<(), Status> {
        let object = json!({"metadata": {"name": name}, "spec": {"containers": containers(memory, limit)}});
        self.simulation
            .with_context(|ctx| resize(ctx, "default", name, object, FieldValidation::default()).map(drop))
    }

    /// Returns the memory requests of a pod for eviction and in its status.
    fn allocated(&self, name: &str) -> (String, Value) {
        let active = self.kubelet().pods.active();
        let pod = active.iter().find(|active| active.object.name() == name).unwrap();
        let request = pod.pod.spec.containers[0].request("memory").unwrap().to_string();
        let status = self.status(name);
        (request, of(&status, "containerStatuses", "c")["allocatedResources"]["memory"].clone())
    }
}

#[test]
fn a_resize_is_allocated_if_the_node_has_room() {
    let mut lab = Lab::new(36);
    lab.pod("p", json!({"containers": containers("10Mi", "20Mi")}));
    lab.seconds(4);
    assert_eq!(lab.allocated("p"), ("10Mi".to_owned(), json!("10Mi")));
    lab.resize("p", "12Mi", "24Mi").unwrap();
    lab.seconds(9);
    assert_eq!(lab.allocated("p"), ("12Mi".to_owned(), json!("12Mi")));
    assert_eq!(lab.condition("p", "PodResizePending"), Value::Null);
    assert_eq!(of(&lab.status("p"), "containerStatuses", "c")["restartCount"], 0);
    let text = lab.log("p", "c", PodLogOptions::default()).unwrap();
    assert_eq!(text.trim(), (24 << 20).to_string());
}

#[test]
fn a_resize_beyond_the_node_is_infeasible() {
    let mut lab = Lab::new(33);
    lab.pod("p", json!({"containers": containers("10Mi", "20Ti")}));
    lab.seconds(4);
    lab.resize("p", "10Ti", "20Ti").unwrap();
    lab.seconds(4);
    assert_eq!(lab.allocated("p"), ("10Mi".to_owned(), json!("10Mi")));
    let condition = lab.condition("p", "PodResizePending");
    assert_eq!((&condition["status"], &condition["reason"]), (&json!("True"), &json!("Infeasible")));
    let message = "Node didn't have enough capacity: memory, requested: 10995116277760, ";
    assert!(condition["message"].as_str().unwrap().starts_with(message), "{condition}");
    // Since 1.36, the API server rejects it.
    let mut lab = Lab::new(36);
    lab.pod("p", json!({"containers": containers("10Mi", "20Ti")}));
    lab.seconds(4);
    let error = lab.resize("p", "10Ti", "20Ti").unwrap_err();
    let expected = "pods \"p\" is forbidden: node didn't have enough allocatable resources: memory, requested: 10995116277760, allocatable: ";
    assert!(error.code == 403 && error.message.starts_with(expected), "{error:?}");
}

#[test]
fn a_deferred_resize_waits_until_another_pod_has_gone() {
    for minor in [34, 36] {
        let mut lab = Lab::new(minor);
        let allocatable = lab.simulation.store.get(Kind::Node, "", "n1").unwrap()["status"]["allocatable"]
            .text("memory")
            .parse::<evictlab_rules::quantity::Quantity>()
            .unwrap()
            .value();
        let half = (allocatable / 2 + 1).to_string();
        lab.pod("p", json!({"containers": containers("10Mi", "20Ti")}));
        lab.pod("q", json!({"containers": containers(&half, "20Ti")}));
        lab.seconds(4);
        lab.resize("p", &half, "20Ti").unwrap();
        lab.seconds(4);
        let condition = lab.condition("p", "PodResizePending");
        assert_eq!(condition["reason"], "Deferred", "1.{minor}");
        let message = "Node didn't have enough resource: memory, requested: ";
        assert!(condition["message"].as_str().unwrap().starts_with(message), "{condition}");
        assert_eq!(lab.allocated("p").0, "10Mi");
        // A restarted kubelet reads what it allocated from a file, not from the spec.
        lab.simulation.with(|_, nodes, ctx| nodes.get_mut("n1").unwrap().kubelet.restart(ctx));
        lab.seconds(4);
        assert_eq!(lab.allocated("p").0, "10Mi", "1.{minor}");
        assert_eq!(lab.condition("p", "PodResizePending")["reason"], "Deferred", "1.{minor}");
        let options = DeleteOptions { grace: Some(1), ..DeleteOptions::default() };
        lab.simulation.with_context(|ctx| delete(ctx, Kind::Pod, "default", "q", options).map(drop)).unwrap();
        lab.seconds(10);
        assert_eq!(lab.condition("p", "PodResizePending"), Value::Null);
        assert_eq!(lab.allocated("p"), (half.clone(), json!(half)));
    }
}

/// `determinePodResizeStatus`
#[test]
fn a_resize_of_an_evicted_pod_is_not_pending() {
    let mut lab = Lab::new(33);
    let uid = lab.pod("p", json!({"containers": containers("10Mi", "20Ti")}));
    lab.seconds(4);
    lab.resize("p", "10Ti", "20Ti").unwrap();
    lab.seconds(4);
    assert_eq!(lab.condition("p", "PodResizePending")["reason"], "Infeasible");
    lab.evict(&uid, "why", Some(1));
    lab.seconds(6);
    assert_eq!(lab.status("p")["reason"], "Evicted");
    assert_eq!(lab.condition("p", "PodResizePending"), Value::Null);
}

/// `updatePodFromAllocation`, since 1.36.
#[test]
fn a_deferred_resize_of_the_whole_pod_does_not_count() {
    let mut lab = Lab::new(36);
    let allocatable = lab.simulation.store.get(Kind::Node, "", "n1").unwrap()["status"]["allocatable"]
        .text("memory")
        .parse::<evictlab_rules::quantity::Quantity>()
        .unwrap()
        .value();
    let half = (allocatable / 2 + 1).to_string();
    let spec = |memory: &str| json!({"containers": containers("1Mi", "20Ti"), "resources": {"requests": {"memory": memory}}});
    lab.pod("p", spec("10Mi"));
    lab.pod("q", json!({"containers": containers(&half, "20Ti")}));
    lab.seconds(4);
    let object = json!({"metadata": {"name": "p"}, "spec": spec(&half)});
    lab.simulation
        .with_context(|ctx| resize(ctx, "default", "p", object, FieldValidation::default()).map(drop))
        .unwrap();
    lab.seconds(4);
    let request = |lab: &Lab| {
        let active = lab.kubelet().pods.active();
        let pod = active.iter().find(|active| active.object.name() == "p").unwrap();
        let request = pod.pod.pod_level_request("memory").unwrap().to_string();
        (request, lab.status("p")["allocatedResources"]["memory"].clone())
    };
    assert_eq!(lab.condition("p", "PodResizePending")["reason"], "Deferred");
    assert_eq!(request(&lab), ("10Mi".to_owned(), json!("10Mi")));
    let options = DeleteOptions { grace: Some(1), ..DeleteOptions::default() };
    lab.simulation.with_context(|ctx| delete(ctx, Kind::Pod, "default", "q", options).map(drop)).unwrap();
    lab.seconds(10);
    assert_eq!(lab.condition("p", "PodResizePending"), Value::Null);
    assert_eq!(request(&lab), (half.clone(), json!(half)));
}

/// Since 1.36, a resize is admitted as a new pod is.
#[test]
fn a_resize_under_pressure_is_deferred_since_1_36() {
    for (minor, is_deferred) in [(35, false), (36, true)] {
        let mut lab = Lab::new(minor);
        lab.pod("p", json!({"containers": containers("10Mi", "20Ti")}));
        lab.seconds(4);
        lab.simulation.with(|_, nodes, ctx| {
            let node = nodes.get_mut("n1").unwrap();
            let disk = node.machine.filesystem();
            let available = disk.capacity.bytes - disk.used.bytes - (100 << 20);
            let settings = json!({
                "evictionHard": {"nodefs.available": available.to_string()},
                "evictionPressureTransitionPeriod": "1m",
            });
            node.kubelet.configure(settings.as_object().unwrap(), crate::Housekeeping::Fast, ctx);
        });
        lab.seconds(15);
        let script = "dd if=/dev/zero of=/f bs=1M count=200; sleep infinity";
        lab.pod("q", json!({"containers": [{"name": "c", "command": ["sh", "-c", script]}]}));
        lab.seconds(30);
        assert_eq!(lab.status("q")["reason"], "Evicted");
        lab.resize("p", "12Mi", "20Ti").unwrap();
        lab.millis(1500);
        let condition = lab.condition("p", "PodResizePending");
        if !is_deferred {
            assert_eq!((lab.allocated("p").0, condition), ("12Mi".to_owned(), Value::Null));
            continue;
        }
        assert_eq!(condition["reason"], "Deferred");
        assert_eq!(condition["message"], "The node had condition: [DiskPressure]. ");
        assert_eq!(lab.allocated("p").0, "10Mi");
        // The pressure ends, and the retry follows after three minutes.
        lab.seconds(190);
        assert_eq!(lab.condition("p", "PodResizePending"), Value::Null);
        assert_eq!(lab.allocated("p"), ("12Mi".to_owned(), json!("12Mi")));
    }
}

#[test]
fn a_resize_restarts_the_container_if_its_policy_says_so() {
    for (policy, restarts) in [("NotRequired", 0), ("RestartContainer", 1)] {
        let mut lab = Lab::new(36);
        let mut list = containers("10Mi", "20Mi");
        list[0]["resizePolicy"] = json!([{"resourceName": "memory", "restartPolicy": policy}]);
        lab.pod("p", json!({"restartPolicy": "OnFailure", "containers": list}));
        lab.seconds(4);
        lab.resize("p", "12Mi", "24Mi").unwrap();
        lab.seconds(14);
        assert_eq!(lab.allocated("p"), ("12Mi".to_owned(), json!("12Mi")));
        let status = lab.status("p");
        let c = of(&status, "containerStatuses", "c");
        assert_eq!((&status["phase"], c["restartCount"].as_u64()), (&json!("Running"), Some(restarts)));
        let killed = lab.messages("p", "Killing");
        assert_eq!(killed.len() as u64, restarts);
        assert!(killed.iter().all(|message| message == "Container c resize requires restart"));
        let text = lab.log("p", "c", PodLogOptions::default()).unwrap();
        assert_eq!(text.trim(), (24 << 20).to_string(), "{policy}");
        // The restart does not count as a failure.
        assert_eq!(lab.messages("p", "BackOff"), [""; 0]);
    }
}
