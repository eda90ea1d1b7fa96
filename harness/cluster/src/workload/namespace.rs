//! The namespace of a case.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use evictlab_case::{QUOTA_NAME, case_name};
use http::Request;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace as ApiNamespace, Pod};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use super::grace_period::GracePeriod;
use crate::api_error::{api_error_message, is_busy, is_temporary_status, is_unavailable};
use crate::owner::Owner;
use crate::typed::Typed;
use crate::wait::{self, OUTAGE_TIMEOUT, Poll, StalledError, retry_while, retry_while_unavailable};

/// Start of the names of namespaces.
const NAMESPACE_PREFIX: &str = "evictlab-";
/// Label of namespaces and Leases; its value is the run.
pub(crate) const RUN_LABEL: &str = "evictlab.dev/run";
/// Label of the namespace with the Lease of a run; its value is `true`.
const LEASE_LABEL: &str = "evictlab.dev/lease";
/// Label by which the API server enforces a Pod Security Standard.
const POD_SECURITY_LABEL: &str = "pod-security.kubernetes.io/enforce";
/// Annotation of namespaces and Leases; its value is the owner as JSON.
pub(crate) const OWNER_ANNOTATION: &str = "evictlab.dev/owner";

/// An operation on the objects of a case failed.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// The API server rejected an object or its change.
    #[error("failed to {verb} {object}: the API server rejected it: {}", status.message)]
    Rejected {
        /// Verb, such as `create`.
        verb: &'static str,
        /// Kind and name of the object, such as `pod alloc`.
        object: String,
        /// Response of the API server.
        status: Box<kube::core::Status>,
    },
    /// The API server did not answer, or refused the request.
    #[error("failed to {operation}: {}", api_error_message(source))]
    Api {
        /// Verb phrase of the request.
        operation: String,
        /// Error of the client.
        source: Box<kube::Error>,
    },
    /// kube-controller-manager has not prepared a new namespace: it has no default service account,
    /// or its quota has no status.
    #[error("failed to wait until namespace {namespace} accepts pods: {stalled}")]
    NamespaceNotReady {
        /// Name of the namespace.
        namespace: String,
        /// Last observation.
        #[source]
        stalled: StalledError,
    },
    /// Deleted pods remain.
    #[error("failed to wait for the deletion of the pods of namespace {namespace}: {stalled}")]
    PodsRemain {
        /// Name of the namespace.
        namespace: String,
        /// Last observation.
        #[source]
        stalled: StalledError,
    },
}

impl StageError {
    /// Returns whether the API server did not answer, or answered with an error that may pass.
    pub(crate) fn is_unavailable(&self) -> bool {
        match self {
            Self::Rejected { status, .. } => is_temporary_status(status.code),
            Self::Api { source, .. } => is_unavailable(source),
            Self::NamespaceNotReady { .. } | Self::PodsRemain { .. } => false,
        }
    }
}

/// Maximum time until a new namespace accepts pods. On a slow host kube-controller-manager may lose
/// its lease and restart.
const READY_TIMEOUT: Duration = Duration::from_secs(180);

/// Maximum time for which a request is sent again while the API server is busy. It asks clients to
/// come back after a second.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Guards of a namespace in a cluster that evictlab does not manage, enforced by the API server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamespaceGuards {
    /// Rejects pods with privileges beyond the Pod Security Standard `baseline`.
    pub baseline_pods_only: bool,
    /// Maximum number of pods, including pods that ended. It ends a loop of evictions whose run was
    /// killed.
    pub max_pods: Option<u32>,
}

/// Labels and annotations of a namespace that a run created.
#[derive(Clone, Debug)]
pub struct NamespaceRecord {
    /// Id of the run.
    pub run: String,
    /// Owner, if the annotation is present and valid.
    pub owner: Option<Owner>,
    /// Creation time.
    pub created: Option<Timestamp>,
}

impl NamespaceRecord {
    fn of(found: &ApiNamespace) -> Self {
        let owner = found.annotations().get(OWNER_ANNOTATION);
        Self {
            run: found.labels().get(RUN_LABEL).cloned().unwrap_or_default(),
            owner: owner.and_then(|owner| serde_json::from_str(owner).ok()),
            created: found.creation_timestamp().map(|time| time.0),
        }
    }
}

/// Purpose of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespacePurpose<'a> {
    /// The pods of a case with this name, or of another part of a run.
    Pods(&'a str),
    /// The Lease of a run.
    Lease,
}

