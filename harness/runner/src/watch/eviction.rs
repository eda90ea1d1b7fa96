//! An Evicted event, and whether it was foreseen.

use evictlab_rules::message::EvictionMessage;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;

use super::reading::Reading;
use crate::report::apart;

/// An Evicted event of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Eviction {
    /// When the kubelet said it, to the second; none if the event does not tell.
    pub at: Option<Timestamp>,
    /// The kubelet's node, as far as the event tells.
    pub node: Option<String>,
    /// `namespace/name`.
    pub pod: String,
    /// The pod's uid.
    pub uid: String,
    /// What it says.
    pub message: String,
}

impl Eviction {
    /// None for an event of another kind.
    pub fn of(event: &Event) -> Option<Self> {
        let about = &event.involved_object;
        if event.reason.as_deref() != Some("Evicted") || about.kind.as_deref() != Some("Pod") {
            return None;
        }
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let host = event.source.as_ref().and_then(|source| source.host.clone());
        let told = host.or_else(|| event.reporting_instance.clone());
        let seconds = event.last_timestamp.as_ref().map(|time| time.0);
        Some(Self {
            at: seconds.or_else(|| event.event_time.as_ref().map(|time| time.0)),
            node: told.filter(|name| !name.is_empty()),
            pod: format!("{}/{}", text(&about.namespace), text(&about.name)),
            uid: text(&about.uid),
            message: text(&event.message),
        })
    }

    /// The message taken apart, in one line.
    pub fn short(&self) -> String {
        apart(&self.message).join("; ")
    }

    /// Whether the order that was read last had it first, in a sentence.
    pub fn foreseen(&self, reading: Option<&Reading>) -> String {
        let pressure = match self.message.parse() {
            Ok(EvictionMessage::NodePressure(pressure)) => pressure,
            Ok(EvictionMessage::Rejected { .. }) => return "it was not admitted, and never ran".to_owned(),
            Ok(_) => return "for its own limit, so that no order counts".to_owned(),
            Err(_) => return "the order cannot be held against it".to_owned(),
        };
        let Some(reading) = reading else {
            return "no order was known: the node could not be read".to_owned();
        };
        if pressure.resource != reading.signal.resource() {
            return format!("for {}, and the order is that for {}", pressure.resource, reading.signal);
        }
        if reading.never.iter().any(|never| never.uid == self.uid) {
            return "not foreseen: it was taken for one that is never evicted".to_owned();
        }
        let Some(own) = reading.order.iter().find(|candidate| candidate.uid == self.uid) else {
            return "not foreseen: it was not on the node at the last look".to_owned();
        };
        let first: Vec<&str> =
            reading.order.iter().filter(|other| other.place == 1).map(|other| other.pod.as_str()).collect();
        match (own.place, first.len()) {
            (1, 1) => format!("as foreseen, it was the first in order: {}", own.why),
            (1, equal) => format!("as foreseen, it was one of {equal} equal first in order: {}", own.why),
            (place, _) => {
                let why = &reading.order[0].why;
                format!(
                    "not foreseen: it was number {place} ({}); the first was {} ({why})",
                    own.why,
                    first.join(", ")
                )
            }
        }
    }
}
