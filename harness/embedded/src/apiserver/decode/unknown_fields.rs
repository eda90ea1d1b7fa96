//! Fields that the types of the Kubernetes API do not have.

use evictlab_api_types::{ApiType, Difference, Mismatch, PathSegment};
use serde_json::Value;

use crate::resource::Kind;

/// Checks an object against its type and returns the fields that the type does not have.
///
/// # Errors
/// The path of the first value of a wrong type, and serde's message.
pub(super) fn find(kind: Kind, object: &Value) -> Result<Vec<Mismatch>, String> {
    let mismatches = api_type(kind).mismatches(object);
    match mismatches.last() {
        Some(wrong) if matches!(wrong.difference, Difference::WrongType(_)) => Err(wrong.to_string()),
        _ => Ok(mismatches),
    }
}

/// Removes a field from an object.
pub(super) fn remove(path: &[PathSegment], object: &mut Value) {
    let Some((PathSegment::Key(last), parents)) = path.split_last() else { return };
    let parent = parents.iter().try_fold(object, |value, segment| match segment {
        PathSegment::Key(name) => value.get_mut(name),
        PathSegment::Item(index) => value.get_mut(index),
    });
    if let Some(Value::Object(fields)) = parent {
        fields.shift_remove(last);
    }
}

fn api_type(kind: Kind) -> ApiType {
    match kind {
        Kind::Namespace => ApiType::Namespace,
        Kind::Node => ApiType::Node,
        Kind::Pod => ApiType::Pod,
        Kind::Event => ApiType::Event,
        Kind::ServiceAccount => ApiType::ServiceAccount,
        Kind::ConfigMap => ApiType::ConfigMap,
        Kind::PriorityClass => ApiType::PriorityClass,
        Kind::RuntimeClass => ApiType::RuntimeClass,
        Kind::PodDisruptionBudget => ApiType::PodDisruptionBudget,
        Kind::ResourceQuota => ApiType::ResourceQuota,
        Kind::Lease => ApiType::Lease,
        Kind::Deployment => ApiType::Deployment,
        Kind::ReplicaSet => ApiType::ReplicaSet,
        Kind::Job => ApiType::Job,
    }
}
