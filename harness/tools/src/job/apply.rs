//! Creation of a Job's objects.

use evictlab_cluster::{ClusterClient, JobName};
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde_json::Value;

use super::error::JobError;

/// Creates the objects of a manifest. A namespace may exist. `created` receives kind and name of each
/// object.
///
/// # Errors
/// An object exists; the API server refuses or does not answer.
pub async fn apply(
    cluster: &ClusterClient,
    job: &JobName,
    objects: &[Value],
    mut created: impl FnMut(&str),
) -> Result<(), JobError> {
    for object in objects {
        let description = describe(object);
        let typed: DynamicObject = serde_json::from_value(object.clone()).map_err(|source| {
            JobError::api(format!("create {description}"), kube::Error::SerdeError(source))
        })?;
        let answer = api_of(&cluster.client, object).create(&PostParams::default(), &typed).await;
        match answer {
            Ok(_) => created(&description),
            Err(kube::Error::Api(status)) if status.code == 409 && object["kind"] == "Namespace" => {}
            Err(kube::Error::Api(status)) if status.code == 409 => {
                return Err(JobError::Exists { object: description, job: job.clone() });
            }
            Err(source) => return Err(JobError::api(format!("create {description}"), source)),
        }
    }
    Ok(())
}

fn describe(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

fn api_of(client: &Client, object: &Value) -> Api<DynamicObject> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let version = text(&object["apiVersion"]);
    let (group, version) = version.rsplit_once('/').unwrap_or(("", &version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &text(&object["kind"])));
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}