/// A namespace that evictlab created.
#[derive(Clone)]
pub struct Namespace {
    /// Name of the namespace.
    pub name: String,
    /// UID of the namespace.
    pub(super) uid: String,
    /// True if it has the Lease of its run.
    pub(crate) has_lease: bool,
    pub(super) client: Client,
}

impl Namespace {
    /// A namespace that exists.
    #[cfg(test)]
    pub(crate) fn with_client(name: &str, client: Client) -> Self {
        Self { name: name.to_owned(), uid: String::new(), has_lease: false, client }
    }

    fn of(object: &ApiNamespace, client: &Client) -> Self {
        Self {
            name: object.name_any(),
            uid: object.uid().unwrap_or_default(),
            has_lease: object.labels().contains_key(LEASE_LABEL),
            client: client.clone(),
        }
    }

    /// Returns whether a namespace has a name that evictlab gives.
    pub fn is_own_name(name: &str) -> bool {
        name.starts_with(NAMESPACE_PREFIX)
    }

    /// Returns the namespaces of these names that a run has created: a name alone proves nothing.
    pub(crate) async fn own_among(
        client: &Client,
        mut names: BTreeSet<String>,
    ) -> Result<BTreeSet<String>, kube::Error> {
        names.retain(|name| Self::is_own_name(name));
        let api: Api<Typed<ApiNamespace>> = Api::all(client.clone());
        let mut own = BTreeSet::new();
        for name in names {
            let of_run = ListParams::default().labels(RUN_LABEL).fields(&format!("metadata.name={name}"));
            if !api.list(&of_run).await?.items.is_empty() {
                own.insert(name);
            }
        }
        Ok(own)
    }

    /// Creates a namespace with a unique name.
    pub async fn create(
        client: &Client,
        run: &str,
        purpose: NamespacePurpose<'_>,
        guards: NamespaceGuards,
    ) -> Result<Self, StageError> {
        let (name, is_for_lease) = match purpose {
            NamespacePurpose::Pods(name) => (name, false),
            NamespacePurpose::Lease => ("nodes", true),
        };
        let prefix: String = format!("{NAMESPACE_PREFIX}{name}").chars().take(50).collect();
        let mut labels = labels(run, guards);
        if is_for_lease {
            labels.insert(LEASE_LABEL.to_owned(), "true".to_owned());
        }
        let object: ApiNamespace = ApiNamespace {
            metadata: kube::core::ObjectMeta {
                generate_name: Some(format!("{}-", prefix.trim_end_matches('-'))),
                labels: Some(labels),
                annotations: Some([(OWNER_ANNOTATION.to_owned(), Owner::current().to_json())].into()),
                ..Default::default()
            },
            ..Default::default()
        };
        let api: Api<Typed<ApiNamespace>> = Api::all(client.clone());
        let created = api
            .create(&PostParams::default(), &Typed(object))
            .await
            .map_err(|source| api_error("create a namespace", source))?;
        let namespace = Self::of(&created, client);
        if let Some(max_pods) = guards.max_pods {
            namespace.create_quota(max_pods).await?;
        }
        Ok(namespace)
    }

    async fn create_quota(&self, max_pods: u32) -> Result<(), StageError> {
        let quota = json!({
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": QUOTA_NAME},
            "spec": {"hard": {"count/pods": max_pods.to_string()}},
        });
        self.create_object(&quota).await.map(drop)
    }

    /// API client of the cluster.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Lists the namespaces of a run, or of all runs.
    pub async fn list(client: &Client, run: Option<&str>) -> Result<Vec<Self>, StageError> {
        let label = run.map_or(RUN_LABEL.to_owned(), |run| format!("{RUN_LABEL}={run}"));
        let listed = list_labelled(client, &label).await?;
        Ok(listed.iter().map(|found| Self::of(found, client)).collect())
    }

    /// Lists the namespaces of all runs, each with its run.
    pub(crate) async fn list_with_runs(client: &Client) -> Result<BTreeMap<String, String>, kube::Error> {
        runs_by_namespace(client, RUN_LABEL).await
    }

    /// Lists the namespaces with the Leases of all runs, each with its run.
    pub(crate) async fn list_of_leases(client: &Client) -> Result<BTreeMap<String, String>, kube::Error> {
        runs_by_namespace(client, &format!("{RUN_LABEL},{LEASE_LABEL}")).await
    }

