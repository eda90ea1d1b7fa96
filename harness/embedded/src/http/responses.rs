//! HTTP responses.

use axum::body::Body;
use axum::response::Response;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use serde::Serialize;

use crate::apiserver::Status;

/// Returns a JSON response.
pub(crate) fn json(code: u16, object: &impl Serialize) -> Response {
    match serde_json::to_vec(object) {
        Ok(bytes) => with_body(code, "application/json", Body::from(bytes)),
        Err(error) => with_body(500, "text/plain", Body::from(error.to_string())),
    }
}

/// Returns a response with a body of a media type.
pub(crate) fn with_body(code: u16, media_type: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// Returns an API error; `Retry-After` is that of its details.
pub(crate) fn error(status: &Status) -> Response {
    let mut response = json(status.code, &status.object());
    let retry_after = status.details.as_ref().and_then(|details| details.retry_after_seconds);
    if let Some(seconds) = retry_after.filter(|seconds| *seconds > 0) {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Adds warnings to a response as `Warning` headers (RFC 7234).
pub(crate) fn add_warnings(response: &mut Response, warnings: &[String]) {
    for warning in warnings {
        let escaped = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{escaped}\"")) {
            response.headers_mut().append(HeaderName::from_static("warning"), value);
        }
    }
}
