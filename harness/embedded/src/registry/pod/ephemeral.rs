//! Ephemeral containers: added by their subresource, never changed.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::field::{Errors, Path};
use super::{containers, defaults, validation};

/// What an ephemeral container may have; all else is forbidden.
const ALLOWED: [&str; 17] = [
    "name",
    "image",
    "command",
    "args",
    "workingDir",
    "envFrom",
    "env",
    "volumeMounts",
    "volumeDevices",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "imagePullPolicy",
    "securityContext",
    "stdin",
    "stdinOnce",
    "tty",
    "targetContainerName",
];

/// The pod with the ephemeral containers of another one, which is given their defaults.
pub(in super::super) fn taken_over(old: &Value, new: &Value) -> Value {
    let mut pod = old.clone();
    let mut all = new["spec"]["ephemeralContainers"].clone();
    all.as_array_mut().into_iter().flatten().for_each(defaults::container);
    if all.as_array().is_none_or(Vec::is_empty) {
        if let Some(spec) = pod["spec"].as_object_mut() {
            spec.shift_remove("ephemeralContainers");
        }
    } else {
        pod["spec"]["ephemeralContainers"] = all;
    }
    pod
}

/// Checks a change of ephemeral containers.
pub(in super::super) fn update(new: &Value, old: &Value) -> Errors {
    let path = Path::new("spec").child("ephemeralContainers");
    if old["metadata"]["annotations"].get("kubernetes.io/config.mirror").is_some() {
        let mut errors = Errors::default();
        errors.forbidden(&Path::new(""), "static pods do not support ephemeral containers");
        return errors;
    }
    let mut errors = validation::whole(new);
    for before in containers(old, "ephemeralContainers") {
        let name = before["name"].as_str().unwrap_or_default();
        match containers(new, "ephemeralContainers").find(|after| after["name"] == name) {
            None => {
                errors.forbidden(
                    &path,
                    &format!("existing ephemeral containers {name:?} may not be removed\n"),
                );
            }
            Some(after) if after != before => {
                let diff = super::update::diff(before, after);
                let why = format!("existing ephemeral containers {name:?} may not be changed\n{diff}");
                errors.forbidden(&path, &why);
            }
            Some(_) => {}
        }
    }
    errors
}

/// Checks a pod's ephemeral containers as such.
pub(super) fn check(pod: &Value, volumes: &BTreeSet<&str>, path: &Path, errors: &mut Errors) {
    const WHY: &str = "cannot be set for an Ephemeral Container";
    let name = |container: &'_ Value| container["name"].as_str().unwrap_or_default().to_owned();
    let others: BTreeSet<String> =
        ["containers", "initContainers"].iter().flat_map(|list| containers(pod, list)).map(name).collect();
    let mut taken = others.clone();
    for (index, container) in containers(pod, "ephemeralContainers").enumerate() {
        let path = path.index(index);
        validation::common(container, volumes, &path, errors);
        validation::image_space(container, &path, errors);
        let name = name(container);
        if !taken.insert(name.clone()) {
            errors.duplicate(&path.child("name"), &name);
        }
        let target = container["targetContainerName"].as_str().unwrap_or_default();
        if !target.is_empty() && !others.contains(target) {
            errors.not_found(&path.child("targetContainerName"), target);
        }
        for (field, value) in container.as_object().into_iter().flatten() {
            let unset = match value {
                Value::Array(items) => items.is_empty(),
                // Resources are always there, empty by default.
                Value::Object(fields) => field == "resources" && fields.is_empty(),
                _ => false,
            };
            if !ALLOWED.contains(&field.as_str()) && !unset {
                errors.forbidden(&path.child(field), WHY);
            }
        }
        for (number, mount) in container["volumeMounts"].as_array().into_iter().flatten().enumerate() {
            for field in ["subPath", "subPathExpr"] {
                if mount[field].as_str().is_some_and(|text| !text.is_empty()) {
                    errors.forbidden(&path.child("volumeMounts").index(number).child(field), WHY);
                }
            }
        }
    }
}
