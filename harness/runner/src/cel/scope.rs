//! The variables of an expression: what was seen of a case, while it runs and afterwards.

use std::borrow::Cow;

use cel::Context;
use evictlab_rules::KubeletVersion;
use serde_json::{Map, Value, json};

use super::ExpressionError;
use super::functions;
use super::value::value;
use crate::observe::{Observations, name_of};

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
    /// The pods as they are now, where the case runs still.
    now: Option<Now<'a>>,
}

/// A case that runs still.
struct Now<'a> {
    t: f64,
    pods: Vec<&'a Value>,
    events: &'a [Value],
}

impl<'a> Scope<'a> {
    /// A case that is over.
    pub fn of(seen: &'a Observations) -> Self {
        Self { seen, now: None }
    }

    /// A case that runs: its pods and events so far, `t` seconds after its first pod was created.
    pub fn live(seen: &'a Observations, t: f64, pods: Vec<&'a Value>, events: &'a [Value]) -> Self {
        Self { seen, now: Some(Now { t, pods, events }) }
    }

    /// A context with the variables that are spoken of.
    pub(super) fn context(&self, spoken_of: &[&str]) -> Result<Context<'static, 'static>, ExpressionError> {
        let no_value = |error: String| ExpressionError::NoValue(error);
        let mut context = Context::default();
        functions::register(&mut context).map_err(|error| no_value(error.to_string()))?;
        for name in VARIABLES.into_iter().filter(|name| spoken_of.contains(name)) {
            context.add_variable_from_value(name, value(self.variable(name).as_ref()));
        }
        Ok(context)
    }

    fn variable(&self, name: &str) -> Cow<'a, Value> {
        let seen = self.seen;
        let list = |values: &[Value]| Cow::Owned(Value::from(values.to_vec()));
        let map = |map: &Map<String, Value>| Cow::Owned(Value::Object(map.clone()));
        match name {
            "answers" => map(&seen.answers),
            "cgroup" => Cow::Owned(json!(seen.cgroup)),
            "configz" => Cow::Borrowed(&seen.configz),
            "counted" => map(&seen.evictions_counted),
            "created" => Cow::Owned(by_name(&mut seen.pods_created.iter())),
            "events" => list(self.now.as_ref().map_or(&seen.events, |now| now.events)),
            "history" => map(&seen.pod_history),
            "kubelet" => Cow::Owned(json!(seen.kubelet_version)),
            "kubeletLog" => Cow::Owned(json!(seen.kubelet_log)),
            "logs" => map(&seen.container_logs),
            "minor" => {
                let version = seen.kubelet_version.parse::<KubeletVersion>().ok();
                Cow::Owned(json!(version.map(|version| version.minor)))
            }
            "node" => Cow::Borrowed(&seen.node_object),
            "nodeHistory" => list(&seen.node_history),
            "objects" => map(&seen.objects),
            "podList" => Cow::Owned(self.pods().cloned().collect::<Vec<_>>().into()),
            "pods" => Cow::Owned(by_name(&mut self.pods())),
            "samples" => Cow::Owned(seen.samples.iter().collect::<Vec<_>>().into()),
            "stats" => Cow::Owned(
                seen.samples.iter().next_back().map(|sample| by_container(&sample)).unwrap_or_default(),
            ),
            "summaryBefore" => Cow::Borrowed(&seen.summary_before),
            _ => Cow::Owned(json!(self.now.as_ref().map(|now| now.t).or(seen.seconds))),
        }
    }

    /// The pods as they are, or as they last were: those that are gone included.
    fn pods(&self) -> Box<dyn Iterator<Item = &'a Value> + '_> {
        match &self.now {
            Some(now) => Box::new(now.pods.iter().copied()),
            None => {
                let there = |gone: &&Value| {
                    !self.seen.pods_final.iter().any(|pod| pod["metadata"]["uid"] == gone["metadata"]["uid"])
                };
                Box::new(self.seen.pods_gone.iter().filter(there).chain(&self.seen.pods_final))
            }
        }
    }
}

fn by_name(pods: &mut dyn Iterator<Item = &Value>) -> Value {
    Value::Object(pods.map(|pod| (name_of(pod), pod.clone())).collect())
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
