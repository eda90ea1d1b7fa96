//! Events, and their content.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{EventSeries, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use serde::Serialize;
use serde_json::Value;

use super::ObjectExt;

/// Event (`v1.Event`), as a recorder creates it. Unlike k8s-openapi's type, times that are missing
/// are `null`, as Go writes them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Event {
    pub(crate) metadata: EventMetadata,
    pub(crate) involved_object: ObjectReference,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) source: EventSource,
    pub(crate) first_timestamp: Option<Time>,
    pub(crate) last_timestamp: Option<Time>,
    /// Number of occurrences; missing in events of the scheduler, which have a series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) count: Option<u64>,
    #[serde(rename = "type")]
    pub(crate) event_type: &'static str,
    pub(crate) event_time: Option<MicroTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) action: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) related: Option<ObjectReference>,
    pub(crate) reporting_component: String,
    pub(crate) reporting_instance: String,
}

/// Metadata of an event.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct EventMetadata {
    pub(crate) name: String,
    pub(crate) namespace: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) annotations: Option<BTreeMap<String, String>>,
}

impl Event {
    /// Creates an event about an object, without a name. Events about cluster-scoped objects are in
    /// the namespace `default`.
    pub(crate) fn new(involved_object: ObjectReference, body: EventBody) -> Self {
        let namespace = involved_object.namespace.clone().unwrap_or_else(|| "default".to_owned());
        Self {
            metadata: EventMetadata { namespace, annotations: body.annotations, ..EventMetadata::default() },
            involved_object,
            event_type: body.event_type,
            reason: body.reason.to_owned(),
            message: body.message.to_owned(),
            ..Self::default()
        }
    }

    /// Sets the fields of an event that counts its repetitions (core/v1). `host` is the node of the
    /// component.
    pub(crate) fn with_count(self, component: &str, host: Option<&str>, now: Time) -> Self {
        let host = host.map(str::to_owned);
        Self {
            reporting_component: component.to_owned(),
            reporting_instance: host.clone().unwrap_or_default(),
            source: EventSource { component: Some(component.to_owned()), host },
            first_timestamp: Some(now.clone()),
            last_timestamp: Some(now),
            count: Some(1),
            ..self
        }
    }

    /// Writes the count, the last time and the message of the event to the stored event that it
    /// repeats.
    pub(crate) fn update_repeated(&self, stored: &mut Value) {
        stored.write("count", self.count);
        stored.write("lastTimestamp", &self.last_timestamp);
        stored.write("message", &self.message);
    }
}

/// Names of the events of a recorder.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventNames {
    /// Nanoseconds in the last name.
    last: i128,
}

impl EventNames {
    /// Returns a unique name: that of the object, with a time in nanoseconds.
    pub(crate) fn next_name(&mut self, object: &ObjectReference, nanoseconds: i128) -> String {
        self.last = nanoseconds.max(self.last + 1);
        format!("{}.{:x}", object.name.as_deref().unwrap_or_default(), self.last)
    }
}

/// Adds a series to a stored event (events.k8s.io/v1).
pub(crate) fn set_series(stored: &mut Value, series: &EventSeries) {
    stored.write("series", series);
}

/// Type, reason and message of an event.
#[derive(Clone, Debug)]
pub(crate) struct EventBody<'a> {
    /// `Normal` or `Warning`.
    pub(crate) event_type: &'static str,
    /// Reason, such as `NodeNotReady`.
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
    pub(crate) annotations: Option<BTreeMap<String, String>>,
}

impl<'a> EventBody<'a> {
    /// Creates an event of type `Normal`.
    pub(crate) fn normal(reason: &'a str, message: &'a str) -> Self {
        Self { event_type: "Normal", reason, message, annotations: None }
    }

    /// Creates an event of type `Warning`.
    pub(crate) fn warning(reason: &'a str, message: &'a str) -> Self {
        Self { event_type: "Warning", reason, message, annotations: None }
    }

    /// Sets the annotations.
    pub(crate) fn annotated(self, annotations: Option<BTreeMap<String, String>>) -> Self {
        Self { annotations, ..self }
    }
}
