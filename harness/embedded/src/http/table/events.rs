//! Table of events (`printEvent`).

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use serde::Deserialize;
use serde_json::{Value, json};

use super::age::age;

/// Returns the cells of a stored event.
pub(crate) fn cells(event: &Value, now: Timestamp) -> Vec<Value> {
    let event = Event::deserialize(event).unwrap_or_default();
    let time = event.event_time.map(|time| time.0);
    let first = event.first_timestamp.map(|first| first.0).or(time);
    let (last, count) = match event.series {
        Some(series) => (series.last_observed_time.map(|last| last.0), series.count),
        None => (event.last_timestamp.map(|last| last.0).or(first), event.count.filter(|count| *count != 0)),
    };
    let about = event.involved_object;
    let kind = about.kind.unwrap_or_default().to_lowercase();
    let object = match about.name.unwrap_or_default() {
        name if name.is_empty() => kind,
        name => format!("{kind}/{name}"),
    };
    let stated = |text: Option<String>| text.filter(|text| !text.is_empty());
    let source = event.source.unwrap_or_default();
    let component = stated(source.component).or(event.reporting_component).unwrap_or_default();
    let source = match stated(source.host).or(event.reporting_instance).unwrap_or_default() {
        host if host.is_empty() => component,
        host => format!("{component}, {host}"),
    };
    vec![
        json!(age(last, now)),
        json!(event.type_.unwrap_or_default()),
        json!(event.reason.unwrap_or_default()),
        json!(object),
        json!(about.field_path.unwrap_or_default()),
        json!(source),
        json!(event.message.unwrap_or_default().trim()),
        json!(age(first, now)),
        json!(count.unwrap_or(1)),
        json!(event.metadata.name.unwrap_or_default()),
    ]
}
