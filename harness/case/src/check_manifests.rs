//! Checks of manifests against the types of the Kubernetes API.

use evictlab_rules::quantity::Quantity;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{
    ConfigMap, EphemeralContainer, LimitRange, PersistentVolumeClaim, Pod, ResourceQuota, Secret, Service,
    ServiceAccount,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::checks::{Checker, join};
use crate::pod_specs::case_name;
use crate::positions::PathSegment;
use crate::problem::did_you_mean;
use crate::yaml_path;

/// Fields newer than the types, which are those of Kubernetes 1.33, by the end of their paths. They
/// are of 1.34 (`hostnameOverride`, `restartPolicyRules`, `fileKeyRef`, `podCertificate`), 1.35
/// (`workloadRef`) and 1.36 (`schedulingGroup`).
const NEWER_FIELDS: [&str; 6] = [
    "hostnameOverride",
    "restartPolicyRules",
    "fileKeyRef",
    "podCertificate",
    "workloadRef",
    "schedulingGroup",
];

/// Kinds whose types are known.
const KINDS: [&str; 15] = [
    "ConfigMap",
    "CronJob",
    "DaemonSet",
    "Deployment",
    "Job",
    "LimitRange",
    "PersistentVolumeClaim",
    "Pod",
    "PodDisruptionBudget",
    "ReplicaSet",
    "ResourceQuota",
    "Secret",
    "Service",
    "ServiceAccount",
    "StatefulSet",
];

/// Fields whose values are maps of quantities.
const RESOURCE_LISTS: [&str; 5] = ["requests", "limits", "overhead", "hard", "capacity"];

/// Difference between a manifest and its type.
struct Mismatch {
    path: Vec<PathSegment>,
    message: String,
}

impl Checker<'_> {
    /// Checks fields, quantities and images of all manifests.
    pub(crate) fn check_manifests(&mut self) {
        let case = self.case;
        for (list, pods) in [("pods", &case.pods), ("static-pods", &case.static_pods)] {
            for (at, pod) in pods.iter().enumerate() {
                self.check_manifest(yaml_path![list, at], pod, Some("Pod"));
            }
        }
        for (at, object) in case.objects.iter().enumerate() {
            self.check_object(yaml_path!["objects", at], object);
        }
        for (at, step) in case.steps.iter().enumerate() {
            if let Some(object) = step.created_object() {
                self.check_object(yaml_path!["do", at, "create"], object);
            }
        }
        for (at, ephemeral) in case.ephemeral_containers.iter().enumerate() {
            let path = yaml_path!["ephemeral-containers", at, "container"];
            self.check_manifest(path, &ephemeral.container, Some("EphemeralContainer"));
            self.check_image(path, ephemeral.container.get("image"));
        }
    }

    fn check_object(&mut self, path: &[PathSegment], object: &Map<String, Value>) {
        let kind = object.get("kind").and_then(Value::as_str);
        self.check_manifest(path, object, kind);
        if let Some(kind) = kind.filter(|kind| !KINDS.contains(kind))
            && let Some(note) = did_you_mean(kind, KINDS)
        {
            self.report(&join(path, yaml_path!["kind"]), format!("unknown kind `{kind}`"), note);
        }
        if kind != Some("Pod") && case_name(object).is_none() {
            self.report(path, "the object has no `metadata.name`", "");
        }
        let at = |pointer: &[&str]| {
            pointer.iter().try_fold(object.get("spec")?, |value, field| value.get(field))?.as_object()
        };
        let labels = at(&["template", "metadata", "labels"]);
        for (key, value) in at(&["selector", "matchLabels"]).into_iter().flatten() {
            if labels.and_then(|labels| labels.get(key)) != Some(value) && at(&["template"]).is_some() {
                let path = join(path, yaml_path!["spec", "selector", "matchLabels", key.as_str()]);
                self.report(&path, format!("the labels of the template do not have `{key}`"), "");
            }
        }
    }

    fn check_manifest(&mut self, path: &[PathSegment], manifest: &Map<String, Value>, kind: Option<&str>) {
        let mut manifest = manifest.clone();
        // Checked where the kind is known.
        manifest.shift_remove("kind");
        let mut manifest = Value::Object(manifest);
        self.check_quantities(path, &mut manifest);
        self.check_pod_specs(path, &manifest);
        // The API server has the last word on kinds that are not known here.
        let Some(mismatches) = kind.and_then(|kind| mismatches(kind, &manifest)) else { return };
        for mismatch in mismatches {
            self.report(&join(path, &mismatch.path), mismatch.message, "");
        }
    }

    /// Checks the quantities of resource lists, and writes numbers as texts, which the types need.
    fn check_quantities(&mut self, path: &[PathSegment], value: &mut Value) {
        match value {
            Value::Array(items) => {
                for (at, item) in items.iter_mut().enumerate() {
                    self.check_quantities(&join(path, yaml_path![at]), item);
                }
            }
            Value::Object(fields) => {
                for (name, value) in fields {
                    let path = join(path, yaml_path![name.as_str()]);
                    match value {
                        Value::Object(amounts) if RESOURCE_LISTS.contains(&name.as_str()) => {
                            for (resource, amount) in amounts {
                                self.check_quantity(&join(&path, yaml_path![resource.as_str()]), amount);
                            }
                        }
                        value if name == "sizeLimit" => self.check_quantity(&path, value),
                        value => self.check_quantities(&path, value),
                    }
                }
            }
            _ => {}
        }
    }

    fn check_quantity(&mut self, path: &[PathSegment], amount: &mut Value) {
        let text = match &*amount {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return self.report(path, "a quantity must be a text or a number", "such as 200Mi"),
        };
        if text.contains("$(") {
            let note =
                "variables are replaced in `command`, `args` and `env` only; `pressure.pod` has `requests`";
            self.report(path, format!("invalid quantity {text:?}"), note);
        } else if let Err(error) = text.parse::<Quantity>() {
            self.report(path, error.to_string(), "");
        }
        *amount = Value::String(text);
    }
}

