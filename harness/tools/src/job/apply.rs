//! Creation of a Job's objects.

use evictlab_cluster::workload::{api_resource, kind_and_name};
use evictlab_cluster::{ClusterClient, JobName};
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::{Api, Client};
use serde_json::Value;

use super::error::JobError;

/// Creates the objects of a manifest. A namespace may exist. `created` receives kind and name of
/// each object.
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
        let is_namespace = typed.types.as_ref().is_some_and(|types| types.kind == "Namespace");
        let namespace = typed.metadata.namespace.as_deref();
        let api = api_of(&cluster.client, namespace, &api_resource(object));
        let answer = api.create(&PostParams::default(), &typed).await;
        match answer {
            Ok(_) => created(&description),
            Err(kube::Error::Api(status)) if status.code == 409 && is_namespace => {}
            Err(kube::Error::Api(status)) if status.code == 409 => {
                return Err(JobError::Exists { object: description, job: job.clone() });
            }
            Err(source) => return Err(JobError::api(format!("create {description}"), source)),
        }
    }
    Ok(())
}

fn describe(object: &Value) -> String {
    let (kind, name) = kind_and_name(object);
    format!("{kind} {name}")
}

fn api_of(client: &Client, namespace: Option<&str>, resource: &ApiResource) -> Api<DynamicObject> {
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
        None => Api::all_with(client.clone(), resource),
    }
}
