//! Removal of a Job, and of everything that its runs left.

use std::fmt::Debug;
use std::time::Duration;

use evictlab_cluster::{ClusterClient, JobName, Typed};
use evictlab_report::text::count_noun;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::error::JobError;
use super::gone::wait_until_gone;
use super::labels::{JOB_LABEL, cluster_name, job_label, pod_selector};
use super::namespace::{delete_namespace, only};
use super::objects::GRACE_SECONDS;

/// Maximum time without a change while the pods of the Job end.
const END_TIMEOUT: Duration = Duration::from_secs(GRACE_SECONDS as u64 + 60);

/// Deletes a Job and waits for its pods, which end their runs; then deletes what killed pods left,
/// and the other objects of the Job, each only if its label names the Job. Deletes the namespace if
/// evictlab created it and nothing else is in it. `step` receives a line for each object.
///
/// # Errors
/// The API server refuses or does not answer; pods of the Job remain.
pub async fn delete(cluster: &ClusterClient, job: &JobName, step: &dyn Fn(&str)) -> Result<(), JobError> {
    let client = &cluster.client;
    let jobs: Api<Typed<Job>> = Api::namespaced(client.clone(), &job.namespace);
    let mut found = delete_labelled(&jobs, &job.name, job, step).await?;
    wait_for_pods(cluster, job).await?;
    let namespaces = cluster.remove_runs_of_job(job).await?;
    if namespaces > 0 {
        step(&format!("deleted {} of killed runs", count_noun(namespaces, "namespace")));
    }
    let name = cluster_name(job);
    found |=
        delete_labelled(&Api::<Typed<ClusterRoleBinding>>::all(client.clone()), &name, job, step).await?;
    found |= delete_labelled(&Api::<Typed<ClusterRole>>::all(client.clone()), &name, job, step).await?;
    found |= delete_labelled(&Api::<Typed<PriorityClass>>::all(client.clone()), &name, job, step).await?;
    let accounts: Api<Typed<ServiceAccount>> = Api::namespaced(client.clone(), &job.namespace);
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
    let is_own = |found: &K| found.labels().get(JOB_LABEL) == Some(&job_label(job));
    let Some(found) = found.filter(is_own) else { return Ok(false) };
    match api.delete(name, &only(&found, DeleteParams::foreground())).await {
        Ok(_) => step(&format!("deleted {description}")),
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        // Another object has the name meanwhile.
        Err(kube::Error::Api(status)) if status.code == 409 => return Ok(false),
        Err(source) => return Err(failed(source)),
    }
    Ok(true)
}

async fn wait_for_pods(cluster: &ClusterClient, job: &JobName) -> Result<(), JobError> {
    let pods: Api<Typed<Pod>> = Api::namespaced(cluster.client.clone(), &job.namespace);
    let jobs: Api<Typed<Job>> = Api::namespaced(cluster.client.clone(), &job.namespace);
    let params = ListParams::default().labels(&pod_selector(job));
    wait_until_gone(job, END_TIMEOUT, async || {
        let (listed, found) = (pods.list(&params).await?, jobs.get_opt(&job.name).await?);
        if found.as_ref().is_some_and(|found| found.meta().deletion_timestamp.is_none()) {
            return Ok(None);
        }
        let names = listed.items.iter().map(ResourceExt::name_any);
        let names: Vec<String> = names.chain(found.map(|_| "the job itself".to_owned())).collect();
        Ok((!names.is_empty()).then(|| names.join(", ")))
    })
    .await
}
