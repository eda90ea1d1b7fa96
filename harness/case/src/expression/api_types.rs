//! The fields of Kubernetes types, which their deserializers know.

use std::cell::RefCell;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{ContainerStatus, Event, Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use serde::de::value::{Error, StrDeserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, SeqAccess,
    Visitor,
};
use serde::forward_to_deserialize_any;

/// A Kubernetes type whose fields are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ApiType {
    ContainerStatus,
    CronJob,
    DaemonSet,
    Deployment,
    Event,
    Job,
    Node,
    Pod,
    PodDisruptionBudget,
    ReplicaSet,
    StatefulSet,
}

/// A step from a value to a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Field(String),
    Item,
    Value,
}

/// The kind of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    /// An object with these fields.
    Object(&'static [&'static str]),
    List,
    Map,
    Other,
}

impl ApiType {
    /// Returns the type of objects of a kind.
    pub(crate) fn of_kind(kind: &str) -> Option<Self> {
        Some(match kind {
            "CronJob" => Self::CronJob,
            "DaemonSet" => Self::DaemonSet,
            "Deployment" => Self::Deployment,
            "Job" => Self::Job,
            "Pod" => Self::Pod,
            "PodDisruptionBudget" => Self::PodDisruptionBudget,
            "ReplicaSet" => Self::ReplicaSet,
            "StatefulSet" => Self::StatefulSet,
            _ => return None,
        })
    }

    /// Returns the kind of the part of a value at a path.
    pub(super) fn kind_at(self, path: &[Part]) -> ValueKind {
        match self {
            Self::ContainerStatus => kind_at::<ContainerStatus>(path),
            Self::CronJob => kind_at::<CronJob>(path),
            Self::DaemonSet => kind_at::<DaemonSet>(path),
            Self::Deployment => kind_at::<Deployment>(path),
            Self::Event => kind_at::<Event>(path),
            Self::Job => kind_at::<Job>(path),
            Self::Node => kind_at::<Node>(path),
            Self::Pod => kind_at::<Pod>(path),
            Self::PodDisruptionBudget => kind_at::<PodDisruptionBudget>(path),
            Self::ReplicaSet => kind_at::<ReplicaSet>(path),
            Self::StatefulSet => kind_at::<StatefulSet>(path),
        }
    }
}

fn kind_at<T: DeserializeOwned>(path: &[Part]) -> ValueKind {
    let found = RefCell::new(ValueKind::Other);
    // Always an error: the probe has no values.
    let _ = T::deserialize(Probe { path, found: &found });
    found.into_inner()
}

/// A deserializer that follows a path through a type, and records what the type expects there.
struct Probe<'a> {
    path: &'a [Part],
    found: &'a RefCell<ValueKind>,
}

impl Probe<'_> {
    fn record<T>(&self, kind: ValueKind) -> Result<T, Error> {
        if self.path.is_empty() {
            self.found.replace(kind);
        }
        Err(Error::custom("a probe has no value"))
    }
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        self.record(ValueKind::Other)
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
            [Part::Field(name), rest @ ..] => {
                visitor.visit_map(Entry { key: Some(name), path: rest, found: self.found })
            }
            _ => self.record(ValueKind::Object(fields)),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.path {
            [Part::Value, rest @ ..] => {
                visitor.visit_map(Entry { key: Some("key"), path: rest, found: self.found })
            }
            _ => self.record(ValueKind::Map),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.path {
            [Part::Item, rest @ ..] => visitor.visit_seq(Entry { key: None, path: rest, found: self.found }),
            _ => self.record(ValueKind::List),
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
    path: &'a [Part],
    found: &'a RefCell<ValueKind>,
}

impl<'de> MapAccess<'de> for Entry<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let key = self.key.take().map(|key| -> StrDeserializer<'_, Error> { key.into_deserializer() });
        key.map(|key| seed.deserialize(key)).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(Probe { path: self.path, found: self.found })
    }
}

impl<'de> SeqAccess<'de> for Entry<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        seed.deserialize(Probe { path: self.path, found: self.found }).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> ValueKind {
        let part = |name: &str| match name {
            "[]" => Part::Item,
            "{}" => Part::Value,
            name => Part::Field(name.to_owned()),
        };
        ApiType::Pod.kind_at(&text.split_terminator('.').map(part).collect::<Vec<_>>())
    }

    #[test]
    fn types_know_their_fields() {
        let ValueKind::Object(fields) = kind("spec.containers.[].resources") else { panic!() };
        assert_eq!(fields, ["claims", "limits", "requests"]);
        assert_eq!(kind("spec.containers"), ValueKind::List);
        assert_eq!(kind("metadata.labels"), ValueKind::Map);
        assert_eq!(kind("spec.containers.[].resources.limits.{}"), ValueKind::Other);
        assert_eq!(kind("status.phase"), ValueKind::Other);
        assert_eq!(kind("status.startTime"), ValueKind::Other);
    }
}
