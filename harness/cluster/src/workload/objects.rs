//! Operations on objects of a namespace, other than creating pods.

use std::collections::BTreeMap;

use evictlab_case::{Name, ObjectKind, ObjectName, ResizableResource, Resize, ResizedRequest};
use http::Request;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::node::v1::{Overhead, RuntimeClass};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Api;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, EvictParams, ObjectMeta, Patch, PatchParams, PostParams,
};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

use super::grace_period::GracePeriod;
use super::namespace::{BUSY_TIMEOUT, Namespace, StageError, api_error, refused};
use crate::api_error::{is_busy, is_refused_by_budget};
use crate::typed::Typed;
use crate::wait::retry_while;

impl Namespace {
    /// Creates an object of any namespaced kind, with strict field validation.
    pub async fn create_object(&self, manifest: &Value) -> Result<Value, StageError> {
        let resource = api_resource(manifest);
        let prefix = if resource.group.is_empty() { "/api" } else { "/apis" };
        let path = format!(
            "{prefix}/{}/namespaces/{}/{}?fieldValidation=Strict",
            resource.api_version, self.name, resource.plural
        );
        let answer = self.send(Request::post(path), "application/json", manifest).await;
        answer.map_err(|source| refused("create", &describe(manifest), source))
    }

    /// Reads the current state of an object.
    pub async fn object(&self, manifest: &Value) -> Result<Value, StageError> {
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &self.name, &api_resource(manifest));
        let (_, name) = kind_and_name(manifest);
        let object = api
            .get(name)
            .await
            .map_err(|source| api_error(&format!("read {}", describe(manifest)), source))?;
        Ok(serde_json::to_value(object).map(without_managed_fields).unwrap_or_default())
    }

    /// Changes an object by a JSON merge patch.
    pub async fn patch_object(&self, object: &ObjectName, patch: &Value) -> Result<(), StageError> {
        let api = self.objects_of(object.kind);
        let patched = api.patch(object.name.as_str(), &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.map(drop).map_err(|source| refused_change("patch", object, source))
    }

    /// Deletes an object, and in the background what it owns. `grace` is the grace period of a pod,
    /// by default its own.
    pub async fn delete_object(
        &self,
        object: &ObjectName,
        grace: Option<GracePeriod>,
    ) -> Result<(), StageError> {
        let grace_period_seconds = grace.map(GracePeriod::seconds);
        let params = DeleteParams { grace_period_seconds, ..DeleteParams::background() };
        let deleted = self.objects_of(object.kind).delete(object.name.as_str(), &params).await;
        deleted.map(drop).map_err(|source| refused_change("delete", object, source))
    }

    fn objects_of(&self, kind: ObjectKind) -> Api<DynamicObject> {
        let resource = api_resource_of(kind.api_version(), &kind.to_string());
        Api::namespaced_with(self.client.clone(), &self.name, &resource)
    }

    /// Changes the CPU and memory of a container in place, through the subresource `resize`.
    /// `allocatable` is that of the pod's node.
    pub async fn resize_pod(
        &self,
        pod: &Pod,
        resize: &Resize,
        allocatable: &BTreeMap<String, Quantity>,
    ) -> Result<(), StageError> {
        let pods: Api<Typed<Pod>> = Api::namespaced(self.client.clone(), &self.name);
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let patch = Patch::Strategic(resize_patch(pod, resize, allocatable));
        let resized = pods.patch_subresource("resize", name, &PatchParams::default(), &patch).await;
        resized.map(drop).map_err(|source| refused("resize", &format!("pod {name}"), source))
    }

    /// Evicts a pod through the API, like `kubectl drain`: pod disruption budgets apply.
    pub async fn evict_pod(&self, pod: &str) -> Result<(), StageError> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.name);
        let evict = async || pods.evict(pod, &EvictParams::default()).await;
        let evicted = retry_while(BUSY_TIMEOUT, is_busy, evict).await;
        evicted.map(drop).map_err(|source| match source {
            kube::Error::Api(status) if is_refused_by_budget(&status) => {
                StageError::Rejected { verb: "evict", object: format!("pod {pod}"), status }
            }
            source => refused("evict", &format!("pod {pod}"), source),
        })
    }
}

/// Returns the strategic merge patch for a resize. A container without a name is the first regular
/// one.
fn resize_patch(pod: &Pod, resize: &Resize, allocatable: &BTreeMap<String, Quantity>) -> Value {
    let spec = pod.spec.as_ref();
    let first = || spec.and_then(|spec| Some(spec.containers.first()?.name.as_str())).unwrap_or_default();
    let name = resize.container.as_ref().map_or_else(first, Name::as_str);
    let mut init = spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    let list = if init.any(|container| container.name == name) { "initContainers" } else { "containers" };
    let of_node = |resource: ResizableResource| {
        allocatable.get(resource.as_str()).map_or("", |quantity| quantity.0.as_str())
    };
    let requested = |(resource, request): (&ResizableResource, &ResizedRequest)| {
        let amount = match request {
            ResizedRequest::Amount(amount) => amount.to_string(),
            ResizedRequest::Allocatable => of_node(*resource).to_owned(),
            ResizedRequest::Percentage(share) => share_of(*resource, of_node(*resource), *share),
        };
        (*resource, amount)
    };
    let requests: BTreeMap<_, _> = resize.requests.iter().map(requested).collect();
    let limits = resize.limits.iter().map(|(resource, limit)| (*resource, limit.to_string()));
    let mut resources = serde_json::Map::new();
    for (field, stated) in [("requests", requests), ("limits", limits.collect())] {
        if !stated.is_empty() {
            resources.insert(field.to_owned(), json!(stated));
        }
    }
    json!({"spec": {list: [{"name": name, "resources": resources}]}})
}

