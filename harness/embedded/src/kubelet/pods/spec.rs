//! Fields of pods that the kubelet reads.

use std::time::Duration;

use evictlab_rules::pod::Pod;
use evictlab_rules::quantity::Quantity;
use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, ContainerResizePolicy, EmptyDirVolumeSource, EnvFromSource, EnvVar,
    HostPathVolumeSource, ResourceRequirements, VolumeMount,
};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::resource::ObjectExt;

/// Spec of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Spec {
    pub restart_policy: RestartPolicy,
    pub termination_grace_period_seconds: Option<u64>,
    pub active_deadline_seconds: Option<u64>,
    pub host_network: bool,
    pub share_process_namespace: bool,
    pub priority_class_name: Option<String>,
    pub init_containers: Vec<Container>,
    pub containers: Vec<Container>,
    pub ephemeral_containers: Vec<Container>,
    pub volumes: Vec<Volume>,
    /// Resources of the whole pod.
    pub resources: Option<ResourceRequirements>,
}

/// Restart policy of containers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) enum RestartPolicy {
    /// Containers are always restarted.
    #[default]
    Always,
    /// Containers are restarted unless their exit code is 0.
    OnFailure,
    /// Containers are not restarted.
    Never,
}

/// Image pull policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) enum PullPolicy {
    /// Images are always pulled.
    Always,
    /// Images are pulled if they are missing.
    #[default]
    IfNotPresent,
    /// Images are not pulled.
    Never,
}

/// Container of a spec.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Container {
    pub name: String,
    pub image: String,
    pub image_pull_policy: PullPolicy,
    pub command: Vec<String>,
    pub args: Vec<String>,
    pub env: Vec<EnvVar>,
    pub env_from: Vec<EnvFromSource>,
    #[serde(deserialize_with = "null_is_default")]
    pub resources: ResourceRequirements,
    pub volume_mounts: Vec<VolumeMount>,
    pub restart_policy: Option<RestartPolicy>,
    pub restart_policy_rules: Vec<RestartRule>,
    pub resize_policy: Vec<ContainerResizePolicy>,
    pub lifecycle: Value,
    /// Target of an ephemeral container, whose process namespace it shares.
    pub target_container_name: String,
}

/// Rule that replaces the restart policy of a container after certain exits
/// (`restartPolicyRules`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RestartRule {
    pub action: String,
    pub exit_codes: ExitCodes,
}

/// Exit codes of a [`RestartRule`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ExitCodes {
    /// `In` or `NotIn`.
    pub operator: String,
    pub values: Vec<i32>,
}

/// Volume, with the sources that the model implements.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Volume {
    pub name: String,
    pub empty_dir: Option<EmptyDirVolumeSource>,
    pub host_path: Option<HostPathVolumeSource>,
    pub config_map: Option<ConfigMapVolumeSource>,
}

/// List of containers in a spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group {
    Init,
    Regular,
    Ephemeral,
}

/// Position of a container in a spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ContainerIndex {
    pub group: Group,
    pub index: usize,
}

/// Fields of a pod that a kubelet knows, if it does not know all of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownFields {
    pub sidecars: bool,
    pub pod_level_resources: bool,
    /// `restartPolicy` and `restartPolicyRules` of all containers (`ContainerRestartRules`).
    pub restart_rules: bool,
}

impl KnownFields {
    pub(super) const ALL: Self = Self { sidecars: true, pod_level_resources: true, restart_rules: true };
}

/// Pod, parsed when its spec changes.
#[derive(Clone, Debug)]
pub(super) struct Manifest {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub spec: Spec,
    /// Pod as the rules read it.
    pub pod: Pod,
}

impl Manifest {
    /// Parses a pod. Invalid parts are ignored: the API server has validated the object.
    ///
    /// Kubelets up to 1.27 do not know `restartPolicy` of init containers (KEP-753) and treat a
    /// sidecar as a plain init container. A kubelet without the gate `PodLevelResources` ignores
    /// the resources of the whole pod; one without `ContainerRestartRules`, the restart policies of
    /// containers other than sidecars.
    pub(super) fn read(object: &Value, fields: KnownFields) -> Self {
        let text = |field: &str| object.metadata().text(field).to_owned();
        let mut spec = Spec::deserialize(object.spec()).unwrap_or_default();
        let mut pod = Pod::deserialize(object).unwrap_or_default();
        if !fields.pod_level_resources {
            (spec.resources, pod.spec.resources) = (None, None);
        }
        if !fields.sidecars {
            spec.init_containers.iter_mut().for_each(|container| container.restart_policy = None);
            pod.spec.init_containers.iter_mut().for_each(|container| container.restart_policy = None);
        }
        if !fields.restart_rules {
            spec.init_containers
                .iter_mut()
                .filter(|container| !container.is_sidecar())
                .for_each(ignore_restarts);
            spec.containers.iter_mut().for_each(ignore_restarts);
        }
        Self { namespace: text("namespace"), name: text("name"), uid: text("uid"), spec, pod }
    }

