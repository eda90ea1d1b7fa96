//! Objects that steps can change and delete.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::values::Name;

/// Name of the quota that evictlab adds to the namespace of a case on an existing cluster.
pub const QUOTA_NAME: &str = "evictlab";
/// Name of the Job that ends the objects of a case on an existing cluster.
pub const EXPIRY_NAME: &str = "evictlab-expiry";

/// An object in the namespace of the case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectName {
    /// Kind.
    pub kind: ObjectKind,
    /// Name.
    pub name: Name,
}

/// Kinds of objects that steps can change and delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
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
    /// Returns the kind as in manifests, such as `DaemonSet`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::CronJob => "CronJob",
            Self::DaemonSet => "DaemonSet",
            Self::Deployment => "Deployment",
            Self::Job => "Job",
            Self::LimitRange => "LimitRange",
            Self::PersistentVolumeClaim => "PersistentVolumeClaim",
            Self::Pod => "Pod",
            Self::PodDisruptionBudget => "PodDisruptionBudget",
            Self::ReplicaSet => "ReplicaSet",
            Self::ResourceQuota => "ResourceQuota",
            Self::Secret => "Secret",
            Self::Service => "Service",
            Self::ServiceAccount => "ServiceAccount",
            Self::StatefulSet => "StatefulSet",
        }
    }

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
