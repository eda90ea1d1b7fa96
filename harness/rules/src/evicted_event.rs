//! Evicted events of pods, read from events of the API.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::message::EVICTED_REASON;

/// An Evicted event of a pod.
#[derive(Clone, Debug, PartialEq)]
pub struct EvictedEvent {
    /// Pod name.
    pub pod: String,
    /// Pod namespace.
    pub namespace: String,
    /// Pod UID.
    pub uid: String,
    /// Message.
    pub message: String,
    /// Annotations; empty for evictions without node pressure.
    pub annotations: BTreeMap<String, String>,
    /// Time of the event, see [`event_time`].
    pub at: Option<Timestamp>,
}

/// Returns the Evicted events of pods among `events`, oldest first. `events` are core/v1 Events in
/// JSON.
pub fn evicted_events<'a>(events: impl IntoIterator<Item = &'a Value>) -> Vec<EvictedEvent> {
    let mut evicted: Vec<_> = events.into_iter().filter_map(EvictedEvent::from_json).collect();
    evicted.sort_by_key(|event| event.at);
    evicted
}

impl EvictedEvent {
    /// Reads an event; `None` unless its reason is `Evicted` and it is about a pod.
    fn from_json(event: &Value) -> Option<Self> {
        let text = |path: &str| event.pointer(path).and_then(Value::as_str);
        if text("/reason") != Some(EVICTED_REASON) || text("/involvedObject/kind") != Some("Pod") {
            return None;
        }
        let annotations = event.pointer("/metadata/annotations").and_then(Value::as_object);
        let pairs = annotations.into_iter().flatten();
        Some(Self {
            pod: text("/involvedObject/name")?.to_owned(),
            namespace: text("/involvedObject/namespace").unwrap_or_default().to_owned(),
            uid: text("/involvedObject/uid").unwrap_or_default().to_owned(),
            message: text("/message").unwrap_or_default().to_owned(),
            annotations: pairs
                .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
                .collect(),
            at: event_time(event),
        })
    }
}

/// Returns the time of a core/v1 Event in JSON: in nanoseconds from its name (`<pod>.<hex
/// nanoseconds>`) if possible, otherwise from its timestamps.
pub fn event_time(event: &Value) -> Option<Timestamp> {
    let text = |path: &str| event.pointer(path).and_then(Value::as_str);
    text("/metadata/name").and_then(time_from_name).or_else(|| {
        let timestamps = ["/eventTime", "/firstTimestamp", "/metadata/creationTimestamp"];
        timestamps.into_iter().find_map(|path| text(path)?.parse().ok())
    })
}

fn time_from_name(name: &str) -> Option<Timestamp> {
    let (_, suffix) = name.rsplit_once('.')?;
    let nanos = i128::from_str_radix(suffix, 16).ok().filter(|_| suffix.len() == 16)?;
    Timestamp::from_nanosecond(nanos).ok()
}
