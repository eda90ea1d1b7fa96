//! Creation of a Job's objects.

use evictlab_cluster::workload::{api_resource, kind_and_name};
use evictlab_cluster::{ClusterClient, JobName};
use kube::api::{DynamicObject, PostParams};
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
    let (kind, name) = kind_and_name(object);
    format!("{kind} {name}")
}

fn api_of(client: &Client, object: &Value) -> Api<DynamicObject> {
    let resource = api_resource(object);
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}
