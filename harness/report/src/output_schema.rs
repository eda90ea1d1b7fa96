//! JSON Schemas of the documents that evictlab writes.

use evictlab_case::unwrap_descriptions;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// Keywords whose schemas apply to the same value as the schema around them.
const APPLICATORS: [&str; 3] = ["oneOf", "anyOf", "allOf"];

/// Returns the JSON Schema (draft 2020-12) of a document that evictlab writes, without references.
///
/// It allows other keys: a later version of evictlab may add some.
pub fn output_schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let settings = settings.with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    unwrap_descriptions(&mut schema);
    name_absent_values(&mut schema);
    schema
}

/// Replaces `None` in the descriptions of keys by its form in JSON.
fn name_absent_values(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let required = fields.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
            for (name, property) in
                fields.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten()
            {
                if let Some(Value::String(description)) = property.get_mut("description") {
                    let is_required = required.iter().any(|one| one == name);
                    *description =
                        description.replace("`None`", if is_required { "`null`" } else { "missing" });
                }
            }
            fields.values_mut().for_each(name_absent_values);
        }
        Value::Array(items) => items.iter_mut().for_each(name_absent_values),
        _ => {}
    }
}

/// Returns a schema without references that also rejects keys that the schema does not define.
/// Tests check documents against it.
pub fn closed_schema(mut schema: Value) -> Value {
    close(&mut schema);
    schema
}

/// Closes the schema of a value.
fn close(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    if names_keys(fields) {
        fields.entry("unevaluatedProperties").or_insert(Value::Bool(false));
    }
    close_below(fields);
}

/// Returns whether a schema, or one of its alternatives, names keys of an object.
fn names_keys(fields: &Map<String, Value>) -> bool {
    let alternatives = APPLICATORS.iter().filter_map(|applicator| fields.get(*applicator)?.as_array());
    fields.contains_key("properties") || alternatives.flatten().filter_map(Value::as_object).any(names_keys)
}

/// Closes the schemas of the values in an object or array.
fn close_below(fields: &mut Map<String, Value>) {
    if let Some(properties) = fields.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(close);
    }
    for item in ["items", "additionalProperties"] {
        fields.get_mut(item).into_iter().for_each(close);
    }
    for items in ["prefixItems"].iter().chain(&APPLICATORS) {
        let Some(schemas) = fields.get_mut(*items).and_then(Value::as_array_mut) else { continue };
        match *items {
            "prefixItems" => schemas.iter_mut().for_each(close),
            _ => schemas.iter_mut().filter_map(Value::as_object_mut).for_each(close_below),
        }
    }
}

#[cfg(test)]
mod tests {
    use boon::{Compiler, Schemas};
    use serde::Serialize;
    use serde_json::json;

    use super::*;

    /// A document.
    #[derive(Serialize, JsonSchema)]
    struct Document {
        /// The kind.
        #[serde(flatten)]
        kind: Kind,
        /// A part; `None` if it is missing.
        part: Option<Part>,
        /// Another part; `None` in old documents.
        #[serde(skip_serializing_if = "Option::is_none")]
        other: Option<Part>,
        /// More parts.
        parts: Vec<Part>,
    }

    /// A part.
    #[derive(Serialize, JsonSchema)]
    struct Part {
        /// A name,
        /// in two lines.
        name: String,
    }

    /// The kinds.
    #[derive(Serialize, JsonSchema)]
    #[serde(tag = "kind", rename_all = "kebab-case")]
    #[expect(dead_code, reason = "its schema is tested")]
    enum Kind {
        /// The first one.
        One {
            /// A number.
            number: u8,
        },
        /// The other one.
        Two(Part),
    }

    fn is_valid(schema: &Value, document: &Value) -> bool {
        let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
        compiler.add_resource("schema.json", schema.clone()).unwrap();
        let compiled = compiler.compile("schema.json", &mut schemas).unwrap();
        schemas.validate(document, compiled).is_ok()
    }

    #[test]
    fn a_closed_schema_rejects_other_keys_at_any_depth() {
        let open = output_schema::<Document>();
        let closed = closed_schema(open.clone());
        let part = json!({"name": "a"});
        let more = json!({"name": "a", "more": 1});
        for (document, is_known) in [
            (json!({"kind": "one", "number": 1, "part": null, "parts": [part]}), true),
            (json!({"kind": "two", "name": "b", "part": part, "parts": []}), true),
            (json!({"kind": "two", "name": "b", "part": null, "parts": [], "more": 1}), false),
            (json!({"kind": "one", "number": 1, "part": more, "parts": []}), false),
            (json!({"kind": "one", "number": 1, "part": null, "parts": [more]}), false),
        ] {
            assert!(is_valid(&open, &document), "{document}");
            assert_eq!(is_valid(&closed, &document), is_known, "{document}");
        }
        assert!(!is_valid(&open, &json!({"kind": "one", "number": "1", "part": null, "parts": []})));
    }

    #[test]
    fn descriptions_are_lines_and_name_absent_values() {
        let schema = output_schema::<Document>();
        let properties = &schema["properties"];
        for (property, description) in [
            (&properties["part"], "A part; `null` if it is missing."),
            (&properties["other"], "Another part; missing in old documents."),
            (&properties["parts"]["items"]["properties"]["name"], "A name, in two lines."),
        ] {
            assert_eq!(property["description"], description);
        }
    }
}
