//! JSON documents that are kept as they were received, beside their decoded form.

use std::borrow::Cow;
use std::ops::Deref;

use evictlab_api_types::read;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A JSON document as it was received, and the same document decoded once.
///
/// The harness reads the decoded form; expressions and recordings need every field of the document,
/// including those that `T` does not have, so it is kept unchanged.
#[derive(Clone, Debug, Default)]
pub struct Recorded<T> {
    json: Value,
    decoded: T,
}

/// A document that does not have the expected form.
#[derive(Debug, thiserror::Error)]
#[error("failed to decode {kind} at {path}: {source}")]
pub struct DecodeError {
    kind: &'static str,
    path: String,
    source: serde_json::Error,
}

impl<T: DeserializeOwned> Recorded<T> {
    /// Decodes a document.
    ///
    /// # Errors
    /// A field of the document has another type than in `T`.
    pub fn decode(json: Value) -> Result<Self, DecodeError> {
        Self::try_decode(json).map_err(|(_, error)| error)
    }

    /// Decodes a document.
    ///
    /// # Errors
    /// The document, and the error of [`Recorded::decode`].
    pub fn try_decode(json: Value) -> Result<Self, (Value, DecodeError)> {
        match decode_as(&json) {
            Ok(decoded) => Ok(Self { json, decoded }),
            Err(error) => Err((json, error)),
        }
    }
}

/// Decodes a document without recording it.
///
/// # Errors
/// A field of the document has another type than in `T`.
pub(crate) fn decode_as<T: DeserializeOwned>(json: &Value) -> Result<T, DecodeError> {
    read(json).map_err(|error| {
        let path = error.field_path();
        DecodeError { kind: short_type_name::<T>(), path, source: error.source }
    })
}

/// Decodes the text of a document, which takes less time than to parse it first.
///
/// # Errors
/// A field of the document has another type than in `T`.
pub(crate) fn decode_text<T: DeserializeOwned>(json: &RawValue) -> Result<T, DecodeError> {
    serde_json::from_str(json.get()).map_err(|source| {
        let parsed = serde_json::from_str(json.get()).unwrap_or_default();
        let path = read::<T>(&parsed).err().map_or_else(|| ".".to_owned(), |error| error.field_path());
        DecodeError { kind: short_type_name::<T>(), path, source }
    })
}

impl<T: Serialize> Recorded<T> {
    /// Records a value that was made here, not received.
    ///
    /// # Errors
    /// `value` cannot be represented as JSON.
    pub fn of(value: T) -> Result<Self, serde_json::Error> {
        Ok(Self { json: serde_json::to_value(&value)?, decoded: value })
    }
}

impl<T> Recorded<T> {
    /// Returns the document.
    pub fn json(&self) -> &Value {
        &self.json
    }

    /// Returns whether nothing was recorded.
    pub fn is_null(&self) -> bool {
        self.json.is_null()
    }
}

impl<T> Deref for Recorded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.decoded
    }
}

/// Compares the documents.
impl<T> PartialEq for Recorded<T> {
    fn eq(&self, other: &Self) -> bool {
        self.json == other.json
    }
}

impl<T> Serialize for Recorded<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(to)
    }
}

impl<'de, T: DeserializeOwned + Default> Deserialize<'de> for Recorded<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Value::deserialize(from)? {
            Value::Null => Ok(Self::default()),
            json => Self::decode(json).map_err(D::Error::custom),
        }
    }
}

/// The document has the schema of `T`.
impl<T: JsonSchema> JsonSchema for Recorded<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// Returns the name of a type without its module.
fn short_type_name<T>() -> &'static str {
    let name = std::any::type_name::<T>();
    name.rsplit("::").next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    #[test]
    fn unknown_fields_are_kept_and_known_ones_decoded() {
        let json = json!({"metadata": {"name": "a"}, "status": {"phase": "Failed", "invented": [1]}});
        let pod: Recorded<Pod> = Recorded::decode(json.clone()).unwrap();
        assert_eq!(pod.metadata.name.as_deref(), Some("a"));
        assert_eq!(serde_json::to_value(&pod).unwrap(), json);
    }

    #[test]
    fn an_error_names_the_field() {
        let json = json!({"status": {"containerStatuses": [{"name": "a", "restartCount": "many"}]}});
        let error = Recorded::<Pod>::decode(json).unwrap_err().to_string();
        assert!(
            error.starts_with("failed to decode Pod at status.containerStatuses[0].restartCount: "),
            "{error}"
        );
    }
}