/// Returns a percentage of an amount, rounded down: CPU in millicores, memory in bytes. Empty if
/// the amount is not a quantity.
fn share_of(resource: ResizableResource, amount: &str, percentage: u8) -> String {
    let Ok(amount) = amount.parse::<evictlab_rules::quantity::Quantity>() else { return String::new() };
    let share = |amount: i64| amount / 100 * i64::from(percentage);
    match resource {
        ResizableResource::Cpu => format!("{}m", share(amount.milli_value())),
        ResizableResource::Memory => share(amount.value()).to_string(),
    }
}

impl Namespace {
    /// Creates a priority class for the pods of this namespace and returns its name in the cluster.
    /// The namespace owns it: with the namespace, the garbage collector deletes the class.
    pub async fn create_priority_class(&self, class: &str, value: i32) -> Result<String, StageError> {
        let (name, metadata) = self.owned_class(class);
        let api: Api<Typed<PriorityClass>> = Api::all(self.client.clone());
        let object = PriorityClass {
            metadata,
            value,
            description: Some(format!("of the case in namespace {}", self.name)),
            ..PriorityClass::default()
        };
        let made = api.create(&PostParams::default(), &Typed(object)).await;
        made.map(|_| name).map_err(|source| refused("create", &format!("priority class {class}"), source))
    }

    /// Creates a runtime class with the handler `runc` and an overhead for the pods of this
    /// namespace, as [`Self::create_priority_class`].
    pub async fn create_runtime_class(
        &self,
        class: &str,
        overhead: BTreeMap<String, Quantity>,
    ) -> Result<String, StageError> {
        let (name, metadata) = self.owned_class(class);
        let api: Api<Typed<RuntimeClass>> = Api::all(self.client.clone());
        let object = RuntimeClass {
            metadata,
            handler: "runc".to_owned(),
            overhead: Some(Overhead { pod_fixed: Some(overhead) }),
            ..RuntimeClass::default()
        };
        let made = api.create(&PostParams::default(), &Typed(object)).await;
        made.map(|_| name).map_err(|source| refused("create", &format!("runtime class {class}"), source))
    }

    /// Returns the name in the cluster and the metadata of a class that this namespace owns.
    fn owned_class(&self, class: &str) -> (String, ObjectMeta) {
        let name = format!("{}-{class}", self.name);
        let owner = OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Namespace".to_owned(),
            name: self.name.clone(),
            uid: self.uid.clone(),
            ..OwnerReference::default()
        };
        let metadata = ObjectMeta {
            name: Some(name.clone()),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        };
        (name, metadata)
    }
}

fn refused_change(verb: &'static str, object: &ObjectName, source: kube::Error) -> StageError {
    refused(verb, &format!("{} {}", object.kind.to_string().to_lowercase(), object.name), source)
}

/// Returns the API resource of an object by its `apiVersion` and `kind`.
pub fn api_resource(manifest: &Value) -> ApiResource {
    let text = |field: &str| manifest[field].as_str().unwrap_or_default();
    api_resource_of(text("apiVersion"), text("kind"))
}

fn api_resource_of(api_version: &str, kind: &str) -> ApiResource {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

/// Returns `kind` and `metadata.name` of an object; a missing one is empty.
pub fn kind_and_name(manifest: &Value) -> (&str, &str) {
    let kind = manifest.get("kind").and_then(Value::as_str);
    let name = manifest.get("metadata").and_then(|metadata| metadata.get("name")?.as_str());
    (kind.unwrap_or_default(), name.unwrap_or_default())
}

/// Returns `metadata.uid` of an object.
pub(crate) fn uid_of(object: &Value) -> Option<&str> {
    object.get("metadata")?.get("uid")?.as_str()
}

/// Describes an object in an error, such as `deployment web`.
fn describe(manifest: &Value) -> String {
    let (kind, name) = kind_and_name(manifest);
    format!("{} {name}", kind.to_lowercase())
}

/// Removes `managedFields`, which make up about half of an object.
pub fn without_managed_fields(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

/// Returns whether a pod has not ended; it may not have started either.
pub(crate) fn has_not_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    !matches!(phase, Some("Failed" | "Succeeded"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resizes_name_the_list_of_the_container() {
        let pod: Pod = serde_json::from_value(json!({"spec": {
            "initContainers": [{"name": "side"}], "containers": [{"name": "main"}, {"name": "more"}],
        }}))
        .unwrap();
        let allocatable = [("memory", "667196Ki"), ("cpu", "2")]
            .map(|(resource, amount)| (resource.to_owned(), Quantity(amount.to_owned())));
        let allocatable = BTreeMap::from(allocatable);
        let patch = |yaml: &str| resize_patch(&pod, &serde_yaml::from_str(yaml).unwrap(), &allocatable);
        assert_eq!(
            patch("{pod: p, requests: {memory: allocatable}}"),
            json!({"spec": {"containers": [{"name": "main", "resources": {"requests": {"memory": "667196Ki"}}}]}})
        );
        assert_eq!(
            patch("{pod: p, requests: {memory: 60%, cpu: 60%}}"),
            json!({"spec": {"containers": [
                {"name": "main", "resources": {"requests": {"memory": "409925220", "cpu": "1200m"}}},
            ]}})
        );
        assert_eq!(
            patch("{pod: p, requests: {memory: 64Mi}}"),
            json!({"spec": {"containers": [{"name": "main", "resources": {"requests": {"memory": "64Mi"}}}]}})
        );
        assert_eq!(
            patch("{pod: p, container: side, requests: {cpu: 1}, limits: {memory: 1Gi}}"),
            json!({"spec": {"initContainers": [
                {"name": "side", "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}},
            ]}})
        );
    }
}
