//! Objects that steps can change and delete.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::values::Name;

/// An object in the namespace of the case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectName {
    /// Kind.
    pub kind: ObjectKind,
    /// Name.
    pub name: Name,
}

/// Kinds of objects that steps can change and delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the names are those of Kubernetes")]
pub enum ObjectKind {
    ConfigMap,
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    LimitRange,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    ReplicaSet,
    ResourceQuota,
    Secret,
    Service,
    ServiceAccount,
    StatefulSet,
}

impl ObjectKind {
    /// Returns the API version of the kind, such as `apps/v1`.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::CronJob | Self::Job => "batch/v1",
            Self::DaemonSet | Self::Deployment | Self::ReplicaSet | Self::StatefulSet => "apps/v1",
            Self::PodDisruptionBudget => "policy/v1",
            Self::ConfigMap
            | Self::LimitRange
            | Self::PersistentVolumeClaim
            | Self::Pod
            | Self::ResourceQuota
            | Self::Secret
            | Self::Service
            | Self::ServiceAccount => "v1",
        }
    }
}

impl fmt::Display for ObjectKind {
    /// Writes the kind as in manifests, such as `DaemonSet`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_written_as_in_manifests() {
        assert_eq!(ObjectKind::PersistentVolumeClaim.to_string(), "PersistentVolumeClaim");
    }
}
