//! [`ApiType`], and the type of each kind.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{
    ConfigMap, ContainerStatus, EphemeralContainer, Event, LimitRange, Namespace, Node,
    PersistentVolumeClaim, Pod, ResourceQuota, Secret, Service, ServiceAccount,
};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use serde::de::DeserializeOwned;

use crate::reader::Reader;

/// Reads a value of a type and drops it.
type Check = fn(Reader<'_, '_>) -> Result<(), serde_json::Error>;

/// A type of the Kubernetes API, as of Kubernetes 1.33: an object, or a part of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the API")]
pub enum ApiType {
    ConfigMap,
    ContainerStatus,
    CronJob,
    DaemonSet,
    Deployment,
    EphemeralContainer,
    Event,
    Job,
    Lease,
    LimitRange,
    Namespace,
    Node,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ResourceQuota,
    RuntimeClass,
    Secret,
    Service,
    ServiceAccount,
    StatefulSet,
}

impl ApiType {
    /// The types of objects, by `kind`.
    pub const OBJECTS: [(&str, Self); 21] = [
        ("ConfigMap", Self::ConfigMap),
        ("CronJob", Self::CronJob),
        ("DaemonSet", Self::DaemonSet),
        ("Deployment", Self::Deployment),
        ("Event", Self::Event),
        ("Job", Self::Job),
        ("Lease", Self::Lease),
        ("LimitRange", Self::LimitRange),
        ("Namespace", Self::Namespace),
        ("Node", Self::Node),
        ("PersistentVolumeClaim", Self::PersistentVolumeClaim),
        ("Pod", Self::Pod),
        ("PodDisruptionBudget", Self::PodDisruptionBudget),
        ("PriorityClass", Self::PriorityClass),
        ("ReplicaSet", Self::ReplicaSet),
        ("ResourceQuota", Self::ResourceQuota),
        ("RuntimeClass", Self::RuntimeClass),
        ("Secret", Self::Secret),
        ("Service", Self::Service),
        ("ServiceAccount", Self::ServiceAccount),
        ("StatefulSet", Self::StatefulSet),
    ];

    /// Returns the type of objects of a kind; `None` for kinds that are not known here, which the
    /// API server may know.
    pub fn of_kind(kind: &str) -> Option<Self> {
        Self::OBJECTS.iter().find(|(name, _)| *name == kind).map(|(_, api_type)| *api_type)
    }

    pub(crate) fn check(self) -> Check {
        match self {
            Self::ConfigMap => check::<ConfigMap>,
            Self::ContainerStatus => check::<ContainerStatus>,
            Self::CronJob => check::<CronJob>,
            Self::DaemonSet => check::<DaemonSet>,
            Self::Deployment => check::<Deployment>,
            Self::EphemeralContainer => check::<EphemeralContainer>,
            Self::Event => check::<Event>,
            Self::Job => check::<Job>,
            Self::Lease => check::<Lease>,
            Self::LimitRange => check::<LimitRange>,
            Self::Namespace => check::<Namespace>,
            Self::Node => check::<Node>,
            Self::PersistentVolumeClaim => check::<PersistentVolumeClaim>,
            Self::Pod => check::<Pod>,
            Self::PodDisruptionBudget => check::<PodDisruptionBudget>,
            Self::PriorityClass => check::<PriorityClass>,
            Self::ReplicaSet => check::<ReplicaSet>,
            Self::ResourceQuota => check::<ResourceQuota>,
            Self::RuntimeClass => check::<RuntimeClass>,
            Self::Secret => check::<Secret>,
            Self::Service => check::<Service>,
            Self::ServiceAccount => check::<ServiceAccount>,
            Self::StatefulSet => check::<StatefulSet>,
        }
    }
}

fn check<T: DeserializeOwned>(from: Reader<'_, '_>) -> Result<(), serde_json::Error> {
    T::deserialize(from).map(drop)
}
