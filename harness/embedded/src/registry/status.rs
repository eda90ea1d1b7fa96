//! What the API server says when it refuses.

use serde_json::{Value, json};

/// A refusal, as `metav1.Status` tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The HTTP status.
    pub code: u16,
    /// Such as `NotFound`.
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
            "reason": self.reason,
        });
        if let Some(details) = &self.details {
            object["details"] = details.clone();
        }
        object["code"] = json!(self.code);
        object
    }
}
