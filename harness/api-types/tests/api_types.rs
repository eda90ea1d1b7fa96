//! Tests of the types of the API. They are apart from the library, so that its types are not
//! compiled a second time for them.

use std::collections::BTreeMap;

use evictlab_api_types::{
    ApiType, Difference, ImageReference, Mismatch, PathSegment, TypeSegment, ValueShape, read,
};
use k8s_openapi::api::core::v1::Pod;
use serde::Deserialize;
use serde_json::{Value, json};

#[test]
fn a_colon_before_the_last_slash_is_that_of_a_port() {
    let rows = [
        ("busybox", ("busybox", None, None)),
        ("busybox:1.36", ("busybox", Some("1.36"), None)),
        ("localhost:5000/node", ("localhost:5000/node", None, None)),
        ("localhost:5000/a/node:v1", ("localhost:5000/a/node", Some("v1"), None)),
        ("kindest/node@sha256:00", ("kindest/node", None, Some("sha256:00"))),
        ("r:5000/node:v1@sha256:00", ("r:5000/node", Some("v1"), Some("sha256:00"))),
    ];
    for (text, (name, tag, digest)) in rows {
        let image = ImageReference::parse(text);
        assert_eq!(image, ImageReference { name, tag, digest }, "{text}");
        assert_eq!(image.to_string(), text);
    }
}

#[test]
fn the_tag_decides_the_default_pull_policy() {
    for (image, policy) in [
        ("busybox", "Always"),
        ("busybox:latest", "Always"),
        ("busybox:1.36", "IfNotPresent"),
        ("localhost:5000/node", "Always"),
        ("busybox@sha256:00", "IfNotPresent"),
        ("busybox:latest@sha256:00", "Always"),
    ] {
        assert_eq!(ImageReference::parse(image).default_pull_policy(), policy, "{image}");
    }
}

#[test]
fn full_names_are_those_of_container_runtimes() {
    for (image, full) in [
        ("registry.k8s.io/e2e-test-images/agnhost:2.52", "registry.k8s.io/e2e-test-images/agnhost:2.52"),
        ("localhost/mine:1", "localhost/mine:1"),
        ("localhost:5000/mine", "localhost:5000/mine:latest"),
        ("kindest/node:v1", "docker.io/kindest/node:v1"),
        ("kindest/node:v1@sha256:00", "docker.io/kindest/node@sha256:00"),
        ("busybox:1.36", "docker.io/library/busybox:1.36"),
        ("busybox", "docker.io/library/busybox:latest"),
        ("docker.io/busybox", "docker.io/library/busybox:latest"),
        ("index.docker.io/busybox", "docker.io/library/busybox:latest"),
        ("busybox@sha256:00", "docker.io/library/busybox@sha256:00"),
    ] {
        assert_eq!(ImageReference::parse(image).full_name(), full, "{image}");
    }
}

fn mismatches(pod: Value) -> Vec<String> {
    ApiType::Pod.mismatches(&pod).iter().map(ToString::to_string).collect()
}

#[test]
fn unknown_fields_and_the_first_wrong_value_have_their_paths() {
    let spec = json!({
        "containers": [{"name": "app", "resource": {}, "restartPolicyRules": []}, {"name": "x", "ports": [{"containerPort": "80"}]}],
        "hostnameOverride": "one",
    });
    assert_eq!(
        mismatches(json!({"metadata": {"labels": {"app": "x"}, "owner": {}}, "spec": spec})),
        [
            "metadata.owner: unknown field",
            "spec.containers[0].resource: unknown field",
            "spec.containers[1].ports[0].containerPort: invalid type: string \"80\", expected i32",
        ]
    );
}

#[test]
fn a_value_other_than_an_object_has_no_path() {
    assert_eq!(mismatches(json!([])), ["invalid type: sequence, expected Pod"]);
}

#[test]
fn keys_follow_dots_and_indexes_are_in_brackets() {
    let unknown = |path: &[PathSegment]| {
        Mismatch { path: path.to_vec(), difference: Difference::UnknownField }.to_string()
    };
    let path = ["metadata", "labels", "example.com/x"].map(PathSegment::from);
    assert_eq!(unknown(&path), "metadata.labels.example.com/x: unknown field");
    assert_eq!(unknown(&[PathSegment::from(0), "image".into()]), "[0].image: unknown field");
}

#[test]
fn a_document_is_read_as_serde_json_reads_it() {
    let pod = json!({
        "metadata": {"name": "web", "creationTimestamp": "2026-01-02T03:04:05Z", "labels": {"app": "web"}},
        "spec": {
            "priority": -1,
            "hostNetwork": null,
            "containers": [{"name": "app", "ports": [{"containerPort": 80}], "unknown": [1, {}]}],
            "tolerations": [],
        },
        "status": {"containerStatuses": [{"name": "app", "state": {"terminated": {"exitCode": 137}}}]},
    });
    assert_eq!(read::<Pod>(&pod).unwrap(), Pod::deserialize(&pod).unwrap());
    let values = json!({"a": 1, "b": [0.5, "text", null, true, -1, u64::MAX]});
    assert_eq!(read::<BTreeMap<String, Value>>(&values).unwrap(), BTreeMap::deserialize(&values).unwrap());
}

#[test]
fn a_value_of_a_wrong_type_has_its_path() {
    let rows = [
        (json!({"metadata": {"labels": {"a.b": true}}}), "metadata.labels.a.b", "boolean `true`"),
        (json!({"spec": {"containers": [{}, {"ports": {}}]}}), "spec.containers[1].ports", "map"),
        (json!({"spec": {"containers": [null]}}), "spec.containers[0]", "null"),
        (json!({"status": []}), "status", "sequence"),
        (json!(1.5), ".", "floating point `1.5`"),
    ];
    for (document, path, value) in rows {
        let error = read::<Pod>(&document).unwrap_err();
        assert_eq!(error.field_path(), path);
        let text = error.source.to_string();
        assert!(text.starts_with(&format!("invalid type: {value}, expected ")), "{text}");
        assert_eq!(text, Pod::deserialize(&document).unwrap_err().to_string());
    }
}

fn shape(text: &str) -> ValueShape {
    let part = |name: &str| match name {
        "[]" => TypeSegment::Item,
        "{}" => TypeSegment::Value,
        name => TypeSegment::Field(name.to_owned()),
    };
    ApiType::Pod.shape_at(&text.split_terminator('.').map(part).collect::<Vec<_>>())
}

#[test]
fn types_know_their_fields() {
    let ValueShape::Object(fields) = shape("spec.containers.[].resources") else { panic!() };
    assert_eq!(fields, ["claims", "limits", "requests"]);
    assert_eq!(shape("spec.containers"), ValueShape::List);
    assert_eq!(shape("metadata.labels"), ValueShape::Map);
    assert_eq!(shape("spec.containers.[].resources.limits.{}"), ValueShape::Other);
    assert_eq!(shape("status.phase"), ValueShape::Other);
    assert_eq!(shape("status.startTime"), ValueShape::Other);
    assert_eq!(shape("status.reason.more"), ValueShape::Other);
    assert_eq!(shape("metadata.[]"), ValueShape::Other);
}
