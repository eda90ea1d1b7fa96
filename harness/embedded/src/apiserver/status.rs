//! `Status`: errors of the API server, and answers without an object.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{StatusCause, StatusDetails};
use serde::Serialize;
use serde_json::{Value, json};

use crate::resource::{Kind, ObjectExt};

/// Machine-readable reason of an API error: `metav1.StatusReason`, and `NotImplemented`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum StatusReason {
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    NotAcceptable,
    AlreadyExists,
    Conflict,
    Expired,
    RequestEntityTooLarge,
    UnsupportedMediaType,
    Invalid,
    TooManyRequests,
    InternalError,
    NotImplemented,
    ServiceUnavailable,
    Timeout,
    /// An error without a reason.
    Unknown,
}

impl StatusReason {
    /// Returns the HTTP status code of errors with this reason.
    pub(crate) fn code(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::NotAcceptable => 406,
            Self::AlreadyExists | Self::Conflict => 409,
            Self::Expired => 410,
            Self::RequestEntityTooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::Invalid => 422,
            Self::TooManyRequests => 429,
            Self::InternalError | Self::Unknown => 500,
            Self::NotImplemented => 501,
            Self::ServiceUnavailable => 503,
            Self::Timeout => 504,
        }
    }
}

/// An API error: `metav1.Status` with status `Failure`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Status {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason.
    pub reason: StatusReason,
    /// Human-readable message.
    pub message: String,
    /// Object and causes, if there are any.
    pub details: Option<Box<StatusDetails>>,
}

impl Eq for Status {}

impl Status {
    /// Creates an error without details, with the status code of the reason.
    pub(crate) fn new(reason: StatusReason, message: impl Into<String>) -> Self {
        Self { code: reason.code(), reason, message: message.into(), details: None }
    }

    /// Adds details to an error.
    pub(crate) fn with_details(mut self, details: StatusDetails) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// Adds a cause to the details of an error.
    pub(super) fn with_cause(mut self, reason: &str, message: String, field: Option<&str>) -> Self {
        let cause = StatusCause {
            reason: Some(reason.to_owned()),
            message: Some(message),
            field: field.map(str::to_owned),
        };
        self.details.get_or_insert_default().causes.get_or_insert_default().push(cause);
        self
    }

    /// Serializes an error as a `Status` object.
    pub(crate) fn object(&self) -> Value {
        let mut object = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        });
        if self.reason != StatusReason::Unknown {
            object.write("reason", self.reason);
        }
        if let Some(details) = &self.details {
            object.write("details", details);
        }
        object.write("code", self.code);
        object
    }

    /// 400 `BadRequest`.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusReason::BadRequest, message)
    }

    /// 404 `NotFound`: `pods "x" not found`.
    pub(crate) fn not_found(kind: Kind, name: &str) -> Self {
        let message = format!("{} {name:?} not found", qualified_resource(kind));
        Self::new(StatusReason::NotFound, message).with_details(details(kind, name))
    }

    /// 409 `AlreadyExists`.
    pub(crate) fn already_exists(kind: Kind, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", qualified_resource(kind));
        Self::new(StatusReason::AlreadyExists, message).with_details(details(kind, name))
    }

    /// 409 `Conflict`: `Operation cannot be fulfilled on pods "x": REASON`.
    pub(crate) fn conflict(kind: Kind, name: &str, reason: &str) -> Self {
        let resource = qualified_resource(kind);
        let message = format!("Operation cannot be fulfilled on {resource} {name:?}: {reason}");
        Self::new(StatusReason::Conflict, message).with_details(details(kind, name))
    }

    /// 409 `Conflict` for a write that is based on an old resource version.
    pub(crate) fn modified(kind: Kind, name: &str) -> Self {
        const REASON: &str =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(kind, name, REASON)
    }

    /// 403 `Forbidden`: `pods "x" is forbidden: REASON`. The name is empty if it is to be
    /// generated.
    pub(crate) fn forbidden(kind: Kind, name: &str, reason: &str) -> Self {
        let resource = qualified_resource(kind);
        let message = match name {
            "" => format!("{resource} is forbidden: {reason}"),
            name => format!("{resource} {name:?} is forbidden: {reason}"),
        };
        Self::new(StatusReason::Forbidden, message).with_details(details(kind, name))
    }

    /// 501 for a dry run.
    pub(crate) fn dry_run() -> Self {
        Self::new(StatusReason::NotImplemented, "the embedded cluster does not implement dryRun")
    }

    /// 501 for a deletion that keeps dependents.
    pub(crate) fn orphaned_dependents() -> Self {
        let message = "the embedded cluster does not orphan dependents: set propagationPolicy to Background or Foreground";
        Self::new(StatusReason::NotImplemented, message)
    }

    /// 500 `InternalError`.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusReason::InternalError, message)
    }
}

/// Returns the `Status` of a completed deletion.
pub(super) fn deleted(kind: Kind, name: &str, object: &Value) -> Value {
    let uid = Some(object.uid().to_owned()).filter(|uid| !uid.is_empty());
    let details = StatusDetails { uid, ..details(kind, name) };
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

/// Returns the API group of a kind; empty for the core group.
pub(super) fn group(kind: Kind) -> &'static str {
    kind.names().1.split_once('/').map_or("", |(group, _)| group)
}

/// Returns the resource and its group: `pods`, `priorityclasses.scheduling.k8s.io`.
fn qualified_resource(kind: Kind) -> String {
    match group(kind) {
        "" => kind.plural().to_owned(),
        group => format!("{}.{group}", kind.plural()),
    }
}

fn details(kind: Kind, name: &str) -> StatusDetails {
    let non_empty = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    StatusDetails {
        name: non_empty(name),
        group: non_empty(group(kind)),
        kind: Some(kind.plural().to_owned()),
        ..StatusDetails::default()
    }
}
