//! Recording and delivery of events.

use std::time::Duration;

use evictlab_rules::message::EVICTED_REASON;
use k8s_openapi::api::core::v1::ObjectReference;
use rand::RngExt;

use super::state::{EventObject, PendingEvent};
use crate::apiserver::store_event;
use crate::context::SimContext;
use crate::defect::Defect;
use crate::fault::EventDelivery;
use crate::kubelet::event::KubeletEvent;
use crate::kubelet::state::Kubelet;
use crate::resource::{Event, EventBody, ObjectExt};
use crate::sim::SimTime;

/// Delay of [`Defect::EvictedEventLate`].
const LATE: Duration = Duration::from_secs(30);
/// Maximum length of an event name in the API server.
const LONGEST_NAME: usize = 253;

impl Kubelet {
    /// Records an event.
    pub(crate) fn record_event(&mut self, about: EventObject, body: EventBody, ctx: &mut SimContext) {
        let doubled = match body.reason {
            EVICTED_REASON => self.has(Defect::EvictedEventDoubled),
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

    fn send_event(&mut self, about: EventObject, body: EventBody, ctx: &mut SimContext) {
        let is_late = body.reason == EVICTED_REASON && self.has(Defect::EvictedEventLate);
        let late = if is_late { LATE } else { Duration::ZERO };
        let mut event = self.event(about, body, ctx);
        if is_late {
            let moment = ctx.epoch().meta_time(ctx.now + late);
            event.first_timestamp = Some(moment.clone());
            event.last_timestamp = Some(moment);
        }
        let spam_key_has_type = self.options.version.at_least(32);
        let correlator = &mut self.recorder.correlator;
        let correlated = correlator.correlate(event, ctx.now, ctx.epoch(), spam_key_has_type);
        let Some(correlated) = correlated else { return };
        let latency = Duration::from_micros(ctx.rng.random_range(1_500..8_000));
        let at = self.recorder.last_delivery.max(ctx.now) + latency;
        self.recorder.last_delivery = at;
        self.send_at(at + late, PendingEvent { correlated, pid: self.pid, faults_applied: false }, ctx);
    }

    /// Delivers an event.
    pub(in crate::kubelet) fn deliver_event(&mut self, mut pending: PendingEvent, ctx: &mut SimContext) {
        if pending.pid != self.pid {
            return;
        }
        if !pending.faults_applied {
            // Fault scripts use an empty namespace for nodes.
            let event = &pending.correlated.event;
            let involved = &event.involved_object;
            let is_node = involved.kind.as_deref() == Some("Node");
            let namespace = if is_node { "" } else { &event.metadata.namespace };
            match ctx.faults.deliver_event(namespace, &event.reason) {
                EventDelivery::Delivered => {}
                EventDelivery::Lost => return,
                EventDelivery::Duplicated => {
                    let mut double = pending.clone();
                    double.faults_applied = true;
                    double.correlated.is_repeated = false;
                    double.correlated.event.metadata.name = self.event_name(involved, ctx);
                    self.send_at(ctx.now + Duration::from_millis(1), double, ctx);
                }
                EventDelivery::Delayed(by) => {
                    pending.faults_applied = true;
                    self.send_at(ctx.now + by, pending, ctx);
                    return;
                }
            }
        }
        if pending.correlated.event.metadata.name.len() <= LONGEST_NAME {
            store_event(ctx, &pending.correlated);
        }
    }

    fn send_at(&mut self, at: SimTime, pending: PendingEvent, ctx: &mut SimContext) {
        self.schedule(at, KubeletEvent::Recorder(Box::new(pending)), ctx);
    }

    fn event(&mut self, about: EventObject, body: EventBody, ctx: &mut SimContext) -> Event {
        let object = self.reference(about);
        let name = self.event_name(&object, ctx);
        let now = ctx.epoch().meta_time(ctx.now);
        let mut event = Event::new(object, body).with_count("kubelet", Some(&self.options.name), now);
        event.metadata.name = name;
        event
    }

    /// Returns the reference to the object of an event. Until 1.34 the reference to the node has
    /// the node name as uid; since 1.35 it has the API version and no uid (pkg/kubelet/kubelet.go,
    /// nodeRef).
    fn reference(&self, about: EventObject) -> ObjectReference {
        let node = || Some(self.options.name.clone());
        let newer = self.options.version.at_least(35);
        match about {
            EventObject::Node => ObjectReference {
                api_version: newer.then(|| "v1".to_owned()),
                kind: Some("Node".to_owned()),
                name: node(),
                uid: node().filter(|_| !newer),
                ..ObjectReference::default()
            },
            EventObject::Pod(pod, field_path) => {
                let present = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
                ObjectReference {
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
    fn event_name(&mut self, object: &ObjectReference, ctx: &mut SimContext) -> String {
        let nanos = ctx.epoch().at(ctx.now).as_nanosecond() + i128::from(ctx.rng.random_range(0..1000_u16));
        let name = self.recorder.names.next_name(object, nanos);
        if name.len() > LONGEST_NAME && self.options.version.at_least(33) { ctx.store.uid() } else { name }
    }
}
