//! Types by library: what fits them, what they do not know.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace, Node, Pod, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::store::Kind;

/// Fields that are newer than the types, by the end of their paths: k8s-openapi knows Kubernetes 1.33, the kubelets here go to 1.36. From the
/// types of 1.34 (`hostnameOverride` KEP-4762, `restartPolicyRules` KEP-5307, `fileKeyRef` KEP-3721, `podCertificate` KEP-4317), 1.35
/// (`workloadRef` KEP-4671, `declaredFeatures` KEP-5328, a pod's own resources in its status KEP-5419) and 1.36 (`schedulingGroup`).
const NEWER: [&str; 10] = [
    "spec.hostnameOverride",
    "restartPolicyRules",
    "valueFrom.fileKeyRef",
    "sources.podCertificate",
    "spec.workloadRef",
    "spec.schedulingGroup",
    "status.declaredFeatures",
    "status.extendedResourceClaimStatus",
    "status.allocatedResources",
    "status.resources",
];

/// A step into a value.
#[derive(Clone, Debug)]
enum Step {
    Field(String),
    Item(usize),
}

/// A field that the type does not have.
#[derive(Debug)]
pub(super) struct Unknown {
    /// As strict decoding prints it, such as `spec.containers[0].foo`.
    pub(super) path: String,
    steps: Vec<Step>,
}

impl Unknown {
    fn new(path: &serde_ignored::Path) -> Self {
        let mut steps = Vec::new();
        walk(path, &mut steps);
        let mut path = String::new();
        for step in &steps {
            match step {
                Step::Field(name) if path.is_empty() => path.push_str(name),
                Step::Field(name) => path.extend([".", name]),
                Step::Item(index) => path.push_str(&format!("[{index}]")),
            }
        }
        Self { path, steps }
    }

    /// Takes it out of an object.
    pub(super) fn remove(&self, object: &mut Value) {
        let Some((Step::Field(last), before)) = self.steps.split_last() else { return };
        let place = before.iter().try_fold(object, |value, step| match step {
            Step::Field(name) => value.get_mut(name),
            Step::Item(index) => value.get_mut(index),
        });
        if let Some(Value::Object(fields)) = place {
            fields.shift_remove(last);
        }
    }

    fn is_newer(&self) -> bool {
        let names = self.steps.iter().filter_map(|step| match step {
            Step::Field(name) => Some(name.as_str()),
            Step::Item(_) => None,
        });
        let path = names.collect::<Vec<_>>().join(".");
        NEWER.iter().any(|newer| {
            path.strip_suffix(newer).is_some_and(|start| start.is_empty() || start.ends_with('.'))
        })
    }
}

fn walk(path: &serde_ignored::Path, steps: &mut Vec<Step>) {
    use serde_ignored::Path;
    match path {
        Path::Root => {}
        Path::Seq { parent, index } => {
            walk(parent, steps);
            steps.push(Step::Item(*index));
        }
        Path::Map { parent, key } => {
            walk(parent, steps);
            steps.push(Step::Field(key.clone()));
        }
        Path::Some { parent } | Path::NewtypeStruct { parent } | Path::NewtypeVariant { parent } => {
            walk(parent, steps)
        }
    }
}

/// Checks an object against its type; the answer are the fields that the type does not have.
pub(super) fn check(kind: Kind, object: &Value) -> Result<Vec<Unknown>, String> {
    match kind {
        Kind::Namespace => by::<Namespace>(kind, object),
        Kind::Node => by::<Node>(kind, object),
        Kind::Pod => by::<Pod>(kind, object),
        Kind::Event => by::<Event>(kind, object),
        Kind::ServiceAccount => by::<ServiceAccount>(kind, object),
        Kind::ConfigMap => by::<ConfigMap>(kind, object),
        Kind::PriorityClass => by::<PriorityClass>(kind, object),
        Kind::PodDisruptionBudget => by::<PodDisruptionBudget>(kind, object),
        Kind::Lease => by::<Lease>(kind, object),
        Kind::Deployment => by::<Deployment>(kind, object),
        Kind::ReplicaSet => by::<ReplicaSet>(kind, object),
        Kind::Job => by::<Job>(kind, object),
    }
}

fn by<T: DeserializeOwned>(kind: Kind, object: &Value) -> Result<Vec<Unknown>, String> {
    let mut unknown = Vec::new();
    let mut ignored = |path: serde_ignored::Path| {
        let field = Unknown::new(&path);
        if !field.is_newer() {
            unknown.push(field);
        }
    };
    let deserializer = serde_ignored::Deserializer::new(object, &mut ignored);
    match serde_path_to_error::deserialize::<_, T>(deserializer) {
        Ok(_) => Ok(unknown),
        Err(error) => Err(wrong_type(kind, object, &error)),
    }
}

/// A type error in Go's words, which name the struct, the path without indices, and the types.
fn wrong_type(kind: Kind, object: &Value, error: &serde_path_to_error::Error<serde_json::Error>) -> String {
    use serde_path_to_error::Segment;
    let mut value = Some(object);
    let mut names = Vec::new();
    for segment in error.path() {
        match segment {
            Segment::Map { key } => {
                value = value.and_then(|value| value.get(key));
                names.push(key.as_str());
            }
            Segment::Seq { index } => value = value.and_then(|value| value.get(index)),
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    let told = error.inner().to_string();
    let Some((found, expected)) = value.map(go_name).zip(expected(&told)).filter(|_| !names.is_empty())
    else {
        return told;
    };
    let parent = names.len().checked_sub(2).map_or("", |at| names[at]);
    format!(
        "json: cannot unmarshal {found} into Go struct field {}.{} of type {expected}",
        go_struct(kind, parent),
        names.join(".")
    )
}

/// What Go calls the kind of a JSON value.
pub(super) fn go_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The Go type that was expected, from serde's message.
fn expected(told: &str) -> Option<String> {
    let (_, expected) = told.rsplit_once("expected ")?;
    Some(match expected {
        "a string" | "string" => "string".to_owned(),
        "a boolean" => "bool".to_owned(),
        "i32" => "int32".to_owned(),
        "i64" => "int64".to_owned(),
        "a sequence" => "[]interface {}".to_owned(),
        "a map" => "map[string]string".to_owned(),
        other => format!("v1.{}", other.trim_start_matches("struct ")),
    })
}

/// The Go struct that holds the fields of what is called so.
fn go_struct(kind: Kind, parent: &str) -> String {
    match parent {
        "" => kind.names().0.to_owned(),
        "metadata" => "ObjectMeta".to_owned(),
        "spec" => format!("{}Spec", kind.names().0),
        "status" => format!("{}Status", kind.names().0),
        "containers" | "initContainers" => "Container".to_owned(),
        "ephemeralContainers" => "EphemeralContainerCommon".to_owned(),
        "resources" => "ResourceRequirements".to_owned(),
        "env" => "EnvVar".to_owned(),
        "ports" => "ContainerPort".to_owned(),
        "emptyDir" | "hostPath" | "configMap" | "secret" | "projected" => {
            format!("{}VolumeSource", capital(parent))
        }
        other => capital(other.strip_suffix('s').unwrap_or(other)),
    }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
