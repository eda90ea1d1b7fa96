//! What a pod's object says, as far as a kubelet goes by it.

use std::collections::BTreeMap;

use evictlab_rules::pod::Pod;
use evictlab_rules::quantity::Quantity;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A pod's spec.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Spec {
    pub restart_policy: RestartPolicy,
    pub termination_grace_period_seconds: Option<u64>,
    pub active_deadline_seconds: Option<u64>,
    pub host_network: bool,
    pub share_process_namespace: bool,
    #[serde(deserialize_with = "null_is_default")]
    pub node_selector: BTreeMap<String, String>,
    #[serde(deserialize_with = "null_is_default")]
    pub affinity: Value,
    pub priority_class_name: Option<String>,
    pub service_account_name: String,
    pub init_containers: Vec<Container>,
    pub containers: Vec<Container>,
    pub ephemeral_containers: Vec<Container>,
    pub volumes: Vec<Volume>,
}

/// What happens to a container that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) enum RestartPolicy {
    /// It starts again.
    #[default]
    Always,
    /// It starts again unless it ended with 0.
    OnFailure,
    /// It stays.
    Never,
}

/// When an image is pulled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) enum PullPolicy {
    /// Each time.
    Always,
    /// If it is not there.
    #[default]
    IfNotPresent,
    /// Not at all.
    Never,
}

/// A container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Container {
    pub name: String,
    pub image: String,
    pub image_pull_policy: PullPolicy,
    pub command: Vec<String>,
    pub args: Vec<String>,
    pub env: Vec<Env>,
    pub env_from: Vec<Value>,
    pub resources: Value,
    pub volume_mounts: Vec<VolumeMount>,
    pub restart_policy: Option<RestartPolicy>,
    pub lifecycle: Value,
    /// Of an ephemeral one: whose processes it shares.
    pub target_container_name: String,
}

/// A variable of the environment.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Env {
    pub name: String,
    pub value: String,
    pub value_from: Value,
}

/// Where a volume is seen.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct VolumeMount {
    pub name: String,
    pub mount_path: String,
    pub sub_path: String,
    pub read_only: bool,
}

/// A volume; of its sources those that matter here.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Volume {
    pub name: String,
    pub empty_dir: Option<EmptyDir>,
    pub host_path: Option<HostPath>,
    pub config_map: Option<ConfigMap>,
}

/// The keys of a ConfigMap as files.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ConfigMap {
    pub name: String,
    pub optional: bool,
}

/// A part of the node's own files.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct HostPath {
    pub path: String,
}

/// An emptyDir.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct EmptyDir {
    pub medium: String,
    pub size_limit: Option<Quantity>,
}

/// Which list of a pod a container is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group {
    Init,
    Regular,
    Ephemeral,
}

/// A container by its place in its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub group: Group,
    pub index: usize,
}

/// A pod as it is read once, when its spec is new.
#[derive(Clone, Debug)]
pub(super) struct Manifest {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub spec: Spec,
    /// The same for the rules.
    pub pod: Pod,
}

impl Manifest {
    /// Reads a pod's object. What cannot be read is left out: the API server has validated it.
    ///
    /// Kubelets through 1.27 do not know `restartPolicy` of an init container (KEP-753 came with 1.28): a sidecar is a plain init container
    /// to them.
    pub fn read(object: &Value, knows_sidecars: bool) -> Self {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let mut spec = Spec::deserialize(&object["spec"]).unwrap_or_default();
        let mut pod = Pod::deserialize(object).unwrap_or_default();
        if !knows_sidecars {
            spec.init_containers.iter_mut().for_each(|container| container.restart_policy = None);
            pod.spec.init_containers.iter_mut().for_each(|container| container.restart_policy = None);
        }
        Self { namespace: text("namespace"), name: text("name"), uid: text("uid"), spec, pod }
    }

    /// `name_namespace(uid)`, as messages name a pod.
    pub fn format(&self) -> String {
        format!("{}_{}({})", self.name, self.namespace, self.uid)
    }

    /// Where the log of a container lies on the node (`BuildContainerLogsDirectory`).
    pub fn log_path(&self, container: &str, attempt: u64) -> String {
        let Self { namespace, name, uid, .. } = self;
        format!("/var/log/pods/{namespace}_{name}_{uid}/{container}/{attempt}.log")
    }

    /// What all its containers together may use of memory, in bytes, if each says so.
    pub fn memory_limit(&self) -> Option<u64> {
        let containers = self.pod.spec.containers.iter().chain(&self.pod.spec.init_containers);
        let limits =
            containers.map(|container| container.resources.limits.get("memory").map(Quantity::value));
        limits.sum::<Option<i64>>().and_then(|limit| u64::try_from(limit).ok())
    }

    /// The place of a container of a name.
    pub fn place(&self, name: &str) -> Option<Place> {
        [Group::Init, Group::Regular, Group::Ephemeral].into_iter().find_map(|group| {
            let index = self.spec.group(group).iter().position(|container| container.name == name)?;
            Some(Place { group, index })
        })
    }
}

impl Spec {
    pub fn group(&self, group: Group) -> &[Container] {
        match group {
            Group::Init => &self.init_containers,
            Group::Regular => &self.containers,
            Group::Ephemeral => &self.ephemeral_containers,
        }
    }

    pub fn container(&self, place: Place) -> Option<&Container> {
        self.group(place.group).get(place.index)
    }

    /// Whether it is an init container that keeps running beside the regular ones.
    pub fn is_sidecar(&self, place: Place) -> bool {
        place.group == Group::Init && self.init_containers.get(place.index).is_some_and(Container::is_sidecar)
    }
}

impl Container {
    /// Whether this init container keeps running.
    pub fn is_sidecar(&self) -> bool {
        self.restart_policy == Some(RestartPolicy::Always)
    }
}

impl Place {
    /// As events name it, such as `spec.containers{el1}`.
    pub fn field_path(self, name: &str) -> String {
        let list = match self.group {
            Group::Init => "initContainers",
            Group::Regular => "containers",
            Group::Ephemeral => "ephemeralContainers",
        };
        format!("spec.{list}{{{name}}}")
    }
}

fn null_is_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
