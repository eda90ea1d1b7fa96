//! Admission of known pods after a restart of the kubelet.

use super::*;

const GI: u64 = 1 << 30;

fn asking(memory: &str) -> Value {
    json!({"containers": [{"name": "c", "resources": {"requests": {"memory": memory}}}]})
}

impl Lab {
    fn configure(&mut self, changes: Value) {
        self.simulation.with(|_, nodes, ctx| {
            let kubelet = &mut nodes.get_mut("n1").unwrap().kubelet;
            kubelet.configure(changes.as_object().unwrap(), crate::Housekeeping::Fast, ctx);
        });
        self.seconds(12);
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
