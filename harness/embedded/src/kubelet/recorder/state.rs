//! Events that wait for their delivery.

use std::collections::BTreeMap;

use serde_json::Value;

use super::correlate::Correlator;
use crate::sim::Time;

/// Object of an event.
#[derive(Clone, Debug)]
pub enum ObjectReference<'a> {
    /// The node.
    Node,
    /// A pod, and a field path such as `spec.containers{el1}`.
    Pod(&'a Value, Option<String>),
}

/// Type, reason and message of an event.
#[derive(Clone, Debug)]
pub struct EventBody<'a> {
    pub(super) event_type: &'static str,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
    pub(super) annotations: Option<Value>,
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
    pub(crate) fn annotated(self, annotations: Option<Value>) -> Self {
        Self { annotations, ..self }
    }
}

/// Event that waits for its delivery.
#[derive(Clone, Debug)]
pub(super) struct PendingEvent {
    pub(super) object: Value,
    /// True if an existing event is updated.
    pub(super) counted: bool,
    /// True if faults of the script were already applied.
    pub(super) faults_applied: bool,
}

/// Event recorder.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    pub(super) correlator: Correlator,
    pub(super) waiting: BTreeMap<u64, PendingEvent>,
    pub(super) last_number: u64,
    /// Time at which the last event is delivered; events are sent one after another.
    pub(super) busy: Time,
    /// Nanoseconds in the last event name: names are unique.
    pub(super) nanos: i128,
}
