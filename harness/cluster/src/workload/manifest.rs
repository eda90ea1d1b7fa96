//! Manifests of a case, completed for the node that the case runs on.

use std::time::Duration;

use evictlab_case::{
    CASE_NAME_ANNOTATION, ContainerManifest, ObjectManifest, PodPlacement, PodSpecManifest, VariableManifest,
    WorkloadSpecManifest, case_name,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::default_limits::{add_default_limits, add_memory_limit};

/// Fields that are added to the manifests of a case.
pub struct Placement<'a> {
    /// Namespace of the objects.
    pub namespace: &'a str,
    /// Node of the pods.
    pub node: &'a str,
    /// Scheduling of the pods. Bound pods bypass the scheduler, because the node has little
    /// allocatable memory and intentional taints.
    pub placed: PodPlacement,
    /// Tolerations for the taints that the node had before the case, for scheduled pods.
    pub tolerations: &'a [Value],
    /// Priority classes of the case: name in the case, and name in the cluster.
    pub priority_classes: &'a [(String, String)],
    /// Runtime classes of the case: name in the case, and name in the cluster.
    pub runtime_classes: &'a [(String, String)],
    /// Environment variables of every container.
    pub environment: &'a [(&'static str, String)],
    /// True if pods without limits get default limits.
    pub default_limits: bool,
    /// Memory limit, in bytes, of the containers that have none, where it keeps the QoS class.
    pub memory_limit: Option<u64>,
    /// Time after which the kubelet ends the pods, if the run does not delete them. Not for the
    /// pods of a Deployment, whose template must not have it.
    pub active_deadline: Option<Duration>,
    /// Owner of the objects that create pods: they end with it, if the run does not delete them.
    pub expiry: Option<&'a OwnerReference>,
    /// Returns the full name of an image.
    pub image: &'a dyn Fn(&str) -> String,
}

impl<'a> Placement<'a> {
    /// Placement of pods that are bound to a node, without further additions.
    pub fn bound(namespace: &'a str, node: &'a str, image: &'a dyn Fn(&str) -> String) -> Self {
        let placed = PodPlacement::Bound;
        Self {
            namespace,
            node,
            placed,
            tolerations: &[],
            priority_classes: &[],
            runtime_classes: &[],
            environment: &[],
            default_limits: false,
            memory_limit: None,
            active_deadline: None,
            expiry: None,
            image,
        }
    }
}

/// Adds `apiVersion`, `kind`, namespace, node and tolerations to a pod, and environment and full
/// image name to its containers. Existing fields are kept. A manifest with values of a wrong type
/// stays as it is: the API server rejects it.
pub fn pod_manifest(pod: &Map<String, Value>, placement: &Placement) -> Value {
    complete(pod, |manifest: &mut ObjectManifest<PodSpecManifest>| {
        manifest.api_version.get_or_insert_with(|| "v1".to_owned());
        manifest.kind.get_or_insert_with(|| "Pod".to_owned());
        manifest.metadata.namespace = Some(placement.namespace.to_owned());
        if manifest.metadata.name.is_none()
            && let Some(name) = case_name(pod)
        {
            let annotations = manifest.metadata.annotations.get_or_insert_default();
            annotations.insert(CASE_NAME_ANNOTATION.to_owned(), name.into());
        }
        let spec = manifest.spec.get_or_insert_default();
        place_spec(spec, placement);
        set_active_deadline(spec, placement);
    })
}

/// Like [`pod_manifest`], for a static pod: it has no `nodeName`, because the kubelet that reads
/// its file sets the node.
pub fn static_pod_manifest(pod: &Map<String, Value>, placement: &Placement) -> Value {
    let mut pod = pod_manifest(pod, &Placement { placed: PodPlacement::Bound, ..*placement });
    if let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("nodeName");
    }
    pod
}

/// Adds the namespace to an object of any kind, and completes its pod template like
/// [`pod_manifest`]. An object with a pod template gets the owner `expiry`.
pub fn object_manifest(object: &Map<String, Value>, placement: &Placement) -> Value {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    if kind == "Pod" {
        return pod_manifest(object, placement);
    }
    if !has_pod_template(object) {
        return complete(object, |manifest: &mut ObjectManifest<Value>| {
            manifest.metadata.namespace = Some(placement.namespace.to_owned());
        });
    }
    complete(object, |manifest: &mut ObjectManifest<WorkloadSpecManifest>| {
        manifest.metadata.namespace = Some(placement.namespace.to_owned());
        if let Some(owner) = placement.expiry {
            manifest.metadata.other.insert("ownerReferences".to_owned(), json!([owner]));
        }
        let template = manifest.spec.as_mut().and_then(|spec| spec.template.as_mut());
        if let Some(spec) = template.and_then(|template| template.spec.as_mut()) {
            place_spec(spec, placement);
            if kind == "Job" {
                set_active_deadline(spec, placement);
            }
        }
    })
}

