//! Deletion of the namespace of a Job.

use std::time::Duration;

use evictlab_cluster::workload::api_resource;
use evictlab_cluster::{ClusterClient, JobName};
use evictlab_report::words::first_of;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, DynamicObject, ListParams, Preconditions};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::json;

use super::error::JobError;
use super::gone::wait_until_gone;
use super::objects::{MANAGED_BY_LABEL, MANAGER};

/// Maximum time without a change while a namespace is deleted.
const NAMESPACE_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum number of objects that a message lists.
const MAX_NAMES: usize = 5;
/// Kinds of objects that somebody may have created in the namespace, with their versions.
const KINDS: [(&str, &str); 15] = [
    ("batch/v1", "Job"),
    ("v1", "Pod"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "ReplicaSet"),
    ("batch/v1", "CronJob"),
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("v1", "ServiceAccount"),
    ("v1", "PersistentVolumeClaim"),
    ("networking.k8s.io/v1", "Ingress"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
];

/// Deletes the namespace of the Job, and waits until it is gone, if it is labelled as one that
/// evictlab created for Jobs, and contains only what Kubernetes creates itself.
pub(super) async fn delete_namespace(
    cluster: &ClusterClient,
    job: &JobName,
    step: &dyn Fn(&str),
) -> Result<(), JobError> {
    let client = &cluster.client;
    let name = &job.namespace;
    let failed = |source| JobError::api(format!("delete namespace {name}"), source);
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let found = namespaces.get_opt(name).await.map_err(failed)?;
    let is_own = |found: &Namespace| found.labels().get(MANAGED_BY_LABEL).is_some_and(|by| by == MANAGER);
    let Some(found) = found.filter(is_own) else { return Ok(()) };
    match contents(client, name).await {
        Ok(contents) if contents.is_empty() => {}
        Ok(contents) => {
            step(&format!("namespace {name} is kept: it contains {}", first_of(&contents, MAX_NAMES)));
            return Ok(());
        }
        Err(kube::Error::Api(status)) if status.code == 403 => {
            step(&format!("namespace {name} is kept: its contents cannot be listed: {}", status.message));
            return Ok(());
        }
        Err(source) => return Err(failed(source)),
    }
    match namespaces.delete(name, &only(&found, DeleteParams::default())).await {
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => return Ok(()),
        deleted => deleted.map(drop).map_err(failed)?,
    }
    wait_until_gone(job, NAMESPACE_TIMEOUT, async || {
        let remaining = namespaces.get_opt(name).await?;
        Ok(remaining.map(|_| format!("namespace {name}")))
    })
    .await?;
    step(&format!("deleted Namespace {name}"));
    Ok(())
}

/// Restricts a deletion to this object: another one of its name is a conflict, 409.
pub(super) fn only(object: &impl Resource, parameters: DeleteParams) -> DeleteParams {
    let uid = object.meta().uid.clone();
    DeleteParams { preconditions: Some(Preconditions { uid, resource_version: None }), ..parameters }
}

/// Returns kind and name of the objects in a namespace, without those that Kubernetes creates in
/// every namespace, and those that are being deleted.
async fn contents(client: &Client, namespace: &str) -> Result<Vec<String>, kube::Error> {
    let mut contents = Vec::new();
    for (version, kind) in KINDS {
        let resource = api_resource(&json!({"apiVersion": version, "kind": kind}));
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
        let listed = match api.list(&ListParams::default()).await {
            Ok(listed) => listed.items,
            // The API server does not have the kind.
            Err(kube::Error::Api(status)) if status.code == 404 => continue,
            Err(error) => return Err(error),
        };
        let others = listed.iter().filter(|object| object.metadata.deletion_timestamp.is_none());
        let others = others.filter(|object| !is_of_kubernetes(kind, object));
        contents.extend(others.map(|object| format!("{kind} {}", object.name_any())));
    }
    Ok(contents)
}

/// Returns whether Kubernetes creates the object in every namespace.
fn is_of_kubernetes(kind: &str, object: &DynamicObject) -> bool {
    match kind {
        "ConfigMap" => object.name_any() == "kube-root-ca.crt",
        "ServiceAccount" => object.name_any() == "default",
        "Secret" => object.data["type"] == "kubernetes.io/service-account-token",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use evictlab_embedded::{Cluster, Options};
    use jiff::Timestamp;
    use tokio_util::task::AbortOnDropHandle;

    use super::*;

    /// `kubectl apply` of a manifest labels a namespace that exists.
    #[tokio::test(start_paused = true)]
    async fn a_namespace_with_objects_of_others_is_kept() {
        let cluster = Cluster::new(Options::new(0, Timestamp::UNIX_EPOCH, Vec::new())).unwrap();
        let client = Client::new(cluster.router(), "default");
        let _driver = AbortOnDropHandle::new(tokio::spawn(async move { cluster.live().await }));
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let labelled = json!({"metadata": {"name": "ci", "labels": {MANAGED_BY_LABEL: MANAGER}}});
        namespaces.create(&Default::default(), &serde_json::from_value(labelled).unwrap()).await.unwrap();
        let maps: Api<k8s_openapi::api::core::v1::ConfigMap> = Api::namespaced(client.clone(), "ci");
        let theirs = serde_json::from_value(json!({"metadata": {"name": "theirs"}})).unwrap();
        maps.create(&Default::default(), &theirs).await.unwrap();

        let cluster = ClusterClient { name: "c".to_owned(), server: String::new(), client };
        let job = JobName { namespace: "ci".to_owned(), name: "nightly".to_owned() };
        let steps = RefCell::new(Vec::new());
        let step = |text: &str| steps.borrow_mut().push(text.to_owned());
        delete_namespace(&cluster, &job, &step).await.unwrap();
        assert!(maps.get_opt("theirs").await.unwrap().is_some());
        maps.delete("theirs", &Default::default()).await.unwrap();
        delete_namespace(&cluster, &job, &step).await.unwrap();
        assert!(namespaces.get_opt("ci").await.unwrap().is_none());
        assert_eq!(
            *steps.borrow(),
            ["namespace ci is kept: it contains ConfigMap theirs", "deleted Namespace ci"]
        );
    }
}
