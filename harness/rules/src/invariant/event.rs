//! Evicted events, found among others.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

/// An Evicted event of a pod.
#[derive(Clone, Debug, PartialEq)]
pub struct EvictedEvent {
    /// The pod's name.
    pub pod: String,
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's uid.
    pub uid: String,
    /// The message.
    pub message: String,
    /// The annotations; most evictions for limits have none.
    pub annotations: BTreeMap<String, String>,
    /// When the kubelet made it: to the nanosecond by its name (`<pod>.<hex nanoseconds>`), else by its time stamps.
    pub at: Option<Timestamp>,
}

/// The Evicted events of pods among `events` (core/v1, as JSON), oldest first.
pub fn evicted_events(events: &[Value]) -> Vec<EvictedEvent> {
    let mut evicted: Vec<_> = events.iter().filter_map(EvictedEvent::read).collect();
    evicted.sort_by_key(|event| event.at);
    evicted
}

impl EvictedEvent {
    fn read(event: &Value) -> Option<Self> {
        let text = |path: &str| event.pointer(path).and_then(Value::as_str);
        if text("/reason") != Some("Evicted") || text("/involvedObject/kind") != Some("Pod") {
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
            at: text("/metadata/name").and_then(named_time).or_else(|| {
                let stamps = ["/eventTime", "/firstTimestamp", "/metadata/creationTimestamp"];
                stamps.into_iter().find_map(|path| text(path)?.parse().ok())
            }),
        })
    }
}

fn named_time(name: &str) -> Option<Timestamp> {
    let (_, suffix) = name.rsplit_once('.')?;
    let nanos = i128::from_str_radix(suffix, 16).ok().filter(|_| suffix.len() == 16)?;
    Timestamp::from_nanosecond(nanos).ok()
}
