//! Quantities, which the API stores in their canonical form.

use evictlab_rules::quantity::Quantity;
use serde_json::Value;

use crate::store::Kind;

const WRONG: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// Writes all quantities of a pod, a pod's template or a node in their canonical form.
pub(in super::super) fn canonical(kind: Kind, object: &mut Value) -> Result<(), String> {
    match kind {
        Kind::Pod => walk(&mut object["spec"]),
        Kind::Deployment | Kind::ReplicaSet | Kind::Job => {
            object.pointer_mut("/spec/template/spec").map_or(Ok(()), walk)
        }
        Kind::Node => walk(&mut object["status"]),
        _ => Ok(()),
    }
}

fn walk(value: &mut Value) -> Result<(), String> {
    match value {
        Value::Object(fields) => fields.iter_mut().try_for_each(|(name, value)| match name.as_str() {
            "requests" | "limits" | "overhead" | "capacity" | "allocatable" => match value {
                Value::Object(amounts) => amounts.values_mut().try_for_each(write),
                _ => Ok(()),
            },
            "sizeLimit" | "divisor" => write(value),
            // What these hold is nobody's quantity, whatever it is called.
            "nodeSelector" | "matchLabels" => Ok(()),
            _ => walk(value),
        }),
        Value::Array(items) => items.iter_mut().try_for_each(walk),
        _ => Ok(()),
    }
}

fn write(value: &mut Value) -> Result<(), String> {
    let text = match &*value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        // The types tell what is wrong with it.
        _ => return Ok(()),
    };
    let quantity: Quantity = text.parse().map_err(|_| WRONG.to_owned())?;
    let printed = quantity.to_string();
    if value.as_str() != Some(&printed) {
        *value = Value::String(printed);
    }
    Ok(())
}
