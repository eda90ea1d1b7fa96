//! A pod, as far as eviction looks at it.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::quantity::Quantity;

/// The priority from which on a pod is critical and never evicted (`kubelettypes.IsCriticalPod`).
const CRITICAL: i64 = 2_000_000_000;

/// A pod as the API serves it.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Pod {
    /// Name, namespace, uid, annotations.
    #[serde(default)]
    pub metadata: Metadata,
    /// The spec.
    #[serde(default)]
    pub spec: Spec,
    /// The status, if it has one yet.
    #[serde(default)]
    pub status: Status,
}

/// What names a pod.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Metadata {
    /// The name.
    #[serde(default)]
    pub name: String,
    /// The namespace.
    #[serde(default)]
    pub namespace: String,
    /// The uid, by which the kubelet finds the stats.
    #[serde(default)]
    pub uid: String,
    /// Annotations; those of the kubelet tell static and mirror pods.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
}

/// A pod's spec.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// Regular containers.
    #[serde(default)]
    pub containers: Vec<Container>,
    /// Init containers, the restartable ones (sidecars) included.
    #[serde(default)]
    pub init_containers: Vec<Container>,
    /// Ephemeral containers; eviction never names them.
    #[serde(default)]
    pub ephemeral_containers: Vec<Container>,
    /// Volumes.
    #[serde(default)]
    pub volumes: Vec<Volume>,
    /// The resolved priority; none counts as 0.
    #[serde(default)]
    pub priority: Option<i64>,
    /// Pod-level resources (1.34 and newer).
    #[serde(default)]
    pub resources: Option<Resources>,
    /// What the runtime class adds.
    #[serde(default)]
    pub overhead: BTreeMap<String, Quantity>,
}

/// A container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Container {
    /// The name.
    pub name: String,
    /// `Always` makes an init container a sidecar.
    #[serde(default)]
    pub restart_policy: Option<String>,
    /// Requests and limits.
    #[serde(default)]
    pub resources: Resources,
}

/// Requests and limits, by resource name.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Resources {
    /// Requests.
    #[serde(default)]
    pub requests: BTreeMap<String, Quantity>,
    /// Limits.
    #[serde(default)]
    pub limits: BTreeMap<String, Quantity>,
}

/// A volume. Of its sources only those matter whose bytes count as the pod's on the node's own disk.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Volume {
    /// The name.
    pub name: String,
    /// An emptyDir.
    #[serde(default)]
    pub empty_dir: Option<EmptyDir>,
    /// A hostPath.
    #[serde(default)]
    pub host_path: Option<serde_json::Value>,
    /// A config map.
    #[serde(default)]
    pub config_map: Option<serde_json::Value>,
    /// A git repository.
    #[serde(default)]
    pub git_repo: Option<serde_json::Value>,
}

/// An emptyDir volume.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EmptyDir {
    /// `Memory`, or the node's disk.
    #[serde(default)]
    pub medium: Option<String>,
    /// Its limit.
    #[serde(default)]
    pub size_limit: Option<Quantity>,
}

/// A pod's status.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Statuses of the regular containers.
    #[serde(default)]
    pub container_statuses: Vec<ContainerStatus>,
}

/// A container's status.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerStatus {
    /// The container.
    pub name: String,
    /// What an in-place resize has allocated to it.
    #[serde(default)]
    pub allocated_resources: Option<BTreeMap<String, Quantity>>,
}

impl Container {
    /// Whether this init container keeps running beside the regular ones.
    pub fn is_sidecar(&self) -> bool {
        self.restart_policy.as_deref() == Some("Always")
    }

    /// The request as the API defaults it: its own, or else the limit; none if there is neither.
    pub fn request(&self, resource: &str) -> Option<&Quantity> {
        self.resources.requests.get(resource).or_else(|| self.resources.limits.get(resource))
    }
}

impl Volume {
    /// Whether what it holds counts as the pod's use of the node's disk.
    pub fn is_local(&self) -> bool {
        self.empty_dir.as_ref().is_some_and(|dir| dir.medium.as_deref().unwrap_or_default().is_empty())
            || self.host_path.is_some()
            || self.config_map.is_some()
            || self.git_repo.is_some()
    }
}

impl Pod {
    /// The priority, 0 unless stated.
    pub fn priority(&self) -> i64 {
        self.spec.priority.unwrap_or(0)
    }

    /// Whether the kubelet never evicts it: a static or mirror pod, or one of system priority.
    pub fn is_critical(&self) -> bool {
        let annotations = &self.metadata.annotations;
        self.priority() >= CRITICAL
            || annotations.contains_key("kubernetes.io/config.mirror")
            || annotations.get("kubernetes.io/config.source").is_some_and(|source| source != "api")
    }

    /// The pod with what an in-place resize allocated in place of its requests, as kubelets 1.27 to 1.31 see it
    /// with the gate `InPlacePodVerticalScaling` (off by default).
    pub fn with_allocated_resources(mut self) -> Self {
        for container in &mut self.spec.containers {
            let status = self.status.container_statuses.iter().find(|status| status.name == container.name);
            if let Some(allocated) = status.and_then(|status| status.allocated_resources.clone()) {
                container.resources.requests = allocated;
            }
        }
        self
    }
}
