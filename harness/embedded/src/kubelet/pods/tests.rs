use std::time::Duration;

use evictlab_rules::KubeletVersion;
use serde_json::{Value, json};

use super::*;
use crate::apiserver::Status;
use crate::kubelet::Kubelet;
use crate::machine::{MachineEvent, SIGKILL};
use crate::options::{ClusterOptions, NodeOptions};
use crate::resource::{Kind, ObjectExt};
use crate::sim::SimTime;
use crate::simulation::Simulation;

mod ends;
mod facts;
mod hooks;
mod lifecycle;
mod readmission;
mod reclaim;
mod recordings;
mod refusals;
mod resizes;
mod restart_rules;
mod statics;

const AGNHOST: &str = "registry.k8s.io/e2e-test-images/agnhost:2.52";

/// Cluster with one node.
struct Lab {
    simulation: Simulation,
}

impl Lab {
    fn new(minor: u32) -> Self {
        let node = NodeOptions::new("n1", KubeletVersion::from_minor(minor));
        let epoch = "2026-01-01T00:00:00Z".parse().unwrap();
        let simulation = Simulation::new(ClusterOptions::new(7, epoch, vec![node])).unwrap();
        let mut lab = Self { simulation };
        for name in ["default", "kube-system"] {
            let object = json!({"metadata": {"name": name}, "status": {"phase": "ActivePod"}});
            let _exists = lab.simulation.store.create(Kind::Namespace, object, SimTime::ZERO);
        }
        lab
    }

    /// Creates a pod that is bound to the node, and returns its uid.
    fn pod(&mut self, name: &str, spec: Value) -> String {
        let mut spec = spec;
        spec["nodeName"] = json!("n1");
        for list in ["containers", "initContainers"] {
            for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                if container["image"].is_null() {
                    container["image"] = json!(AGNHOST);
                }
                if container["command"].is_null() && container["args"].is_null() {
                    container["command"] = json!(["sleep", "infinity"]);
                }
            }
        }
        for (field, value) in [("restartPolicy", json!("Never")), ("terminationGracePeriodSeconds", json!(1))]
        {
            if spec[field].is_null() {
                spec[field] = value;
            }
        }
        let pod = json!({
            "metadata": {"name": name, "namespace": "default", "generation": 1},
            "spec": spec,
            "status": {"phase": "Pending"},
        });
        let now = self.simulation.now;
        let pod = self.simulation.with_context(|ctx| ctx.store.create(Kind::Pod, pod, now)).unwrap();
        pod["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    fn seconds(&mut self, seconds: u64) {
        self.millis(seconds * 1000);
    }

    fn millis(&mut self, millis: u64) {
        self.simulation.run(self.simulation.now + Duration::from_millis(millis));
    }

    /// Makes a running container exit with a code.
    fn exit(&mut self, pod: &str, name: &str, status: i32) {
        self.simulation.with(|_, nodes, ctx| {
            let node = nodes.get_mut("n1").unwrap();
            let running = node.kubelet.pods.running(pod);
            let id = running.into_iter().find(|running| running.name == name).unwrap().id;
            node.machine.signal(&id, SIGKILL, ctx.now);
            for mut event in node.machine.run(ctx.now) {
                if let MachineEvent::ContainerExited { container, code, .. } = &mut event
                    && *container == id
                {
                    *code = status;
                }
                node.kubelet.handle_machine_event(event, &mut node.machine, ctx);
            }
        });
    }

    fn evict(&mut self, pod: &str, message: &str, grace: Option<i64>) {
        let why = PodEviction { message: message.to_owned(), disruption: true, grace };
        self.simulation.with(|_, nodes, ctx| {
            let node = nodes.get_mut("n1").unwrap();
            node.kubelet.evict(pod, why, &mut node.machine, ctx);
            node.schedule_wakeup(ctx);
        });
    }

    fn get(&self, name: &str) -> Option<Value> {
        self.simulation.store.get(Kind::Pod, "default", name).map(|pod| Value::clone(pod))
    }

    fn status(&self, name: &str) -> Value {
        self.get(name).unwrap()["status"].clone()
    }

    fn log(&mut self, pod: &str, container: &str, options: PodLogOptions) -> Result<String, Status> {
        self.simulation.with(|_, nodes, ctx| {
            let node = &nodes["n1"];
            let path = LogPath { namespace: "default", pod, container };
            node.kubelet.container_log(path, &options, &node.machine, ctx)
        })
    }

    fn kubelet(&self) -> &Kubelet {
        &self.simulation.nodes["n1"].kubelet
    }

    /// Returns `reason container` of each event about a pod, in order.
    fn events(&self, name: &str) -> Vec<String> {
        self.all_events(name)
            .iter()
            .map(|event| {
                let path = event["involvedObject"].text("fieldPath");
                let container = path.split(['{', '}']).nth(1).unwrap_or_default();
                format!("{} {container}", event["reason"].as_str().unwrap()).trim().to_owned()
            })
            .collect()
    }

    fn all_events(&self, name: &str) -> Vec<Value> {
        let events = self.simulation.store.list(Kind::Event, Some("default"));
        let mut events: Vec<Value> = events
            .filter(|event| event["involvedObject"]["name"] == *name)
            .map(|event| Value::clone(event))
            .collect();
        events.sort_by_key(|event| event["metadata"]["name"].as_str().unwrap().to_owned());
        events
    }

    fn messages(&self, name: &str, reason: &str) -> Vec<String> {
        let events = self.all_events(name);
        let events = events.iter().filter(|event| event["reason"] == *reason);
        events.map(|event| event["message"].as_str().unwrap().to_owned()).collect()
    }

    fn condition(&self, name: &str, kind: &str) -> Value {
        let status = self.status(name);
        let all = status["conditions"].as_array().unwrap();
        all.iter().find(|condition| condition["type"] == *kind).cloned().unwrap_or_default()
    }
}

/// Returns the status of a container.
fn of<'a>(status: &'a Value, list: &str, name: &str) -> &'a Value {
    status[list].as_array().unwrap().iter().find(|status| status["name"] == *name).unwrap()
}
