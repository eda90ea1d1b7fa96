//! State of the event recorder: correlation, and events that wait for their delivery.
//!
//! The kubelet contains this state, so this file cannot import the kubelet. `record.rs` does, and
//! has the operations.

use serde_json::Value;

use crate::resource::event::EventNames;
use crate::resource::{CorrelatedEvent, Correlator};
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
#[derive(Clone, Debug, PartialEq)]
pub(in crate::kubelet) struct PendingEvent {
    pub(super) correlated: CorrelatedEvent,
    /// Process ID of the kubelet. A kubelet that ends loses the event.
    pub(super) pid: u64,
    /// True if faults of the script were already applied.
    pub(super) faults_applied: bool,
}

/// Event recorder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder {
    pub(super) correlator: Correlator,
    /// Time at which the last event is delivered; events are sent one after another.
    pub(super) last_delivery: SimTime,
    pub(super) names: EventNames,
}
