//! The pod manifest.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::quantity::Quantity;

/// Lowest priority of a critical pod (`SystemCriticalPriority`).
pub const SYSTEM_CRITICAL_PRIORITY: i64 = 2_000_000_000;

/// Annotation of mirror pods, by which the API server shows static pods
/// (`ConfigMirrorAnnotationKey`).
pub const CONFIG_MIRROR_ANNOTATION: &str = "kubernetes.io/config.mirror";

/// Annotation with the source of a pod, `api` or another one for static pods
/// (`ConfigSourceAnnotationKey`).
pub const CONFIG_SOURCE_ANNOTATION: &str = "kubernetes.io/config.source";

/// Reasons of a waiting container whose image the kubelet cannot get
/// (`pkg/kubelet/images/types.go`).
pub const IMAGE_ERROR_REASONS: [&str; 5] =
    ["ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "RegistryUnavailable"];

/// A pod as the API server returns it.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Pod {
    /// Metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Desired state.
    #[serde(default)]
    pub spec: PodSpec,
    /// Observed state; empty before the kubelet reports one.
    #[serde(default)]
    pub status: PodStatus,
}

/// Metadata of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ObjectMeta {
    /// Pod name.
    #[serde(default)]
    pub name: String,
    /// Namespace.
    #[serde(default)]
    pub namespace: String,
    /// UID, the key of the pod's statistics in the Summary.
    #[serde(default)]
    pub uid: String,
    /// Annotations, including those by which the kubelet marks static and mirror pods.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
}

/// Spec of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSpec {
    /// Regular containers.
    #[serde(default)]
    pub containers: Vec<Container>,
    /// Init containers, including restartable ones (sidecars).
    #[serde(default)]
    pub init_containers: Vec<Container>,
    /// Ephemeral containers. Eviction messages never name them.
    #[serde(default)]
    pub ephemeral_containers: Vec<Container>,
    /// Volumes.
    #[serde(default)]
    pub volumes: Vec<Volume>,
    /// Priority resolved from the priority class; a missing priority counts as 0.
    #[serde(default)]
    pub priority: Option<i64>,
    /// Pod-level resources (1.34 and newer).
    #[serde(default)]
    pub resources: Option<ResourceRequirements>,
    /// Overhead of the runtime class, by resource name.
    #[serde(default)]
    pub overhead: BTreeMap<String, Quantity>,
}

/// A container of any kind.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Container {
    /// Container name.
    pub name: String,
    /// `Always` makes an init container a sidecar.
    #[serde(default)]
    pub restart_policy: Option<String>,
    /// Requests and limits.
    #[serde(default)]
    pub resources: ResourceRequirements,
}

/// Requests and limits of a container or of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ResourceRequirements {
    /// Requests by resource name.
    #[serde(default)]
    pub requests: BTreeMap<String, Quantity>,
    /// Limits by resource name.
    #[serde(default)]
    pub limits: BTreeMap<String, Quantity>,
}

/// A volume. Only the sources on the node's own disk are kept.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Volume {
    /// Volume name.
    pub name: String,
    /// emptyDir source.
    #[serde(default)]
    pub empty_dir: Option<EmptyDir>,
    /// hostPath source.
    #[serde(default)]
    pub host_path: Option<serde_json::Value>,
    /// configMap source.
    #[serde(default)]
    pub config_map: Option<serde_json::Value>,
    /// gitRepo source.
    #[serde(default)]
    pub git_repo: Option<serde_json::Value>,
}

/// An emptyDir volume.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EmptyDir {
    /// `Memory` for tmpfs; empty or missing for the node's disk.
    #[serde(default)]
    pub medium: Option<String>,
    /// Size limit, enforced by eviction.
    #[serde(default)]
    pub size_limit: Option<Quantity>,
}

