//! The keys of a document, read from its JSON Schema.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// A key of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Path from the root: `cases[].verdict`; `*` stands for any key of a map, `[]` for the items
    /// of a list.
    pub path: String,
    /// Type of the value.
    pub form: String,
    /// True if the object always has the key.
    pub required: bool,
    /// Meaning.
    pub about: String,
    /// Values of an enumeration, with their meanings.
    pub values: Vec<(String, String)>,
}

/// Keys of a document, or of one of the alternatives for an object in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// Heading of an alternative, as Markdown: the key that distinguishes it with its value, or the
    /// path of the object; `None` for the keys of every alternative.
    pub heading: Option<String>,
    /// Meaning.
    pub about: String,
    /// The keys in the order of the document.
    pub keys: Vec<Key>,
}

/// Returns the keys of a document: first those of all documents, then those of each alternative.
pub fn sections(schema: &Value) -> Vec<Section> {
    let mut reader = SchemaReader { root: schema, sections: vec![Section::default()] };
    let root = reader.resolved(schema);
    reader.sections[0].about = text(&root, "description");
    reader.add_value(0, "", &root);
    reader.sections
}

/// A schema without a reference at its top, or a boolean schema as an empty one.
type Fields = Map<String, Value>;

struct SchemaReader<'a> {
    root: &'a Value,
    sections: Vec<Section>,
}

