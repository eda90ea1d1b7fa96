//! The end of what controllers create again, in case the run was killed.

use std::time::Duration;

use evictlab_case::EXPIRY_NAME;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::json;

use super::namespace::{Namespace, StageError};
use super::objects::uid_of;

impl Namespace {
    /// Creates a Job without pods, which fails after `lifetime`. The cluster then deletes it at
    /// once, with the objects that it owns. Returns the reference to it as an owner.
    ///
    /// # Errors
    /// The API server refused the Job.
    pub async fn create_expiry(&self, lifetime: Duration) -> Result<OwnerReference, StageError> {
        let containers = json!([{"name": "none", "image": "none"}]);
        let job = json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": EXPIRY_NAME},
            "spec": {
                "parallelism": 0,
                "activeDeadlineSeconds": lifetime.as_secs(),
                "ttlSecondsAfterFinished": 0,
                "template": {"spec": {"restartPolicy": "Never", "containers": containers}},
            },
        });
        let created = self.create_object(&job).await?;
        Ok(OwnerReference {
            api_version: "batch/v1".to_owned(),
            kind: "Job".to_owned(),
            name: EXPIRY_NAME.to_owned(),
            uid: uid_of(&created).unwrap_or_default().to_owned(),
            ..OwnerReference::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use evictlab_embedded::{Cluster, ClusterOptions, NodeOptions};
    use jiff::Timestamp;
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::Pod;
    use kube::api::ListParams;
    use kube::{Api, Client};
    use tokio_util::task::AbortOnDropHandle;

    use super::*;
    use crate::workload::{NamespaceGuards, NamespacePurpose, Placement, object_manifest};

    /// A run that is killed leaves a Deployment, which creates evicted pods again.
    #[tokio::test]
    async fn a_deployment_ends_without_its_run() {
        let now = Timestamp::now();
        let node = NodeOptions::new("n1".to_owned(), "v1.33.12".parse().unwrap());
        let cluster = Cluster::new(ClusterOptions::new(0, now, vec![node])).unwrap();
        let client = Client::new(cluster.router(), "default");
        let _driver = AbortOnDropHandle::new(tokio::spawn(async move { cluster.drive().await }));
        let purpose = NamespacePurpose::Pods("storm");
        let namespace = Namespace::create(&client, "run", purpose, NamespaceGuards::default()).await.unwrap();
        let expiry = namespace.create_expiry(Duration::from_secs(2)).await.unwrap();
        let image = |name: &str| name.to_owned();
        let placement =
            Placement { expiry: Some(&expiry), ..Placement::bound(&namespace.name, "n1", &image) };
        let written = json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "storm"},
            "spec": {
                "selector": {"matchLabels": {"app": "storm"}},
                "template": {
                    "metadata": {"labels": {"app": "storm"}},
                    "spec": {"containers": [
                        {"name": "c", "image": "registry.k8s.io/e2e-test-images/agnhost:2.52", "args": ["pause"]},
                    ]},
                },
            },
        });
        namespace.create_object(&object_manifest(written.as_object().unwrap(), &placement)).await.unwrap();
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), &namespace.name);
        let pods: Api<Pod> = Api::namespaced(client, &namespace.name);
        let pods = async || pods.list(&ListParams::default()).await.unwrap().items.len();
        let mut seen = 0;
        while deployments.get_opt("storm").await.unwrap().is_some() || pods().await > 0 {
            seen = seen.max(pods().await);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(seen, 1, "the Deployment had a pod");
    }
}
