//! JSON text with an eye on doubled fields.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// A text as a value, of doubled fields the last one.
pub(super) struct Parsed {
    pub(super) value: Value,
    /// The paths of doubled fields.
    pub(super) doubled: Vec<String>,
}

pub(super) fn parse(body: &[u8]) -> Result<Parsed, serde_json::Error> {
    let mut doubled = Vec::new();
    let mut json = serde_json::Deserializer::from_slice(body);
    let value = Seed { path: String::new(), doubled: &mut doubled }.deserialize(&mut json)?;
    json.end()?;
    Ok(Parsed { value, doubled })
}

struct Seed<'a> {
    path: String,
    doubled: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        loop {
            let path = format!("{}[{}]", self.path, all.len());
            let Some(item) = items.next_element_seed(Seed { path, doubled: self.doubled })? else {
                return Ok(Value::Array(all));
            };
            all.push(item);
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let path = match self.path.as_str() {
                "" => name.clone(),
                path => format!("{path}.{name}"),
            };
            if all.contains_key(&name) && !self.doubled.contains(&path) {
                self.doubled.push(path.clone());
            }
            let value = fields.next_value_seed(Seed { path, doubled: self.doubled })?;
            all.insert(name, value);
        }
        Ok(Value::Object(all))
    }
}
