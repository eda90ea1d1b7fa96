//! Whether something is allowed: everything is, to whoever has the token.

use axum::response::Response;
use serde_json::{Value, json};

use super::request::{self, Request};
use super::respond;
use crate::registry::Status;

/// Answers a `SelfSubjectAccessReview`.
pub fn allow(request: &Request) -> Result<Response, Status> {
    let body = request::json(&request.headers, &request.body)?;
    let mut review: Value =
        serde_json::from_slice(&body).map_err(|error| Status::bad_request(error.to_string()))?;
    if !review.is_object() {
        return Err(Status::bad_request("a SelfSubjectAccessReview is an object"));
    }
    review["kind"] = json!("SelfSubjectAccessReview");
    review["apiVersion"] = json!("authorization.k8s.io/v1");
    review["status"] = json!({"allowed": true, "reason": "the embedded cluster allows everything"});
    Ok(respond::json(201, &review))
}
