//! Events that wait for their delivery.

use std::collections::BTreeMap;

use serde_json::Value;

use super::correlate::Correlator;
use crate::resource::Event;
use crate::resource::event::EventNames;
use crate::sim::Time;

/// Object of an event.
#[derive(Clone, Debug)]
pub(crate) enum ObjectReference<'a> {
    /// The node.
    Node,
    /// A pod, and a field path such as `spec.containers{el1}`.
    Pod(&'a Value, Option<String>),
}

/// Event that waits for its delivery.
#[derive(Clone, Debug)]
pub(super) struct PendingEvent {
    pub(super) event: Event,
    /// True if an existing event is updated.
    pub(super) counted: bool,
    /// True if faults of the script were already applied.
    pub(super) faults_applied: bool,
}

/// Event recorder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder {
    pub(super) correlator: Correlator,
    pub(super) waiting: BTreeMap<u64, PendingEvent>,
    pub(super) last_number: u64,
    /// Time at which the last event is delivered; events are sent one after another.
    pub(super) busy: Time,
    pub(super) names: EventNames,
}
