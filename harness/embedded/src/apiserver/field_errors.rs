//! Validation errors of fields, worded as apimachinery's `field.ErrorList`.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{StatusCause, StatusDetails};
use serde_json::Value;

use super::status::{Status, StatusReason, group};
use crate::resource::Kind;

/// The path of a field, such as `spec.containers[0].image`.
#[derive(Clone, Debug)]
pub(super) struct FieldPath(String);

impl FieldPath {
    /// The path of a top-level field.
    pub(super) fn new(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// The path of a child field.
    pub(super) fn child(&self, name: &str) -> Self {
        Self(format!("{}.{name}", self.0))
    }

    /// The path of a list element.
    pub(super) fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// The path of a map entry.
    pub(super) fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug)]
struct FieldError {
    /// `reason` of the cause, such as `FieldValueInvalid`.
    reason: &'static str,
    field: String,
    message: String,
}

/// All validation errors of an object.
#[derive(Debug, Default)]
pub(super) struct FieldErrors(Vec<FieldError>);

impl FieldErrors {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn append(&mut self, mut others: Self) {
        self.0.append(&mut others.0);
    }

    pub(super) fn required(&mut self, path: &FieldPath, detail: &str) {
        self.add("FieldValueRequired", path, "Required value".to_owned(), detail);
    }

    pub(super) fn invalid(&mut self, path: &FieldPath, value: impl Into<Value>, detail: &str) {
        self.add("FieldValueInvalid", path, format!("Invalid value: {}", value.into()), detail);
    }

    pub(super) fn duplicate(&mut self, path: &FieldPath, value: &str) {
        self.add("FieldValueDuplicate", path, format!("Duplicate value: {value:?}"), "");
    }

    pub(super) fn not_found(&mut self, path: &FieldPath, value: &str) {
        self.add("FieldValueNotFound", path, format!("Not found: {value:?}"), "");
    }

    pub(super) fn forbidden(&mut self, path: &FieldPath, detail: &str) {
        self.add("FieldValueForbidden", path, "Forbidden".to_owned(), detail);
    }

    pub(super) fn not_supported(&mut self, path: &FieldPath, value: &str, supported: &[&str]) {
        let supported: Vec<_> = supported.iter().map(|value| format!("{value:?}")).collect();
        let detail = format!("supported values: {}", supported.join(", "));
        self.add("FieldValueNotSupported", path, format!("Unsupported value: {value:?}"), &detail);
    }

    /// Checks that fields, where they are set, hold no negative number.
    pub(super) fn check_non_negative(&mut self, object: &Value, fields: &[&str], path: &FieldPath) {
        for field in fields {
            if let Some(number) = object[field].as_i64().filter(|number| *number < 0) {
                self.invalid(&path.child(field), number, "must be greater than or equal to 0");
            }
        }
    }

    /// Returns 422 `Invalid` with one cause per error; `Ok` if there are none.
    pub(super) fn into_result(self, kind: Kind, name: &str) -> Result<(), Status> {
        if self.0.is_empty() {
            return Ok(());
        }
        let mut lines: Vec<String> = Vec::new();
        for FieldError { field, message, .. } in &self.0 {
            let line = format!("{field}: {message}");
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        let summary = match &lines[..] {
            [one] => one.clone(),
            all => format!("[{}]", all.join(", ")),
        };
        let kind_name = kind.names().0;
        let (qualified, group) = match group(kind) {
            "" => (kind_name.to_owned(), None),
            group => (format!("{kind_name}.{group}"), Some(group.to_owned())),
        };
        let details = StatusDetails {
            name: Some(name.to_owned()),
            kind: Some(kind_name.to_owned()),
            group,
            causes: Some(self.0.into_iter().map(FieldError::into_cause).collect()),
            ..StatusDetails::default()
        };
        Err(Status::new(StatusReason::Invalid, format!("{qualified} {name:?} is invalid: {summary}"))
            .with_details(details))
    }

    fn add(&mut self, reason: &'static str, path: &FieldPath, mut message: String, detail: &str) {
        if !detail.is_empty() {
            message = format!("{message}: {detail}");
        }
        self.0.push(FieldError { reason, field: path.to_string(), message });
    }
}

impl FieldError {
    fn into_cause(self) -> StatusCause {
        StatusCause {
            reason: Some(self.reason.to_owned()),
            message: Some(self.message),
            field: Some(self.field),
        }
    }
}
