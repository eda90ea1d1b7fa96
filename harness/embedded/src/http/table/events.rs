//! Table of events (`printEvent`).

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age::age;
use crate::resource::ObjectExt;

/// Returns the cells of a stored event.
pub(crate) fn cells(event: &Value, now: Timestamp) -> Vec<Value> {
    let first = event.time("firstTimestamp").or_else(|| event.time("eventTime"));
    let series = event["series"].is_object();
    let last = match series {
        true => event["series"].time("lastObservedTime"),
        false => event.time("lastTimestamp").or(first),
    };
    let count = if series { &event["series"]["count"] } else { &event["count"] };
    let count = count.as_i64().filter(|count| series || *count != 0).unwrap_or(1);
    let kind = event["involvedObject"].text("kind").to_lowercase();
    let object = match event["involvedObject"].text("name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    let component = event["source"].text_or("component", event.text("reportingComponent"));
    let source = match event["source"].text_or("host", event.text("reportingInstance")) {
        "" => component.to_owned(),
        host => format!("{component}, {host}"),
    };
    vec![
        json!(age(last, now)),
        json!(event.text("type")),
        json!(event.text("reason")),
        json!(object),
        json!(event["involvedObject"].text("fieldPath")),
        json!(source),
        json!(event.text("message").trim()),
        json!(age(first, now)),
        json!(count),
        json!(event["metadata"].text("name")),
    ]
}
