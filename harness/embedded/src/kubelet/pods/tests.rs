use std::time::Duration;

use evictlab_rules::KubeletVersion;
use serde_json::{Value, json};

use super::*;
use crate::machine::Signal;
use crate::options::{NodeOptions, Options};
use crate::store::Kind;
use crate::world::World;

mod ends;
mod facts;
mod lifecycle;
mod recordings;
mod refusals;
mod statics;

const AGNHOST: &str = "registry.k8s.io/e2e-test-images/agnhost:2.52";

/// A cluster of one node.
struct Lab {
    world: World,
}

impl Lab {
    fn new(minor: u32) -> Self {
        let node = NodeOptions::new("n1", KubeletVersion::minor(minor));
        let epoch = "2026-01-01T00:00:00Z".parse().unwrap();
        let world = World::new(Options::new(7, epoch, vec![node])).unwrap();
        let mut lab = Self { world };
        for name in ["default", "kube-system"] {
            let object = json!({"metadata": {"name": name}, "status": {"phase": "Active"}});
            let _exists = lab.world.store.create(Kind::Namespace, object, Time::ZERO);
        }
        lab
    }

    /// Creates a pod that is bound to the node; the answer is its uid.
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
        let now = self.world.now;
        let pod = self.world.with(|_, _, ctx| ctx.store.create(Kind::Pod, pod, now)).unwrap();
        pod["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    fn seconds(&mut self, seconds: u64) {
        self.millis(seconds * 1000);
    }

    fn millis(&mut self, millis: u64) {
        self.world.run(self.world.now + Duration::from_millis(millis));
    }

    /// Has a running container end with a status, as if by itself.
    fn exit(&mut self, pod: &str, name: &str, status: i32) {
        self.world.with(|_, nodes, ctx| {
            let node = nodes.get_mut("n1").unwrap();
            let running = node.kubelet.pods.running(pod);
            let id = running.into_iter().find(|running| running.name == name).unwrap().id;
            node.machine.signal(&id, Signal::Kill, ctx.now);
            for mut happened in node.machine.run(ctx.now, ctx.rng) {
                if let Happened::Exited { container, code, .. } = &mut happened
                    && *container == id
                {
                    *code = status;
                }
                node.kubelet.happened(happened, &mut node.machine, ctx);
            }
        });
    }

    fn evict(&mut self, pod: &str, message: &str, grace: Option<u64>) {
        let why =
            Eviction { message: message.to_owned(), disruption: true, grace: grace.map(Duration::from_secs) };
        self.world.with(|_, nodes, ctx| {
            let node = nodes.get_mut("n1").unwrap();
            node.kubelet.evict(pod, why, &mut node.machine, ctx);
        });
    }

    fn get(&self, name: &str) -> Option<Value> {
        self.world.store.get(Kind::Pod, "default", name).map(|pod| Value::clone(pod))
    }

    fn status(&self, name: &str) -> Value {
        self.get(name).unwrap()["status"].clone()
    }

    fn log(&mut self, pod: &str, container: &str, query: &str) -> LogAnswer {
        self.world.with(|_, nodes, ctx| {
            let node = &nodes["n1"];
            node.kubelet.container_log("default", pod, container, query, &node.machine, ctx)
        })
    }

    fn kubelet(&self) -> &Kubelet {
        &self.world.nodes["n1"].kubelet
    }

    /// `reason container` of each event about a pod, in order.
    fn events(&self, name: &str) -> Vec<String> {
        self.all_events(name)
            .iter()
            .map(|event| {
                let path = event["involvedObject"]["fieldPath"].as_str().unwrap_or_default();
                let container = path.split(['{', '}']).nth(1).unwrap_or_default();
                format!("{} {container}", event["reason"].as_str().unwrap()).trim().to_owned()
            })
            .collect()
    }

    fn all_events(&self, name: &str) -> Vec<Value> {
        let events = self.world.store.list(Kind::Event, Some("default"));
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

/// The container of a name in a list of statuses.
fn of<'a>(status: &'a Value, list: &str, name: &str) -> &'a Value {
    status[list].as_array().unwrap().iter().find(|status| status["name"] == *name).unwrap()
}
