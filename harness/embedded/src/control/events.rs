//! Events that the control plane tells, in the two ways of its parts: controllers through core/v1, counted up when they repeat; the scheduler
//! through events.k8s.io/v1, as a series when they repeat.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::{DEFAULT, meta};
use crate::store::Kind;
use crate::time::Time;
use crate::world::Ctx;

/// `Normal` or `Warning`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    /// Nothing is wrong.
    Normal,
    /// Something is.
    Warning,
}

impl Weight {
    fn name(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// What an event says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told<'a> {
    pub(super) weight: Weight,
    /// Such as `NodeNotReady`.
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
}

/// What makes two events the same: who tells them, of whom, and what.
type Key = (&'static str, String, String, String);

#[derive(Clone, Debug)]
struct Last {
    namespace: String,
    name: String,
    at: Time,
    count: u64,
}

/// What was told.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    last: BTreeMap<Key, Last>,
    /// The moment of the last event's name, in nanoseconds: names are unique.
    named: i128,
}

impl Recorder {
    /// A controller's event. What repeats within ten minutes is counted (client-go's `EventCorrelator`).
    pub(super) fn tell(&mut self, ctx: &mut Ctx, component: &'static str, about: Value, told: Told) {
        const REPEATS: Duration = Duration::from_secs(600);
        let of = ["kind", "namespace", "name", "uid"].map(|field| about[field].as_str().unwrap_or_default());
        let key = (component, of.join("/"), told.reason.to_owned(), told.message.to_owned());
        let now = ctx.epoch().seconds(ctx.now);
        if let Some(last) = self.last.get_mut(&key).filter(|last| ctx.now.since(last.at) < REPEATS) {
            last.at = ctx.now;
            last.count += 1;
            let counted = ctx.store.update(Kind::Event, &last.namespace, &last.name, |event| {
                event["count"] = json!(last.count);
                event["lastTimestamp"] = json!(now);
            });
            if counted.is_some() {
                return;
            }
        }
        let mut event = self.event(ctx, &about, told);
        event["source"] = json!({"component": component});
        event["firstTimestamp"] = json!(now);
        event["lastTimestamp"] = json!(now);
        event["count"] = json!(1);
        event["eventTime"] = Value::Null;
        event["reportingComponent"] = json!(component);
        event["reportingInstance"] = json!("");
        self.send(ctx, key, event);
    }

    /// An event of the scheduler. What repeats within six minutes becomes a series, whatever its message: only its second time is told.
    pub(super) fn tell_series(
        &mut self,
        ctx: &mut Ctx,
        about: Value,
        related: Option<Value>,
        action: &str,
        told: Told,
    ) {
        const COMPONENT: &str = "default-scheduler";
        const REPEATS: Duration = Duration::from_secs(360);
        let of =
            format!("{}{}", about["uid"], related.as_ref().map_or(&Value::Null, |related| &related["uid"]));
        let key = (COMPONENT, of, told.reason.to_owned(), action.to_owned());
        let now = ctx.epoch().micros(ctx.now);
        if let Some(last) = self.last.get_mut(&key).filter(|last| ctx.now.since(last.at) < REPEATS) {
            last.at = ctx.now;
            last.count += 1;
            if last.count == 2 {
                ctx.store.update(Kind::Event, &last.namespace, &last.name, |event| {
                    event["series"] = json!({"count": last.count, "lastObservedTime": now});
                });
            }
            return;
        }
        let mut event = self.event(ctx, &about, told);
        event["action"] = json!(action);
        event["source"] = json!({});
        event["firstTimestamp"] = Value::Null;
        event["lastTimestamp"] = Value::Null;
        event["eventTime"] = json!(now);
        event["reportingComponent"] = json!(COMPONENT);
        event["reportingInstance"] = json!(format!("{COMPONENT}-control-plane"));
        if let Some(related) = related {
            event["related"] = related;
        }
        self.send(ctx, key, event);
    }

    /// What is the same in both ways.
    fn event(&mut self, ctx: &Ctx, about: &Value, told: Told) -> Value {
        let namespace = match about["namespace"].as_str().unwrap_or_default() {
            "" => DEFAULT,
            namespace => namespace,
        };
        self.named = ctx.epoch().at(ctx.now).as_nanosecond().max(self.named + 1);
        let name = format!("{}.{:x}", about["name"].as_str().unwrap_or_default(), self.named);
        json!({
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": about,
            "type": told.weight.name(),
            "reason": told.reason,
            "message": told.message,
        })
    }

    fn send(&mut self, ctx: &mut Ctx, key: Key, event: Value) {
        let last = Last {
            namespace: meta(&event, "namespace").to_owned(),
            name: meta(&event, "name").to_owned(),
            at: ctx.now,
            count: 1,
        };
        // Nothing is created in a namespace that is gone or going.
        let namespace = ctx.store.get(Kind::Namespace, "", &last.namespace);
        if namespace.is_some_and(|namespace| namespace["status"]["phase"] != "Terminating")
            && ctx.store.create(Kind::Event, event, ctx.now).is_ok()
        {
            self.last.insert(key, last);
        }
    }
}

/// A reference to a pod.
pub(super) fn pod(pod: &Value) -> Value {
    json!({
        "kind": "Pod",
        "namespace": pod["metadata"]["namespace"],
        "name": pod["metadata"]["name"],
        "uid": pod["metadata"]["uid"],
        "apiVersion": "v1",
        "resourceVersion": pod["metadata"]["resourceVersion"],
    })
}

/// A reference to a pod by its name only.
pub(super) fn pod_named(namespace: &str, name: &str) -> Value {
    json!({"kind": "Pod", "namespace": namespace, "name": name, "apiVersion": "v1"})
}

/// A reference to a node.
pub(super) fn node(name: &str, uid: &str) -> Value {
    json!({"kind": "Node", "name": name, "uid": uid, "apiVersion": "v1"})
}
