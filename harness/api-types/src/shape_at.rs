//! Fields of a type at a path, read from its deserializer.

use serde_json::{Value, json};

use crate::reader::{Findings, Place, Reader};
use crate::{ApiType, ValueShape};

/// A segment of a path through a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeSegment {
    /// The field of an object.
    Field(String),
    /// Every item of a list.
    Item,
    /// Every value of a map.
    Value,
}

impl ApiType {
    /// Returns the shape of the value at a path.
    ///
    /// ```
    /// use evictlab_api_types::{ApiType, TypeSegment, ValueShape};
    ///
    /// let path = ["spec", "containers"].map(|name| TypeSegment::Field(name.to_owned()));
    /// assert_eq!(ApiType::Pod.shape_at(&path), ValueShape::List);
    /// ```
    pub fn shape_at(self, path: &[TypeSegment]) -> ValueShape {
        // Reading the innermost value, a boolean, as something with a shape ends with an error.
        let document = path.iter().rev().fold(json!(false), |value, segment| match segment {
            TypeSegment::Field(name) => json!({ name: value }),
            TypeSegment::Item => json!([value]),
            TypeSegment::Value => json!({"key": value}),
        });
        let findings = Findings { probe: Some(innermost(&document)), ..Findings::default() };
        let _ = self.check()(Reader { value: &document, place: &Place::Root, findings: &findings });
        findings.shape.into_inner().unwrap_or(ValueShape::Other)
    }
}

/// Returns the value within objects and lists of one value each.
fn innermost(value: &Value) -> &Value {
    let part = match value {
        Value::Object(fields) => fields.values().next(),
        Value::Array(items) => items.first(),
        _ => None,
    };
    part.map_or(value, innermost)
}
