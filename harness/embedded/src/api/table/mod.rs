//! Tables: what `kubectl get` prints (`pkg/printers/internalversion/printers.go`).

mod age;
mod columns;
mod events;
mod nodes;
mod pods;
mod workloads;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::resource::Source;
use super::respond::{Include, View};
use crate::store::Kind;
use age::age;

/// The table of objects. Columns are left out where they were told already.
pub fn table<'a>(
    view: &View,
    objects: impl Iterator<Item = &'a Value>,
    metadata: Value,
    columns: bool,
) -> Value {
    let rows: Vec<Value> = objects.map(|object| row(view, object)).collect();
    let columns = columns.then(|| columns::of(view.resource.source));
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": columns.map(|columns| columns.iter().map(columns::Column::object).collect::<Vec<_>>()),
        "rows": rows,
    })
}

fn row(view: &View, object: &Value) -> Value {
    let cells = cells(view.resource.source, object, view.now);
    let shown = match view.include {
        Include::None => Value::Null,
        Include::Metadata => {
            json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
        }
        Include::Object => view.served(object).into_owned(),
    };
    let mut row = json!({"cells": cells, "object": shown});
    if view.resource.source == Source::Stored(Kind::Pod)
        && let Some(condition) = pods::condition(object)
    {
        row["conditions"] = condition;
    }
    row
}

/// The cells of a row, those of wide columns too.
fn cells(source: Source, object: &Value, now: Timestamp) -> Vec<Value> {
    let name = object["metadata"]["name"].clone();
    let age = json!(age(&object["metadata"]["creationTimestamp"], now));
    match source {
        Source::Stored(Kind::Pod) => pods::cells(object, now),
        Source::Stored(Kind::Node) => nodes::cells(object, now),
        Source::Stored(Kind::Event) | Source::NewEvents => events::cells(object, now),
        Source::Stored(Kind::Namespace) => vec![name, json!(text(object, "/status/phase")), age],
        Source::Stored(Kind::ServiceAccount) => vec![name, age],
        Source::Stored(Kind::ConfigMap) => {
            let count = |field: &str| object[field].as_object().map_or(0, |data| data.len());
            vec![name, json!(count("data") + count("binaryData")), age]
        }
        Source::Stored(Kind::PriorityClass) => {
            let default = object["globalDefault"].as_bool().unwrap_or(false);
            vec![name, object["value"].clone(), json!(default), age, json!(text(object, "/preemptionPolicy"))]
        }
        Source::Stored(Kind::PodDisruptionBudget) => {
            let bound = |field: &str| match &object["spec"][field] {
                Value::Null => "N/A".to_owned(),
                Value::String(share) => share.clone(),
                number => number.to_string(),
            };
            let allowed = object["status"]["disruptionsAllowed"].as_i64().unwrap_or(0);
            vec![name, json!(bound("minAvailable")), json!(bound("maxUnavailable")), json!(allowed), age]
        }
        Source::Stored(Kind::Lease) => vec![name, json!(text(object, "/spec/holderIdentity")), age],
        Source::Stored(Kind::Deployment) => workloads::deployment(object, now),
        Source::Stored(Kind::ReplicaSet) => workloads::replica_set(object, now),
        Source::Stored(Kind::Job) => workloads::job(object, now),
        Source::NodeMetrics => vec![
            name,
            object["usage"]["cpu"].clone(),
            object["usage"]["memory"].clone(),
            object["window"].clone(),
        ],
        Source::DaemonSets => {
            let status = |field: &str| object["status"][field].clone();
            vec![
                name,
                status("desiredNumberScheduled"),
                status("currentNumberScheduled"),
                status("numberReady"),
                status("updatedNumberScheduled"),
                status("numberAvailable"),
                json!("<none>"),
                age,
            ]
        }
        Source::PodMetrics | Source::Bindings | Source::AccessReviews => {
            vec![name, json!(text(object, "/metadata/creationTimestamp"))]
        }
    }
}

/// A text in an object, empty if it is absent.
fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

/// The same with another word for nothing.
fn text_or<'a>(object: &'a Value, path: &str, nothing: &'a str) -> &'a str {
    match text(object, path) {
        "" => nothing,
        text => text,
    }
}

/// The items of a list, which may be absent.
fn items<'a>(object: &'a Value, path: &str) -> &'a [Value] {
    object.pointer(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