    /// Lists the namespaces of a run as lines, which state why the API server cannot remove them.
    pub(crate) async fn list_obstacles(client: &Client, run: &str) -> Result<Vec<String>, StageError> {
        let listed = list_labelled(client, &format!("{RUN_LABEL}={run}")).await?;
        Ok(listed.iter().map(|namespace| with_obstacles(namespace)).collect())
    }

    /// Lists the labels and annotations of the namespaces of all runs.
    pub async fn list_records(client: &Client) -> Result<Vec<NamespaceRecord>, StageError> {
        Ok(list_labelled(client, RUN_LABEL).await?.iter().map(|found| NamespaceRecord::of(found)).collect())
    }

    /// Lists the namespaces of all runs with their labels and annotations.
    pub(crate) async fn list_with_records(
        client: &Client,
    ) -> Result<Vec<(Self, NamespaceRecord)>, StageError> {
        let listed = list_labelled(client, RUN_LABEL).await?;
        Ok(listed.iter().map(|found| (Self::of(found, client), NamespaceRecord::of(found))).collect())
    }

    /// Creates a pod with strict field validation; returns the pod with its defaults.
    pub async fn create_pod(&self, manifest: &Value) -> Result<Value, StageError> {
        let name = manifest.as_object().and_then(case_name).unwrap_or_default();
        let path = format!("/api/v1/namespaces/{}/pods?fieldValidation=Strict", self.name);
        // The API server rejects pods until the namespace has its default service account, and
        // until the quota controller has counted its pods.
        const NOT_YET: [&str; 2] = ["serviceaccount \"default\" not found", "status unknown for quota"];
        let created = wait::until(READY_TIMEOUT, Duration::from_millis(100), async || {
            match self.send(Request::post(&path), "application/json", manifest).await {
                Err(kube::Error::Api(status))
                    if NOT_YET.iter().any(|reason| status.message.contains(reason)) =>
                {
                    Poll::Pending(status.message.clone())
                }
                response => Poll::Done(response),
            }
        })
        .await;
        match created {
            Ok(response) => response.map_err(|source| refused("create", &format!("pod {name}"), source)),
            Err(stalled) => Err(StageError::NamespaceNotReady { namespace: self.name.clone(), stalled }),
        }
    }

    /// Adds an ephemeral container to a pod.
    pub async fn add_ephemeral_container(&self, pod: &str, container: &Value) -> Result<Value, StageError> {
        let path =
            format!("/api/v1/namespaces/{}/pods/{pod}/ephemeralcontainers?fieldValidation=Strict", self.name);
        let patch = json!({"spec": {"ephemeralContainers": [container]}});
        let name = container["name"].as_str().unwrap_or_default();
        self.send(Request::patch(path), "application/strategic-merge-patch+json", &patch)
            .await
            .map_err(|source| refused("create", &format!("ephemeral container {name} of pod {pod}"), source))
    }

    /// Deletes the namespace and, with grace period 0, its pods. Returns when the pods are gone;
    /// the namespace itself remains for some seconds.
    ///
    /// # Errors
    /// The API server refused a request or was unavailable for `timeout`, or the pods have not
    /// changed for `timeout`.
    pub async fn delete(&self, timeout: Duration) -> Result<(), StageError> {
        // The namespace first: controllers do not replace pods in a namespace that is being
        // deleted.
        let api: Api<Typed<ApiNamespace>> = Api::all(self.client.clone());
        let delete = async || api.delete(&self.name, &DeleteParams::default()).await;
        match retry_while_unavailable(timeout, delete).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
            Err(source) => return Err(api_error("delete the namespace", source)),
        }
        let pods: Api<Typed<Pod>> = Api::namespaced(self.client.clone(), &self.name);
        let now = delete_now();
        let delete = async || pods.delete_collection(&now, &ListParams::default()).await;
        retry_while_unavailable(timeout, delete)
            .await
            .map_err(|source| api_error("delete the pods", source))?;
        wait::until(timeout, Duration::from_millis(200), async || {
            match pods.list(&ListParams::default()).await {
                Ok(listed) if listed.items.is_empty() => Poll::Done(Ok(())),
                Ok(listed) => Poll::Pending(
                    listed.iter().map(|pod| with_finalizers(pod)).collect::<Vec<_>>().join(", "),
                ),
                Err(error) if is_unavailable(&error) => Poll::Pending(api_error_message(&error)),
                Err(source) => Poll::Done(Err(api_error("list the pods", source))),
            }
        })
        .await
        .map_err(|stalled| StageError::PodsRemain { namespace: self.name.clone(), stalled })?
    }

    /// Deletes a pod with grace period 0. A pod that does not exist is not an error.
    ///
    /// # Errors
    /// The API server refused the request, or was unavailable for [`OUTAGE_TIMEOUT`].
    pub(crate) async fn delete_pod_now(&self, pod: &str) -> Result<(), StageError> {
        let pods: Api<Typed<Pod>> = Api::namespaced(self.client.clone(), &self.name);
        let now = delete_now();
        let delete = async || pods.delete(pod, &now).await;
        match retry_while_unavailable(OUTAGE_TIMEOUT, delete).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(source) => Err(api_error(&format!("delete pod {pod}"), source)),
        }
    }

    /// Sends a request, again while the server is busy and has not carried it out, for up to
    /// [`BUSY_TIMEOUT`]. After another error, 504 too, the server may have carried out the request,
    /// and would refuse to create an object twice.
    pub(super) async fn send(
        &self,
        request: http::request::Builder,
        content: &str,
        body: &Value,
    ) -> Result<Value, kube::Error> {
        let body = serde_json::to_vec(body).map_err(kube::Error::SerdeError)?;
        let request = request.header("Content-Type", content).body(body).map_err(kube::Error::HttpError)?;
        retry_while(BUSY_TIMEOUT, is_busy, async || self.client.request(request.clone()).await).await
    }
}

