//! From a JSON body to a valid object.

use evictlab_api_types::{ApiType, Difference, Mismatch, PathSegment};
use serde_json::Value;

use super::quantities::canonicalize;
use crate::apiserver::options::FieldValidation;
use crate::apiserver::status::Status;
use crate::resource::{Kind, ObjectExt};

/// Parses a JSON body.
///
/// # Errors
/// 400 for a body that is not JSON.
pub(crate) fn parse(kind: Kind, body: &[u8]) -> Result<Value, Status> {
    serde_json::from_slice(body).map_err(|error| {
        let name = kind.names().0;
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {name}): couldn't get version/kind; json parse error: {error}"
        ))
    })
}

/// Checks the types of an object, removes nulls and unknown fields, and writes quantities in their
/// canonical form. Returns warnings.
pub(in crate::apiserver) fn decode(
    kind: Kind,
    object: &mut Value,
    validation: FieldValidation,
) -> Result<Vec<String>, Status> {
    let (name, version) = kind.names();
    if !object.is_object() {
        return Err(Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {name})"
        )));
    }
    set_type(kind, object)?;
    remove_nulls(object);
    let cannot_handle = |reason: String| {
        Status::bad_request(format!("{name} in version {version:?} cannot be handled as a {name}: {reason}"))
    };
    canonicalize(kind, object).map_err(cannot_handle)?;
    let unknown = unknown_fields(name, object).map_err(cannot_handle)?;
    let messages: Vec<String> =
        unknown.iter().map(|field| format!("unknown field {:?}", field.field_path())).collect();
    for field in &unknown {
        remove_field(&field.path, object);
    }
    match validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Strict if !messages.is_empty() => {
            Err(cannot_handle(format!("strict decoding error: {}", messages.join(", "))))
        }
        FieldValidation::Warn | FieldValidation::Strict => Ok(messages),
    }
}

/// Checks an object against the type of its kind and returns the fields that the type does not
/// have.
///
/// # Errors
/// The path of the first value of a wrong type, and serde's message.
fn unknown_fields(kind: &str, object: &Value) -> Result<Vec<Mismatch>, String> {
    let mismatches = ApiType::of_kind(kind).map(|known| known.mismatches(object)).unwrap_or_default();
    match mismatches.last() {
        Some(wrong) if matches!(wrong.difference, Difference::WrongType(_)) => Err(wrong.to_string()),
        _ => Ok(mismatches),
    }
}

/// Removes a field from an object.
fn remove_field(path: &[PathSegment], object: &mut Value) {
    let Some((PathSegment::Key(last), parents)) = path.split_last() else { return };
    let parent = parents.iter().try_fold(object, |value, segment| match segment {
        PathSegment::Key(name) => value.get_mut(name),
        PathSegment::Item(index) => value.get_mut(index),
    });
    if let Some(Value::Object(fields)) = parent {
        fields.shift_remove(last);
    }
}

/// Sets `kind` and `apiVersion`, which may be missing; rejects other values than the resource's.
fn set_type(kind: Kind, object: &mut Value) -> Result<(), Status> {
    let (name, version) = kind.names();
    let text = |field: &str| object.text(field).to_owned();
    let (stated_name, stated_version) = (text("kind"), text("apiVersion"));
    if !stated_version.is_empty() && stated_version != version {
        return Err(Status::bad_request(format!(
            "the API version in the data ({stated_version}) does not match the expected API version ({version})"
        )));
    }
    if !stated_name.is_empty() && stated_name != name {
        return Err(Status::bad_request(format!(
            "{stated_name} in version {version:?} cannot be handled as a {name}: converting (v1.{stated_name}) to (core.{name}): unknown conversion"
        )));
    }
    object.write("kind", name);
    object.write("apiVersion", version);
    Ok(())
}

/// Removes nulls, which mean the same as missing fields, except in the status, where the API
/// serializes some.
fn remove_nulls(object: &mut Value) {
    fn clean(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.retain(|_, value| !value.is_null());
                fields.values_mut().for_each(clean);
            }
            Value::Array(items) => items.iter_mut().for_each(clean),
            _ => {}
        }
    }
    if let Value::Object(fields) = object {
        fields.retain(|_, value| !value.is_null());
        fields.iter_mut().filter(|(name, _)| *name != "status").for_each(|(_, value)| clean(value));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn error(object: Value, validation: FieldValidation) -> String {
        decode(Kind::Pod, &mut object.clone(), validation).unwrap_err().message
    }

    #[test]
    fn rejects_warns_of_or_drops_unknown_fields() {
        let pod = json!({"spec": {"foo": 1, "containers": [{"name": "a", "image": "b", "mem": "1Gi"}]}});
        assert_eq!(
            error(pod.clone(), FieldValidation::Strict),
            "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: unknown field \"spec.foo\", unknown field \"spec.containers[0].mem\""
        );
        let mut dropped = pod.clone();
        let warnings = decode(Kind::Pod, &mut dropped, FieldValidation::Warn).unwrap();
        assert_eq!(warnings, ["unknown field \"spec.foo\"", "unknown field \"spec.containers[0].mem\""]);
        assert_eq!(dropped["spec"], json!({"containers": [{"name": "a", "image": "b"}]}));
        assert!(decode(Kind::Pod, &mut pod.clone(), FieldValidation::Ignore).unwrap().is_empty());
    }

    #[test]
    fn checks_the_types_of_all_kinds() {
        for kind in Kind::ALL {
            let mut object = json!({"metadata": {"foo": 1}});
            let warnings = decode(kind, &mut object, FieldValidation::Warn).unwrap();
            assert_eq!(warnings, ["unknown field \"metadata.foo\""], "{kind:?}");
        }
    }

    #[test]
    fn keeps_fields_newer_than_the_types() {
        let mut pod = json!({"spec": {"hostnameOverride": "a", "containers": [{"restartPolicyRules": []}]}});
        decode(Kind::Pod, &mut pod, FieldValidation::Strict).unwrap();
        assert_eq!(pod["spec"]["hostnameOverride"], "a");
    }

    #[test]
    fn rejects_values_of_a_wrong_type() {
        assert_eq!(
            error(json!({"spec": {"terminationGracePeriodSeconds": "x"}}), FieldValidation::Warn),
            "Pod in version \"v1\" cannot be handled as a Pod: spec.terminationGracePeriodSeconds: invalid type: string \"x\", expected i64"
        );
        assert_eq!(
            error(json!({"spec": {"containers": [{"image": 5}]}}), FieldValidation::Warn),
            "Pod in version \"v1\" cannot be handled as a Pod: spec.containers[0].image: invalid type: integer `5`, expected a string"
        );
        assert_eq!(
            error(json!({"kind": "ConfigMap", "apiVersion": "v1"}), FieldValidation::Warn),
            "ConfigMap in version \"v1\" cannot be handled as a Pod: converting (v1.ConfigMap) to (core.Pod): unknown conversion"
        );
    }

    #[test]
    fn canonicalizes_quantities() {
        let mut pod =
            json!({"spec": {"containers": [{"resources": {"limits": {"memory": "1024Mi", "cpu": 0.5}}}]}});
        decode(Kind::Pod, &mut pod, FieldValidation::Strict).unwrap();
        let limits = &pod["spec"]["containers"][0]["resources"]["limits"];
        assert_eq!(*limits, json!({"memory": "1Gi", "cpu": "500m"}));
        let wrong = json!({"spec": {"containers": [{"resources": {"limits": {"memory": "much"}}}]}});
        assert_eq!(
            error(wrong, FieldValidation::Warn),
            "Pod in version \"v1\" cannot be handled as a Pod: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        );
    }
}
