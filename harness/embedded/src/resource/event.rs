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
    /// Writes the count, the last time and the message of the event to the stored event that it
    /// repeats.
    pub(crate) fn update_repeated(&self, stored: &mut Value) {
        stored.write("count", self.count);
        stored.write("lastTimestamp", &self.last_timestamp);
        stored.write("message", &self.message);
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