/// Returns whether `spec.template.spec` of an object is a map. Objects of other kinds may have
/// other fields of these names.
pub fn has_pod_template(object: &Map<String, Value>) -> bool {
    let template = object.get("spec").and_then(|spec| spec.get("template"));
    template.and_then(|template| template.get("spec")).is_some_and(Value::is_object)
}

fn set_active_deadline(spec: &mut PodSpecManifest, placement: &Placement) {
    if let Some(deadline) = placement.active_deadline {
        let seconds = deadline.as_secs().try_into().unwrap_or(i64::MAX);
        // A case may state a shorter one.
        spec.active_deadline_seconds =
            Some(spec.active_deadline_seconds.map_or(seconds, |own| own.min(seconds)));
    }
}

fn place_spec(spec: &mut PodSpecManifest, placement: &Placement) {
    match placement.placed {
        PodPlacement::Bound => {
            spec.node_name = Some(placement.node.to_owned());
            spec.tolerations.get_or_insert_with(|| vec![json!({"operator": "Exists"})]);
        }
        PodPlacement::Scheduled => {
            let selector = spec.node_selector.get_or_insert_default();
            selector.insert("kubernetes.io/hostname".to_owned(), placement.node.into());
            if !placement.tolerations.is_empty() {
                let tolerations = spec.tolerations.get_or_insert_default();
                tolerations.splice(..0, placement.tolerations.iter().cloned());
            }
        }
    }
    for (class, classes) in [
        (&mut spec.priority_class_name, placement.priority_classes),
        (&mut spec.runtime_class_name, placement.runtime_classes),
    ] {
        if let Some(class) = class
            && let Some((_, name)) = classes.iter().find(|(own, _)| own == class)
        {
            class.clone_from(name);
        }
    }
    if placement.default_limits {
        add_default_limits(spec);
    }
    if let Some(bytes) = placement.memory_limit {
        add_memory_limit(spec, bytes);
    }
    // Cases do not use the API, so their pods get no token.
    spec.automount_service_account_token.get_or_insert(false);
    spec.all_containers_mut().for_each(|container| place_container(container, placement));
}

/// Adds environment, pull policy and full image name to the manifest of an ephemeral container.
pub fn container_manifest(container: &Map<String, Value>, placement: &Placement) -> Value {
    complete(container, |container| place_container(container, placement))
}

fn place_container(container: &mut ContainerManifest, placement: &Placement) {
    if let Some(image) = &mut container.image {
        *image = (placement.image)(image);
    }
    // Images are loaded before the case: a pull would delay a node under pressure.
    container.image_pull_policy.get_or_insert_with(|| "IfNotPresent".to_owned());
    let own = container.env.take().unwrap_or_default();
    let defines = |name: &str| own.iter().any(|variable| variable.name.as_deref() == Some(name));
    // First, because the variables of the case may refer to these.
    let environment = placement.environment.iter().filter(|(name, _)| !defines(name));
    let mut all: Vec<VariableManifest> = environment
        .map(|(name, value)| VariableManifest {
            name: Some((*name).to_owned()),
            other: Map::from_iter([("value".to_owned(), value.clone().into())]),
        })
        .collect();
    all.extend(own);
    container.env = (!all.is_empty()).then_some(all);
}

/// Changes a manifest as its type. Returns the manifest as it is if it has a value of a wrong type.
fn complete<T: DeserializeOwned + Serialize>(
    written: &Map<String, Value>,
    change: impl FnOnce(&mut T),
) -> Value {
    let Ok(mut manifest) = T::deserialize(written) else { return Value::Object(written.clone()) };
    change(&mut manifest);
    match serde_json::to_value(manifest) {
        Ok(Value::Object(fields)) => Value::Object(in_written_order(fields, written)),
        Ok(other) => other,
        Err(_) => Value::Object(written.clone()),
    }
}

/// Orders the fields of a completed manifest: first those of the written one in their order, then
/// the added ones. Items are added at the front of lists.
fn in_written_order(mut completed: Map<String, Value>, written: &Map<String, Value>) -> Map<String, Value> {
    let mut ordered = Map::new();
    for (name, of_written) in written {
        if let Some(value) = completed.shift_remove(name) {
            ordered.insert(name.clone(), value_in_written_order(value, of_written));
        }
    }
    ordered.extend(completed);
    ordered
}

