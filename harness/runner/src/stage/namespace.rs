//! The namespace of one case: its pods are created in it and go with it.

use std::time::Duration;

use http::Request;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace as ApiNamespace, Pod};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use crate::cluster::Owner;
use crate::wait::{self, Probe, Stalled};

/// The label that says which run a namespace belongs to.
pub(super) const RUN_LABEL: &str = "evictlab.dev/run";
/// The annotation that says which process answers for it.
const OWNER: &str = "evictlab.dev/owner";

/// A case could not be put on its node.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// The API refused an object of the case.
    #[error("the API refuses {object}: {}", status.message)]
    Refused {
        /// The object, such as `pod alloc`.
        object: String,
        /// Its answer.
        status: Box<kube::core::Status>,
    },
    /// The API could not be asked.
    #[error("the API server could not {doing}: {}", crate::cluster::said(source))]
    Api {
        /// What was asked, as a verb phrase.
        doing: String,
        /// Why not.
        source: Box<kube::Error>,
    },
    /// A new namespace does not get its service account, without which there can be no pods.
    #[error(
        "namespace {namespace} does not get its service account, which kube-controller-manager makes: {stalled}"
    )]
    Unfurnished {
        /// The namespace.
        namespace: String,
        /// What was last seen.
        stalled: Stalled,
    },
    /// Pods of the case do not go away.
    #[error("the pods of namespace {namespace} do not go away: {stalled}")]
    Stuck {
        /// The namespace.
        namespace: String,
        /// What was last seen.
        stalled: Stalled,
    },
}

/// How long a namespace may take to get its service account: a controller manager on a slow host may lose its lease, and is started again then.
const FURNISHED: Duration = Duration::from_secs(180);

/// A run's mark on a namespace.
#[derive(Clone, Debug)]
pub struct Marked {
    /// The run.
    pub run: String,
    /// The process that answers for it, if it is told.
    pub owner: Option<Owner>,
    /// When the namespace was made.
    pub made: Option<Timestamp>,
}

/// A namespace that the harness made.
pub struct Namespace {
    /// Its name.
    pub name: String,
    pub(super) client: Client,
}

impl Namespace {
    /// Makes a namespace for a case. Names are unique, so that nothing of an earlier case can be in it.
    pub async fn create(client: &Client, run: &str, case: &str) -> Result<Self, StageError> {
        let prefix: String = format!("evictlab-{case}").chars().take(50).collect();
        let object: ApiNamespace = ApiNamespace {
            metadata: kube::core::ObjectMeta {
                generate_name: Some(format!("{}-", prefix.trim_end_matches('-'))),
                labels: Some([(RUN_LABEL.to_owned(), run.to_owned())].into()),
                annotations: serde_json::to_string(&Owner::this())
                    .ok()
                    .map(|owner| [(OWNER.to_owned(), owner)].into()),
                ..Default::default()
            },
            ..Default::default()
        };
        let api: Api<ApiNamespace> = Api::all(client.clone());
        let made = api
            .create(&PostParams::default(), &object)
            .await
            .map_err(|source| asked("make a namespace", source))?;
        Ok(Self { name: made.name_any(), client: client.clone() })
    }

    /// The API client of its cluster.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The namespaces of a run that are there, or those of every run.
    pub async fn of(client: &Client, run: Option<&str>) -> Result<Vec<Self>, StageError> {
        let label = run.map_or(RUN_LABEL.to_owned(), |run| format!("{RUN_LABEL}={run}"));
        let listed = labelled(client, &label).await?;
        Ok(listed.iter().map(|found| Self { name: found.name_any(), client: client.clone() }).collect())
    }

    /// The marks of all namespaces that runs made.
    pub async fn marked(client: &Client) -> Result<Vec<Marked>, StageError> {
        let marked = |found: &ApiNamespace| Marked {
            run: found.labels().get(RUN_LABEL).cloned().unwrap_or_default(),
            owner: found.annotations().get(OWNER).and_then(|owner| serde_json::from_str(owner).ok()),
            made: found.creation_timestamp().map(|time| time.0),
        };
        Ok(labelled(client, RUN_LABEL).await?.iter().map(marked).collect())
    }

