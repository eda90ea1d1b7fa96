//! Static pods and their mirrors.

use super::*;
use crate::apiserver::{self, DeleteOptions};

fn manifest(command: &[&str]) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "s"},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "c", "image": AGNHOST, "command": command}],
        },
    })
}

impl Lab {
    fn put(&mut self, name: &str, manifest: Option<&Value>) {
        self.simulation
            .with(|_, nodes, ctx| nodes.get_mut("n1").unwrap().static_pod(name, manifest, ctx))
            .unwrap();
    }

    fn restart(&mut self) {
        self.simulation.with(|_, nodes, ctx| {
            let node = nodes.get_mut("n1").unwrap();
            node.kubelet.stop();
            node.kubelet.start(&mut node.machine, ctx);
        });
    }

    /// Returns the number of running containers of the static pod `s-n1`.
    fn running(&self) -> usize {
        let mirror = self.get("s-n1").unwrap();
        let hash = mirror["metadata"]["annotations"]["kubernetes.io/config.hash"].as_str().unwrap();
        self.kubelet().pods.running(hash).len()
    }
}

#[test]
fn manifest_creates_pod_and_mirror_pod() {
    let mut lab = Lab::new(32);
    lab.put("s", Some(&manifest(&["sleep", "infinity"])));
    lab.seconds(4);
    let mirror = lab.get("s-n1").unwrap();
    let annotations = &mirror["metadata"]["annotations"];
    assert_eq!(annotations["kubernetes.io/config.mirror"], annotations["kubernetes.io/config.hash"]);
    assert_eq!(annotations["kubernetes.io/config.source"], "file");
    assert_ne!(mirror["metadata"]["uid"], annotations["kubernetes.io/config.hash"]);
    let owner = &mirror["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["name"]), (&json!("Node"), &json!("n1")));
    assert_eq!(mirror["spec"]["tolerations"], json!([{"operator": "Exists", "effect": "NoExecute"}]));
    assert_eq!((&mirror["status"]["phase"], lab.running()), (&json!("Running"), 1));
    assert_eq!(mirror["spec"]["serviceAccountName"], Value::Null);
    // Events refer to the static pod, not to its mirror pod.
    let started = lab.all_events("s-n1").into_iter().find(|event| event["reason"] == "Started").unwrap();
    assert_eq!(started["involvedObject"]["uid"], annotations["kubernetes.io/config.hash"]);
    // Without its file, the pod is removed.
    lab.put("s", None);
    lab.seconds(6);
    assert!(lab.get("s-n1").is_none());
    assert!(lab.kubelet().pods.workers.values().all(|worker| worker.manifest.name != "s-n1"));
}

#[test]
fn deleted_mirror_pod_is_recreated() {
    let mut lab = Lab::new(32);
    lab.put("s", Some(&manifest(&["sleep", "infinity"])));
    lab.seconds(4);
    let uid = |lab: &Lab| lab.get("s-n1").unwrap()["metadata"]["uid"].clone();
    let first = uid(&lab);
    let gracefully = DeleteOptions::default();
    lab.simulation
        .with_context(|ctx| apiserver::delete(ctx, Kind::Pod, "default", "s-n1", gracefully))
        .unwrap();
    lab.seconds(2);
    assert_ne!(uid(&lab), first);
    let status = lab.status("s-n1");
    assert_eq!((&status["phase"], lab.running()), (&json!("Running"), 1));
    assert_eq!(of(&status, "containerStatuses", "c")["restartCount"], 0);
}

#[test]
fn changed_manifest_ends_pod_before_next_starts() {
    let mut lab = Lab::new(32);
    lab.put("s", Some(&manifest(&["sleep", "infinity"])));
    lab.seconds(4);
    let hash = |lab: &Lab| {
        lab.get("s-n1").unwrap()["metadata"]["annotations"]["kubernetes.io/config.mirror"].clone()
    };
    let first = hash(&lab);
    lab.put("s", Some(&manifest(&["sleep", "1000"])));
    lab.millis(700);
    assert_eq!(lab.running(), 1);
    assert_eq!(
        lab.kubelet().pods.workers.values().filter(|worker| worker.manifest.name == "s-n1").count(),
        2
    );
    lab.seconds(6);
    assert_ne!(hash(&lab), first);
    assert_eq!((&lab.status("s-n1")["phase"], lab.running()), (&json!("Running"), 1));
    // Invalid manifests are ignored and logged.
    lab.put("broken", Some(&json!({"kind": "Pod", "apiVersion": "v1", "metadata": {}})));
    lab.seconds(1);
    let log: Vec<_> = lab.kubelet().log.since(SimTime::ZERO).map(str::to_owned).collect();
    assert!(log.iter().any(|line| line.contains("name is needed for the pod")), "{log:?}");
}

#[test]
fn restarted_kubelet_finds_static_pods() {
    let mut lab = Lab::new(32);
    lab.put("s", Some(&manifest(&["sleep", "infinity"])));
    lab.seconds(4);
    let mirror = lab.get("s-n1").unwrap();
    lab.restart();
    lab.seconds(4);
    assert_eq!(lab.get("s-n1").unwrap()["metadata"]["uid"], mirror["metadata"]["uid"]);
    let id = |status: &Value| of(status, "containerStatuses", "c")["containerID"].clone();
    assert_eq!(id(&lab.status("s-n1")), id(&mirror["status"]));
    // The file was removed while the kubelet was stopped.
    lab.simulation.with(|_, nodes, _| nodes.get_mut("n1").unwrap().kubelet.stop());
    lab.put("s", None);
    lab.restart();
    lab.seconds(8);
    assert!(lab.get("s-n1").is_none());
}

#[test]
fn pod_can_write_manifest() {
    let mut lab = Lab::new(32);
    let text = manifest(&["sleep", "infinity"]).to_string();
    let script = format!("echo '{text}' > /manifests/written.yaml; sleep infinity");
    let container = json!({
        "name": "c", "command": ["sh", "-c", script],
        "volumeMounts": [{"name": "m", "mountPath": "/manifests"}],
    });
    let volumes = json!([{"name": "m", "hostPath": {"path": "/etc/kubernetes/manifests"}}]);
    lab.pod("writer", json!({"containers": [container], "volumes": volumes}));
    lab.seconds(8);
    assert_eq!(lab.status("s-n1")["phase"], "Running");
}

#[test]
fn preemption_spares_static_pods() {
    let mut lab = Lab::new(32);
    let mut big = manifest(&["sleep", "infinity"]);
    big["spec"]["containers"][0]["resources"] = json!({"requests": {"memory": "10Gi"}});
    lab.put("s", Some(&big));
    lab.seconds(4);
    lab.pod(
        "critical",
        json!({
            "priority": 2_000_001_000,
            "priorityClassName": "system-node-critical",
            "containers": [{"name": "c", "resources": {"requests": {"memory": "10Gi"}}}],
        }),
    );
    lab.seconds(4);
    assert_eq!(lab.status("s-n1")["phase"], "Running");
    assert_eq!(lab.status("critical")["reason"], "UnexpectedAdmissionError");
    let counted = "kubelet_admission_rejections_total{reason=\"UnexpectedAdmissionError\"} 1";
    assert!(lab.kubelet().eviction.metrics.text().contains(counted));
}

/// `updatePodsFunc` replaces the annotation of a pod that the API server has.
#[test]
fn an_annotation_makes_no_pod_static() {
    let mut lab = Lab::new(36);
    let source = json!({"kubernetes.io/config.source": "file"});
    let pod = json!({
        "metadata": {"name": "p", "namespace": "default", "annotations": source},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": AGNHOST, "command": ["sleep", "60"]}]},
    });
    let now = lab.simulation.now;
    lab.simulation.with_context(|ctx| ctx.store.create(Kind::Pod, pod, now)).unwrap();
    for restarts in [false, true] {
        if restarts {
            lab.restart();
        }
        lab.seconds(4);
        let active = lab.kubelet().pods.active();
        let pod = active.iter().find(|active| active.object.name() == "p").unwrap();
        assert!(!pod.pod.is_critical());
    }
    assert_eq!(lab.get("p").unwrap()["metadata"]["annotations"], source, "the object stays");
}
