//! Events: told to the API server, counted up, combined, lost.
//!
//! What happens to an event on its way is client-go's (`tools/record`): similar ones are combined, equal ones counted, too many about one
//! object held back. Then it is sent, one after another, and may meet a fault of the script.

mod correlate;

use std::collections::BTreeMap;
use std::time::Duration;

use rand::RngExt;
use serde_json::{Value, json};

use self::correlate::{Correlator, Fate};
use super::{Kubelet, KubeletEvent};
use crate::agenda::Due;
use crate::fault::EventFate;
use crate::node::NodeEvent;
use crate::store::Kind;
use crate::time::Time;
use crate::world::Ctx;

/// The longest name that the API server takes.
const LONGEST_NAME: usize = 253;

/// An event on its way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecorderEvent {
    /// The event of this number is sent.
    Send(u64),
}

/// What an event is about.
#[derive(Clone, Debug)]
pub enum About<'a> {
    /// The node itself.
    Node,
    /// A pod, or a part of it such as `spec.containers{el1}`.
    Pod(&'a Value, Option<String>),
}

/// An event that waits to be sent.
#[derive(Clone, Debug)]
struct Sending {
    object: Value,
    /// Sent as a change of the event of the same name, not as a new one.
    counted: bool,
    /// What the script's faults leave of it was asked already.
    judged: bool,
}

/// What the kubelet has told.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    correlator: Correlator,
    waiting: BTreeMap<u64, Sending>,
    told: u64,
    /// Events are sent one by one: until when the last one is on its way.
    busy: Time,
    /// The last event's nanoseconds: names must differ.
    nanos: i128,
}

impl Kubelet {
    /// Tells an event. `kind` is `Normal` or `Warning`.
    pub fn tell(
        &mut self,
        about: About,
        kind: &str,
        reason: &str,
        message: &str,
        annotations: Option<Value>,
        ctx: &mut Ctx,
    ) {
        let object = self.event(about, kind, reason, message, annotations, ctx);
        let newer = self.identity.version.at_least(32);
        let sending = match self.recorder.correlator.correlate(object, ctx.now, ctx.epoch(), newer) {
            Fate::Dropped => return,
            Fate::New(object) => Sending { object, counted: false, judged: false },
            Fate::Counted(object) => Sending { object, counted: true, judged: false },
        };
        let latency = Duration::from_micros(ctx.rng.random_range(1_500..8_000));
        let at = self.recorder.busy.max(ctx.now) + latency;
        self.recorder.busy = at;
        self.send_at(at, sending, ctx);
    }

    pub(super) fn recorder_on(&mut self, event: RecorderEvent, ctx: &mut Ctx) {
        let RecorderEvent::Send(number) = event;
        let Some(mut sending) = self.recorder.waiting.remove(&number) else { return };
        let text =
            |pointer: &str| sending.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let namespace = text("/metadata/namespace").to_owned();
        if !sending.judged {
            // The script knows nodes by no namespace.
            let of = if text("/involvedObject/kind") == "Node" { "" } else { &namespace };
            match ctx.faults.event(of, text("/reason")) {
                EventFate::Sent => {}
                EventFate::Lost => return,
                EventFate::Doubled => {
                    let mut double = sending.clone();
                    double.judged = true;
                    double.counted = false;
                    double.object["metadata"]["name"] =
                        json!(self.event_name(text("/involvedObject/name"), ctx));
                    self.send_at(ctx.now + Duration::from_millis(1), double, ctx);
                }
                EventFate::Late(by) => {
                    sending.judged = true;
                    self.send_at(ctx.now + by, sending, ctx);
                    return;
                }
            }
        }
        // The API server takes none in a namespace that ends or is not there; the kubelet does not try again.
        let alive = ctx
            .store
            .get(Kind::Namespace, "", &namespace)
            .is_some_and(|namespace| namespace["status"]["phase"] != "Terminating");
        let name = text("/metadata/name").to_owned();
        if !alive || name.len() > LONGEST_NAME {
            return;
        }
        let object = sending.object;
        if sending.counted {
            let changed = ctx.store.update(Kind::Event, &namespace, &name, |event| {
                for field in ["count", "lastTimestamp", "message"] {
                    event[field] = object[field].clone();
                }
            });
            if changed.is_some() {
                return;
            }
        }
        // Only a name that is taken is refused, and that is dropped as the kubelet drops it.
        let _taken = ctx.store.create(Kind::Event, object, ctx.now);
    }

    fn send_at(&mut self, at: Time, sending: Sending, ctx: &mut Ctx) {
        self.recorder.told += 1;
        let number = self.recorder.told;
        self.recorder.waiting.insert(number, sending);
        let event = KubeletEvent::Recorder(RecorderEvent::Send(number));
        ctx.agenda.at(at, Due::Node(self.identity.node.clone(), NodeEvent::Kubelet(event)));
    }

    fn event(
        &mut self,
        about: About,
        kind: &str,
        reason: &str,
        message: &str,
        annotations: Option<Value>,
        ctx: &mut Ctx,
    ) -> Value {
        let node = self.identity.node.clone();
        let (namespace, name, involved) = match about {
            // Through 1.34 the reference is made by hand with the name as uid; from 1.35 it names the API version
            // and no uid (pkg/kubelet/kubelet.go, nodeRef).
            About::Node if self.identity.version.at_least(35) => (
                "default".to_owned(),
                node.clone(),
                json!({"apiVersion": "v1", "kind": "Node", "name": node}),
            ),
            About::Node => {
                ("default".to_owned(), node.clone(), json!({"kind": "Node", "name": node, "uid": node}))
            }
            About::Pod(pod, part) => {
                let metadata = &pod["metadata"];
                let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
                let mut involved = json!({"apiVersion": "v1"});
                if let Some(part) = part {
                    involved["fieldPath"] = json!(part);
                }
                involved["kind"] = json!("Pod");
                for field in ["name", "namespace", "resourceVersion", "uid"] {
                    involved[field] = metadata[field].clone();
                }
                (text("namespace"), text("name"), involved)
            }
        };
        let mut metadata = json!({"name": self.event_name(&name, ctx), "namespace": namespace});
        if let Some(annotations) = annotations {
            metadata["annotations"] = annotations;
        }
        let moment = ctx.epoch().seconds(ctx.now);
        json!({
            "metadata": metadata,
            "involvedObject": involved,
            "reason": reason,
            "message": message,
            "source": {"component": "kubelet", "host": node},
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
            "type": kind,
            "eventTime": null,
            "reportingComponent": "kubelet",
            "reportingInstance": node,
        })
    }

    /// The object's name and the nanoseconds of the moment; from 1.33 a UUID if that is no valid name
    /// (client-go `util.GenerateEventName`).
    fn event_name(&mut self, of: &str, ctx: &mut Ctx) -> String {
        let nanos = ctx.epoch().at(ctx.now).as_nanosecond() + i128::from(ctx.rng.random_range(0..1000_u16));
        self.recorder.nanos = nanos.max(self.recorder.nanos + 1);
        let name = format!("{of}.{:x}", self.recorder.nanos);
        if name.len() > LONGEST_NAME && self.identity.version.at_least(33) { ctx.store.uid() } else { name }
    }
}

#[cfg(test)]
mod tests;
