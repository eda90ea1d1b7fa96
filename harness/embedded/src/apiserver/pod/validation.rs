//! Validation of pods: the rules of `pkg/apis/core/validation` that a test of evictions can
//! violate.

use std::collections::BTreeSet;

use evictlab_rules::KubeletVersion;
use serde_json::Value;

use super::{resources, volumes};
use crate::apiserver::field_errors::{FieldErrors, FieldPath};
use crate::apiserver::{metadata, names};
use crate::resource::{ObjectExt, RESOURCE_CONTAINER_LISTS};

/// Fields of an ephemeral container; all others are forbidden.
const EPHEMERAL_FIELDS: [&str; 17] = [
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

/// Validates a new pod.
pub(in crate::apiserver) fn validate_new(pod: &Value, version: &KubeletVersion) -> FieldErrors {
    let mut errors = validate_as(pod, version);
    if pod.spec().items("ephemeralContainers").next().is_some() {
        errors.forbidden(&FieldPath::new("spec").child("ephemeralContainers"), "cannot be set on create");
    }
    errors
}

/// Validates metadata and spec of an updated pod: an update cannot add a field that is allowed in
/// some versions only.
pub(super) fn validate(pod: &Value) -> FieldErrors {
    validate_as(pod, &KubeletVersion::from_minor(KubeletVersion::NEWEST_MINOR))
}

fn validate_as(pod: &Value, version: &KubeletVersion) -> FieldErrors {
    let mut errors = metadata::validate(pod, names::dns_subdomain);
    validate_spec(pod, version, &FieldPath::new("spec"), &mut errors);
    errors
}

/// Validates labels and spec of a pod template (`ValidatePodTemplateSpec`).
pub(in crate::apiserver) fn validate_template(
    template: &Value,
    version: &KubeletVersion,
    path: &FieldPath,
    errors: &mut FieldErrors,
) {
    let labels = path.child("metadata").child("labels");
    metadata::validate_labels(template.labels(), &labels, errors);
    let path = path.child("spec");
    validate_spec(template, version, &path, errors);
    if template.spec().items("ephemeralContainers").next().is_some() {
        errors.forbidden(
            &path.child("ephemeralContainers"),
            "ephemeral containers not allowed in pod template",
        );
    }
}

/// Validates the spec of a pod or a pod template, which is at `path`.
fn validate_spec(pod: &Value, version: &KubeletVersion, path: &FieldPath, errors: &mut FieldErrors) {
    let spec = pod.spec();
    let volumes = volumes::validate(spec, &path.child("volumes"), errors);
    validate_containers(pod, &volumes, &path.child("containers"), errors);
    validate_init_containers(pod, &volumes, &path.child("initContainers"), errors);
    validate_ephemeral_containers(pod, &volumes, &path.child("ephemeralContainers"), errors);
    for list in RESOURCE_CONTAINER_LISTS {
        validate_restart_policies(pod, list, version, &path.child(list), errors);
    }
    resources::validate_pod_level(pod, path, errors);
    check_supported(spec, path, "restartPolicy", &["Always", "OnFailure", "Never"], errors);
    validate_tolerations(spec, &path.child("tolerations"), errors);
}

/// Validates the fields that containers of all lists share. The kubelets of the model do not run
/// `postStart` hooks.
fn validate_common(container: &Value, volumes: &BTreeSet<&str>, path: &FieldPath, errors: &mut FieldErrors) {
    let name_path = path.child("name");
    match container.text("name") {
        "" => errors.required(&name_path, ""),
        name => {
            names::dns_label(name).iter().for_each(|message| errors.invalid(&name_path, name, message));
        }
    }
    if container.text("image").is_empty() {
        errors.required(&path.child("image"), "");
    }
    let lifecycle = container.get("lifecycle").unwrap_or(&Value::Null);
    if lifecycle.get("postStart").is_some_and(|hook| !hook.is_null()) {
        let path = path.child("lifecycle").child("postStart");
        errors.forbidden(&path, "the model does not run postStart hooks");
    }
    validate_mounts(container, volumes, &path.child("volumeMounts"), errors);
    resources::validate(container.get("resources").unwrap_or(&Value::Null), &path.child("resources"), errors);
}

fn validate_containers(pod: &Value, volumes: &BTreeSet<&str>, path: &FieldPath, errors: &mut FieldErrors) {
    if pod.spec().items("containers").next().is_none() {
        errors.required(path, "");
    }
    let mut names = BTreeSet::new();
    for (index, container) in pod.spec().items("containers").enumerate() {
        let path = path.index(index);
        validate_common(container, volumes, &path, errors);
        let name = container.text("name");
        if !names.insert(name) {
            errors.duplicate(&path.child("name"), name);
        }
    }
}

fn validate_init_containers(
    pod: &Value,
    volumes: &BTreeSet<&str>,
    path: &FieldPath,
    errors: &mut FieldErrors,
) {
    let mut names: BTreeSet<&str> =
        pod.spec().items("containers").map(|container| container.text("name")).collect();
    for (index, container) in pod.spec().items("initContainers").enumerate() {
        let path = path.index(index);
        validate_common(container, volumes, &path, errors);
        let name = container.text("name");
        if !name.is_empty() && !names.insert(name) {
            errors.duplicate(&path.child("name"), name);
        }
    }
}

/// Validates the restart policies of containers. Since 1.35, containers of both lists may have any
/// policy, and rules beside it (`ContainerRestartRules`, `validateContainerRestartPolicy` of
/// `pkg/apis/core/validation/validation.go`); before, only init containers may have one, `Always`.
fn validate_restart_policies(
    pod: &Value,
    list: &str,
    version: &KubeletVersion,
    path: &FieldPath,
    errors: &mut FieldErrors,
) {
    for (index, container) in pod.spec().items(list).enumerate() {
        let path = path.index(index);
        let policy = path.child("restartPolicy");
        let is_stated = !container.text("restartPolicy").is_empty();
        if version.at_least(35) {
            check_supported(container, &path, "restartPolicy", &["Always", "Never", "OnFailure"], errors);
            if !is_stated && container.items("restartPolicyRules").next().is_some() {
                errors.required(&policy, "must specify restartPolicy when restart rules are used");
            }
        } else if list == "initContainers" {
            check_supported(container, &path, "restartPolicy", &["Always"], errors);
        } else if is_stated {
            errors.forbidden(&policy, "may not be set for non-init containers");
        }
    }
}

fn validate_ephemeral_containers(
    pod: &Value,
    volumes: &BTreeSet<&str>,
    path: &FieldPath,
    errors: &mut FieldErrors,
) {
    let others: BTreeSet<&str> = RESOURCE_CONTAINER_LISTS
        .iter()
        .flat_map(|list| pod.spec().items(list))
        .map(|container| container.text("name"))
        .collect();
    let mut names = others.clone();
    for (index, container) in pod.spec().items("ephemeralContainers").enumerate() {
        let path = path.index(index);
        validate_common(container, volumes, &path, errors);
        let name = container.text("name");
        if !names.insert(name) {
            errors.duplicate(&path.child("name"), name);
        }
        let target = container.text("targetContainerName");
        if !target.is_empty() && !others.contains(target) {
            errors.not_found(&path.child("targetContainerName"), target);
        }
        for (field, value) in container.as_object().into_iter().flatten() {
            let is_unset = match value {
                Value::Array(items) => items.is_empty(),
                // The defaults set empty resources.
                Value::Object(fields) => field == "resources" && fields.is_empty(),
                _ => false,
            };
            if !EPHEMERAL_FIELDS.contains(&field.as_str()) && !is_unset {
                errors.forbidden(&path.child(field), "cannot be set for an Ephemeral Container");
            }
        }
    }
}

fn validate_mounts(container: &Value, volumes: &BTreeSet<&str>, path: &FieldPath, errors: &mut FieldErrors) {
    let mut mount_paths = BTreeSet::new();
    for (index, mount) in container.items("volumeMounts").enumerate() {
        let path = path.index(index);
        if !volumes.contains(mount.text("name")) {
            errors.not_found(&path.child("name"), mount.text("name"));
        }
        match mount.text("mountPath") {
            "" => errors.required(&path.child("mountPath"), ""),
            mount_path if !mount_paths.insert(mount_path) => {
                errors.invalid(&path.child("mountPath"), mount_path, "must be unique");
            }
            _ => {}
        }
    }
}

fn validate_tolerations(spec: &Value, path: &FieldPath, errors: &mut FieldErrors) {
    for (index, toleration) in spec.items("tolerations").enumerate() {
        let path = path.index(index);
        let effect = toleration.text("effect");
        if toleration.get("tolerationSeconds").is_some() && effect != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.invalid(&path.child("effect"), effect, detail);
        }
        check_supported(toleration, &path, "operator", &["Equal", "Exists"], errors);
        check_supported(
            toleration,
            &path,
            "effect",
            &["NoSchedule", "PreferNoSchedule", "NoExecute"],
            errors,
        );
    }
}

/// Checks that a field, if it is set, has one of the supported values.
fn check_supported(
    value: &Value,
    path: &FieldPath,
    field: &str,
    supported: &[&str],
    errors: &mut FieldErrors,
) {
    let stated = value.text(field);
    if !stated.is_empty() && !supported.contains(&stated) {
        errors.not_supported(&path.child(field), stated, supported);
    }
}
