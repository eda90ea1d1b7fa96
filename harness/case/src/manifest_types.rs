//! Types of manifests, with the fields that evictlab reads or completes.
//!
//! All other fields are kept as they are, so that a case can use fields of any kubelet version. A
//! field with the value `null` counts as one that is not stated, as in the API.

use evictlab_rules::quantity::Quantity;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Lists of containers in the spec of a pod that is created, in the order in which they start.
pub const CONTAINER_LISTS: [&str; 2] = ["initContainers", "containers"];

/// Priority classes of every cluster. They make the kubelet and the scheduler preempt other pods.
pub const SYSTEM_PRIORITY_CLASSES: [&str; 2] = ["system-cluster-critical", "system-node-critical"];

/// Returns the containers in the JSON of a pod spec, each with the name of its list and its index.
pub fn containers_of(spec: &Map<String, Value>) -> impl Iterator<Item = (&'static str, usize, &Value)> {
    CONTAINER_LISTS.into_iter().flat_map(move |list| {
        let containers = spec.get(list).and_then(Value::as_array).into_iter().flatten();
        containers.enumerate().map(move |(at, container)| (list, at, container))
    })
}

/// Parses an amount of a manifest, a text or a number; `None` if it is not a quantity.
pub fn parse_amount(amount: &Value) -> Option<Quantity> {
    match amount {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

/// Returns whether a manifest states this kind.
pub fn has_kind(manifest: &Map<String, Value>, kind: &str) -> bool {
    manifest.get("kind").is_some_and(|stated| stated == kind)
}

/// The manifest of an object with a spec of type `S`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectManifest<S> {
    /// API group and version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Kind of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Metadata.
    #[serde(default)]
    pub metadata: MetadataManifest,
    /// The spec, if the object has one.
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub spec: Option<S>,
    /// The other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The metadata of a manifest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MetadataManifest {
    /// Name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Annotations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Map<String, Value>>,
    /// The other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The spec of an object that creates pods, such as a Deployment or a Job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkloadSpecManifest {
    /// Template of the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<PodTemplateSpec>,
    /// The other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The field `template` of an object that creates pods: a `PodTemplateSpec` of Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PodTemplateSpec {
    /// Spec of the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<PodSpecManifest>,
    /// The other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The spec of a pod, or of the pods that another object creates: a `PodSpec` of Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSpecManifest {
    /// Init containers, including sidecars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub init_containers: Option<Vec<ContainerManifest>>,
    /// Regular containers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub containers: Option<Vec<ContainerManifest>>,
    /// Resources of the whole pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourcesManifest>,
    /// Name of the node of a pod that bypasses the scheduler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// Labels of the nodes on which the pod may be scheduled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<Map<String, Value>>,
    /// Tolerations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerations: Option<Vec<Value>>,
    /// Name of the priority class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,
    /// Name of the runtime class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_class_name: Option<String>,
    /// True if containers get a token for the API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub automount_service_account_token: Option<bool>,
    /// Time in seconds after which the kubelet ends the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_deadline_seconds: Option<i64>,
    /// True if the pod has the network of the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_network: Option<bool>,
    /// True if the pod has the process IDs of the node.
    #[serde(rename = "hostPID", skip_serializing_if = "Option::is_none")]
    pub host_pid: Option<bool>,
    /// True if the pod has the IPC namespace of the node.
    #[serde(rename = "hostIPC", skip_serializing_if = "Option::is_none")]
    pub host_ipc: Option<bool>,
    /// Volumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volumes: Option<Vec<VolumeManifest>>,
    /// The other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A container of a manifest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerManifest {
    /// Name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Name of the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Pull policy of the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<String>,
    /// Environment variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<Vec<VariableManifest>>,
    /// Requests and limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourcesManifest>,
    /// Privileges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_context: Option<SecurityManifest>,
    /// Ports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports: Option<Vec<PortManifest>>,
    /// The other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// An environment variable of a container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VariableManifest {
    /// Name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The other fields: the value or its source.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Requests and limits of a container or a pod, by resource. An amount is a text or a number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResourcesManifest {
    /// Requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<Map<String, Value>>,
    /// Limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Map<String, Value>>,
    /// The other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The security context of a container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SecurityManifest {
    /// True if the container has all privileges of the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub privileged: Option<bool>,
    /// Capabilities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<CapabilitiesManifest>,
    /// The other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Changes of the capabilities of a container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CapabilitiesManifest {
    /// Added capabilities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub add: Option<Vec<String>>,
    /// The other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A port of a container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PortManifest {
    /// Port of the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_port: Option<i64>,
    /// The other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A volume of a pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeManifest {
    /// Directory or file of the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_path: Option<HostPathManifest>,
    /// The other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A directory or file of the node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostPathManifest {
    /// Path on the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl PodSpecManifest {
    /// Parses a pod spec.
    ///
    /// # Errors
    /// A field has a value of a wrong type. The API server rejects such a pod, too.
    pub fn parse(spec: &Map<String, Value>) -> Result<Self, serde_json::Error> {
        Self::deserialize(spec)
    }

    /// Returns all containers, in the order in which they start.
    pub fn all_containers(&self) -> impl Iterator<Item = &ContainerManifest> {
        self.init_containers.iter().chain(&self.containers).flatten()
    }

    /// Returns all containers for changes, in the order in which they start.
    pub fn all_containers_mut(&mut self) -> impl Iterator<Item = &mut ContainerManifest> {
        self.init_containers.iter_mut().chain(&mut self.containers).flatten()
    }
}

impl ContainerManifest {
    /// Returns a limit; `None` if the container does not state it, or not as a quantity.
    pub fn limit(&self, resource: &str) -> Option<Quantity> {
        self.resources.as_ref()?.limit(resource)
    }

    /// Returns whether the container states a limit or a request of a resource.
    pub fn states(&self, resource: &str) -> bool {
        self.resources.as_ref().is_some_and(|resources| {
            let mut lists = resources.limits.iter().chain(&resources.requests);
            lists.any(|amounts| amounts.get(resource).is_some_and(|amount| !amount.is_null()))
        })
    }
}

impl ResourcesManifest {
    /// Returns a limit; `None` if it is not stated, or not as a quantity.
    pub fn limit(&self, resource: &str) -> Option<Quantity> {
        parse_amount(self.limits.as_ref()?.get(resource)?)
    }

    /// Sets the limit and the request of a resource.
    pub fn set(&mut self, resource: &str, limit: &str, request: &str) {
        for (amounts, amount) in [(&mut self.limits, limit), (&mut self.requests, request)] {
            amounts.get_or_insert_default().insert(resource.to_owned(), amount.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_fields_of_every_level_are_kept() {
        let spec = json!({
            "initContainers": [{"name": "i", "restartPolicy": "Always", "newField": 1}],
            "containers": [{
                "name": "c", "image": "i", "imagePullPolicy": "Never", "newField": {"a": null},
                "env": [{"name": "A", "valueFrom": {"newField": 2}}],
                "resources": {"limits": {"cpu": 0.5, "memory": "1Gi"}, "claims": [{"name": "gpu"}]},
                "securityContext": {"privileged": false, "newField": 3, "capabilities": {"add": ["KILL"], "drop": ["ALL"]}},
                "ports": [{"containerPort": 80, "hostPort": 8080}],
            }],
            "resources": {"limits": {"memory": "2Gi"}, "newField": 4},
            "hostPID": false, "hostUsers": true,
            "tolerations": [{"operator": "Exists", "newField": 5}],
            "volumes": [{"name": "v", "hostPath": {"path": "/", "type": "Directory"}}, {"emptyDir": {"newField": 6}}],
            "newField": 18_446_744_073_709_551_615_u64,
        });
        let template = PodSpecManifest::parse(spec.as_object().unwrap()).unwrap();
        assert_eq!(serde_json::to_value(&template).unwrap(), spec);
        let names: Vec<_> = template.all_containers().map(|container| container.name.as_deref()).collect();
        assert_eq!(names, [Some("i"), Some("c")]);
    }

    #[test]
    fn values_of_a_wrong_type_are_errors() {
        for spec in [json!({"containers": [{"env": 3}]}), json!({"hostPID": "yes"}), json!({"volumes": {}})] {
            assert!(PodSpecManifest::parse(spec.as_object().unwrap()).is_err(), "{spec}");
        }
    }

    #[test]
    fn limits_are_texts_or_numbers() {
        let resources: ResourcesManifest =
            serde_json::from_value(json!({"limits": {"memory": "1Ki", "cpu": 2, "a/b": true}})).unwrap();
        let limit = |resource: &str| resources.limit(resource).map(|limit| limit.value());
        assert_eq!(["memory", "cpu", "a/b", "c"].map(limit), [Some(1024), Some(2), None, None]);
    }
}
