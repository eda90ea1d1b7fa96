//! Events of the control plane. Controllers record core/v1 events and count repetitions; the
//! scheduler records events.k8s.io/v1 events and combines repetitions into a series.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{EventSeries, ObjectReference};
use serde_json::Value;

use crate::apiserver::{control_plane_version, create_event, store_event};
use crate::context::SimContext;
use crate::resource::event::{self, EventMetadata, EventNames};
use crate::resource::{Correlator, Event, EventBody, Kind, ObjectExt};
use crate::sim::SimTime;

/// Time in which similar events of the scheduler are a series.
const SERIES_WINDOW: Duration = Duration::from_secs(360);

/// Objects, reason and action of the events of a series.
type SeriesKey = (String, String, String);

/// Similar events of the scheduler.
#[derive(Clone, Debug)]
struct Series {
    /// Namespace and name of the first event.
    namespace: String,
    name: String,
    /// Time of the last event.
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
    /// Correlators of the controllers' events, by component.
    correlators: BTreeMap<&'static str, Correlator>,
    series: BTreeMap<SeriesKey, Series>,
    names: EventNames,
}

impl Recorder {
    /// Records an event of a controller.
    pub(super) fn record(
        &mut self,
        ctx: &mut SimContext,
        component: &'static str,
        object: ObjectReference,
        body: EventBody,
    ) {
        let now = ctx.epoch().meta_time(ctx.now);
        let mut event = Event::new(object, body).with_count(component, None, now);
        self.name(ctx, &mut event);
        let spam_key_has_type = control_plane_version(ctx).at_least(32);
        let correlator = self.correlators.entry(component).or_default();
        if let Some(event) = correlator.correlate(event, ctx.now, ctx.epoch(), spam_key_has_type) {
            store_event(ctx, &event);
        }
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
        let key = (object_key, body.reason.to_owned(), action.to_owned());
        let now = ctx.epoch().micro_time(ctx.now);
        let series = self.series.get_mut(&key);
        if let Some(last) = series.filter(|last| ctx.now.since(last.at) < SERIES_WINDOW) {
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
        let mut event = Event {
            action: Some(action.to_owned()),
            event_time: Some(now),
            related: cause,
            reporting_component: COMPONENT.to_owned(),
            reporting_instance: format!("{COMPONENT}-control-plane"),
            ..Event::new(object, body)
        };
        self.name(ctx, &mut event);
        if create_event(ctx, &event) {
            let EventMetadata { name, namespace, .. } = event.metadata;
            self.series.insert(key, Series { namespace, name, at: ctx.now, count: 1 });
        }
    }

    fn name(&mut self, ctx: &SimContext, event: &mut Event) {
        let nanoseconds = ctx.epoch().at(ctx.now).as_nanosecond();
        event.metadata.name = self.names.next_name(&event.involved_object, nanoseconds);
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
