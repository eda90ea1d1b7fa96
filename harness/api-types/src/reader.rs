//! The one deserializer that the types of the Kubernetes API are compiled for.

use std::cell::RefCell;

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, Expected, MapAccess, SeqAccess, Unexpected,
    Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Value};

use crate::PathSegment;
use crate::path::FieldPath;

/// A value that is not one of its type.
#[derive(Debug)]
pub struct ReadError {
    /// The place of the value in the document.
    pub path: Vec<PathSegment>,
    /// The value and the expected type.
    pub source: Error,
}

impl ReadError {
    /// Returns the path as text, such as `spec.containers[0].image`; `.` for the document itself.
    pub fn field_path(&self) -> String {
        if self.path.is_empty() { ".".to_owned() } else { FieldPath(&self.path).to_string() }
    }
}

/// Reads a document as a type.
///
/// Types of the Kubernetes API are large, and compiled once for each deserializer: read them with
/// this function, not with those of `serde_json`.
///
/// ```
/// use evictlab_api_types::read;
/// use k8s_openapi::api::core::v1::Pod;
/// use serde_json::json;
///
/// let error = read::<Pod>(&json!({"spec": {"containers": [{"image": 1}]}})).unwrap_err();
/// assert_eq!(error.field_path(), "spec.containers[0].image");
/// ```
///
/// # Errors
/// A value of the document has another type.
pub fn read<T: DeserializeOwned>(document: &Value) -> Result<T, ReadError> {
    let findings = Findings::default();
    let reader = Reader { value: document, place: &Place::Root, findings: &findings };
    T::deserialize(reader)
        .map_err(|source| ReadError { path: findings.wrong.into_inner().unwrap_or_default(), source })
}

/// The shape of the value that a type has at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueShape {
    /// An object with these fields.
    Object(&'static [&'static str]),
    /// A list.
    List,
    /// A map with any keys.
    Map,
    /// A value without parts, or nothing.
    Other,
}

/// Observations of a reader.
#[derive(Default)]
pub(crate) struct Findings<'a> {
    /// Places of the fields that the type does not have, if they are wanted.
    pub(crate) unknown: Option<RefCell<Vec<Vec<PathSegment>>>>,
    /// The place of the innermost value that could not be read.
    pub(crate) wrong: RefCell<Option<Vec<PathSegment>>>,
    /// The value whose shape is wanted.
    pub(crate) probe: Option<&'a Value>,
    /// Shape of the type at the probe.
    pub(crate) shape: RefCell<Option<ValueShape>>,
}

/// The place of a value in a document.
pub(crate) enum Place<'a> {
    Root,
    Key(&'a Place<'a>, &'a str),
    Item(&'a Place<'a>, usize),
}

impl Place<'_> {
    fn path(&self) -> Vec<PathSegment> {
        let (mut path, segment) = match self {
            Self::Root => return Vec::new(),
            Self::Key(parent, key) => (parent.path(), PathSegment::from(*key)),
            Self::Item(parent, item) => (parent.path(), PathSegment::from(*item)),
        };
        path.push(segment);
        path
    }
}

/// A value and its place.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'de, 'a> {
    pub(crate) value: &'de Value,
    pub(crate) place: &'a Place<'a>,
    pub(crate) findings: &'a Findings<'a>,
}

impl<'de> Reader<'de, '_> {
    /// Reads a part of this value.
    fn read_part<S: DeserializeSeed<'de>>(
        self,
        value: &'de Value,
        place: &Place<'_>,
        seed: S,
    ) -> Result<S::Value, Error> {
        let part = Reader { value, place, findings: self.findings };
        seed.deserialize(part).inspect_err(|_| {
            self.findings.wrong.borrow_mut().get_or_insert_with(|| place.path());
        })
    }

    fn wrong_type(self, expected: &dyn Expected) -> Error {
        let unexpected = match self.value {
            Value::Null => Unexpected::Unit,
            Value::Bool(value) => Unexpected::Bool(*value),
            Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(value), _, _) => Unexpected::Unsigned(value),
                (_, Some(value), _) => Unexpected::Signed(value),
                (_, _, value) => Unexpected::Float(value.unwrap_or_default()),
            },
            Value::String(text) => Unexpected::Str(text),
            Value::Array(_) => Unexpected::Seq,
            Value::Object(_) => Unexpected::Map,
        };
        Error::invalid_type(unexpected, expected)
    }

    fn note_shape(self, shape: ValueShape) {
        if self.findings.probe.is_some_and(|probe| std::ptr::eq(probe, self.value)) {
            self.findings.shape.replace(Some(shape));
        }
    }

    fn items<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Array(items) => visitor.visit_seq(Items { of: self, rest: items.iter().enumerate() }),
            _ => Err(self.wrong_type(&visitor)),
        }
    }

    fn fields<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Object(fields) => {
                visitor.visit_map(Fields { of: self, rest: fields.iter(), current: None })
            }
            _ => Err(self.wrong_type(&visitor)),
        }
    }
}

/// Forwards methods to the deserializer of the value, which has no parts that are read.
macro_rules! read_scalars {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.value.$method(visitor)
        })*
    };
}

impl<'de> Deserializer<'de> for Reader<'de, '_> {
    type Error = Error;

    read_scalars! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32
        deserialize_f64 deserialize_char deserialize_str deserialize_string deserialize_bytes
        deserialize_byte_buf deserialize_unit
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Array(_) => self.items(visitor),
            Value::Object(_) => self.fields(visitor),
            scalar => scalar.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.note_shape(ValueShape::List);
        self.items(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.note_shape(ValueShape::Map);
        self.fields(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.note_shape(ValueShape::Object(fields));
        self.fields(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.value.deserialize_enum(name, variants, visitor)
    }

    /// Types read the fields that they do not have in this way.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if let Some(unknown) = &self.findings.unknown {
            unknown.borrow_mut().push(self.place.path());
        }
        visitor.visit_unit()
    }

    forward_to_deserialize_any! { unit_struct tuple tuple_struct identifier }
}

/// The items of a list.
struct Items<'de, 'a> {
    of: Reader<'de, 'a>,
    rest: std::iter::Enumerate<std::slice::Iter<'de, Value>>,
}

impl<'de> SeqAccess<'de> for Items<'de, '_> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        let Some((at, item)) = self.rest.next() else { return Ok(None) };
        self.of.read_part(item, &Place::Item(self.of.place, at), seed).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// The fields of an object.
struct Fields<'de, 'a> {
    of: Reader<'de, 'a>,
    rest: serde_json::map::Iter<'de>,
    /// The field whose key was read last.
    current: Option<(&'de String, &'de Value)>,
}

impl<'de> MapAccess<'de> for Fields<'de, '_> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        self.current = self.rest.next();
        let key = self.current.map(|(key, _)| BorrowedStrDeserializer::new(key));
        key.map(|key| seed.deserialize(key)).transpose()
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        let (key, value) = self.current.take().ok_or_else(|| Error::custom("value is missing"))?;
        self.of.read_part(value, &Place::Key(self.of.place, key), seed)
    }
}
