//! Errors of the HTTP layer.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{StatusCause, StatusDetails};

use crate::apiserver::{Status, StatusReason};

/// 404 for a path that does not exist.
pub(crate) fn unknown_path(path: &str) -> Status {
    let message = format!(
        "the server could not find the requested resource: the embedded cluster does not serve {path}"
    );
    Status::new(StatusReason::NotFound, message).with_details(StatusDetails::default())
}

/// 501 for a function that the model does not have.
pub(crate) fn not_simulated(what: &str) -> Status {
    let message = format!("{what} is not served by the embedded cluster: its containers are simulated");
    Status::new(StatusReason::NotImplemented, message)
}

/// 415 for a body of an unsupported media type.
pub(crate) fn unsupported_media_type(stated: &str, supported: &[&str]) -> Status {
    let message = format!(
        "the body of the request was in an unknown format ({stated}) - accepted media types include: {}",
        supported.join(", ")
    );
    Status::new(StatusReason::UnsupportedMediaType, message)
}

/// 406 for a response in an unsupported media type.
pub(crate) fn not_acceptable() -> Status {
    Status::new(StatusReason::NotAcceptable, "only the following media types are accepted: application/json")
}

/// 401 for a missing or wrong token.
pub(crate) fn unauthorized() -> Status {
    Status::new(StatusReason::Unauthorized, "Unauthorized")
}

/// Error that a fault script injects, with the reason of its status code.
pub(crate) fn injected(code: u16) -> Status {
    let (reason, message) = match code {
        401 => (StatusReason::Unauthorized, "Unauthorized"),
        403 => (StatusReason::Forbidden, "forbidden: a fault of the script"),
        404 => (StatusReason::NotFound, "the server could not find the requested resource"),
        409 => (
            StatusReason::Conflict,
            "the object has been modified; please apply your changes to the latest version",
        ),
        429 => (StatusReason::TooManyRequests, "Too many requests, please try again later."),
        503 => (StatusReason::ServiceUnavailable, "the server is currently unable to handle the request"),
        504 => (StatusReason::Timeout, "the server was unable to return a response in the time allotted"),
        _ => (StatusReason::InternalError, "an error on the server: a fault of the script"),
    };
    Status { code, ..Status::new(reason, message) }
}

/// 410 for a watch from a version whose changes are forgotten.
pub(crate) fn expired(requested: u64, oldest: u64) -> Status {
    Status::new(StatusReason::Expired, format!("too old resource version: {requested} ({oldest})"))
}

/// 504 for a version in the future.
pub(crate) fn version_too_large(requested: u64, current: u64) -> Status {
    let message = format!("Timeout: Too large resource version: {requested}, current: {current}");
    let cause = StatusCause {
        reason: Some("ResourceVersionTooLarge".to_owned()),
        message: Some("Too large resource version".to_owned()),
        field: None,
    };
    Status::new(StatusReason::Timeout, message).with_details(StatusDetails {
        causes: Some(vec![cause]),
        retry_after_seconds: Some(1),
        ..StatusDetails::default()
    })
}

/// 422 for an invalid option of a watch.
pub(crate) fn invalid_list_options(field: &str, error: &str) -> Status {
    let message = format!("ListOptions.meta.k8s.io \"\" is invalid: {field}: {error}");
    Status::new(StatusReason::Invalid, message).with_details(StatusDetails {
        group: Some("meta.k8s.io".to_owned()),
        kind: Some("ListOptions".to_owned()),
        ..StatusDetails::default()
    })
}

/// 413 for a body above the limit in bytes.
pub(crate) fn body_too_large(limit: usize) -> Status {
    Status::new(StatusReason::RequestEntityTooLarge, format!("Request entity too large: limit is {limit}"))
}
