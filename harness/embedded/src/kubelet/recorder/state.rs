//! State of the event recorder: correlation, and events that wait for their delivery.
//!
//! The kubelet contains this state, so this file cannot import the kubelet. `record.rs` does, and
//! has the operations.

use std::collections::BTreeMap;

use serde_json::Value;

use super::correlate::Correlator;
use crate::resource::Event;
use crate::resource::event::EventNames;
use crate::sim::SimTime;

/// Object of an event.
#[derive(Clone, Debug)]
pub(crate) enum EventObject<'a> {
    /// The node.
    Node,
    /// A pod, and a field path such as `spec.containers{el1}`.
    Pod(&'a Value, Option<String>),
}

/// Event that waits for its delivery.
#[derive(Clone, Debug)]
pub(super) struct PendingEvent {
    pub(super) event: Event,
    /// True if the event increases the count of an existing one.
    pub(super) updates_existing: bool,
    /// True if faults of the script were already applied.
    pub(super) faults_applied: bool,
}

/// Event recorder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder {
    pub(super) correlator: Correlator,
    /// Events that wait for their delivery, by the ID in
    /// [`RecorderEvent::Send`](crate::kubelet::event::RecorderEvent::Send).
    pub(super) pending: BTreeMap<u64, PendingEvent>,
    /// Highest ID of a pending event so far.
    pub(super) last_pending_id: u64,
    /// Time at which the last event is delivered; events are sent one after another.
    pub(super) last_delivery: SimTime,
    pub(super) names: EventNames,
}
