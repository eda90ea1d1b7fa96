//! Objects of the API server as their types.

use std::borrow::Cow;
use std::ops::Deref;

use evictlab_api_types::read;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// An object of an [`Api`](kube::Api), read by [`read`]: this compiles its type for no other
/// deserializer.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Typed<K>(pub K);

impl<'de, K: DeserializeOwned> Deserialize<'de> for Typed<K> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let read = read(&Value::deserialize(from)?);
        read.map(Self)
            .map_err(|error| D::Error::custom(format_args!("{}: {}", error.field_path(), error.source)))
    }
}

impl<K> Deref for Typed<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.0
    }
}

impl<K: Resource> Resource for Typed<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(of: &K::DynamicType) -> Cow<'_, str> {
        K::kind(of)
    }

    fn group(of: &K::DynamicType) -> Cow<'_, str> {
        K::group(of)
    }

    fn version(of: &K::DynamicType) -> Cow<'_, str> {
        K::version(of)
    }

    fn plural(of: &K::DynamicType) -> Cow<'_, str> {
        K::plural(of)
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.meta_mut()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    #[test]
    fn an_object_is_written_as_it_was_read() {
        let text = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"}}"#;
        let pod: Typed<Pod> = serde_json::from_str(text).unwrap();
        assert_eq!(pod.meta().name.as_deref(), Some("web"));
        assert_eq!(serde_json::to_string(&pod).unwrap(), text);
    }

    #[test]
    fn an_error_names_the_field() {
        let text = r#"{"metadata": {"name": 1}}"#;
        let error = serde_json::from_str::<Typed<Pod>>(text).unwrap_err().to_string();
        assert!(error.starts_with("metadata.name: invalid type: integer `1`, expected a string"), "{error}");
    }
}
