//! Quantities in canonical form, as the API stores them.

use evictlab_rules::quantity::Quantity;
use serde_json::Value;

use crate::resource::{Kind, ObjectExt};

const INVALID: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// Canonicalizes the quantities of a pod, a pod template or a node.
pub(super) fn canonicalize(kind: Kind, object: &mut Value) -> Result<(), String> {
    match kind {
        Kind::Pod => walk(object.spec_mut()),
        Kind::Deployment | Kind::ReplicaSet | Kind::Job => {
            object.pointer_mut("/spec/template/spec").map_or(Ok(()), walk)
        }
        Kind::Node => walk(object.status_mut()),
        _ => Ok(()),
    }
}

fn walk(value: &mut Value) -> Result<(), String> {
    match value {
        Value::Object(fields) => fields.iter_mut().try_for_each(|(name, value)| match name.as_str() {
            "requests" | "limits" | "overhead" | "capacity" | "allocatable" => match value {
                Value::Object(amounts) => amounts.values_mut().try_for_each(canonicalize_value),
                _ => Ok(()),
            },
            "sizeLimit" | "divisor" => canonicalize_value(value),
            // Keys of these maps may be called like resource lists.
            "nodeSelector" | "matchLabels" => Ok(()),
            _ => walk(value),
        }),
        Value::Array(items) => items.iter_mut().try_for_each(walk),
        _ => Ok(()),
    }
}

fn canonicalize_value(value: &mut Value) -> Result<(), String> {
    let text = match &*value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        // Reported by the type check.
        _ => return Ok(()),
    };
    let quantity: Quantity = text.parse().map_err(|_| INVALID.to_owned())?;
    let printed = quantity.to_string();
    if value.as_str() != Some(&printed) {
        *value = Value::String(printed);
    }
    Ok(())
}
