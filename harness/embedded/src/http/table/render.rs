//! Tables and rows of all resources.

use jiff::Timestamp;
use k8s_openapi::api::policy::v1::{PodDisruptionBudgetSpec, PodDisruptionBudgetStatus};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Value, json};

use super::age::age;
use super::columns::{Column, columns};
use super::{events, nodes, pods};
use crate::resource::{Kind, ObjectExt};

/// Returns a table of rows. In a watch, only the first table has column definitions.
pub(crate) fn table(kind: Kind, rows: Vec<Value>, metadata: Value, with_columns: bool) -> Value {
    let columns = with_columns.then(|| columns(kind).iter().map(Column::definition).collect::<Vec<_>>());
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": columns,
        "rows": rows,
    })
}

/// Returns the row of a stored object. `included` is the part of the object that the row contains.
pub(crate) fn row(kind: Kind, stored: &Value, included: Value, now: Timestamp) -> Value {
    let mut row = json!({"cells": cells(kind, stored, now), "object": included});
    if kind == Kind::Pod
        && let Some(condition) = pods::completed_condition(stored)
    {
        row.write("conditions", condition);
    }
    row
}

/// Returns the cells of a row, including those of `-o wide`.
fn cells(kind: Kind, object: &Value, now: Timestamp) -> Vec<Value> {
    let name = json!(object.name());
    let age = json!(age(object.created(), now));
    match kind {
        Kind::Pod => pods::cells(object, now),
        Kind::Node => nodes::cells(object, now),
        Kind::Event => events::cells(object, now),
        Kind::Namespace => vec![name, json!(object.phase()), age],
        Kind::PodDisruptionBudget => {
            let spec: PodDisruptionBudgetSpec = object.read("spec");
            let status: PodDisruptionBudgetStatus = object.read("status");
            let bound =
                |bound: Option<IntOrString>| bound.map_or_else(|| json!("N/A"), |bound| json!(text(bound)));
            let allowed = json!(status.disruptions_allowed);
            vec![name, bound(spec.min_available), bound(spec.max_unavailable), allowed, age]
        }
        _ => vec![name, age],
    }
}

fn text(bound: IntOrString) -> String {
    match bound {
        IntOrString::Int(number) => number.to_string(),
        IntOrString::String(percent) => percent,
    }
}
