//! Table of events (`printEvent`).

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age::age;
use super::fields::{text, text_or};

/// Returns the cells of a stored event.
pub(crate) fn cells(event: &Value, now: Timestamp) -> Vec<Value> {
    let since = |path: &str| age(event.pointer(path).unwrap_or(&Value::Null), now);
    let is_set = |path: &str| !text(event, path).is_empty();
    let first = if is_set("/firstTimestamp") { since("/firstTimestamp") } else { since("/eventTime") };
    let series = event["series"].is_object();
    let last = match () {
        () if series => since("/series/lastObservedTime"),
        () if is_set("/lastTimestamp") => since("/lastTimestamp"),
        () => first.clone(),
    };
    let count = if series { &event["series"]["count"] } else { &event["count"] };
    let count = count.as_i64().filter(|count| series || *count != 0).unwrap_or(1);
    let kind = text(event, "/involvedObject/kind").to_lowercase();
    let object = match text(event, "/involvedObject/name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    let component = text_or(event, "/source/component", text(event, "/reportingComponent"));
    let source = match text_or(event, "/source/host", text(event, "/reportingInstance")) {
        "" => component.to_owned(),
        host => format!("{component}, {host}"),
    };
    vec![
        json!(last),
        json!(text(event, "/type")),
        json!(text(event, "/reason")),
        json!(object),
        json!(text(event, "/involvedObject/fieldPath")),
        json!(source),
        json!(text(event, "/message").trim()),
        json!(first),
        json!(count),
        json!(text(event, "/metadata/name")),
    ]
}
