//! From messages to JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use quick_protobuf::Result;
use serde_json::{Map, Value, json};

use super::schema::{Field, Message, Schema, Shape, Type};
use super::wire::{Wire, fields, text};

/// Adds the fields of a message to an object.
pub fn message(
    schema: &Schema,
    known: &Message,
    bytes: &[u8],
    object: &mut Map<String, Value>,
) -> Result<()> {
    for (number, wire) in fields(bytes)? {
        let Some(field) = known.get(&number) else { continue };
        match field.shape {
            Shape::Value => {
                let value = value(schema, field.of, wire)?;
                if !is_empty(&value) {
                    object.insert(field.name.to_owned(), value);
                }
            }
            Shape::Pointer => {
                object.insert(field.name.to_owned(), value(schema, field.of, wire)?);
            }
            Shape::List => {
                let value = value(schema, field.of, wire)?;
                let list = object.entry(field.name).or_insert_with(|| json!([]));
                list.as_array_mut().into_iter().for_each(|list| list.push(value.clone()));
            }
            Shape::Map => {
                let (key, value) = entry(schema, field, wire)?;
                let map = object.entry(field.name).or_insert_with(|| json!({}));
                map[key] = value;
            }
            Shape::Inline => {
                let inner = field.of.message().and_then(|name| schema.message(name));
                if let (Wire::Bytes(bytes), Some(inner)) = (wire, inner) {
                    message(schema, inner, bytes, object)?;
                }
            }
        }
    }
    Ok(())
}

fn value(schema: &Schema, of: Type, wire: Wire) -> Result<Value> {
    Ok(match (of, wire) {
        (Type::Text, Wire::Bytes(bytes)) => json!(text(bytes)),
        (Type::Truth, Wire::Number(number)) => json!(number != 0),
        // Negative numbers are written as their complement.
        (Type::Number, Wire::Number(number)) => json!(number as i64),
        (Type::Bytes, Wire::Bytes(bytes)) => json!(STANDARD.encode(bytes)),
        (Type::Time, Wire::Bytes(bytes)) => time(bytes)?,
        (Type::Quantity, Wire::Bytes(bytes)) => first_text(bytes, 1)?,
        (Type::NumberOrText, Wire::Bytes(bytes)) => match first_number(bytes, 1)? {
            Some(1) => first_text(bytes, 3)?,
            _ => json!(first_number(bytes, 2)?.unwrap_or(0)),
        },
        (Type::Message(name), Wire::Bytes(bytes)) => {
            let mut object = Map::new();
            if let Some(known) = schema.message(name) {
                message(schema, known, bytes, &mut object)?;
            }
            Value::Object(object)
        }
        _ => {
            return Err(quick_protobuf::Error::Message(
                "a field has another type than its message says".into(),
            ));
        }
    })
}

/// A key and its value.
fn entry(schema: &Schema, field: &Field, wire: Wire) -> Result<(String, Value)> {
    let (mut key, mut of) = (String::new(), Value::Null);
    if let Wire::Bytes(bytes) = wire {
        for part in fields(bytes)? {
            match part {
                (1, Wire::Bytes(bytes)) => key = text(bytes),
                (2, wire) => of = value(schema, field.of, wire)?,
                _ => {}
            }
        }
    }
    Ok((key, of))
}

/// A time; nothing for Go's zero, which is written as an empty message.
fn time(bytes: &[u8]) -> Result<Value> {
    let Some(seconds) = first_number(bytes, 1)? else { return Ok(Value::Null) };
    let nanos = first_number(bytes, 2)?.unwrap_or(0) as i32;
    let time = Timestamp::new(seconds, nanos).unwrap_or_default();
    let form = if nanos == 0 { "%Y-%m-%dT%H:%M:%SZ" } else { "%Y-%m-%dT%H:%M:%S%.6fZ" };
    Ok(json!(time.strftime(form).to_string()))
}

fn first_number(bytes: &[u8], number: u32) -> Result<Option<i64>> {
    Ok(fields(bytes)?.into_iter().find_map(|field| match field {
        (found, Wire::Number(value)) if found == number => Some(value as i64),
        _ => None,
    }))
}

fn first_text(bytes: &[u8], number: u32) -> Result<Value> {
    let found = fields(bytes)?.into_iter().find_map(|field| match field {
        (found, Wire::Bytes(bytes)) if found == number => Some(text(bytes)),
        _ => None,
    });
    Ok(json!(found.unwrap_or_default()))
}

/// Whether a value is what Go has where nothing was set.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(truth) => !truth,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}