/// Parameters of the deletion of pods whose processes are killed at once.
fn delete_now() -> DeleteParams {
    DeleteParams { grace_period_seconds: Some(GracePeriod::NONE.seconds()), ..DeleteParams::default() }
}

fn labels(run: &str, guards: NamespaceGuards) -> BTreeMap<String, String> {
    let enforced = guards.baseline_pods_only.then_some((POD_SECURITY_LABEL, "baseline"));
    let labels = [(RUN_LABEL, run)].into_iter().chain(enforced);
    labels.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Lists the namespaces that have a label and a name as evictlab gives them: labels are copied with
/// manifests.
async fn list_labelled(client: &Client, label: &str) -> Result<Vec<Typed<ApiNamespace>>, StageError> {
    list_own(client, label).await.map_err(|source| api_error("list namespaces", source))
}

async fn list_own(client: &Client, label: &str) -> Result<Vec<Typed<ApiNamespace>>, kube::Error> {
    let api: Api<Typed<ApiNamespace>> = Api::all(client.clone());
    let mut namespaces = api.list(&ListParams::default().labels(label)).await?.items;
    namespaces.retain(|namespace| Namespace::is_own_name(&namespace.name_any()));
    Ok(namespaces)
}

async fn runs_by_namespace(client: &Client, label: &str) -> Result<BTreeMap<String, String>, kube::Error> {
    let listed = list_own(client, label).await?;
    let with_run =
        |found: &Typed<ApiNamespace>| Some((found.name_any(), found.labels().get(RUN_LABEL)?.clone()));
    Ok(listed.iter().filter_map(with_run).collect())
}

/// Returns the name of an object, and the finalizers that keep it.
fn with_finalizers(object: &Pod) -> String {
    match object.finalizers() {
        [] => object.name_any(),
        finalizers => format!("{} (kept by the finalizers {})", object.name_any(), finalizers.join(", ")),
    }
}

/// Returns the name of a namespace that is being deleted, and what its controller waits for.
fn with_obstacles(namespace: &ApiNamespace) -> String {
    let conditions = namespace.status.as_ref().and_then(|status| status.conditions.as_deref());
    let holds = conditions.unwrap_or_default().iter().filter(|condition| condition.status == "True");
    let messages: Vec<&str> = holds.filter_map(|condition| condition.message.as_deref()).collect();
    match &messages[..] {
        [] => namespace.name_any(),
        messages => format!("{} ({})", namespace.name_any(), messages.join("; ")),
    }
}

pub(super) fn api_error(operation: &str, source: kube::Error) -> StageError {
    StageError::Api { operation: operation.to_owned(), source: Box::new(source) }
}

pub(super) fn refused(verb: &'static str, object: &str, source: kube::Error) -> StageError {
    match source {
        // The server is busy or failed; the object may be valid.
        kube::Error::Api(status) if !is_temporary_status(status.code) => {
            StageError::Rejected { verb, object: object.to_owned(), status }
        }
        source => api_error(&format!("{verb} {object}"), source),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// An API server that answers the first `busy` requests with this status.
    fn busy_server(busy: u32, code: u16, requests: &'static AtomicU32) -> Namespace {
        let busy_answer = json!({"kind": "Status", "status": "Failure", "message": "busy", "code": code});
        server(busy, busy_answer, json!({"kind": "Pod", "metadata": {"name": "p"}}), requests)
    }

    /// An API server that answers the first `busy` requests with a Status, and the others with an
    /// object.
    fn server(busy: u32, status: Value, object: Value, requests: &'static AtomicU32) -> Namespace {
        requests.store(0, Ordering::Relaxed);
        let (status, object) = (Arc::new(status), Arc::new(object));
        let service = tower::service_fn(move |_: http::Request<kube::client::Body>| {
            let is_busy = requests.fetch_add(1, Ordering::Relaxed) < busy;
            let body = if is_busy { status.clone() } else { object.clone() };
            async move {
                let code = body["code"].as_u64().unwrap_or(200) as u16;
                let body = kube::client::Body::from(body.to_string().into_bytes());
                http::Response::builder().status(code).body(body)
            }
        });
        Namespace::with_client("evictlab-a", Client::new(service, "default"))
    }

    /// A case must not report the answer of a busy server as a rejection of its object.
    #[tokio::test(start_paused = true)]
    async fn a_busy_server_is_asked_again_and_has_not_rejected_the_object() {
        static REQUESTS: AtomicU32 = AtomicU32::new(0);
        let pod = json!({"kind": "Pod", "metadata": {"name": "p"}});
        // Busy answers, their status, whether the pod is created, and whether the error may pass.
        let rows = [
            (5, 429, Ok(())),
            (5, 503, Ok(())),
            (u32::MAX, 429, Err(true)),
            (u32::MAX, 503, Err(true)),
            (1, 500, Err(true)),
            (1, 409, Err(false)),
        ];
        for (busy, code, expected) in rows {
            let created = busy_server(busy, code, &REQUESTS).create_pod(&pod).await;
            let result = created.map(drop).map_err(|error| matches!(error, StageError::Api { .. }));
            assert_eq!(result, expected, "{code}");
            let is_repeated = REQUESTS.load(Ordering::Relaxed) > 1;
            assert_eq!(is_repeated, matches!(code, 429 | 503), "{code}");
        }
    }

    /// A drain leaves a pod that a budget protects, and must not leave one because the server was
    /// busy: both answers have the status 429.
    #[tokio::test(start_paused = true)]
    async fn only_the_answer_of_a_budget_refuses_an_eviction() {
        static REQUESTS: AtomicU32 = AtomicU32::new(0);
        let evicted = json!({"kind": "Status", "status": "Success", "code": 201});
        let busy = json!({"kind": "Status", "status": "Failure", "code": 429, "reason": "TooManyRequests",
            "details": {"retryAfterSeconds": 1}});
        let mut budget = busy.clone();
        budget["details"]["causes"] =
            json!([{"reason": "DisruptionBudget", "message": "needs 1 healthy pods"}]);
        // Answers before the success, and whether the pod is evicted, or the budget refuses it.
        let rows = [(1, &busy, Ok(())), (u32::MAX, &busy, Err(false)), (1, &budget, Err(true))];
        for (count, answer, expected) in rows {
            let namespace = server(count, answer.clone(), evicted.clone(), &REQUESTS);
            let result = namespace.evict_pod("p").await;
            let is_refused = result.map_err(|error| matches!(error, StageError::Rejected { .. }));
            assert_eq!(is_refused, expected, "{answer}");
        }
    }

    #[test]
    fn remaining_namespaces_state_what_keeps_them() {
        let condition = |kind: &str, status: &str, message: &str| json!({"type": kind, "status": status, "message": message});
        let content = "Some resources are remaining: services. has 1 resource instances";
        let finalizers = "Some content in the namespace has finalizers remaining: \
                          service.kubernetes.io/load-balancer-cleanup in 1 resource instances";
        let rows = [
            (json!([]), "evictlab-a".to_owned()),
            (
                json!([
                    condition(
                        "NamespaceDeletionDiscoveryFailure",
                        "False",
                        "All resources successfully discovered"
                    ),
                    condition("NamespaceContentRemaining", "True", content),
                    condition("NamespaceFinalizersRemaining", "True", finalizers),
                ]),
                format!("evictlab-a ({content}; {finalizers})"),
            ),
        ];
        for (conditions, expected) in rows {
            let namespace = json!({"metadata": {"name": "evictlab-a"}, "status": {"conditions": conditions}});
            assert_eq!(with_obstacles(&serde_json::from_value(namespace).unwrap()), expected);
        }
    }
}
