//! Fields of a type at a path, read from its deserializer.

use std::cell::RefCell;

use serde::de::value::{Error, StrDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use crate::ApiType;

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
        let found = RefCell::new(ValueShape::Other);
        let follower = PathDeserializer { path, found: &found };
        // Always an error: the deserializer has no values.
        let _ = self.check()(&mut <dyn erased_serde::Deserializer<'_>>::erase(follower));
        found.into_inner()
    }
}

/// A deserializer that follows a path through a type, and records what the type expects there.
struct PathDeserializer<'a> {
    path: &'a [TypeSegment],
    found: &'a RefCell<ValueShape>,
}

impl PathDeserializer<'_> {
    fn record<T>(&self, shape: ValueShape) -> Result<T, Error> {
        if self.path.is_empty() {
            self.found.replace(shape);
        }
        Err(Error::custom("the deserializer has no value"))
    }
}

impl<'de> Deserializer<'de> for PathDeserializer<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        self.record(ValueShape::Other)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.path {
            [TypeSegment::Field(name), rest @ ..] => {
                visitor.visit_map(Entry { key: Some(name), path: rest, found: self.found })
            }
            _ => self.record(ValueShape::Object(fields)),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.path {
            [TypeSegment::Value, rest @ ..] => {
                visitor.visit_map(Entry { key: Some("key"), path: rest, found: self.found })
            }
            _ => self.record(ValueShape::Map),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.path {
            [TypeSegment::Item, rest @ ..] => {
                visitor.visit_seq(Entry { key: None, path: rest, found: self.found })
            }
            _ => self.record(ValueShape::List),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct tuple
        tuple_struct enum identifier ignored_any
    }
}

/// One entry of an object or map, or one item of a list.
struct Entry<'a> {
    key: Option<&'a str>,
    path: &'a [TypeSegment],
    found: &'a RefCell<ValueShape>,
}

impl<'de> MapAccess<'de> for Entry<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let key = self.key.take().map(|key| -> StrDeserializer<'_, Error> { key.into_deserializer() });
        key.map(|key| seed.deserialize(key)).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(PathDeserializer { path: self.path, found: self.found })
    }
}

impl<'de> SeqAccess<'de> for Entry<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        seed.deserialize(PathDeserializer { path: self.path, found: self.found }).map(Some)
    }
}
