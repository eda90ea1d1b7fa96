//! Pods created here, compared with the recorded pods of a real API server.

use serde_json::{Value, json};

use super::*;
use crate::resource::ObjectExt;
use crate::tests::{RULES, read_recordings};

fn list<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    value.items(field)
}

/// Returns the pod of the request: without the fields set by defaults and admission.
fn requested(created: &Value) -> Value {
    let mut pod = json!({"metadata": {"name": created["metadata"]["name"]}, "spec": created["spec"]});
    let spec = pod["spec"].as_object_mut().unwrap();
    for added in [
        "dnsPolicy",
        "enableServiceLinks",
        "preemptionPolicy",
        "priority",
        "schedulerName",
        "securityContext",
        "serviceAccount",
        "serviceAccountName",
    ] {
        spec.shift_remove(added);
    }
    let token = |one: &Value| one["name"].as_str().is_some_and(|name| name.starts_with("kube-api-access-"));
    spec["volumes"].as_array_mut().unwrap().retain(|volume| !token(volume));
    for containers in ["containers", "initContainers"] {
        for container in spec.get_mut(containers).and_then(Value::as_array_mut).into_iter().flatten() {
            let container = container.as_object_mut().unwrap();
            for added in ["imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy"] {
                container.shift_remove(added);
            }
            container["volumeMounts"].as_array_mut().unwrap().retain(|mount| !token(mount));
        }
    }
    pod
}

/// Returns a created pod without random names and without fields of the recorded distribution.
fn comparable(pod: &Value) -> Value {
    let mut text = pod["spec"].clone();
    let rename = |name: &mut Value| {
        if name.as_str().is_some_and(|name| name.starts_with("kube-api-access-")) {
            *name = json!("kube-api-access-");
        }
    };
    for volume in text["volumes"].as_array_mut().into_iter().flatten() {
        rename(&mut volume["name"]);
        if let Some(sources) =
            volume.get_mut("projected").and_then(|projected| projected["sources"].as_array_mut())
        {
            sources.retain(|source| source["configMap"]["name"] != "openshift-service-ca.crt");
        }
    }
    for containers in ["containers", "initContainers"] {
        for container in text.get_mut(containers).and_then(Value::as_array_mut).into_iter().flatten() {
            for mount in container["volumeMounts"].as_array_mut().into_iter().flatten() {
                rename(&mut mount["name"]);
            }
        }
    }
    json!({"spec": text, "status": pod["status"], "generation": pod["metadata"]["generation"]})
}

#[test]
fn creates_pods_as_recorded() {
    let mut compared = 0;
    for (name, recording) in read_recordings::<Value>(&[RULES]) {
        let version = recording["kubeletVersion"].as_str().unwrap();
        // Pods whose status no kubelet has changed.
        for created in list(&recording, "podsCreated").filter(|pod| pod.phase() == "Pending") {
            let actual = Bench::new(version).create(Kind::Pod, "default", requested(created)).unwrap();
            assert_eq!(comparable(&actual), comparable(created), "{name}");
            compared += 1;
        }
    }
    assert!(compared > 0);
}

#[test]
fn knows_every_recorded_field() {
    for (name, recording) in read_recordings::<Value>(&[RULES]) {
        let pods = list(&recording, "podsFinal").map(|pod| (Kind::Pod, pod));
        let events = list(&recording, "events").map(|event| (Kind::Event, event));
        for (kind, object) in pods.chain(events) {
            let mut decoded = object.clone();
            decode::decode(kind, &mut decoded, FieldValidation::Strict)
                .unwrap_or_else(|error| panic!("{name}: {}", error.message));
            assert_eq!(decoded["status"], object["status"], "{name}");
        }
    }
}
