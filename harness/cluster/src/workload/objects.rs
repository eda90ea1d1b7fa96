//! Operations on objects of a namespace, other than creating pods.

use evictlab_case::{ObjectKind, ObjectReference};
use http::Request;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::Api;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, EvictParams, ObjectMeta, Patch, PatchParams, PostParams,
};
use kube::core::GroupVersionKind;
use serde_json::Value;

use super::namespace::{Namespace, RUN_LABEL, StageError, api_error, refused};

impl Namespace {
    /// Creates an object of any namespaced kind, with strict field validation.
    pub async fn create_object(&self, manifest: &Value) -> Result<Value, StageError> {
        let resource = resource(manifest);
        let prefix = if resource.group.is_empty() { "/api" } else { "/apis" };
        let path = format!(
            "{prefix}/{}/namespaces/{}/{}?fieldValidation=Strict",
            resource.api_version, self.name, resource.plural
        );
        let answer = self.send(Request::post(path), "application/json", manifest).await;
        answer.map_err(|source| refused(&describe(manifest), source))
    }

    /// Reads the current state of an object.
    pub async fn object(&self, manifest: &Value) -> Result<Value, StageError> {
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &self.name, &resource(manifest));
        let name = manifest["metadata"]["name"].as_str().unwrap_or_default();
        let object = api
            .get(name)
            .await
            .map_err(|source| api_error(&format!("read {}", describe(manifest)), source))?;
        Ok(serde_json::to_value(object).map(without_managed_fields).unwrap_or_default())
    }

    /// Changes an object by a JSON merge patch.
    pub async fn patch_object(&self, object: &ObjectReference, patch: &Value) -> Result<(), StageError> {
        let api = self.objects_of(object.kind);
        let patched = api.patch(object.name.as_str(), &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.map(drop).map_err(|source| refused_change("patch", object, source))
    }

    /// Deletes an object, and in the background what it owns. `grace` is the grace period of a pod
    /// in seconds; by default its own.
    pub async fn delete_object(
        &self,
        object: &ObjectReference,
        grace: Option<u32>,
    ) -> Result<(), StageError> {
        let params = DeleteParams { grace_period_seconds: grace, ..DeleteParams::background() };
        let deleted = self.objects_of(object.kind).delete(object.name.as_str(), &params).await;
        deleted.map(drop).map_err(|source| refused_change("deletion", object, source))
    }

    fn objects_of(&self, kind: ObjectKind) -> Api<DynamicObject> {
        let (group, version) = kind.api_version().rsplit_once('/').unwrap_or(("", kind.api_version()));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind.as_str()));
        Api::namespaced_with(self.client.clone(), &self.name, &resource)
    }

    /// Evicts a pod through the API, like `kubectl drain`: pod disruption budgets apply.
    pub async fn evict_pod(&self, pod: &str) -> Result<(), StageError> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.name);
        let evicted = pods.evict(pod, &EvictParams::default()).await;
        evicted.map(drop).map_err(|source| refused(&format!("eviction of pod {pod}"), source))
    }
}

impl Namespace {
    /// Creates a priority class for the pods of this namespace and returns its name in the cluster.
    pub async fn create_priority_class(
        &self,
        class: &str,
        value: i32,
        run: &str,
    ) -> Result<String, StageError> {
        let name = self.class_name(class);
        let api: Api<PriorityClass> = Api::all(self.client.clone());
        let object = PriorityClass {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                labels: Some([(RUN_LABEL.to_owned(), run.to_owned())].into()),
                ..ObjectMeta::default()
            },
            value,
            description: Some(format!("of the case in namespace {}", self.name)),
            ..PriorityClass::default()
        };
        let made = api.create(&PostParams::default(), &object).await;
        made.map(|_| name).map_err(|source| refused(&format!("priority class {class}"), source))
    }

    /// Deletes priority classes of this namespace. Classes that do not exist are not an error.
    pub async fn delete_priority_classes(
        &self,
        classes: impl Iterator<Item = &str>,
    ) -> Result<(), StageError> {
        let api: Api<PriorityClass> = Api::all(self.client.clone());
        for class in classes {
            match api.delete(&self.class_name(class), &DeleteParams::default()).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(source) => return Err(api_error("delete a priority class", source)),
            }
        }
        Ok(())
    }

    fn class_name(&self, class: &str) -> String {
        format!("{}-{class}", self.name)
    }
}

fn refused_change(change: &str, object: &ObjectReference, source: kube::Error) -> StageError {
    refused(&format!("{change} of {} {}", object.kind.as_str().to_lowercase(), object.name), source)
}

fn resource(manifest: &Value) -> ApiResource {
    let text = |field: &str| manifest[field].as_str().unwrap_or_default();
    let (group, version) = text("apiVersion").rsplit_once('/').unwrap_or(("", text("apiVersion")));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("kind")))
}

/// Kind and name, such as `deployment web`.
fn describe(manifest: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{} {}", text(&manifest["kind"]).to_lowercase(), text(&manifest["metadata"]["name"]))
}

/// Removes `managedFields`, which make up about half of an object.
pub fn without_managed_fields(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}
