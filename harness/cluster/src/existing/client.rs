//! Client of an existing cluster.

use std::collections::BTreeSet;
use std::fmt::Debug;

use k8s_openapi::api::core::v1::Node as ApiNode;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::api::{ListParams, Request};
use kube::client::ClientBuilder;
use kube::{Api, Client, Config, Resource};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio_util::task::AbortOnDropHandle;

use super::permissions::{self, Permission};
use super::request_limit::RequestLimit;
use crate::answer_limit::AnswerLimit;
use crate::api_error::{AnswerError, api_error_message, is_temporary_status};
use crate::error::ExistingError;

/// Number of objects in a page of a list.
const PAGE_SIZE: u32 = 500;
/// Maximum number of pages of a list: a million objects.
const MAX_PAGES: usize = 2_000;

/// A client of an existing cluster.
#[derive(Clone)]
pub struct ClusterClient {
    /// Name of the kubeconfig context.
    pub name: String,
    /// Address of the API server.
    pub server: String,
    /// API client.
    pub client: Client,
}

/// Creates a client that sends a limited number of requests at a time, and reads answers of a
/// limited length.
///
/// # Errors
/// The certificates of the configuration are invalid.
pub(super) fn limited_client(config: Config) -> Result<Client, kube::Error> {
    Ok(ClientBuilder::try_from(config)?.with_layer(&RequestLimit::default()).with_layer(&AnswerLimit).build())
}

/// Removes the list of images, which is most of a node.
fn without_images(mut node: ApiNode) -> ApiNode {
    node.metadata.managed_fields = None;
    if let Some(status) = &mut node.status {
        status.images = None;
    }
    node
}

/// A page of a list whose items are not decoded yet.
#[derive(Deserialize)]
struct Page<'a> {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(borrow)]
    items: &'a RawValue,
}

impl ClusterClient {
    /// Lists the nodes of the cluster, or those that match a label selector, without the lists of
    /// their images.
    ///
    /// # Errors
    /// The selector is invalid or matches no node; the API server refuses or does not answer.
    pub async fn nodes(&self, selector: Option<&str>) -> Result<Vec<ApiNode>, ExistingError> {
        let params = ListParams { label_selector: selector.map(str::to_owned), ..ListParams::default() };
        let mut nodes = Vec::new();
        match (self.list_pages(None, params, |node| nodes.push(without_images(node))).await, selector) {
            (Ok(()), Some(selector)) if nodes.is_empty() => Err(ExistingError::Selector {
                selector: selector.to_owned(),
                problem: format!("no node of {} matches", self.name),
            }),
            (Ok(()), _) => Ok(nodes),
            (Err(kube::Error::Api(status)), Some(selector)) if status.code == 400 => {
                Err(ExistingError::Selector {
                    selector: selector.to_owned(),
                    problem: format!("invalid selector: {}", status.message),
                })
            }
            (Err(error), _) => Err(self.error("list nodes", &error)),
        }
    }

