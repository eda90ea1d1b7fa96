use super::*;
use crate::apiserver::{DeleteOptions, Status, WriteOptions, delete, resize};

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
            .with_context(|ctx| resize(ctx, "default", name, object, WriteOptions::default()).map(drop))
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
    let LogAnswer { text, .. } = lab.log("p", "c", PodLogOptions::default());
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
        .with_context(|ctx| resize(ctx, "default", "p", object, WriteOptions::default()).map(drop))
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