impl SchemaReader<'_> {
    /// Replaces a reference by its target. A description beside the reference remains.
    fn resolved(&self, schema: &Value) -> Fields {
        let mut fields = schema.as_object().cloned().unwrap_or_default();
        let Some(Value::String(reference)) = fields.remove("$ref") else { return fields };
        let target = reference.strip_prefix('#').and_then(|path| self.root.pointer(path));
        for (name, value) in target.map(|target| self.resolved(target)).unwrap_or_default() {
            fields.entry(name).or_insert(value);
        }
        fields
    }

    /// Returns the schemas in a list of schemas.
    fn list(&self, fields: &Fields, keyword: &str) -> Vec<Fields> {
        let all = fields.get(keyword).and_then(Value::as_array).into_iter().flatten();
        all.map(|schema| self.resolved(schema)).collect()
    }

    /// Returns the alternatives of a schema, without `null`; empty for a schema without
    /// alternatives.
    fn alternatives(&self, fields: &Fields) -> Vec<Fields> {
        let keyword = if fields.contains_key("oneOf") { "oneOf" } else { "anyOf" };
        let mut all = self.list(fields, keyword);
        all.retain(|one| one.get("type").and_then(Value::as_str) != Some("null"));
        all
    }

    /// Adds the keys in a value to a section.
    fn add_value(&mut self, section: usize, path: &str, fields: &Fields) {
        self.add_properties(section, path, fields);
        if let Some(items) = fields.get("items") {
            let items = self.resolved(items);
            self.add_value(section, &format!("{path}[]"), &items);
        }
        if let Some(value) = fields.get("additionalProperties").filter(|value| value.is_object()) {
            let value = self.resolved(value);
            let path = joined(path, "*");
            // The keys of a document that is a map have no other row.
            if path.chars().all(|c| "*.".contains(c)) {
                let mut key = self.key(path.clone(), &value, false);
                if value.contains_key("additionalProperties") {
                    key.values.clear();
                }
                self.sections[section].keys.push(key);
            }
            self.add_value(section, &path, &value);
        }
        match &self.alternatives(fields)[..] {
            [only] => self.add_value(section, path, only),
            all => self.add_alternatives(section, path, all),
        }
    }

    fn add_properties(&mut self, section: usize, path: &str, fields: &Fields) {
        let required = fields.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        for (name, property) in fields.get("properties").and_then(Value::as_object).into_iter().flatten() {
            // The heading of the alternative has its value.
            if property.get("const").is_some() {
                continue;
            }
            let property = self.resolved(property);
            let path = joined(path, name);
            let required = required.iter().any(|one| one == name) && !is_named_by_its_key(fields);
            let mut key = self.key(path.clone(), &property, required);
            // The value of a tuple variant has the description of the variant.
            if key.about.is_empty() {
                key.about = text(fields, "description");
            }
            self.sections[section].keys.push(key);
            self.add_value(section, &path, &property);
        }
    }

    /// Adds a section for each alternative that a key with a constant value distinguishes, and the
    /// keys of other alternatives to the section.
    fn add_alternatives(&mut self, section: usize, path: &str, all: &[Fields]) {
        let tags: Vec<(String, String)> = all.iter().filter_map(tag).collect();
        if let Some((name, _)) = tags.first() {
            let values = all.iter().filter_map(|one| Some((tag(one)?.1, text(one, "description")))).collect();
            let about = "Kind of the object, which determines its other keys.".to_owned();
            let (path, form) = (joined(path, name), "string".to_owned());
            self.sections[section].keys.push(Key { path, form, required: true, about, values });
        }
        for fields in all {
            let heading = match tag(fields) {
                Some((name, value)) => Some(format!("`{}`: `{value}`", joined(path, &name))),
                None if all.len() > 1
                    && fields.contains_key("properties")
                    && !is_named_by_its_key(fields) =>
                {
                    Some(format!("`{path}`: {}", text(fields, "description").trim_end_matches('.')))
                }
                None => None,
            };
            let into = match heading {
                Some(heading) => {
                    let about =
                        if tag(fields).is_some() { text(fields, "description") } else { String::new() };
                    self.sections.push(Section { heading: Some(heading), about, keys: Vec::new() });
                    self.sections.len() - 1
                }
                None => section,
            };
            self.add_value(into, path, fields);
        }
    }

    fn key(&self, path: String, fields: &Fields, required: bool) -> Key {
        let (form, about, values) = (self.form(fields), text(fields, "description"), self.values(fields));
        Key { path, form, required, about, values }
    }

    /// Names the type of a value.
    fn form(&self, fields: &Fields) -> String {
        let types: Vec<&str> = match fields.get("type") {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let mut forms: Vec<String> = types
            .iter()
            .filter(|one| **one != "null")
            .map(|one| self.form_of_type(one, fields))
            .chain(self.alternatives(fields).iter().map(|one| self.form(one)))
            .collect();
        let has_null = types.contains(&"null")
            || self
                .list(fields, "anyOf")
                .iter()
                .any(|one| one.get("type").is_some_and(|kind| kind == "null"));
        let mut seen = BTreeSet::new();
        forms.retain(|form| seen.insert(form.clone()));
        match (forms.is_empty(), fields.get("const").or(fields.get("enum"))) {
            (true, Some(_)) => forms.push("string".to_owned()),
            (true, None) => forms.push("any value".to_owned()),
            (false, _) => {}
        }
        if has_null {
            forms.push("null".to_owned());
        }
        forms.join(" or ")
    }

    fn form_of_type(&self, name: &str, fields: &Fields) -> String {
        let title = fields.get("title").and_then(Value::as_str);
        match (name, title) {
            ("string", None) if fields.get("format").is_some_and(|format| format == "date-time") => {
                "time (RFC 3339)".to_owned()
            }
            ("string", Some(title)) => format!("string: {title}"),
            ("array", _) => match (fields.get("items"), &self.list(fields, "prefixItems")[..]) {
                (Some(items), []) => format!("list of {}", self.form_of_items(items)),
                (_, items) => {
                    let forms: Vec<String> = items.iter().map(|item| self.form(item)).collect();
                    format!("[{}]", forms.join(", "))
                }
            },
            ("object", _) if fields.contains_key("properties") => "object".to_owned(),
            ("object", Some(title)) => title.to_owned(),
            ("object", None) => match fields.get("additionalProperties").filter(|value| value.is_object()) {
                Some(value) => format!("map of {}", self.form_of_items(value)),
                None => "object".to_owned(),
            },
            _ => name.to_owned(),
        }
    }

    fn form_of_items(&self, schema: &Value) -> String {
        let form = self.form(&self.resolved(schema));
        if form.contains(" or ") { format!("({form})") } else { form }
    }

    /// Returns the values of an enumeration, also in a list or a map.
    fn values(&self, fields: &Fields) -> Vec<(String, String)> {
        let about = text(fields, "description");
        let named = |value: &Value| value.as_str().map(str::to_owned);
        if let Some(value) = fields.get("const").and_then(named) {
            return vec![(value, about)];
        }
        let plain = fields.get("enum").and_then(Value::as_array).into_iter().flatten().filter_map(named);
        let mut values: Vec<_> = plain.map(|value| (value, String::new())).collect();
        for keyword in ["items", "additionalProperties"] {
            let below = fields.get(keyword).map(|schema| self.resolved(schema));
            values.extend(below.iter().flat_map(|schema| self.values(schema)));
        }
        values.extend(self.alternatives(fields).iter().flat_map(|one| self.values(one)));
        values
    }
}

