//! Pods, reduced to the fields that the ranking and the view read.

use std::borrow::Cow;
use std::collections::BTreeMap;

use evictlab_rules::pod::Pod;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Resource;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Prefix of the annotations that mark static pods.
const CONFIG_ANNOTATIONS: &str = "kubernetes.io/config.";

/// A pod as the API server returns it. All other fields are skipped while it is decoded.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ApiPod {
    #[serde(deserialize_with = "metadata")]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: SpecFields,
    #[serde(default)]
    status: StatusFields,
}

/// A pod, encoded. A large cluster has more than 100,000 pods; their maps take more memory than
/// their JSON.
#[derive(Clone, Debug)]
pub(super) struct EncodedPod(Box<str>);

/// A pod, as the ranking and the view read it.
#[derive(Clone, Debug)]
pub(super) struct WatchedPod {
    /// The fields for the ranking.
    pub pod: Pod,
    /// Phase.
    pub phase: Option<String>,
    /// Reason of the phase.
    pub reason: Option<String>,
    /// True if the pod is terminating.
    pub is_deleted: bool,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct SpecFields {
    #[serde(skip_serializing)]
    node_name: Option<String>,
    #[serde(deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    containers: Vec<ContainerFields>,
    #[serde(deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    init_containers: Vec<ContainerFields>,
    #[serde(deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    volumes: Vec<VolumeFields>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<ResourceFields>,
    #[serde(deserialize_with = "null_is_default", skip_serializing_if = "BTreeMap::is_empty")]
    overhead: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct ContainerFields {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    restart_policy: Option<String>,
    #[serde(deserialize_with = "null_is_default")]
    resources: ResourceFields,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct ResourceFields {
    #[serde(deserialize_with = "null_is_default", skip_serializing_if = "BTreeMap::is_empty")]
    requests: BTreeMap<String, Value>,
    #[serde(deserialize_with = "null_is_default", skip_serializing_if = "BTreeMap::is_empty")]
    limits: BTreeMap<String, Value>,
}

/// A volume, with the sources on the node's own disk.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct VolumeFields {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    empty_dir: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host_path: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    config_map: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    git_repo: Option<Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StatusFields {
    phase: Option<String>,
    reason: Option<String>,
    #[serde(deserialize_with = "null_is_default")]
    container_statuses: Vec<AllocatedContainer>,
    #[serde(deserialize_with = "null_is_default")]
    init_container_statuses: Vec<AllocatedContainer>,
    allocated_resources: Option<BTreeMap<String, Value>>,
}

/// Status of a container: the requests that the kubelet has allocated.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AllocatedContainer {
    name: String,
    allocated_resources: Option<BTreeMap<String, Value>>,
}

/// The encoded form. `evictlab_rules` reads the same names.
#[derive(Serialize)]
struct Encoded<'a> {
    metadata: EncodedMetadata<'a>,
    spec: &'a SpecFields,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<EncodedStatus<'a>>,
    #[serde(flatten)]
    own: OwnFields<'a>,
}

/// The pod-level requests that the kubelet has allocated, of a pod with such requests.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EncodedStatus<'a> {
    allocated_resources: &'a BTreeMap<String, Value>,
}

#[derive(Serialize)]
struct EncodedMetadata<'a> {
    name: &'a str,
    namespace: &'a str,
    uid: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<&'a BTreeMap<String, String>>,
}

/// Fields that the rules do not read, apart from those that they do.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct OwnFields<'a> {
    #[serde(borrow)]
    phase: Option<Cow<'a, str>>,
    #[serde(borrow)]
    reason: Option<Cow<'a, str>>,
    is_deleted: bool,
}

impl ApiPod {
    /// UID.
    pub(super) fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    /// Name of the pod's node; `None` before the pod is bound.
    pub(super) fn node(&self) -> Option<&str> {
        self.spec.node_name.as_deref()
    }

    /// Encodes the pod with the requests that are allocated to its containers, like
    /// [`Pod::with_allocated_resources`].
    pub(super) fn encode(&self) -> EncodedPod {
        let Self { metadata, status, .. } = self;
        let spec = self.allocated_spec();
        let allocated = status.allocated_resources.as_ref().filter(|_| spec.resources.is_some());
        let encoded = Encoded {
            metadata: EncodedMetadata {
                name: metadata.name.as_deref().unwrap_or_default(),
                namespace: metadata.namespace.as_deref().unwrap_or_default(),
                uid: self.uid(),
                annotations: metadata.annotations.as_ref().filter(|all| !all.is_empty()),
            },
            spec: &spec,
            status: allocated.map(|allocated_resources| EncodedStatus { allocated_resources }),
            own: OwnFields {
                phase: status.phase.as_deref().map(Cow::Borrowed),
                reason: status.reason.as_deref().map(Cow::Borrowed),
                is_deleted: metadata.deletion_timestamp.is_some(),
            },
        };
        // Serializing strings, maps and values to memory cannot fail.
        EncodedPod(serde_json::to_string(&encoded).unwrap_or_default().into_boxed_str())
    }
}

impl ApiPod {
    /// Returns the spec; a copy with other requests if an in-place resize is pending.
    fn allocated_spec(&self) -> Cow<'_, SpecFields> {
        let StatusFields { container_statuses, init_container_statuses, .. } = &self.status;
        let allocated = |container: &ContainerFields| {
            let mut statuses = container_statuses.iter().chain(init_container_statuses);
            statuses.find(|status| status.name == container.name)?.allocated_resources.as_ref()
        };
        let is_pending = |container: &ContainerFields| {
            allocated(container).is_some_and(|requests| *requests != container.resources.requests)
        };
        if !self.spec.containers.iter().chain(&self.spec.init_containers).any(is_pending) {
            return Cow::Borrowed(&self.spec);
        }
        let mut spec = self.spec.clone();
        for container in spec.containers.iter_mut().chain(&mut spec.init_containers) {
            if let Some(requests) = allocated(container) {
                container.resources.requests = requests.clone();
            }
        }
        Cow::Owned(spec)
    }
}

