//! From a body to an object: types, unknown and doubled fields, quantities.
//!
//! The object stays a [`Value`], so that fields which are newer than the types here are not lost; the types only check it.

mod quantities;
mod text;
mod types;

use serde_json::{Value, json};

use super::{Status, Strictness};
use crate::store::Kind;

pub(super) use quantities::canonical;

/// Reads a JSON body. Doubled fields, which a [`Value`] cannot hold, are refused or become warnings here; unknown ones are looked for by
/// [`super::create`] and [`super::update`].
///
/// # Errors
/// 400 with what a real server says of a body that is no JSON, no object, or has doubled fields where they are refused.
pub fn read(kind: Kind, body: &[u8], strict: Strictness) -> Result<(Value, Vec<String>), Status> {
    let (name, version) = kind.names();
    let text::Parsed { value, doubled } = text::parse(body).map_err(|error| {
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {name}): couldn't get version/kind; json parse error: {error}"
        ))
    })?;
    let doubled = doubled.into_iter().map(|path| format!("duplicate field {path:?}"));
    Ok((value, judge(name, version, doubled.collect(), strict)?))
}

/// Checks an object's types, drops `null`s and unknown fields, and writes its quantities as the API prints them. The answer are warnings.
pub(super) fn decode(kind: Kind, object: &mut Value, strict: Strictness) -> Result<Vec<String>, Status> {
    let (name, version) = kind.names();
    if !object.is_object() {
        return Err(Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {name}): couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type struct",
            types::go_name(object)
        )));
    }
    check_type(kind, object)?;
    without_nulls(object);
    let handled = |why: String| {
        Status::bad_request(format!("{name} in version {version:?} cannot be handled as a {name}: {why}"))
    };
    canonical(kind, object).map_err(handled)?;
    let unknown = types::check(kind, object).map_err(handled)?;
    let told = unknown.iter().map(|field| format!("unknown field {:?}", field.path)).collect();
    for field in &unknown {
        field.remove(object);
    }
    judge(name, version, told, strict)
}

/// What becomes of fields that are no part of the type.
fn judge(name: &str, version: &str, told: Vec<String>, strict: Strictness) -> Result<Vec<String>, Status> {
    match strict {
        _ if told.is_empty() => Ok(told),
        Strictness::Ignore => Ok(Vec::new()),
        Strictness::Warn => Ok(told),
        Strictness::Strict => Err(Status::bad_request(format!(
            "{name} in version {version:?} cannot be handled as a {name}: strict decoding error: {}",
            told.join(", ")
        ))),
    }
}

/// Sets `kind` and `apiVersion`, which may be left out; others than the resource's are refused.
fn check_type(kind: Kind, object: &mut Value) -> Result<(), Status> {
    let (name, version) = kind.names();
    let stated = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
    let (stated_name, stated_version) = (stated("kind"), stated("apiVersion"));
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
    object["kind"] = json!(name);
    object["apiVersion"] = json!(version);
    Ok(())
}

/// Drops `null`s, which mean the same as nothing, everywhere but in the status, where the API prints some.
fn without_nulls(object: &mut Value) {
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
    use super::*;

    fn refused(object: Value, strict: Strictness) -> String {
        decode(Kind::Pod, &mut object.clone(), strict).unwrap_err().message
    }

    #[test]
    fn an_unknown_field_is_refused_warned_of_or_dropped() {
        let pod = json!({"spec": {"foo": 1, "containers": [{"name": "a", "image": "b", "mem": "1Gi"}]}});
        assert_eq!(
            refused(pod.clone(), Strictness::Strict),
            "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: unknown field \"spec.foo\", unknown field \"spec.containers[0].mem\""
        );
        let mut dropped = pod.clone();
        let warnings = decode(Kind::Pod, &mut dropped, Strictness::Warn).unwrap();
        assert_eq!(warnings, ["unknown field \"spec.foo\"", "unknown field \"spec.containers[0].mem\""]);
        assert_eq!(dropped["spec"], json!({"containers": [{"name": "a", "image": "b"}]}));
        assert!(decode(Kind::Pod, &mut pod.clone(), Strictness::Ignore).unwrap().is_empty());
    }

    #[test]
    fn a_field_that_is_newer_than_the_types_stays() {
        let mut pod = json!({"spec": {"hostnameOverride": "a", "containers": [{"restartPolicyRules": []}]}});
        decode(Kind::Pod, &mut pod, Strictness::Strict).unwrap();
        assert_eq!(pod["spec"]["hostnameOverride"], "a");
    }

    #[test]
    fn a_wrong_type_is_told_as_go_tells_it() {
        assert_eq!(
            refused(json!({"spec": {"terminationGracePeriodSeconds": "x"}}), Strictness::Warn),
            "Pod in version \"v1\" cannot be handled as a Pod: json: cannot unmarshal string into Go struct field PodSpec.spec.terminationGracePeriodSeconds of type int64"
        );
        assert_eq!(
            refused(json!({"spec": {"containers": [{"image": 5}]}}), Strictness::Warn),
            "Pod in version \"v1\" cannot be handled as a Pod: json: cannot unmarshal number into Go struct field Container.spec.containers.image of type string"
        );
        assert_eq!(
            refused(json!({"kind": "ConfigMap", "apiVersion": "v1"}), Strictness::Warn),
            "ConfigMap in version \"v1\" cannot be handled as a Pod: converting (v1.ConfigMap) to (core.Pod): unknown conversion"
        );
    }

    #[test]
    fn doubled_fields_are_found_in_the_text() {
        let body = br#"{"metadata": {"name": "a", "name": "b"}, "spec": {"containers": [{"image": "x", "image": "y"}]}}"#;
        assert_eq!(
            read(Kind::Pod, body, Strictness::Strict).unwrap_err().message,
            "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: duplicate field \"metadata.name\", duplicate field \"spec.containers[0].image\""
        );
        let (value, warnings) = read(Kind::Pod, body, Strictness::Warn).unwrap();
        assert_eq!((&value["metadata"]["name"], warnings.len()), (&json!("b"), 2));
        assert_eq!(read(Kind::Pod, b"{", Strictness::Warn).unwrap_err().code, 400);
    }

    #[test]
    fn quantities_are_printed_as_the_api_prints_them() {
        let mut pod =
            json!({"spec": {"containers": [{"resources": {"limits": {"memory": "1024Mi", "cpu": 0.5}}}]}});
        decode(Kind::Pod, &mut pod, Strictness::Strict).unwrap();
        let limits = &pod["spec"]["containers"][0]["resources"]["limits"];
        assert_eq!(*limits, json!({"memory": "1Gi", "cpu": "500m"}));
        let wrong = json!({"spec": {"containers": [{"resources": {"limits": {"memory": "much"}}}]}});
        assert_eq!(
            refused(wrong, Strictness::Warn),
            "Pod in version \"v1\" cannot be handled as a Pod: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        );
    }
}
