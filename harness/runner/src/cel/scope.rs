//! The variables of an expression: what was seen of a case, while it runs and afterwards.

use std::sync::OnceLock;

use cel::common::value::CowVal;
use cel::context::VariableResolver;
use evictlab_rules::KubeletVersion;
use serde_json::{Map, Value, json};

use super::value::{Boxed, named, owned, value, values};
use crate::observe::{Observations, Watched, name_of};

/// The variables, by name; `cases/README.md` says what is in each.
pub(super) const VARIABLES: [&str; 20] = [
    "answers",
    "cgroup",
    "configz",
    "counted",
    "created",
    "events",
    "history",
    "kubelet",
    "kubeletLog",
    "logs",
    "minor",
    "node",
    "nodeHistory",
    "objects",
    "podList",
    "pods",
    "samples",
    "stats",
    "summaryBefore",
    "t",
];

/// What was seen, as expressions speak of it.
pub struct Scope<'a> {
    seen: &'a Observations,
    /// The case as it is now, where it runs still: `t` seconds after its first pod was created.
    now: Option<(f64, &'a Watched)>,
    /// The variables that were spoken of: many expressions speak of the same.
    values: [OnceLock<Boxed<'a>>; VARIABLES.len()],
}

impl<'a> Scope<'a> {
    /// A case that is over.
    pub fn of(seen: &'a Observations) -> Self {
        Self { seen, now: None, values: Default::default() }
    }

    /// A case that runs: its pods, its node and its events so far, `t` seconds after its first pod was created.
    pub fn live(seen: &'a Observations, t: f64, watched: &'a Watched) -> Self {
        Self { seen, now: Some((t, watched)), values: Default::default() }
    }

    fn variable(&self, name: &str) -> Boxed<'a> {
        let seen = self.seen;
        let map = |map: &'a Map<String, Value>| named(map.iter().map(|(key, of)| (key.as_str(), value(of))));
        let now = self.now.map(|(_, watched)| watched);
        match name {
            "answers" => map(&seen.answers),
            "cgroup" => owned(json!(seen.cgroup)),
            "configz" => value(&seen.configz),
            "counted" => map(&seen.evictions_counted),
            "created" => by_name(&mut seen.pods_created.iter()),
            "events" => values(now.map_or(&seen.events, |now| &now.events)),
            "history" => match now {
                Some(now) => named(now.history.iter().map(|(pod, entries)| (pod.as_str(), values(entries)))),
                None => map(&seen.pod_history),
            },
            "kubelet" => owned(json!(seen.kubelet_version)),
            "kubeletLog" => owned(json!(seen.kubelet_log)),
            "logs" => map(&seen.container_logs),
            "minor" => {
                let version = seen.kubelet_version.parse::<KubeletVersion>().ok();
                owned(json!(version.map(|version| version.minor)))
            }
            "node" => value(now.map_or(&seen.node_object, |now| &now.node)),
            "nodeHistory" => values(now.map_or(&seen.node_history, |now| &now.node_history)),
            "objects" => map(&seen.objects),
            "podList" => values(self.pods()),
            "pods" => by_name(&mut self.pods()),
            "samples" => owned(seen.samples.iter().collect()),
            "stats" => {
                owned(seen.samples.iter().next_back().map(|sample| by_container(&sample)).unwrap_or_default())
            }
            "summaryBefore" => value(&seen.summary_before),
            _ => owned(json!(self.now.map(|(t, _)| t).or(seen.seconds))),
        }
    }

    /// The pods as they are, or as they last were: those that are gone included.
    fn pods(&self) -> Box<dyn Iterator<Item = &'a Value> + 'a> {
        let seen = self.seen;
        match self.now {
            Some((_, watched)) => Box::new(watched.all_pods()),
            None => {
                let there = |gone: &&Value| {
                    !seen.pods_final.iter().any(|pod| pod["metadata"]["uid"] == gone["metadata"]["uid"])
                };
                Box::new(seen.pods_gone.iter().filter(there).chain(&seen.pods_final))
            }
        }
    }
}

/// A variable is made when it is first spoken of.
impl VariableResolver for Scope<'_> {
    fn resolve<'b>(&'b self, name: &str) -> Option<CowVal<'b, 'b>> {
        let place = VARIABLES.iter().position(|variable| *variable == name)?;
        Some(CowVal::Borrowed(&**self.values[place].get_or_init(|| self.variable(name))))
    }
}

fn by_name<'a>(pods: &mut dyn Iterator<Item = &'a Value>) -> Boxed<'a> {
    named(pods.map(|pod| (name_of(pod), value(pod))))
}

/// A sample's figures by pod and container.
fn by_container(sample: &Value) -> Value {
    let named = |of: &Value, name: &Value| Some((name.as_str()?.to_owned(), of.clone()));
    let pods = sample["pods"].as_array().into_iter().flatten().filter_map(|pod| {
        let containers = pod["containers"].as_array()?.iter();
        let containers: Map<String, Value> =
            containers.filter_map(|container| named(container, &container["name"])).collect();
        Some((pod["podRef"]["name"].as_str()?.to_owned(), Value::Object(containers)))
    });
    Value::Object(pods.collect())
}
