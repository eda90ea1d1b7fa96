//! Events of the control plane. Controllers record core/v1 events and count repetitions; the
//! scheduler records events.k8s.io/v1 events and combines repetitions into a series.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::context::SimContext;
use crate::resource::{EventBody, Kind, ObjectExt};
use crate::sim::Time;

/// Namespace of events about cluster-scoped objects.
const DEFAULT_NAMESPACE: &str = "default";

/// Identity of repeated events: component, object, reason, and message or action.
type Key = (&'static str, String, String, String);

#[derive(Clone, Debug)]
struct Last {
    namespace: String,
    name: String,
    at: Time,
    count: u64,
}

/// Objects of a scheduler event.
#[derive(Clone, Debug)]
pub(super) struct Related {
    /// Object that the event is about (`regarding`).
    pub(super) object: Value,
    /// Object that caused the event (`related`).
    pub(super) cause: Option<Value>,
}

/// Recorder of events.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    last: BTreeMap<Key, Last>,
    /// Nanoseconds in the name of the last event: names are unique.
    last_name: i128,
}

impl Recorder {
    /// Records an event of a controller. Repetitions within ten minutes are counted (client-go's
    /// `EventCorrelator`).
    pub(super) fn record(
        &mut self,
        ctx: &mut SimContext,
        component: &'static str,
        object: Value,
        body: EventBody,
    ) {
        const REPEATS: Duration = Duration::from_secs(600);
        let of = ["kind", "namespace", "name", "uid"].map(|field| object.text(field));
        let key = (component, of.join("/"), body.reason.to_owned(), body.message.to_owned());
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
        let mut event = self.event(ctx, &object, body);
        event["source"] = json!({"component": component});
        event["firstTimestamp"] = json!(now);
        event["lastTimestamp"] = json!(now);
        event["count"] = json!(1);
        event["eventTime"] = Value::Null;
        event["reportingComponent"] = json!(component);
        event["reportingInstance"] = json!("");
        self.send(ctx, key, event);
    }

    /// Records an event of the scheduler. The first repetition within six minutes makes a series,
    /// whatever its message; later repetitions are not recorded.
    pub(super) fn record_series(
        &mut self,
        ctx: &mut SimContext,
        Related { object, cause }: Related,
        action: &str,
        body: EventBody,
    ) {
        const COMPONENT: &str = "default-scheduler";
        const REPEATS: Duration = Duration::from_secs(360);
        let of = format!("{}{}", object["uid"], cause.as_ref().map_or(&Value::Null, |cause| &cause["uid"]));
        let key = (COMPONENT, of, body.reason.to_owned(), action.to_owned());
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
        let mut event = self.event(ctx, &object, body);
        event["action"] = json!(action);
        event["source"] = json!({});
        event["firstTimestamp"] = Value::Null;
        event["lastTimestamp"] = Value::Null;
        event["eventTime"] = json!(now);
        event["reportingComponent"] = json!(COMPONENT);
        event["reportingInstance"] = json!(format!("{COMPONENT}-control-plane"));
        if let Some(cause) = cause {
            event["related"] = cause;
        }
        self.send(ctx, key, event);
    }

    /// Creates an event with the fields that both APIs share.
    fn event(&mut self, ctx: &SimContext, object: &Value, body: EventBody) -> Value {
        let namespace = match object.text("namespace") {
            "" => DEFAULT_NAMESPACE,
            namespace => namespace,
        };
        self.last_name = ctx.epoch().at(ctx.now).as_nanosecond().max(self.last_name + 1);
        let name = format!("{}.{:x}", object.text("name"), self.last_name);
        json!({
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": object,
            "type": body.event_type,
            "reason": body.reason,
            "message": body.message,
        })
    }

    fn send(&mut self, ctx: &mut SimContext, key: Key, event: Value) {
        let last = Last {
            namespace: event.namespace().to_owned(),
            name: event.name().to_owned(),
            at: ctx.now,
            count: 1,
        };
        // The API server rejects objects in namespaces that are missing or being deleted.
        let namespace = ctx.store.get(Kind::Namespace, "", &last.namespace);
        if namespace.is_some_and(|namespace| namespace.phase() != "Terminating")
            && ctx.store.create(Kind::Event, event, ctx.now).is_ok()
        {
            self.last.insert(key, last);
        }
    }
}

/// Returns a reference to an object.
pub(super) fn object_reference(kind: Kind, object: &Value) -> Value {
    let (name, version) = kind.names();
    json!({
        "kind": name,
        "namespace": object["metadata"]["namespace"],
        "name": object["metadata"]["name"],
        "uid": object["metadata"]["uid"],
        "apiVersion": version,
        "resourceVersion": object["metadata"]["resourceVersion"],
    })
}

/// Returns a reference to a pod by name.
pub(super) fn pod_named(namespace: &str, name: &str) -> Value {
    json!({"kind": "Pod", "namespace": namespace, "name": name, "apiVersion": "v1"})
}

/// Returns a reference to a node.
pub(super) fn node(name: &str, uid: &str) -> Value {
    json!({"kind": "Node", "name": name, "uid": uid, "apiVersion": "v1"})
}