/// Status of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodStatus {
    /// Statuses of regular containers.
    #[serde(default)]
    pub container_statuses: Vec<ContainerStatus>,
    /// Statuses of init containers and sidecars.
    #[serde(default)]
    pub init_container_statuses: Vec<ContainerStatus>,
    /// Requests of the whole pod that a resize has allocated, with the overhead of its runtime
    /// class.
    #[serde(default)]
    pub allocated_resources: Option<BTreeMap<String, Quantity>>,
}

/// Status of a container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerStatus {
    /// Container name.
    pub name: String,
    /// Requests that an in-place resize has allocated.
    #[serde(default)]
    pub allocated_resources: Option<BTreeMap<String, Quantity>>,
}

impl Container {
    /// Returns whether the container is a restartable init container.
    pub fn is_sidecar(&self) -> bool {
        self.restart_policy.as_deref() == Some("Always")
    }

    /// Returns the request, defaulted to the limit as the API server does; `None` without either.
    pub fn request(&self, resource: &str) -> Option<&Quantity> {
        self.resources.requests.get(resource).or_else(|| self.resources.limits.get(resource))
    }

    /// Returns the [`request`](Self::request) of a resource, or 0.
    pub fn request_or_zero(&self, resource: &str) -> Quantity {
        self.request(resource).cloned().unwrap_or(Quantity::ZERO)
    }
}

impl Volume {
    /// Returns whether the contents are on the node's own disk and count as the pod's disk usage
    /// (`localVolumeNames` in `eviction/helpers.go`).
    pub fn is_local(&self) -> bool {
        self.empty_dir.as_ref().is_some_and(|dir| dir.medium.as_deref().unwrap_or_default().is_empty())
            || self.host_path.is_some()
            || self.config_map.is_some()
            || self.git_repo.is_some()
    }
}

impl Pod {
    /// Returns the priority, 0 by default.
    pub fn priority(&self) -> i64 {
        self.spec.priority.unwrap_or(0)
    }

    /// Returns whether the pod has a system priority, as of the class `system-node-critical`.
    pub fn has_critical_priority(&self) -> bool {
        self.priority() >= SYSTEM_CRITICAL_PRIORITY
    }

    /// Returns whether the kubelet never evicts the pod: a static pod, a mirror pod, or one with a
    /// system priority (`kubelettypes.IsCriticalPod`).
    pub fn is_critical(&self) -> bool {
        let annotations = &self.metadata.annotations;
        self.has_critical_priority()
            || annotations.contains_key(CONFIG_MIRROR_ANNOTATION)
            || annotations.get(CONFIG_SOURCE_ANNOTATION).is_some_and(|source| source != "api")
    }

    /// Replaces the requests by those in the container statuses, which kubelets report while the
    /// feature gate `InPlacePodVerticalScaling` is enabled, by default since 1.33. Eviction ranks
    /// and explains pods by them: the node may have no room for those of the spec
    /// (`getAllocatedPods`). The same applies to pod-level requests while the gate
    /// `InPlacePodLevelResourcesVerticalScaling` is enabled, by default since 1.36
    /// (`updatePodFromAllocation` in `pkg/kubelet/allocation/allocation_manager.go`).
    pub fn with_allocated_resources(mut self) -> Self {
        let PodStatus { container_statuses, init_container_statuses, allocated_resources } = &self.status;
        let statuses = || container_statuses.iter().chain(init_container_statuses);
        for container in self.spec.containers.iter_mut().chain(&mut self.spec.init_containers) {
            let status = statuses().find(|status| status.name == container.name);
            if let Some(allocated) = status.and_then(|status| status.allocated_resources.clone()) {
                container.resources.requests = allocated;
            }
        }
        if let (Some(stated), Some(allocated)) = (&mut self.spec.resources, allocated_resources) {
            for (name, request) in &mut stated.requests {
                if let Some(allocated) = allocated.get(name) {
                    *request = match self.spec.overhead.get(name) {
                        Some(overhead) => allocated.clone() - overhead,
                        None => allocated.clone(),
                    };
                }
            }
        }
        self
    }
}