    /// Lists the pods of the cluster, or of a namespace, in pages. `keep` receives each of them,
    /// before the next page arrives, so that it can drop the fields that it does not need.
    ///
    /// # Errors
    /// The API server refuses or does not answer.
    pub async fn for_each_pod<K>(
        &self,
        namespace: Option<&str>,
        keep: impl FnMut(K),
    ) -> Result<(), ExistingError>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let listed = self.list_pages(namespace, ListParams::default(), keep).await;
        listed.map_err(|error| self.error("list pods", &error))
    }

    /// Lists the pods bound to a node. The API server finds them by its index of nodes, and may
    /// return a state that is a moment old.
    ///
    /// # Errors
    /// The API server refuses or does not answer.
    pub async fn pods_on<K>(&self, node: &str) -> Result<Vec<K>, ExistingError>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let params = ListParams::default().fields(&format!("spec.nodeName={node}")).match_any();
        let mut pods = Vec::new();
        let listed = self.list_pages(None, params, |pod| pods.push(pod)).await;
        listed.map_err(|error| self.error("list pods", &error))?;
        Ok(pods)
    }

    /// Returns the addresses of the API servers; none if the user may not read them.
    ///
    /// # Errors
    /// The API server does not answer.
    pub(super) async fn api_servers(&self) -> Result<BTreeSet<String>, ExistingError> {
        let slices: Api<EndpointSlice> = Api::namespaced(self.client.clone(), "default");
        let slice = match slices.get("kubernetes").await {
            Err(kube::Error::Api(status)) if !is_temporary_status(status.code) => {
                return Ok(BTreeSet::new());
            }
            found => found.map_err(|error| self.error("read the addresses of the API servers", &error))?,
        };
        Ok(slice.endpoints.into_iter().flat_map(|endpoint| endpoint.addresses).collect())
    }

    /// The API server prepares a page while the one before it is decoded.
    async fn list_pages<K>(
        &self,
        namespace: Option<&str>,
        params: ListParams,
        mut keep: impl FnMut(K),
    ) -> Result<(), kube::Error>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let params = params.limit(PAGE_SIZE);
        let mut pending = Some(self.request_page::<K>(namespace, &params)?);
        let mut pages = 0;
        while let Some(page) = pending.take() {
            pages += 1;
            if pages > MAX_PAGES {
                let (path, pages) = (K::url_path(&(), namespace), MAX_PAGES);
                return Err(kube::Error::Service(AnswerError::TooManyPages { path, pages }.into()));
            }
            let text = page.await.map_err(|error| kube::Error::Service(error.into()))??;
            let Page { metadata, items } = serde_json::from_str(&text).map_err(kube::Error::SerdeError)?;
            if let Some(token) = metadata.continue_.filter(|token| !token.is_empty()) {
                pending = Some(self.request_page::<K>(namespace, &params.clone().continue_token(&token))?);
            }
            let items: Option<Vec<K>> = serde_json::from_str(items.get()).map_err(kube::Error::SerdeError)?;
            items.unwrap_or_default().into_iter().for_each(&mut keep);
        }
        Ok(())
    }

    /// Starts the request of a page of a list.
    fn request_page<K: Resource<DynamicType = ()>>(
        &self,
        namespace: Option<&str>,
        params: &ListParams,
    ) -> Result<AbortOnDropHandle<Result<String, kube::Error>>, kube::Error> {
        let request = Request::new(K::url_path(&(), namespace)).list(params);
        let request = request.map_err(kube::Error::BuildRequest)?;
        let client = self.client.clone();
        Ok(AbortOnDropHandle::new(tokio::spawn(async move { client.request_text(request).await })))
    }

    /// Checks permissions in every namespace.
    ///
    /// # Errors
    /// The names of the missing permissions.
    pub async fn permits(&self, required: &[Permission]) -> Result<(), ExistingError> {
        let missing = permissions::missing(&self.client, required).await;
        match missing.is_empty() {
            true => Ok(()),
            false => Err(ExistingError::Forbidden { cluster: self.name.clone(), missing }),
        }
    }

    pub(super) fn error(&self, operation: &'static str, error: &kube::Error) -> ExistingError {
        let (cluster, server) = (self.name.clone(), self.server.clone());
        match error {
            kube::Error::Api(status) if status.code == 403 => {
                ExistingError::Forbidden { cluster, missing: vec![operation.to_owned()] }
            }
            error => ExistingError::Api { cluster, server, operation, problem: api_error_message(error) },
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::client::Body;

    use super::*;

    #[tokio::test]
    async fn a_list_without_an_end_is_an_error() {
        let service = tower::service_fn(async |_: http::Request<Body>| {
            let page = r#"{"metadata": {"continue": "more"}, "items": []}"#;
            Ok::<_, std::convert::Infallible>(http::Response::new(Body::from(page.as_bytes().to_vec())))
        });
        let client = Client::new(service, "default");
        let cluster = ClusterClient { name: "c".to_owned(), server: "https://c".to_owned(), client };
        assert_eq!(
            cluster.nodes(None).await.unwrap_err().to_string(),
            "failed to list nodes of cluster c at https://c: the list /api/v1/nodes has more than 2000 pages"
        );
    }
}
