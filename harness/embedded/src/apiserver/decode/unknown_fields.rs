//! Fields that the types of k8s-openapi do not have.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace, Node, Pod, ResourceQuota, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::resource::Kind;

/// Fields newer than the types, by the end of their paths. k8s-openapi is built for Kubernetes
/// 1.33, and kubelets up to 1.36 are supported. Sources: 1.34 (`hostnameOverride` KEP-4762,
/// `restartPolicyRules` KEP-5307, `fileKeyRef` KEP-3721, `podCertificate` KEP-4317), 1.35
/// (`workloadRef` KEP-4671, `declaredFeatures` KEP-5328, pod-level resources in the status
/// KEP-5419) and 1.36 (`schedulingGroup`).
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

/// Part of the path of a field.
#[derive(Clone, Debug)]
enum Segment {
    Field(String),
    Index(usize),
}

/// A field that the type of an object does not have.
#[derive(Debug)]
pub(super) struct UnknownField(Vec<Segment>);

impl UnknownField {
    /// Returns the path as strict decoding prints it, such as `spec.containers[0].foo`.
    pub(super) fn path(&self) -> String {
        let mut path = String::new();
        for segment in &self.0 {
            match segment {
                Segment::Field(name) if path.is_empty() => path.push_str(name),
                Segment::Field(name) => path.extend([".", name]),
                Segment::Index(index) => path.push_str(&format!("[{index}]")),
            }
        }
        path
    }

    /// Removes the field from an object.
    pub(super) fn remove(&self, object: &mut Value) {
        let Some((Segment::Field(last), parents)) = self.0.split_last() else { return };
        let parent = parents.iter().try_fold(object, |value, segment| match segment {
            Segment::Field(name) => value.get_mut(name),
            Segment::Index(index) => value.get_mut(index),
        });
        if let Some(Value::Object(fields)) = parent {
            fields.shift_remove(last);
        }
    }

    fn is_newer_than_types(&self) -> bool {
        let names = self.0.iter().filter_map(|segment| match segment {
            Segment::Field(name) => Some(name.as_str()),
            Segment::Index(_) => None,
        });
        let path = names.collect::<Vec<_>>().join(".");
        NEWER.iter().any(|newer| {
            path.strip_suffix(newer).is_some_and(|start| start.is_empty() || start.ends_with('.'))
        })
    }
}

fn segments(path: &serde_ignored::Path) -> Vec<Segment> {
    use serde_ignored::Path;
    let (parent, segment) = match path {
        Path::Root => return Vec::new(),
        Path::Seq { parent, index } => (parent, Some(Segment::Index(*index))),
        Path::Map { parent, key } => (parent, Some(Segment::Field(key.clone()))),
        Path::Some { parent } | Path::NewtypeStruct { parent } | Path::NewtypeVariant { parent } => {
            (parent, None)
        }
    };
    let mut segments = segments(parent);
    segments.extend(segment);
    segments
}

/// Checks an object against its type and returns the fields that the type does not have.
///
/// # Errors
/// The path of the first value of a wrong type, and serde's message.
pub(super) fn find(kind: Kind, object: &Value) -> Result<Vec<UnknownField>, String> {
    match kind {
        Kind::Namespace => find_typed::<Namespace>(object),
        Kind::Node => find_typed::<Node>(object),
        Kind::Pod => find_typed::<Pod>(object),
        Kind::Event => find_typed::<Event>(object),
        Kind::ServiceAccount => find_typed::<ServiceAccount>(object),
        Kind::ConfigMap => find_typed::<ConfigMap>(object),
        Kind::PriorityClass => find_typed::<PriorityClass>(object),
        Kind::PodDisruptionBudget => find_typed::<PodDisruptionBudget>(object),
        Kind::ResourceQuota => find_typed::<ResourceQuota>(object),
        Kind::Lease => find_typed::<Lease>(object),
        Kind::Deployment => find_typed::<Deployment>(object),
        Kind::ReplicaSet => find_typed::<ReplicaSet>(object),
        Kind::Job => find_typed::<Job>(object),
    }
}

fn find_typed<T: DeserializeOwned>(object: &Value) -> Result<Vec<UnknownField>, String> {
    let mut unknown = Vec::new();
    let mut on_ignored = |path: serde_ignored::Path| {
        let field = UnknownField(segments(&path));
        if !field.is_newer_than_types() {
            unknown.push(field);
        }
    };
    let deserializer = serde_ignored::Deserializer::new(object, &mut on_ignored);
    serde_path_to_error::deserialize::<_, T>(deserializer).map_err(|error| error.to_string())?;
    Ok(unknown)
}
