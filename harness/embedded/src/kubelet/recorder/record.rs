//! Recording and delivery of events.

use std::time::Duration;

use k8s_openapi::api::core::v1;
use rand::RngExt;

use super::correlate::Correlation;
use super::state::{ObjectReference, PendingEvent};
use crate::apiserver::{accepts_events, count_event, create_event};
use crate::context::SimContext;
use crate::defect::Defect;
use crate::fault::EventDelivery;
use crate::kubelet::event::{KubeletEvent, RecorderEvent};
use crate::kubelet::state::Kubelet;
use crate::resource::{Event, EventBody, ObjectExt};
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
        let mut event = self.event(about, body, ctx);
        if is_late {
            let moment = ctx.epoch().meta_time(ctx.now + late);
            event.first_timestamp = Some(moment.clone());
            event.last_timestamp = Some(moment);
        }
        let newer = self.identity.version.at_least(32);
        let sending = match self.recorder.correlator.correlate(event, ctx.now, ctx.epoch(), newer) {
            Correlation::Dropped => return,
            Correlation::New(event) => PendingEvent { event, counted: false, faults_applied: false },
            Correlation::Counted(event) => PendingEvent { event, counted: true, faults_applied: false },
        };
        let latency = Duration::from_micros(ctx.rng.random_range(1_500..8_000));
        let at = self.recorder.busy.max(ctx.now) + latency;
        self.recorder.busy = at;
        self.send_at(at + late, sending, ctx);
    }

    pub(in crate::kubelet) fn handle_recorder_event(&mut self, event: RecorderEvent, ctx: &mut SimContext) {
        let RecorderEvent::Send(number) = event;
        let Some(mut sending) = self.recorder.waiting.remove(&number) else { return };
        let namespace = sending.event.metadata.namespace.clone();
        if !sending.faults_applied {
            // Fault scripts use an empty namespace for nodes.
            let involved = &sending.event.involved_object;
            let of = if involved.kind.as_deref() == Some("Node") { "" } else { &namespace };
            match ctx.faults.event(of, &sending.event.reason) {
                EventDelivery::Delivered => {}
                EventDelivery::Lost => return,
                EventDelivery::Duplicated => {
                    let mut double = sending.clone();
                    double.faults_applied = true;
                    double.counted = false;
                    double.event.metadata.name = self.event_name(involved, ctx);
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
        let event = sending.event;
        if !accepts_events(ctx, &namespace) || event.metadata.name.len() > LONGEST_NAME {
            return;
        }
        if !(sending.counted && count_event(ctx, &event)) {
            // A name conflict drops the event, as in the kubelet.
            let _is_created = create_event(ctx, &event);
        }
    }

    fn send_at(&mut self, at: Time, sending: PendingEvent, ctx: &mut SimContext) {
        self.recorder.last_number += 1;
        let number = self.recorder.last_number;
        self.recorder.waiting.insert(number, sending);
        let event = KubeletEvent::Recorder(RecorderEvent::Send(number));
        self.schedule(at, event, ctx);
    }

    fn event(&mut self, about: ObjectReference, body: EventBody, ctx: &mut SimContext) -> Event {
        let object = self.reference(about);
        let name = self.event_name(&object, ctx);
        let now = ctx.epoch().meta_time(ctx.now);
        let mut event = Event::new(object, body).with_count("kubelet", Some(&self.identity.node), now);
        event.metadata.name = name;
        event
    }

    /// Returns the reference to the object of an event. Until 1.34 the reference to the node has
    /// the node name as uid; since 1.35 it has the API version and no uid (pkg/kubelet/kubelet.go,
    /// nodeRef).
    fn reference(&self, about: ObjectReference) -> v1::ObjectReference {
        let node = || Some(self.identity.node.clone());
        let newer = self.identity.version.at_least(35);
        match about {
            ObjectReference::Node => v1::ObjectReference {
                api_version: newer.then(|| "v1".to_owned()),
                kind: Some("Node".to_owned()),
                name: node(),
                uid: node().filter(|_| !newer),
                ..v1::ObjectReference::default()
            },
            ObjectReference::Pod(pod, field_path) => {
                let present = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
                v1::ObjectReference {
                    api_version: Some("v1".to_owned()),
                    field_path,
                    kind: Some("Pod".to_owned()),
                    name: Some(pod.name().to_owned()),
                    namespace: Some(pod.namespace().to_owned()),
                    resource_version: present(pod.resource_version()),
                    uid: present(pod.uid()),
                }
            }
        }
    }

    /// Generates a name from the object's name and the time in nanoseconds; since 1.33 a UUID if
    /// that name is invalid (client-go `util.GenerateEventName`).
    fn event_name(&mut self, object: &v1::ObjectReference, ctx: &mut SimContext) -> String {
        let nanos = ctx.epoch().at(ctx.now).as_nanosecond() + i128::from(ctx.rng.random_range(0..1000_u16));
        let name = self.recorder.names.next_name(object, nanos);
        if name.len() > LONGEST_NAME && self.identity.version.at_least(33) { ctx.store.uid() } else { name }
    }
}
