//! Events of the control plane. Controllers record core/v1 events and count repetitions; the
//! scheduler records events.k8s.io/v1 events and combines repetitions into a series.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{EventSeries, ObjectReference};
use serde_json::Value;

use crate::apiserver::{count_event, create_event};
use crate::context::SimContext;
use crate::resource::event::{self, EventMetadata, EventNames};
use crate::resource::{Event, EventBody, Kind, ObjectExt};
use crate::sim::SimTime;

/// Time in which equal events of a controller are counted.
const REPEAT_WINDOW: Duration = Duration::from_secs(600);
/// Time in which similar events of the scheduler are a series.
const SERIES_WINDOW: Duration = Duration::from_secs(360);

/// Identity of repeated events: component, object, reason, and message or action.
type Key = (&'static str, String, String, String);

/// The last event with a key.
#[derive(Clone, Debug)]
struct LastEvent {
    namespace: String,
    name: String,
    at: SimTime,
    count: u64,
}

/// Objects of a scheduler event.
#[derive(Clone, Debug)]
pub(super) struct EventObjects {
    /// Object that the event is about (`regarding`).
    pub(super) object: ObjectReference,
    /// Object that caused the event (`related`).
    pub(super) cause: Option<ObjectReference>,
}

/// Recorder of events.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    last: BTreeMap<Key, LastEvent>,
    names: EventNames,
}

impl Recorder {
    /// Records an event of a controller. Repetitions within ten minutes are counted (client-go's
    /// `EventCorrelator`).
    pub(super) fn record(
        &mut self,
        ctx: &mut SimContext,
        component: &'static str,
        object: ObjectReference,
        body: EventBody,
    ) {
        let object_key = [&object.kind, &object.namespace, &object.name, &object.uid]
            .map(|field| field.as_deref().unwrap_or_default());
        let key = (component, object_key.join("/"), body.reason.to_owned(), body.message.to_owned());
        let now = ctx.epoch().meta_time(ctx.now);
        let event = Event::new(object, body).with_count(component, None, now);
        if let Some(last) = self.last.get_mut(&key).filter(|last| ctx.now.since(last.at) < REPEAT_WINDOW) {
            last.at = ctx.now;
            last.count += 1;
            let mut repeated = Event { count: Some(last.count), ..event.clone() };
            repeated.metadata.name.clone_from(&last.name);
            if count_event(ctx, &repeated) {
                return;
            }
        }
        self.create(ctx, key, event);
    }

    /// Records an event of the scheduler. The first repetition within six minutes makes a series,
    /// whatever its message; later repetitions are not recorded.
    pub(super) fn record_series(
        &mut self,
        ctx: &mut SimContext,
        EventObjects { object, cause }: EventObjects,
        action: &str,
        body: EventBody,
    ) {
        const COMPONENT: &str = "default-scheduler";
        let object_key = format!("{:?}{:?}", object.uid, cause.as_ref().map(|cause| &cause.uid));
        let key = (COMPONENT, object_key, body.reason.to_owned(), action.to_owned());
        let now = ctx.epoch().micro_time(ctx.now);
        if let Some(last) = self.last.get_mut(&key).filter(|last| ctx.now.since(last.at) < SERIES_WINDOW) {
            last.at = ctx.now;
            last.count += 1;
            if last.count == 2 {
                let series = EventSeries { count: Some(2), last_observed_time: Some(now) };
                ctx.store.update(Kind::Event, &last.namespace, &last.name, |stored| {
                    event::set_series(stored, &series);
                });
            }
            return;
        }
        let event = Event {
            action: Some(action.to_owned()),
            event_time: Some(now),
            related: cause,
            reporting_component: COMPONENT.to_owned(),
            reporting_instance: format!("{COMPONENT}-control-plane"),
            ..Event::new(object, body)
        };
        self.create(ctx, key, event);
    }

    /// Names and creates an event, and remembers it for repetitions.
    fn create(&mut self, ctx: &mut SimContext, key: Key, mut event: Event) {
        let nanoseconds = ctx.epoch().at(ctx.now).as_nanosecond();
        event.metadata.name = self.names.next_name(&event.involved_object, nanoseconds);
        if create_event(ctx, &event) {
            let EventMetadata { name, namespace, .. } = event.metadata;
            self.last.insert(key, LastEvent { namespace, name, at: ctx.now, count: 1 });
        }
    }
}

/// Returns a reference to an object in a namespace.
pub(super) fn object_reference(kind: Kind, object: &Value) -> ObjectReference {
    let (name, version) = kind.names();
    ObjectReference {
        namespace: Some(object.namespace().to_owned()),
        uid: Some(object.uid().to_owned()),
        resource_version: Some(object.resource_version().to_owned()),
        ..reference(name, version, object.name())
    }
}

/// Returns a reference to a pod by name.
pub(super) fn pod_reference(namespace: &str, name: &str) -> ObjectReference {
    ObjectReference { namespace: Some(namespace.to_owned()), ..reference("Pod", "v1", name) }
}

/// Returns a reference to a node.
pub(super) fn node_reference(name: &str, uid: &str) -> ObjectReference {
    ObjectReference { uid: Some(uid.to_owned()), ..reference("Node", "v1", name) }
}

fn reference(kind: &str, version: &str, name: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some(version.to_owned()),
        kind: Some(kind.to_owned()),
        name: Some(name.to_owned()),
        ..ObjectReference::default()
    }
}