fn value_in_written_order(completed: Value, written: &Value) -> Value {
    match (completed, written) {
        (Value::Object(completed), Value::Object(written)) => {
            Value::Object(in_written_order(completed, written))
        }
        (Value::Array(mut completed), Value::Array(written)) => {
            for (item, of_written) in completed.iter_mut().rev().zip(written.iter().rev()) {
                *item = value_in_written_order(item.take(), of_written);
            }
            Value::Array(completed)
        }
        (completed, _) => completed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_existing_fields_and_adds_the_rest() {
        let written = json!({
            "metadata": {"name": "a", "labels": {"b": "c"}},
            "spec": {
                "initContainers": [{"name": "i", "image": "agnhost:2.52"}],
                "containers": [{"name": "c", "image": "mine", "imagePullPolicy": "Never",
                    "env": [{"name": "STEP", "value": "1Mi"}, {"name": "X", "value": "$(TOTAL)"}]}],
            },
        });
        let environment = [("STEP", "13Mi".to_owned()), ("TOTAL", "364Mi".to_owned())];
        let image = |name: &str| format!("registry.example/{name}");
        let placement = Placement { environment: &environment, ..Placement::bound("ns", "n1", &image) };
        let pod = pod_manifest(written.as_object().unwrap(), &placement);
        assert_eq!(
            pod,
            json!({
                "metadata": {"name": "a", "labels": {"b": "c"}, "namespace": "ns"},
                "spec": {
                    "initContainers": [{"name": "i", "image": "registry.example/agnhost:2.52",
                        "imagePullPolicy": "IfNotPresent",
                        "env": [{"name": "STEP", "value": "13Mi"}, {"name": "TOTAL", "value": "364Mi"}]}],
                    "containers": [{"name": "c", "image": "registry.example/mine", "imagePullPolicy": "Never",
                        "env": [{"name": "TOTAL", "value": "364Mi"}, {"name": "STEP", "value": "1Mi"},
                            {"name": "X", "value": "$(TOTAL)"}]}],
                    "nodeName": "n1",
                    "tolerations": [{"operator": "Exists"}],
                    "automountServiceAccountToken": false,
                },
                "apiVersion": "v1",
                "kind": "Pod",
            })
        );
    }

    #[test]
    fn fields_keep_the_order_of_the_manifest() {
        let written = json!({
            "spec": {"containers": [{"env": [{"value": "1", "name": "A"}], "image": "i", "name": "c"}], "hostUsers": false},
            "metadata": {"labels": {}, "name": "a"},
        });
        let environment = [("STEP", "13Mi".to_owned())];
        let image = |name: &str| name.to_owned();
        let placement = Placement { environment: &environment, ..Placement::bound("ns", "n1", &image) };
        let completed = json!({
            "spec": {
                "containers": [{
                    "env": [{"name": "STEP", "value": "13Mi"}, {"value": "1", "name": "A"}],
                    "image": "i", "name": "c", "imagePullPolicy": "IfNotPresent",
                }],
                "hostUsers": false, "nodeName": "n1", "tolerations": [{"operator": "Exists"}],
                "automountServiceAccountToken": false,
            },
            "metadata": {"labels": {}, "name": "a", "namespace": "ns"},
            "apiVersion": "v1", "kind": "Pod",
        });
        let pod = pod_manifest(written.as_object().unwrap(), &placement);
        assert_eq!(pod.to_string(), completed.to_string());
    }

    #[test]
    fn manifests_with_values_of_a_wrong_type_stay_as_they_are() {
        let image = |name: &str| name.to_owned();
        let placement = Placement::bound("ns", "n1", &image);
        let written = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"env": 3}]}});
        assert_eq!(pod_manifest(written.as_object().unwrap(), &placement), written);
        let custom = json!({"kind": "Custom", "metadata": {"name": "a"}, "spec": {"template": "text"}});
        let completed = object_manifest(custom.as_object().unwrap(), &placement);
        assert_eq!(completed["metadata"]["namespace"], "ns");
        assert_eq!(completed["spec"], custom["spec"]);
    }

    #[test]
    fn a_pod_with_a_generated_name_has_the_name_in_the_case() {
        let image = |name: &str| name.to_owned();
        let placement = Placement::bound("ns", "n1", &image);
        let annotations = |metadata: Value| {
            let pod = json!({"metadata": metadata, "spec": {}});
            pod_manifest(pod.as_object().unwrap(), &placement)["metadata"]["annotations"].clone()
        };
        assert_eq!(annotations(json!({"generateName": "web-"})), json!({"evictlab.dev/case-name": "web"}));
        assert_eq!(
            annotations(json!({"generateName": "web-", "annotations": {"a": "b"}})),
            json!({"a": "b", "evictlab.dev/case-name": "web"})
        );
        assert_eq!(annotations(json!({"name": "web"})), Value::Null);
    }

    #[test]
    fn only_pods_and_jobs_have_an_active_deadline() {
        let image = |name: &str| name.to_owned();
        let active_deadline = Some(Duration::from_secs(240));
        let placement = Placement { active_deadline, ..Placement::bound("ns", "n1", &image) };
        let deadline = |kind: &str, own: Option<u64>| {
            let written = json!({"kind": kind, "metadata": {}, "spec": {"template": {"spec": {}}}});
            let written = own.map_or(
                written,
                |own| json!({"kind": "Pod", "metadata": {}, "spec": {"activeDeadlineSeconds": own}}),
            );
            let object = object_manifest(written.as_object().unwrap(), &placement);
            let spec = if kind == "Pod" { &object["spec"] } else { &object["spec"]["template"]["spec"] };
            spec["activeDeadlineSeconds"].as_u64()
        };
        let by_kind = ["Pod", "Job", "Deployment"].map(|kind| deadline(kind, None));
        assert_eq!(by_kind, [Some(240), Some(240), None]);
        assert_eq!([10, 864_000].map(|own| deadline("Pod", Some(own))), [Some(10), Some(240)]);
    }
}
