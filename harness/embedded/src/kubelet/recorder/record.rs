//! Recording and delivery of events.

use std::time::Duration;

use rand::RngExt;
use serde_json::{Value, json};

use super::correlate::Correlation;
use super::state::{ObjectReference, PendingEvent};
use crate::context::SimContext;
use crate::defect::Defect;
use crate::fault::EventDelivery;
use crate::kubelet::event::{KubeletEvent, RecorderEvent};
use crate::kubelet::state::Kubelet;
use crate::resource::{EventBody, Kind, ObjectExt};
use crate::sim::Time;

/// Delay of [`Defect::EvictedEventLate`].
const LATE: Duration = Duration::from_secs(30);
/// Maximum length of an event name in the API server.
const LONGEST_NAME: usize = 253;

impl Kubelet {
    /// Records an event.
    pub(crate) fn record_event(&mut self, about: ObjectReference, body: EventBody, ctx: &mut SimContext) {
        let doubled = match body.reason {
            "Evicted" => self.has(Defect::EvictedEventDoubled),
            "Killing" => self.has(Defect::KillingEventDoubled),
            _ => false,
        };
        if body.reason == "Killing" && self.has(Defect::KillingEventMissing) {
            return;
        }
        if doubled {
            self.send_event(about.clone(), body.clone(), ctx);
        }
        self.send_event(about, body, ctx);
    }

    fn send_event(&mut self, about: ObjectReference, body: EventBody, ctx: &mut SimContext) {
        let is_late = body.reason == "Evicted" && self.has(Defect::EvictedEventLate);
        let late = if is_late { LATE } else { Duration::ZERO };
        let mut object = self.event(about, body, ctx);
        if is_late {
            let moment = json!(ctx.epoch().seconds(ctx.now + late));
            object["firstTimestamp"] = moment.clone();
            object["lastTimestamp"] = moment;
        }
        let newer = self.identity.version.at_least(32);
        let sending = match self.recorder.correlator.correlate(object, ctx.now, ctx.epoch(), newer) {
            Correlation::Dropped => return,
            Correlation::New(object) => PendingEvent { object, counted: false, faults_applied: false },
            Correlation::Counted(object) => PendingEvent { object, counted: true, faults_applied: false },
        };
        let latency = Duration::from_micros(ctx.rng.random_range(1_500..8_000));
        let at = self.recorder.busy.max(ctx.now) + latency;
        self.recorder.busy = at;
        self.send_at(at + late, sending, ctx);
    }

    pub(in crate::kubelet) fn recorder_on(&mut self, event: RecorderEvent, ctx: &mut SimContext) {
        let RecorderEvent::Send(number) = event;
        let Some(mut sending) = self.recorder.waiting.remove(&number) else { return };
        let text =
            |pointer: &str| sending.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let namespace = text("/metadata/namespace").to_owned();
        if !sending.faults_applied {
            // Fault scripts use an empty namespace for nodes.
            let of = if text("/involvedObject/kind") == "Node" { "" } else { &namespace };
            match ctx.faults.event(of, text("/reason")) {
                EventDelivery::Delivered => {}
                EventDelivery::Lost => return,
                EventDelivery::Duplicated => {
                    let mut double = sending.clone();
                    double.faults_applied = true;
                    double.counted = false;
                    double.object["metadata"]["name"] =
                        json!(self.event_name(text("/involvedObject/name"), ctx));
                    self.send_at(ctx.now + Duration::from_millis(1), double, ctx);
                }
                EventDelivery::Delayed(by) => {
                    sending.faults_applied = true;
                    self.send_at(ctx.now + by, sending, ctx);
                    return;
                }
            }
        }
        // The API server rejects events in a namespace that is terminating or missing; the kubelet
        // does not retry.
        let alive = ctx
            .store
            .get(Kind::Namespace, "", &namespace)
            .is_some_and(|namespace| namespace.phase() != "Terminating");
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
        // A name conflict drops the event, as in the kubelet.
        let _taken = ctx.store.create(Kind::Event, object, ctx.now);
    }

    fn send_at(&mut self, at: Time, sending: PendingEvent, ctx: &mut SimContext) {
        self.recorder.last_number += 1;
        let number = self.recorder.last_number;
        self.recorder.waiting.insert(number, sending);
        let event = KubeletEvent::Recorder(RecorderEvent::Send(number));
        self.schedule(at, event, ctx);
    }

    fn event(&mut self, about: ObjectReference, body: EventBody, ctx: &mut SimContext) -> Value {
        let node = self.identity.node.clone();
        let (namespace, name, involved) = match about {
            // Until 1.34 the reference has the node name as uid; since 1.35 it has the API version
            // and no uid (pkg/kubelet/kubelet.go, nodeRef).
            ObjectReference::Node if self.identity.version.at_least(35) => (
                "default".to_owned(),
                node.clone(),
                json!({"apiVersion": "v1", "kind": "Node", "name": node}),
            ),
            ObjectReference::Node => {
                ("default".to_owned(), node.clone(), json!({"kind": "Node", "name": node, "uid": node}))
            }
            ObjectReference::Pod(pod, part) => {
                let metadata = &pod["metadata"];
                let text = |field: &str| metadata.text(field).to_owned();
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
        if let Some(annotations) = body.annotations {
            metadata["annotations"] = annotations;
        }
        let moment = ctx.epoch().seconds(ctx.now);
        json!({
            "metadata": metadata,
            "involvedObject": involved,
            "reason": body.reason,
            "message": body.message,
            "source": {"component": "kubelet", "host": node},
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
            "type": body.event_type,
            "eventTime": null,
            "reportingComponent": "kubelet",
            "reportingInstance": node,
        })
    }

    /// Generates a name from the object's name and the time in nanoseconds; since 1.33 a UUID if
    /// that name is invalid (client-go `util.GenerateEventName`).
    fn event_name(&mut self, of: &str, ctx: &mut SimContext) -> String {
        let nanos = ctx.epoch().at(ctx.now).as_nanosecond() + i128::from(ctx.rng.random_range(0..1000_u16));
        self.recorder.nanos = nanos.max(self.recorder.nanos + 1);
        let name = format!("{of}.{:x}", self.recorder.nanos);
        if name.len() > LONGEST_NAME && self.identity.version.at_least(33) { ctx.store.uid() } else { name }
    }
}
