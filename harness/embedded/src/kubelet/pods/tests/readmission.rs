//! Admission of known pods after a restart of the kubelet.

use super::*;

const GI: u64 = 1 << 30;

fn asking(memory: &str) -> Value {
    json!({"containers": [{"name": "c", "resources": {"requests": {"memory": memory}}}]})
}

impl Lab {
    fn configure(&mut self, changes: Value) {
        self.start_configuring(changes);
        self.seconds(12);
    }

    fn start_configuring(&mut self, changes: Value) {
        self.simulation.with(|_, nodes, ctx| {
            let kubelet = &mut nodes.get_mut("n1").unwrap().kubelet;
            kubelet.configure(changes.as_object().unwrap(), crate::Housekeeping::Fast, ctx);
        });
    }
}

/// `HandlePodAdditions` admits in the order of creation, beside the pods admitted before.
#[test]
fn a_restarted_kubelet_rejects_the_younger_pod_without_room() {
    let mut lab = Lab::new(36);
    for name in ["old", "young"] {
        lab.pod(name, asking("1Gi"));
        lab.seconds(4);
    }
    let memory = NodeOptions::new("n1", KubeletVersion::from_minor(36)).memory;
    lab.configure(json!({"kubeReserved": {"memory": (memory - GI * 3 / 2).to_string()}}));
    assert_eq!(lab.status("old")["phase"], "Running");
    let status = lab.status("young");
    assert_eq!((&status["phase"], &status["reason"]), (&json!("Failed"), &json!("OutOfmemory")), "{status}");
    let message = status["message"].as_str().unwrap();
    let expected = "Pod was rejected: Node didn't have enough resource: memory, requested: 1073741824, used: 1073741824, ";
    assert!(message.starts_with(expected), "{message}");
    assert_eq!(lab.messages("young", "OutOfmemory").len(), 1);
}

#[test]
fn a_restarted_kubelet_checks_labels_and_the_number_of_pods() {
    let mut lab = Lab::new(36);
    lab.simulation.store.update(Kind::Node, "", "n1", |node| node["metadata"]["labels"]["zone"] = json!("a"));
    let mut selects = asking("1Mi");
    selects["nodeSelector"] = json!({"zone": "a"});
    lab.pod("selects", selects);
    lab.seconds(4);
    lab.pod("last", asking("1Mi"));
    lab.seconds(4);
    lab.simulation.store.update(Kind::Node, "", "n1", |node| node["metadata"]["labels"]["zone"] = json!("b"));
    // kube-proxy, and one that is rejected before it counts.
    lab.configure(json!({"maxPods": 2}));
    assert_eq!(lab.status("selects")["reason"], "NodeAffinity", "{}", lab.status("selects"));
    assert_eq!(lab.status("last")["phase"], "Running");
    lab.configure(json!({"maxPods": 1}));
    assert_eq!(lab.status("last")["reason"], "OutOfpods");
}

/// `rejectPod` replaces the status while the containers still run; housekeeping kills them, and the
/// next batch of the status manager writes the phase.
#[test]
fn a_rejected_pod_loses_its_status_before_it_is_killed() {
    for minor in [31, 36] {
        let mut lab = Lab::new(minor);
        let uid = lab.pod("p", asking("1Gi"));
        lab.seconds(4);
        let before = lab.status("p");
        let memory = NodeOptions::new("n1", KubeletVersion::from_minor(minor)).memory;
        lab.start_configuring(json!({"kubeReserved": {"memory": (memory - GI / 2).to_string()}}));
        lab.seconds(2);
        let status = lab.status("p");
        assert_eq!(status["phase"], "Running", "1.{minor}");
        for field in ["containerStatuses", "conditions", "podIP", "hostIP", "reason"] {
            assert!(status[field].as_array().is_none_or(Vec::is_empty), "1.{minor}: {status}");
            assert!(!status[field].is_string(), "1.{minor}: {status}");
        }
        assert_eq!(status["startTime"], before["startTime"]);
        assert_eq!(status["qosClass"].is_string(), minor >= 32);
        assert_eq!(lab.kubelet().pods.running(&uid).len(), 1);
        assert_eq!(lab.kubelet().pods.active().iter().filter(|pod| pod.object.name() == "p").count(), 0);
        lab.seconds(6);
        assert_eq!(lab.kubelet().pods.running(&uid).len(), 0);
        assert!(lab.events("p").contains(&"Killing c".to_owned()));
        assert_eq!(lab.status("p")["phase"], "Running", "1.{minor}");
        lab.seconds(4);
        let status = lab.status("p");
        assert_eq!((&status["phase"], &status["reason"]), (&json!("Failed"), &json!("OutOfmemory")));
        assert!(status["containerStatuses"].is_null(), "1.{minor}: {status}");
        let metrics = lab.kubelet().eviction.metrics.text();
        let counted = "kubelet_admission_rejections_total{reason=\"OutOfmemory\"} 1";
        assert_eq!(metrics.contains(counted), minor >= 32, "1.{minor}: {metrics}");
    }
}
