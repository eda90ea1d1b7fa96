//! Names and labels of a Job's objects.

use std::collections::BTreeMap;

use evictlab_cluster::JobName;

/// Name of the container.
pub(super) const COMPONENT: &str = "evictlab";
/// Label of objects that evictlab created, with [`MANAGER`].
pub(super) const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
/// Value of [`MANAGED_BY_LABEL`].
pub(super) const MANAGER: &str = "evictlab";
/// Label of the objects of a Job; its value is namespace and name.
pub(super) const JOB_LABEL: &str = "evictlab.dev/job";

/// Value of [`JOB_LABEL`].
pub(super) fn job_label(job: &JobName) -> String {
    format!("{}.{}", job.namespace, job.name)
}

/// Labels of the objects of a Job.
pub(super) fn labels(job: &JobName) -> BTreeMap<String, String> {
    [(MANAGED_BY_LABEL, MANAGER.to_owned()), (JOB_LABEL, job_label(job))]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
}

/// Name of the objects outside of namespaces.
pub(super) fn cluster_name(job: &JobName) -> String {
    format!("{}-{}", job.namespace, job.name)
}

/// Selects the pods of a Job.
pub(super) fn pod_selector(job: &JobName) -> String {
    format!("batch.kubernetes.io/job-name={}", job.name)
}
