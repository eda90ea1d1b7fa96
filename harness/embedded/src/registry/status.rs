//! What the API server says when it refuses, and when it has nothing else to say.

use serde_json::{Value, json};

use crate::store::Kind;

/// A refusal, as `metav1.Status` tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The HTTP status.
    pub code: u16,
    /// Such as `NotFound`; nothing if empty.
    pub reason: &'static str,
    /// For people.
    pub message: String,
    /// `details`, where there are any.
    pub details: Option<Value>,
}

impl Status {
    /// The object.
    pub fn object(&self) -> Value {
        let mut object = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        });
        if !self.reason.is_empty() {
            object["reason"] = json!(self.reason);
        }
        if let Some(details) = &self.details {
            object["details"] = details.clone();
        }
        object["code"] = json!(self.code);
        object
    }

    /// 400 `BadRequest`.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self { code: 400, reason: "BadRequest", message: message.into(), details: None }
    }

    /// 404 `NotFound`: `pods "x" not found`.
    pub fn not_found(kind: Kind, name: &str) -> Self {
        let message = format!("{} {name:?} not found", resource(kind));
        Self { code: 404, reason: "NotFound", message, details: Some(details(kind, name)) }
    }

    /// 409 `AlreadyExists`.
    pub fn already_exists(kind: Kind, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", resource(kind));
        Self { code: 409, reason: "AlreadyExists", message, details: Some(details(kind, name)) }
    }

    /// 409 `Conflict`: `Operation cannot be fulfilled on pods "x": why`.
    pub fn conflict(kind: Kind, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", resource(kind));
        Self { code: 409, reason: "Conflict", message, details: Some(details(kind, name)) }
    }

    /// 409 `Conflict` of one who wrote on an old version.
    pub fn modified(kind: Kind, name: &str) -> Self {
        const WHY: &str =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(kind, name, WHY)
    }

    /// 403 `Forbidden`: `pods "x" is forbidden: why`; without a name where it is yet to be generated.
    pub fn forbidden(kind: Kind, name: &str, why: &str) -> Self {
        let resource = resource(kind);
        let message = match name {
            "" => format!("{resource} is forbidden: {why}"),
            name => format!("{resource} {name:?} is forbidden: {why}"),
        };
        Self { code: 403, reason: "Forbidden", message, details: Some(details(kind, name)) }
    }

    /// 429 `TooManyRequests`.
    pub fn too_many_requests(message: impl Into<String>, details: Option<Value>) -> Self {
        Self { code: 429, reason: "TooManyRequests", message: message.into(), details }
    }

    /// 500 `InternalError`.
    pub fn internal(message: impl Into<String>) -> Self {
        Self { code: 500, reason: "InternalError", message: message.into(), details: None }
    }

    /// The same with `details.causes`.
    pub(super) fn with_causes(mut self, causes: Value) -> Self {
        self.details.get_or_insert_with(|| json!({}))["causes"] = causes;
        self
    }
}

/// The `Status` of a creation that makes no object: an eviction, a binding.
pub fn success() -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
}

/// The `Status` of a deletion.
pub(super) fn deleted(kind: Kind, name: &str, object: &Value) -> Value {
    let mut details = details(kind, name);
    details["uid"] = object["metadata"]["uid"].clone();
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

/// The API group of a kind; empty for the core.
pub(super) fn group(kind: Kind) -> &'static str {
    kind.names().1.split_once('/').map_or("", |(group, _)| group)
}

/// The resource with its group: `pods`, `priorityclasses.scheduling.k8s.io`.
fn resource(kind: Kind) -> String {
    match group(kind) {
        "" => kind.plural().to_owned(),
        group => format!("{}.{group}", kind.plural()),
    }
}

fn details(kind: Kind, name: &str) -> Value {
    let mut details = json!({});
    if !name.is_empty() {
        details["name"] = json!(name);
    }
    if !group(kind).is_empty() {
        details["group"] = json!(group(kind));
    }
    details["kind"] = json!(kind.plural());
    details
}
