//! Deletion of the namespace of a Job.

use std::time::Duration;

use evictlab_cluster::{ClusterClient, JobName, Typed};
use evictlab_report::text::first_of;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, DynamicObject, ListParams, Preconditions};
use kube::discovery::{ApiCapabilities, ApiGroup, Discovery, Scope, verbs};
use kube::{Api, Client, Resource, ResourceExt};

use super::error::JobError;
use super::gone::wait_until_gone;
use super::labels::{MANAGED_BY_LABEL, MANAGER};

/// Maximum time without a change while a namespace is deleted.
const NAMESPACE_TIMEOUT: Duration = Duration::from_secs(120);
/// Annotation of a token; its value is the name of the service account.
const SERVICE_ACCOUNT_ANNOTATION: &str = "kubernetes.io/service-account.name";
/// Maximum number of objects that a message lists.
const MAX_NAMES: usize = 5;
/// API groups whose objects are made by Kubernetes: figures of pods, and events, which the core
/// group has, too.
const GROUPS_OF_KUBERNETES: [&str; 2] = ["metrics.k8s.io", "events.k8s.io"];

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
    let namespaces: Api<Typed<Namespace>> = Api::all(client.clone());
    let found = namespaces.get_opt(name).await.map_err(failed)?;
    let is_own =
        |found: &Typed<Namespace>| found.labels().get(MANAGED_BY_LABEL).is_some_and(|by| by == MANAGER);
    let Some(found) = found.filter(is_own) else { return Ok(()) };
    match contents(client, name).await {
        Ok(contents) if contents.is_empty() => {}
        Ok(contents) => {
            step(&format!("namespace {name} is kept: it contains {}", first_of(&contents, MAX_NAMES)));
            return Ok(());
        }
        Err(kube::Error::Api(status)) => {
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

/// Returns kind and name of the objects in a namespace, of all kinds that the API server has,
/// without those that Kubernetes creates in every namespace, and those that are being deleted.
async fn contents(client: &Client, namespace: &str) -> Result<Vec<String>, kube::Error> {
    let discovery = Discovery::new(client.clone()).exclude(&GROUPS_OF_KUBERNETES).run().await?;
    let kinds = discovery.groups().flat_map(ApiGroup::resources_by_stability);
    let is_listed = |capabilities: &ApiCapabilities| {
        capabilities.scope == Scope::Namespaced && capabilities.supports_operation(verbs::LIST)
    };
    let mut contents = Vec::new();
    for (resource, _) in kinds.filter(|(_, capabilities)| is_listed(capabilities)) {
        let kind = resource.kind.as_str();
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
        let listed = match api.list_metadata(&ListParams::default()).await {
            Ok(listed) => listed.items,
            // The kind was deleted meanwhile.
            Err(kube::Error::Api(status)) if status.code == 404 => continue,
            Err(error) => return Err(error),
        };
        let others = listed.iter().map(|object| &object.metadata);
        let others = others.filter(|meta| meta.deletion_timestamp.is_none() && !is_of_kubernetes(kind, meta));
        let name = |meta: &ObjectMeta| meta.name.clone().unwrap_or_default();
        contents.extend(others.map(|meta| format!("{kind} {}", name(meta))));
    }
    contents.sort();
    Ok(contents)
}

/// Returns whether Kubernetes creates the object in every namespace, or for a service account.
fn is_of_kubernetes(kind: &str, meta: &ObjectMeta) -> bool {
    let name = meta.name.as_deref().unwrap_or_default();
    match kind {
        "ConfigMap" => name == "kube-root-ca.crt",
        "ServiceAccount" => name == "default",
        "Secret" => is_generated_token(name, meta),
        "Event" => true,
        _ => false,
    }
}

/// Returns whether a Secret is the token that Kubernetes before 1.24 generates for each service
/// account. One that a user created for an account is not.
fn is_generated_token(name: &str, meta: &ObjectMeta) -> bool {
    const SUFFIX_LENGTH: usize = 5;
    let annotations = meta.annotations.iter().flatten();
    let mut accounts = annotations.filter(|(key, _)| *key == SERVICE_ACCOUNT_ANNOTATION);
    accounts.any(|(_, account)| {
        let suffix = name.strip_prefix(account.as_str()).and_then(|rest| rest.strip_prefix("-token-"));
        suffix.is_some_and(|suffix| suffix.len() == SUFFIX_LENGTH)
    })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use evictlab_embedded::{Cluster, ClusterOptions};
    use jiff::Timestamp;
    use kube::client::Body;
    use serde_json::{Value, json};
    use tokio_util::task::AbortOnDropHandle;

    use super::*;

    /// `kubectl apply` of a manifest labels a namespace that exists.
    #[tokio::test(start_paused = true)]
    async fn a_namespace_with_objects_of_others_is_kept() {
        let cluster = Cluster::new(ClusterOptions::new(0, Timestamp::UNIX_EPOCH, Vec::new())).unwrap();
        let client = Client::new(cluster.router(), "default");
        let _driver = AbortOnDropHandle::new(tokio::spawn(async move { cluster.drive().await }));
        let namespaces: Api<Typed<Namespace>> = Api::all(client.clone());
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

    /// A client of a cluster in which a namespace contains one object. Its API server has these
    /// resources, each with its API version and kind; lists of metrics fail.
    fn with_object(resource: &'static str, object: Value) -> Client {
        const SERVED_RESOURCES: [(&str, &str, &str); 8] = [
            ("v1", "ResourceQuota", "resourcequotas"),
            ("v1", "Secret", "secrets"),
            ("v1", "Event", "events"),
            ("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
            ("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
            ("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
            ("example.org/v1alpha1", "Widget", "widgets"),
            ("metrics.k8s.io/v1beta1", "PodMetrics", "pods"),
        ];
        let resources_of = |version: &str| {
            let of_version =
                SERVED_RESOURCES.iter().filter(|(resource_version, ..)| *resource_version == version);
            let described = of_version.map(|(_, kind, name)| {
                json!({"name": name, "singularName": "", "namespaced": true, "kind": kind, "verbs": ["list"]})
            });
            json!({"groupVersion": version, "resources": described.collect::<Vec<_>>()})
        };
        let group = |version: &str| {
            let name = version.split('/').next();
            let version = json!({"groupVersion": version, "version": version.split('/').nth(1)});
            json!({"name": name, "versions": [version], "preferredVersion": version})
        };
        let versions: std::collections::BTreeSet<&str> =
            SERVED_RESOURCES.iter().map(|(version, ..)| *version).collect();
        let answer = move |path: &str| match path.trim_start_matches('/') {
            "api" => json!({"versions": ["v1"], "serverAddressByClientCIDRs": []}),
            "apis" => {
                let groups = versions.iter().filter(|version| version.contains('/'));
                json!({"groups": groups.map(|version| group(version)).collect::<Vec<_>>()})
            }
            "api/v1/namespaces/ci" => {
                json!({"metadata": {"name": "ci", "uid": "u", "labels": {MANAGED_BY_LABEL: MANAGER}}})
            }
            path if path.contains("/namespaces/ci/") => {
                let is_asked = path.ends_with(&format!("/{resource}"));
                json!({"metadata": {}, "items": if is_asked { vec![object.clone()] } else { Vec::new() }})
            }
            path => resources_of(path.trim_start_matches("apis/").trim_start_matches("api/")),
        };
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let (path, is_get) = (request.uri().path(), request.method() == http::Method::GET);
            let is_metrics = path.starts_with("/apis/metrics.k8s.io/");
            let status = match (is_metrics, is_get) {
                (true, _) => 503,
                (false, true) => 200,
                // The deletion of the namespace finds that it is gone.
                (false, false) => 404,
            };
            let body = match status {
                200 => answer(path),
                code => json!({"kind": "Status", "status": "Failure", "message": "no", "code": code}),
            };
            let response =
                http::Response::builder().status(status).body(Body::from(body.to_string().into_bytes()));
            async move { response }
        });
        Client::new(service, "default")
    }

    #[tokio::test]
    async fn objects_of_all_kinds_keep_a_namespace() {
        let plain = || json!({"metadata": {"name": "theirs"}});
        let token = |name: &str| {
            let annotations = json!({SERVICE_ACCOUNT_ANNOTATION: "default"});
            json!({"metadata": {"name": name, "annotations": annotations}})
        };
        let rows = [
            ("resourcequotas", plain(), "ResourceQuota theirs"),
            ("networkpolicies", plain(), "NetworkPolicy theirs"),
            ("horizontalpodautoscalers", plain(), "HorizontalPodAutoscaler theirs"),
            ("poddisruptionbudgets", plain(), "PodDisruptionBudget theirs"),
            ("widgets", plain(), "Widget theirs"),
            ("secrets", token("theirs"), "Secret theirs"),
            ("secrets", token("default-token-x7k2p"), ""),
            ("events", plain(), ""),
        ];
        for (resource, object, expected) in rows {
            let contents = contents(&with_object(resource, object), "ci").await.unwrap();
            assert_eq!(contents.join(", "), expected, "{resource}");
        }
    }
}