/// Returns the key with a constant value that distinguishes an alternative.
fn tag(fields: &Fields) -> Option<(String, String)> {
    let properties = fields.get("properties")?.as_object()?.iter();
    let mut tags = properties
        .filter_map(|(name, property)| Some((name.clone(), property.get("const")?.as_str()?.to_owned())));
    tags.next()
}

/// Returns whether the name of the only key distinguishes an alternative.
fn is_named_by_its_key(fields: &Fields) -> bool {
    let count = fields.get("properties").and_then(Value::as_object).map_or(0, Map::len);
    count == 1 && fields.get("additionalProperties") == Some(&Value::Bool(false))
}

fn joined(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn text(fields: &Fields, name: &str) -> String {
    fields.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::DOCUMENTS;

    fn all_sections() -> impl Iterator<Item = (&'static str, Section)> {
        DOCUMENTS.iter().flat_map(|document| {
            sections(&document.schema()).into_iter().map(|section| (document.name, section))
        })
    }

    #[test]
    fn every_key_has_a_meaning() {
        for (document, section) in all_sections() {
            for key in &section.keys {
                let is_map_value = key.path.ends_with('*');
                assert!(is_map_value || !key.about.is_empty(), "{document}: {} has no description", key.path);
                // Cases may expect any value.
                let has_type = !key.form.contains("any value") || document == "case";
                assert!(has_type, "{document}: {} has no type", key.path);
                // Links between items of Rust.
                assert!(!key.about.contains("[`"), "{document}: {}: {}", key.path, key.about);
                assert!(!key.about.contains("`None`"), "{document}: {}: {}", key.path, key.about);
            }
        }
    }

    #[test]
    fn every_document_has_keys_once() {
        for document in DOCUMENTS {
            let sections = sections(&document.schema());
            assert!(!sections.iter().all(|section| section.keys.is_empty()), "{}", document.name);
            for section in &sections {
                let mut paths: Vec<&str> = section.keys.iter().map(|key| key.path.as_str()).collect();
                let count = paths.len();
                paths.sort_unstable();
                paths.dedup();
                assert_eq!(paths.len(), count, "{}: {section:?}", document.name);
            }
        }
    }

    #[test]
    fn keys_of_alternatives_are_apart() {
        let named = |name: &str| sections(&crate::documents::Document::named(name).unwrap().schema());
        let events = named("events.jsonl");
        assert_eq!(events[0].keys.iter().map(|key| key.path.as_str()).collect::<Vec<_>>(), ["at", "type"]);
        let ended = events.iter().find(|section| section.heading.as_deref() == Some("`type`: `case-ended`"));
        let key = |path: &str| ended.unwrap().keys.iter().find(|key| key.path == path).unwrap();
        assert_eq!((key("suite").form.as_str(), key("suite").required), ("string", true));
        assert_eq!(key("node").form, "string or null");
        assert_eq!(key("result.checks[].holds").form, "boolean");
        assert!(key("result.verdict").values.iter().any(|(value, _)| value == "reproduced"));
        assert!(!key("result.phase").required);
        let conclusions = named("verify");
        let fixed = conclusions
            .iter()
            .find(|section| section.heading.as_deref() == Some("`conclusions[].conclusion`: `fixed`"));
        assert_eq!(fixed.unwrap().keys[0].form, "string or null");
        let bounds = named("case");
        assert!(bounds[0].keys.iter().any(|key| key.path == "pressure.signal" && !key.values.is_empty()));
    }
}