    /// Creates a pod, with unknown fields refused; the answer is the pod as the API server completed it.
    pub async fn create_pod(&self, manifest: &Value) -> Result<Value, StageError> {
        let name = manifest["metadata"]["name"].as_str().unwrap_or_default();
        let path = format!("/api/v1/namespaces/{}/pods?fieldValidation=Strict", self.name);
        // A new namespace has no service account for a moment, and the API server refuses pods until it has.
        let created = wait::until(FURNISHED, Duration::from_millis(100), async || {
            match self.send(Request::post(&path), "application/json", manifest).await {
                Err(kube::Error::Api(status))
                    if status.message.contains("serviceaccount \"default\" not found") =>
                {
                    Probe::Pending(status.message.clone())
                }
                answer => Probe::Done(answer),
            }
        })
        .await;
        match created {
            Ok(answer) => answer.map_err(|source| refused(&format!("pod {name}"), source)),
            Err(stalled) => Err(StageError::Unfurnished { namespace: self.name.clone(), stalled }),
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
            .map_err(|source| refused(&format!("ephemeral container {name} of pod {pod}"), source))
    }

    /// Deletes the namespace and at once the pods in it; returns when the pods are gone. The namespace itself takes the API server some
    /// seconds more, which nobody needs to wait for.
    pub async fn delete(&self, patience: Duration) -> Result<(), StageError> {
        // First the namespace: in one that ends, no controller replaces the pods that go.
        let api: Api<ApiNamespace> = Api::all(self.client.clone());
        match api.delete(&self.name, &DeleteParams::default()).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
            Err(source) => return Err(asked("delete the namespace", source)),
        }
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.name);
        let now = DeleteParams { grace_period_seconds: Some(0), ..Default::default() };
        pods.delete_collection(&now, &ListParams::default())
            .await
            .map_err(|source| asked("delete the pods", source))?;
        wait::until(patience, Duration::from_millis(200), async || {
            match pods.list(&ListParams::default()).await {
                Ok(listed) if listed.items.is_empty() => Probe::Done(()),
                Ok(listed) => {
                    Probe::Pending(listed.iter().map(ResourceExt::name_any).collect::<Vec<_>>().join(", "))
                }
                Err(error) => Probe::Pending(error.to_string()),
            }
        })
        .await
        .map_err(|stalled| StageError::Stuck { namespace: self.name.clone(), stalled })
    }

    /// Sends a request, and again while the server is busy (429, 503, 504): up to three seconds.
    pub(super) async fn send(
        &self,
        request: http::request::Builder,
        content: &str,
        body: &Value,
    ) -> Result<Value, kube::Error> {
        const TRIES: u32 = 6;
        let body = serde_json::to_vec(body).map_err(kube::Error::SerdeError)?;
        let request = request.header("Content-Type", content).body(body).map_err(kube::Error::HttpError)?;
        let mut pause = Duration::from_millis(50);
        for _ in 1..TRIES {
            match self.client.request(request.clone()).await {
                Err(kube::Error::Api(status)) if [429, 503, 504].contains(&status.code) => {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
                answer => return answer,
            }
        }
        self.client.request(request).await
    }
}

async fn labelled(client: &Client, label: &str) -> Result<Vec<ApiNamespace>, StageError> {
    let api: Api<ApiNamespace> = Api::all(client.clone());
    let listed = api.list(&ListParams::default().labels(label)).await;
    Ok(listed.map_err(|source| asked("list namespaces", source))?.items)
}

pub(super) fn asked(doing: &str, source: kube::Error) -> StageError {
    StageError::Api { doing: doing.to_owned(), source: Box::new(source) }
}

pub(super) fn refused(object: &str, source: kube::Error) -> StageError {
    match source {
        kube::Error::Api(status) => StageError::Refused { object: object.to_owned(), status },
        source => asked(&format!("create {object}"), source),
    }
}
