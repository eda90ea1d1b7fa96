//! What only HTTP can refuse.

use serde_json::json;

use super::request::Target;
use crate::registry::Status;

/// 404 of a resource that is not served.
pub fn no_resource(target: &Target) -> Status {
    let mut resource = format!("{}/{}", version(target), target.resource);
    if let Some(subresource) = &target.subresource {
        resource = format!("{resource}/{subresource}");
    }
    Status {
        code: 404,
        reason: "NotFound",
        message: format!(
            "the server could not find the requested resource: the embedded cluster serves no {resource}"
        ),
        details: Some(json!({})),
    }
}

/// 404 of a path that is not served.
pub fn no_path(path: &str) -> Status {
    Status {
        code: 404,
        reason: "NotFound",
        message: format!(
            "the server could not find the requested resource: the embedded cluster serves no {path}"
        ),
        details: Some(json!({})),
    }
}

/// 405 of a verb that a resource does not know.
pub fn no_verb(verb: &str, target: &Target) -> Status {
    let subresource = target.subresource.as_deref().map(|name| format!("/{name}")).unwrap_or_default();
    let resource = format!("{}{subresource}", target.qualified());
    Status {
        code: 405,
        reason: "MethodNotAllowed",
        message: format!(
            "the server does not allow this method on the requested resource: {verb} of {resource}"
        ),
        details: Some(json!({"kind": target.resource})),
    }
}

/// 501 of what a model cannot do.
pub fn not_modelled(what: &str) -> Status {
    Status {
        code: 501,
        reason: "NotImplemented",
        message: format!("{what} is not served by the embedded cluster: its containers are simulated"),
        details: None,
    }
}

/// 415 of a body in a format that is not read here.
pub fn unsupported_media(stated: &str, served: &[&str]) -> Status {
    Status {
        code: 415,
        reason: "UnsupportedMediaType",
        message: format!(
            "the body of the request was in an unknown format ({stated}) - accepted media types include: {}",
            served.join(", ")
        ),
        details: None,
    }
}

/// 406 of an answer in a format that is not written here.
pub fn not_acceptable() -> Status {
    Status {
        code: 406,
        reason: "NotAcceptable",
        message: "only the following media types are accepted: application/json, application/yaml".into(),
        details: None,
    }
}

/// 401.
pub fn unauthorized() -> Status {
    Status { code: 401, reason: "Unauthorized", message: "Unauthorized".into(), details: None }
}

/// 410 of a version whose changes are forgotten.
pub fn expired(asked: u64, oldest: u64) -> Status {
    Status {
        code: 410,
        reason: "Expired",
        message: format!("too old resource version: {asked} ({oldest})"),
        details: None,
    }
}

/// 504 of a version that is yet to come.
pub fn too_large(asked: u64, current: u64) -> Status {
    Status {
        code: 504,
        reason: "Timeout",
        message: format!("Timeout: Too large resource version: {asked}, current: {current}"),
        details: Some(json!({
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        })),
    }
}

/// 422 of the options of a request: pairs of a field and what is wrong with it.
pub fn invalid_options(errors: &[(&str, String)]) -> Status {
    let told: Vec<String> = errors.iter().map(|(field, problem)| format!("{field}: {problem}")).collect();
    let told = match told.as_slice() {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    };
    let reason = |problem: &str| match problem.split(':').next() {
        Some("Forbidden") => "FieldValueForbidden",
        Some("Unsupported value") => "FieldValueNotSupported",
        _ => "FieldValueInvalid",
    };
    let cause = |(field, problem): &(&str, String)| json!({"reason": reason(problem), "message": problem, "field": field});
    let causes: Vec<_> = errors.iter().map(cause).collect();
    Status {
        code: 422,
        reason: "Invalid",
        message: format!("ListOptions.meta.k8s.io \"\" is invalid: {told}"),
        details: Some(json!({"group": "meta.k8s.io", "kind": "ListOptions", "causes": causes})),
    }
}

fn version(target: &Target) -> String {
    match target.group.as_str() {
        "" => target.version.clone(),
        group => format!("{group}/{}", target.version),
    }
}

/// 413.
pub fn too_long(limit: usize) -> Status {
    Status {
        code: 413,
        reason: "RequestEntityTooLarge",
        message: format!("Request entity too large: limit is {limit}"),
        details: None,
    }
}

/// 410 of a list whose state is forgotten; `continued` of one who was in its midst (`etcd3/errors.go`).
pub fn list_expired(continued: bool) -> Status {
    let message = if continued {
        "The provided continue parameter is too old to display a consistent list result. You must start a new list without the continue parameter."
    } else {
        "The resourceVersion for the provided list is too old."
    };
    Status { code: 410, reason: "Expired", message: message.into(), details: None }
}
