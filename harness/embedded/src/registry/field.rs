//! Errors of fields, as apimachinery's `field.ErrorList` words them.

use std::fmt;

use serde_json::{Value, json};

use super::Status;
use super::status::group;
use crate::store::Kind;

/// The place of a field, such as `spec.containers[0].image`.
#[derive(Clone, Debug)]
pub(super) struct Path(String);

impl Path {
    /// A field of the object itself.
    pub(super) fn new(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// A field of this one.
    pub(super) fn child(&self, name: &str) -> Self {
        Self(format!("{}.{name}", self.0))
    }

    /// An element of this list.
    pub(super) fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// An entry of this map.
    pub(super) fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug)]
struct Error {
    /// `reason` of the cause.
    reason: &'static str,
    field: String,
    /// What is said of the field.
    body: String,
}

/// All that is wrong with an object.
#[derive(Debug, Default)]
pub(super) struct Errors(Vec<Error>);

impl Errors {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn append(&mut self, mut others: Self) {
        self.0.append(&mut others.0);
    }

    pub(super) fn required(&mut self, path: &Path, detail: &str) {
        self.add("FieldValueRequired", path, "Required value".to_owned(), detail);
    }

    pub(super) fn invalid(&mut self, path: &Path, value: impl Into<Value>, detail: &str) {
        self.add("FieldValueInvalid", path, format!("Invalid value: {}", value.into()), detail);
    }

    /// Something is wrong with a field, whatever its value (`field.OmitValueType`).
    pub(super) fn unfit(&mut self, path: &Path, detail: &str) {
        self.add("FieldValueInvalid", path, "Invalid value".to_owned(), detail);
    }

    pub(super) fn duplicate(&mut self, path: &Path, value: &str) {
        self.add("FieldValueDuplicate", path, format!("Duplicate value: {value:?}"), "");
    }

    pub(super) fn not_found(&mut self, path: &Path, value: &str) {
        self.add("FieldValueNotFound", path, format!("Not found: {value:?}"), "");
    }

    pub(super) fn forbidden(&mut self, path: &Path, detail: &str) {
        self.add("FieldValueForbidden", path, "Forbidden".to_owned(), detail);
    }

    pub(super) fn not_supported(&mut self, path: &Path, value: &str, supported: &[&str]) {
        let supported: Vec<_> = supported.iter().map(|value| format!("{value:?}")).collect();
        let detail = format!("supported values: {}", supported.join(", "));
        self.add("FieldValueNotSupported", path, format!("Unsupported value: {value:?}"), &detail);
    }

    /// 422 `Invalid` with a cause for each error, unless there is none.
    pub(super) fn into_result(self, kind: Kind, name: &str) -> Result<(), Status> {
        if self.0.is_empty() {
            return Ok(());
        }
        let mut told: Vec<String> = Vec::new();
        for Error { field, body, .. } in &self.0 {
            let text = format!("{field}: {body}");
            if !told.contains(&text) {
                told.push(text);
            }
        }
        let told = match &told[..] {
            [one] => one.clone(),
            all => format!("[{}]", all.join(", ")),
        };
        let causes: Vec<_> = self
            .0
            .iter()
            .map(|Error { reason, field, body }| json!({"reason": reason, "message": body, "field": field}))
            .collect();
        let (kind_name, group) = (kind.names().0, group(kind));
        let qualified = match group {
            "" => kind_name.to_owned(),
            group => format!("{kind_name}.{group}"),
        };
        let mut details = json!({"name": name, "kind": kind_name, "causes": causes});
        if !group.is_empty() {
            details["group"] = json!(group);
        }
        Err(Status {
            code: 422,
            reason: "Invalid",
            message: format!("{qualified} {name:?} is invalid: {told}"),
            details: Some(details),
        })
    }

    fn add(&mut self, reason: &'static str, path: &Path, mut body: String, detail: &str) {
        if !detail.is_empty() {
            body = format!("{body}: {detail}");
        }
        self.0.push(Error { reason, field: path.to_string(), body });
    }
}
