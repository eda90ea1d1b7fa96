//! From JSON to CEL: what is whole is an `int`, as it is in an expression's own text.

use std::collections::HashMap;

use cel::Value;
use serde_json::Value as Json;

/// The same value in CEL. Maps have no order there.
pub(super) fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(is) => Value::Bool(*is),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => Value::Int(whole),
            None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => text.as_str().into(),
        Json::Array(list) => list.iter().map(value).collect::<Vec<_>>().into(),
        Json::Object(map) => {
            map.iter().map(|(key, of)| (key.clone(), value(of))).collect::<HashMap<_, _>>().into()
        }
    }
}