    /// Returns `name_namespace(uid)`, which identifies a pod in messages.
    pub(super) fn format(&self) -> String {
        format!("{}_{}({})", self.name, self.namespace, self.uid)
    }

    /// Returns the path of a container's log on the node (`BuildContainerLogsDirectory`).
    pub(super) fn log_path(&self, container: &str, attempt: u64) -> String {
        let Self { namespace, name, uid, .. } = self;
        format!("/var/log/pods/{namespace}_{name}_{uid}/{container}/{attempt}.log")
    }

    /// Returns the memory limit that the pod states for all containers together, in bytes.
    pub(super) fn pod_level_memory_limit(&self) -> Option<u64> {
        let limit = self.spec.resources.as_ref()?.limits.as_ref()?.get("memory")?;
        limit.0.parse::<Quantity>().ok().and_then(|limit| u64::try_from(limit.value()).ok())
    }

    /// Returns the memory limit of the pod's cgroup in bytes: the one that the pod states, or that
    /// of its containers together, if all have one.
    pub(super) fn memory_limit(&self) -> Option<u64> {
        self.pod.memory_limit().and_then(|limit| u64::try_from(limit.value()).ok())
    }

    /// Returns the position of a container.
    pub(super) fn place(&self, name: &str) -> Option<ContainerIndex> {
        [Group::Init, Group::Regular, Group::Ephemeral].into_iter().find_map(|group| {
            let index = self.spec.group(group).iter().position(|container| container.name == name)?;
            Some(ContainerIndex { group, index })
        })
    }
}

impl Spec {
    /// Returns the pod's own grace period.
    pub(super) fn grace(&self) -> Duration {
        Duration::from_secs(self.termination_grace_period_seconds.unwrap_or(30))
    }

    /// Returns whether a container is restarted after an exit: by the first of its rules that
    /// matches the exit code, its own policy, or the pod's (`ContainerShouldRestart` of
    /// `pkg/api/v1/pod/util.go`). The action `RestartAllContainers` is not modelled.
    pub(super) fn restarts(&self, container: &Container, code: i32) -> bool {
        let mut rules = container.restart_policy_rules.iter();
        if container.restart_policy.is_some()
            && rules.find(|rule| rule.exit_codes.contains(code)).is_some_and(|rule| rule.action == "Restart")
        {
            return true;
        }
        match container.restart_policy.unwrap_or(self.restart_policy) {
            RestartPolicy::Always => true,
            RestartPolicy::OnFailure => code != 0,
            RestartPolicy::Never => false,
        }
    }

    pub(super) fn group(&self, group: Group) -> &[Container] {
        match group {
            Group::Init => &self.init_containers,
            Group::Regular => &self.containers,
            Group::Ephemeral => &self.ephemeral_containers,
        }
    }

    pub(super) fn container(&self, place: ContainerIndex) -> Option<&Container> {
        self.group(place.group).get(place.index)
    }

    /// Returns whether the container is a sidecar (restartable init container).
    pub(super) fn is_sidecar(&self, place: ContainerIndex) -> bool {
        place.group == Group::Init && self.init_containers.get(place.index).is_some_and(Container::is_sidecar)
    }
}

impl Container {
    /// Returns the memory limit.
    pub(super) fn memory_limit(&self) -> Option<&str> {
        self.resources.limits.as_ref()?.get("memory").map(|limit| limit.0.as_str())
    }

    pub(super) fn memory_request(&self) -> Option<&str> {
        self.resources.requests.as_ref()?.get("memory").map(|request| request.0.as_str())
    }

    /// Returns whether an init container is a sidecar.
    pub(super) fn is_sidecar(&self) -> bool {
        self.restart_policy == Some(RestartPolicy::Always)
    }
}

impl ExitCodes {
    fn contains(&self, code: i32) -> bool {
        match self.operator.as_str() {
            "In" => self.values.contains(&code),
            "NotIn" => !self.values.contains(&code),
            _ => false,
        }
    }
}

impl ContainerIndex {
    /// Returns the field path in events, such as `spec.containers{el1}`.
    pub(super) fn field_path(self, name: &str) -> String {
        let list = match self.group {
            Group::Init => "initContainers",
            Group::Regular => "containers",
            Group::Ephemeral => "ephemeralContainers",
        };
        format!("spec.{list}{{{name}}}")
    }
}

fn ignore_restarts(container: &mut Container) {
    container.restart_policy = None;
    container.restart_policy_rules.clear();
}

fn null_is_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
