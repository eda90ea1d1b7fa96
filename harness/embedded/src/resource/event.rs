//! Content of events.

use serde_json::Value;

/// Type, reason and message of an event.
#[derive(Clone, Debug)]
pub(crate) struct EventBody<'a> {
    /// `Normal` or `Warning`.
    pub(crate) event_type: &'static str,
    /// Reason, such as `NodeNotReady`.
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
    pub(crate) annotations: Option<Value>,
}

impl<'a> EventBody<'a> {
    /// Creates an event of type `Normal`.
    pub(crate) fn normal(reason: &'a str, message: &'a str) -> Self {
        Self { event_type: "Normal", reason, message, annotations: None }
    }

    /// Creates an event of type `Warning`.
    pub(crate) fn warning(reason: &'a str, message: &'a str) -> Self {
        Self { event_type: "Warning", reason, message, annotations: None }
    }

    /// Sets the annotations.
    pub(crate) fn annotated(self, annotations: Option<Value>) -> Self {
        Self { annotations, ..self }
    }
}
