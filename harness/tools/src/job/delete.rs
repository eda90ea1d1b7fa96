//! Removal of a Job, and of everything that its runs left.

use std::fmt::Debug;
use std::time::Duration;

use evictlab_cluster::wait::{self, Probe};
use evictlab_cluster::{ClusterClient, JobName};
use evictlab_report::words::count;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::error::JobError;
use super::manifest::GRACE_SECONDS;
use super::objects::{JOB_LABEL, MANAGED_BY_LABEL, MANAGER, cluster_name, job_label, pod_selector};

/// Maximum time without a change while the pods of the Job end.
const END_TIMEOUT: Duration = Duration::from_secs(GRACE_SECONDS as u64 + 60);
/// Maximum time without a change while a namespace is deleted.
const NAMESPACE_TIMEOUT: Duration = Duration::from_secs(120);

/// Deletes a Job and waits for its pods, which end their runs; then deletes what killed pods left,
/// and the other objects of the Job, each only if its label names the Job. Deletes the namespace if
/// evictlab created it and no Job remains in it. `step` receives a line for each object.
///
/// # Errors
/// The API server refuses or does not answer; pods of the Job remain.
pub async fn delete(cluster: &ClusterClient, job: &JobName, step: &dyn Fn(&str)) -> Result<(), JobError> {
    let client = &cluster.client;
    let jobs: Api<Job> = Api::namespaced(client.clone(), &job.namespace);
    let mut found = delete_labelled(&jobs, &job.name, job, step).await?;
    wait_for_pods(cluster, job).await?;
    let namespaces = cluster.remove_runs_of_job(job).await?;
    if namespaces > 0 {
        step(&format!("deleted {} of killed runs", count(namespaces, "namespace")));
    }
    let name = cluster_name(job);
    found |= delete_labelled(&Api::<ClusterRoleBinding>::all(client.clone()), &name, job, step).await?;
    found |= delete_labelled(&Api::<ClusterRole>::all(client.clone()), &name, job, step).await?;
    found |= delete_labelled(&Api::<PriorityClass>::all(client.clone()), &name, job, step).await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), &job.namespace);
    found |= delete_labelled(&accounts, &job.name, job, step).await?;
    if !found && namespaces == 0 {
        return Err(JobError::NoJob(job.clone()));
    }
    delete_namespace(cluster, job, step).await
}

/// Deletes an object whose label names the Job; returns whether it existed.
async fn delete_labelled<K>(
    api: &Api<K>,
    name: &str,
    job: &JobName,
    step: &dyn Fn(&str),
) -> Result<bool, JobError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let description = format!("{} {name}", K::kind(&()));
    let failed = |source| JobError::api(format!("delete {description}"), source);
    let found = api.get_opt(name).await.map_err(failed)?;
    if found.is_none_or(|found| found.labels().get(JOB_LABEL) != Some(&job_label(job))) {
        return Ok(false);
    }
    match api.delete(name, &DeleteParams::foreground()).await {
        Ok(_) => step(&format!("deleted {description}")),
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        Err(source) => return Err(failed(source)),
    }
    Ok(true)
}

async fn wait_for_pods(cluster: &ClusterClient, job: &JobName) -> Result<(), JobError> {
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), &job.namespace);
    let jobs: Api<Job> = Api::namespaced(cluster.client.clone(), &job.namespace);
    let params = ListParams::default().labels(&pod_selector(job));
    let waited = wait::until(END_TIMEOUT, Duration::from_secs(1), async || {
        let remaining = match (pods.list(&params).await, jobs.get_opt(&job.name).await) {
            (Err(error), _) | (_, Err(error)) => return Probe::Pending(error.to_string()),
            (Ok(pods), Ok(None)) => pods.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>(),
            (Ok(_), Ok(Some(job))) if job.meta().deletion_timestamp.is_none() => return Probe::Done(()),
            (Ok(pods), Ok(Some(_))) => {
                let names = pods.items.iter().map(ResourceExt::name_any);
                names.chain(["the job itself".to_owned()]).collect()
            }
        };
        match remaining.is_empty() {
            true => Probe::Done(()),
            false => Probe::Pending(format!("remaining: {}", remaining.join(", "))),
        }
    });
    waited.await.map_err(|stalled| JobError::Remains { job: job.clone(), stalled })
}

/// Deletes the namespace of the Job, and waits until it is gone, if evictlab created it for Jobs
/// and no Job and no pod remains.
async fn delete_namespace(
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
    if !found.as_ref().is_some_and(is_own) {
        return Ok(());
    }
    let jobs =
        Api::<Job>::namespaced(client.clone(), name).list(&ListParams::default()).await.map_err(failed)?;
    let pods =
        Api::<Pod>::namespaced(client.clone(), name).list(&ListParams::default()).await.map_err(failed)?;
    if !jobs.items.is_empty() || !pods.items.is_empty() {
        step(&format!("namespace {name} is kept: it contains other jobs or pods"));
        return Ok(());
    }
    match namespaces.delete(name, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
        deleted => deleted.map(drop).map_err(failed)?,
    }
    let waited = wait::until(NAMESPACE_TIMEOUT, Duration::from_millis(500), async || {
        match namespaces.get_opt(name).await {
            Ok(None) => Probe::Done(()),
            Ok(Some(_)) => Probe::Pending(format!("namespace {name} remains")),
            Err(error) => Probe::Pending(error.to_string()),
        }
    });
    waited.await.map_err(|stalled| JobError::Remains { job: job.clone(), stalled })?;
    step(&format!("deleted Namespace {name}"));
    Ok(())
}