impl EncodedPod {
    /// Decodes the pod, with the pod-level requests that are allocated to it; `None` if the rules
    /// cannot read it.
    pub(super) fn decode(&self) -> Option<WatchedPod> {
        let pod: Pod = serde_json::from_str(&self.0).ok()?;
        let pod = pod.with_allocated_resources();
        let OwnFields { phase, reason, is_deleted } = serde_json::from_str(&self.0).ok()?;
        Some(WatchedPod {
            pod,
            phase: phase.map(Cow::into_owned),
            reason: reason.map(Cow::into_owned),
            is_deleted,
        })
    }
}

impl WatchedPod {
    /// Returns whether the pod has ended: the kubelet does not rank it (`filterOutInactivePods`).
    pub(super) fn has_ended(&self) -> bool {
        matches!(self.phase.as_deref(), Some("Succeeded" | "Failed"))
    }

    /// `namespace/name`.
    pub(super) fn name(&self) -> String {
        let (namespace, name) = self.key();
        format!("{namespace}/{name}")
    }

    /// Namespace and name.
    pub(super) fn key(&self) -> (&str, &str) {
        (&self.pod.metadata.namespace, &self.pod.metadata.name)
    }
}

impl Resource for ApiPod {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Pod".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "pods".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// Reads the metadata without labels, owners and managed fields.
fn metadata<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Fields {
        name: Option<String>,
        namespace: Option<String>,
        uid: Option<String>,
        resource_version: Option<String>,
        annotations: Option<BTreeMap<String, String>>,
        deletion_timestamp: Option<Time>,
    }
    let Fields { name, namespace, uid, resource_version, mut annotations, deletion_timestamp } =
        Fields::deserialize(deserializer)?;
    if let Some(annotations) = &mut annotations {
        annotations.retain(|name, _| name.starts_with(CONFIG_ANNOTATIONS));
    }
    Ok(ObjectMeta {
        name,
        namespace,
        uid,
        resource_version,
        annotations,
        deletion_timestamp,
        ..ObjectMeta::default()
    })
}

fn null_is_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keeps_what_the_ranking_and_the_view_read() {
        let pod: ApiPod = serde_json::from_value(json!({
            "metadata": {"name": "a", "namespace": "ns", "uid": "uid-a", "labels": {"app": "x"},
                "deletionTimestamp": "2026-01-01T00:00:00Z", "managedFields": [{"manager": "kubelet"}],
                "annotations": {"kubernetes.io/config.mirror": "1", "other": "2"}},
            "spec": {"nodeName": "n", "priority": 7, "tolerations": [{"operator": "Exists"}], "initContainers": null,
                "containers": [{"name": "c", "image": "i", "env": [{"name": "A", "value": "b"}],
                    "resources": {"requests": {"memory": "1Mi"}, "claims": [{"name": "gpu"}]}}],
                "volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}, {"name": "w", "projected": {}}]},
            "status": {"phase": "Failed", "reason": "Evicted", "hostIP": "10.0.0.1"},
        }))
        .unwrap();
        assert_eq!((pod.uid(), pod.node()), ("uid-a", Some("n")));
        let encoded = pod.encode();
        assert_eq!(
            serde_json::from_str::<Value>(&encoded.0).unwrap(),
            json!({
                "metadata": {"name": "a", "namespace": "ns", "uid": "uid-a",
                    "annotations": {"kubernetes.io/config.mirror": "1"}},
                "spec": {"priority": 7, "containers": [{"name": "c", "resources": {"requests": {"memory": "1Mi"}}}],
                    "volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}, {"name": "w"}]},
                "phase": "Failed", "reason": "Evicted", "is_deleted": true,
            })
        );
        let decoded = encoded.decode().unwrap();
        assert_eq!(decoded.pod.spec.priority, Some(7));
        assert_eq!(decoded.pod.spec.containers[0].request("memory").unwrap().value(), 1 << 20);
        let rest = (decoded.phase.as_deref(), decoded.reason.as_deref(), decoded.is_deleted);
        assert_eq!(rest, (Some("Failed"), Some("Evicted"), true));
    }

    #[test]
    fn a_pending_resize_does_not_change_the_requests() {
        let pod = |memory: &str| -> ApiPod {
            serde_json::from_value(json!({
                "metadata": {"name": "a"},
                "spec": {"containers": [{"name": "c", "resources": {"requests": {"memory": memory}}}, {"name": "d"}]},
                "status": {"containerStatuses": [
                    {"name": "c", "allocatedResources": {"memory": "1Mi"}}, {"name": "d"}]},
            }))
            .unwrap()
        };
        for spec in ["1Mi", "10Ti"] {
            let decoded = pod(spec).encode().decode().unwrap();
            assert_eq!(decoded.pod.spec.containers[0].request("memory").unwrap().value(), 1 << 20, "{spec}");
            assert_eq!(decoded.pod.spec.containers[1].request("memory"), None);
        }
    }

    #[test]
    fn a_pending_resize_does_not_change_pod_level_requests() {
        let pod: ApiPod = serde_json::from_value(json!({
            "metadata": {"name": "a"},
            "spec": {"resources": {"requests": {"memory": "10Ti"}}, "containers": [{"name": "c"}]},
            "status": {"allocatedResources": {"memory": "1Mi"}},
        }))
        .unwrap();
        let decoded = pod.encode().decode().unwrap();
        assert_eq!(decoded.pod.pod_level_request("memory").unwrap().value(), 1 << 20);
    }
}