/// Returns the differences between a manifest and the type of its kind; `None` for a kind that is not
/// known.
fn mismatches(kind: &str, manifest: &Value) -> Option<Vec<Mismatch>> {
    Some(match kind {
        "ConfigMap" => decode::<ConfigMap>(manifest),
        "CronJob" => decode::<CronJob>(manifest),
        "DaemonSet" => decode::<DaemonSet>(manifest),
        "Deployment" => decode::<Deployment>(manifest),
        "EphemeralContainer" => decode::<EphemeralContainer>(manifest),
        "Job" => decode::<Job>(manifest),
        "LimitRange" => decode::<LimitRange>(manifest),
        "PersistentVolumeClaim" => decode::<PersistentVolumeClaim>(manifest),
        "Pod" => decode::<Pod>(manifest),
        "PodDisruptionBudget" => decode::<PodDisruptionBudget>(manifest),
        "ReplicaSet" => decode::<ReplicaSet>(manifest),
        "ResourceQuota" => decode::<ResourceQuota>(manifest),
        "Secret" => decode::<Secret>(manifest),
        "Service" => decode::<Service>(manifest),
        "ServiceAccount" => decode::<ServiceAccount>(manifest),
        "StatefulSet" => decode::<StatefulSet>(manifest),
        _ => return None,
    })
}

fn decode<T: DeserializeOwned>(manifest: &Value) -> Vec<Mismatch> {
    let mut mismatches = Vec::new();
    let mut on_unknown = |path: serde_ignored::Path<'_>| {
        let path = segments(&path);
        if let Some(PathSegment::Key(field)) = path.last()
            && !NEWER_FIELDS.contains(&field.as_str())
        {
            mismatches.push(Mismatch { message: format!("unknown field `{field}`"), path });
        }
    };
    let deserializer = serde_ignored::Deserializer::new(manifest, &mut on_unknown);
    if let Err(error) = serde_path_to_error::deserialize::<_, T>(deserializer) {
        let path = error.path().iter().filter_map(path_segment).collect();
        mismatches.push(Mismatch { path, message: error.into_inner().to_string() });
    }
    mismatches
}

fn path_segment(segment: &serde_path_to_error::Segment) -> Option<PathSegment> {
    match segment {
        serde_path_to_error::Segment::Map { key } => Some(PathSegment::Key(key.clone())),
        serde_path_to_error::Segment::Seq { index } => Some(PathSegment::Item(*index)),
        _ => None,
    }
}

fn segments(path: &serde_ignored::Path<'_>) -> Vec<PathSegment> {
    use serde_ignored::Path;
    let (parent, segment) = match path {
        Path::Root => return Vec::new(),
        Path::Seq { parent, index } => (parent, Some(PathSegment::Item(*index))),
        Path::Map { parent, key } => (parent, Some(PathSegment::Key(key.clone()))),
        Path::Some { parent } | Path::NewtypeStruct { parent } | Path::NewtypeVariant { parent } => {
            (parent, None)
        }
    };
    let mut segments = segments(parent);
    segments.extend(segment);
    segments
}
