//! Conversion of protobuf messages to JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use quick_protobuf::Result;
use serde_json::{Map, Value, json};

use super::schema::{Cardinality, Field, FieldType, Message, Schema};
use super::wire::{WireValue, decode_utf8, fields};

/// Adds the fields of a message to an object.
pub(crate) fn decode_message(
    schema: &Schema,
    known: &Message,
    bytes: &[u8],
    object: &mut Map<String, Value>,
) -> Result<()> {
    for (number, wire) in fields(bytes)? {
        let Some(field) = known.get(&number) else { continue };
        match field.cardinality {
            Cardinality::Required => {
                let value = decode_value(schema, field.kind, wire)?;
                if !is_zero(&value) {
                    object.insert(field.name.to_owned(), value);
                }
            }
            Cardinality::Optional => {
                object.insert(field.name.to_owned(), decode_value(schema, field.kind, wire)?);
            }
            Cardinality::List => {
                let value = decode_value(schema, field.kind, wire)?;
                let list = object.entry(field.name).or_insert_with(|| json!([]));
                list.as_array_mut().into_iter().for_each(|list| list.push(value.clone()));
            }
            Cardinality::Map => {
                let (key, value) = decode_entry(schema, field, wire)?;
                let map = object.entry(field.name).or_insert_with(|| json!({}));
                map[key] = value;
            }
            Cardinality::Inline => {
                let inner = field.kind.message().and_then(|name| schema.message(name));
                if let (WireValue::Bytes(bytes), Some(inner)) = (wire, inner) {
                    decode_message(schema, inner, bytes, object)?;
                }
            }
        }
    }
    Ok(())
}

fn decode_value(schema: &Schema, kind: FieldType, wire: WireValue) -> Result<Value> {
    Ok(match (kind, wire) {
        (FieldType::String, WireValue::Bytes(bytes)) => json!(decode_utf8(bytes)),
        (FieldType::Bool, WireValue::Number(number)) => json!(number != 0),
        // Negative numbers are encoded as two's complement.
        (FieldType::Int, WireValue::Number(number)) => json!(number as i64),
        (FieldType::Bytes, WireValue::Bytes(bytes)) => json!(STANDARD.encode(bytes)),
        (FieldType::Time, WireValue::Bytes(bytes)) => decode_time(bytes)?,
        (FieldType::Quantity, WireValue::Bytes(bytes)) => first_text(bytes, 1)?,
        (FieldType::IntOrString, WireValue::Bytes(bytes)) => match first_number(bytes, 1)? {
            Some(1) => first_text(bytes, 3)?,
            _ => json!(first_number(bytes, 2)?.unwrap_or(0)),
        },
        (FieldType::Message(name), WireValue::Bytes(bytes)) => {
            let mut object = Map::new();
            if let Some(known) = schema.message(name) {
                decode_message(schema, known, bytes, &mut object)?;
            }
            Value::Object(object)
        }
        _ => {
            return Err(quick_protobuf::Error::Message(
                "a field has another wire type than its message".into(),
            ));
        }
    })
}

/// Decodes an entry of a map.
fn decode_entry(schema: &Schema, field: &Field, wire: WireValue) -> Result<(String, Value)> {
    let (mut key, mut value) = (String::new(), Value::Null);
    if let WireValue::Bytes(bytes) = wire {
        for part in fields(bytes)? {
            match part {
                (1, WireValue::Bytes(bytes)) => key = decode_utf8(bytes),
                (2, wire) => value = decode_value(schema, field.kind, wire)?,
                _ => {}
            }
        }
    }
    Ok((key, value))
}

/// Decodes a time; null for Go's zero time, which is an empty message.
fn decode_time(bytes: &[u8]) -> Result<Value> {
    let Some(seconds) = first_number(bytes, 1)? else { return Ok(Value::Null) };
    let nanos = first_number(bytes, 2)?.unwrap_or(0) as i32;
    let time = Timestamp::new(seconds, nanos).unwrap_or_default();
    let format = if nanos == 0 { "%Y-%m-%dT%H:%M:%SZ" } else { "%Y-%m-%dT%H:%M:%S%.6fZ" };
    Ok(json!(time.strftime(format).to_string()))
}

fn first_number(bytes: &[u8], number: u32) -> Result<Option<i64>> {
    Ok(fields(bytes)?.into_iter().find_map(|field| match field {
        (found, WireValue::Number(value)) if found == number => Some(value as i64),
        _ => None,
    }))
}

fn first_text(bytes: &[u8], number: u32) -> Result<Value> {
    let found = fields(bytes)?.into_iter().find_map(|field| match field {
        (found, WireValue::Bytes(bytes)) if found == number => Some(decode_utf8(bytes)),
        _ => None,
    });
    Ok(json!(found.unwrap_or_default()))
}

/// Returns whether a value is a zero value of Go.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(truth) => !truth,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}
