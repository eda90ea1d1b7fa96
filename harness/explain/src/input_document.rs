//! A document of the input, of which only what explanations use stays in memory: a list of all
//! events of a large cluster has more than 100,000 items.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::{Map, Value};

use crate::input::{Input, InputError};

/// A document of JSON or YAML.
#[derive(Debug, Default)]
pub(crate) struct InputDocument {
    /// `kind`, if the document is an object with one.
    kind: Option<String>,
    /// The other fields of an object.
    fields: Map<String, Value>,
    items: Items,
    is_null: bool,
}

/// Items of a list.
#[derive(Debug, Default)]
struct Items {
    /// Items with a kind, or after the kind of their list.
    input: Input,
    /// Items that need the kind of their list, which follows.
    without_kind: Vec<Value>,
    /// Descriptions of items that explanations do not use.
    others: Vec<String>,
    /// The first item that could not be read.
    error: Option<InputError>,
}

impl Items {
    /// Returns whether an item is an object with a kind that explanations use.
    fn has_kinds(&self) -> bool {
        self.input.event_count > 0
            || !self.input.pods.is_empty()
            || !self.input.nodes.is_empty()
            || self.error.is_some()
    }
}

impl InputDocument {
    /// Returns whether the document is an object of Kubernetes with a kind.
    pub(crate) fn has_kind(&self) -> bool {
        // An entry of klog has the kind of the object that it is about.
        let is_log_entry = self.fields.contains_key("caller") && self.fields.contains_key("msg");
        self.kind.is_some() && !is_log_entry
    }

    /// Adds the object, or the items of the list, to an input. `others` receives descriptions of
    /// the objects that explanations do not use.
    ///
    /// # Errors
    /// A field has an unexpected type.
    pub(crate) fn add_to(self, input: &mut Input, others: &mut Vec<String>) -> Result<(), InputError> {
        let Self { kind, mut fields, items, is_null } = self;
        if is_null {
            return Ok(());
        }
        let Some(kind) = kind else { return input.add(fields.into(), None, others) };
        let Some(item_kind) = kind.strip_suffix("List") else {
            fields.insert("kind".to_owned(), kind.into());
            return input.add(fields.into(), None, others);
        };
        if let Some(error) = items.error {
            return Err(error);
        }
        input.append(items.input);
        others.extend(items.others);
        let item_kind = Some(item_kind).filter(|kind| !kind.is_empty());
        items.without_kind.into_iter().try_for_each(|item| input.add(item, item_kind, others))
    }
}

impl<'de> Deserialize<'de> for InputDocument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DocumentVisitor)
    }
}

struct DocumentVisitor;

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = InputDocument;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a document")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<InputDocument, A::Error> {
        let mut document = InputDocument::default();
        while let Some(key) = map.next_key::<String>()? {
            if key == "items" {
                document.items = map.next_value_seed(ItemsSeed { list: document.kind.as_deref() })?;
                continue;
            }
            let value: Value = map.next_value()?;
            match value {
                Value::String(kind) if key == "kind" => document.kind = Some(kind),
                value => drop(document.fields.insert(key, value)),
            }
        }
        Ok(document)
    }

    /// A sequence of objects with kinds is a list, such as `.items` of the output of kubectl.
    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<InputDocument, A::Error> {
        let items = ItemsSeed { list: None }.visit_seq(items)?;
        let kind = (items.has_kinds()).then(|| "List".to_owned());
        Ok(InputDocument { kind, items, ..InputDocument::default() })
    }

    fn visit_unit<E: de::Error>(self) -> Result<InputDocument, E> {
        Ok(InputDocument { is_null: true, ..InputDocument::default() })
    }

    fn visit_none<E: de::Error>(self) -> Result<InputDocument, E> {
        self.visit_unit()
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<InputDocument, E> {
        Ok(InputDocument::default())
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<InputDocument, E> {
        Ok(InputDocument::default())
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<InputDocument, E> {
        Ok(InputDocument::default())
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<InputDocument, E> {
        Ok(InputDocument::default())
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<InputDocument, E> {
        Ok(InputDocument::default())
    }
}

/// Reads the items of a list; `list` is the kind of the list, if it precedes the items.
struct ItemsSeed<'a> {
    list: Option<&'a str>,
}

impl<'de> DeserializeSeed<'de> for ItemsSeed<'_> {
    type Value = Items;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Items, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ItemsSeed<'_> {
    type Value = Items;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Items, A::Error> {
        let item_kind = self.list.and_then(|list| list.strip_suffix("List")).filter(|kind| !kind.is_empty());
        let mut items = Items::default();
        while items.error.is_none()
            && let Some(item) = seq.next_element::<Value>()?
        {
            if self.list.is_none() && item.get("kind").is_none_or(|kind| !kind.is_string()) {
                items.without_kind.push(item);
            } else {
                items.error = items.input.add(item, item_kind, &mut items.others).err();
            }
        }
        // The rest may have a syntax error, which is reported first.
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(items)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Items, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Items::default())
    }

    fn visit_unit<E: de::Error>(self) -> Result<Items, E> {
        Ok(Items::default())
    }

    fn visit_none<E: de::Error>(self) -> Result<Items, E> {
        Ok(Items::default())
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Items, E> {
        Ok(Items::default())
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Items, E> {
        Ok(Items::default())
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Items, E> {
        Ok(Items::default())
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Items, E> {
        Ok(Items::default())
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<Items, E> {
        Ok(Items::default())
    }
}
