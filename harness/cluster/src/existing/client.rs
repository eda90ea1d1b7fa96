//! Client of an existing cluster.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Node as ApiNode;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{ListParams, Request};
use kube::{Api, Client, Config, Resource};
use serde::de::DeserializeOwned;

use super::permissions::{self, Permission};
use super::request_limit::RequestLimit;
use crate::api_client::client_builder;
use crate::api_error::{AnswerError, api_error_message, is_temporary_status};
use crate::error::ExistingError;
use crate::object_list::ObjectList;
use crate::typed::Typed;

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
    Ok(client_builder(config)?.with_layer(&RequestLimit::default()).build())
}

/// Removes the list of images, which is most of a node.
fn without_images(mut node: ApiNode) -> ApiNode {
    node.metadata.managed_fields = None;
    if let Some(status) = &mut node.status {
        status.images = None;
    }
    node
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
        K: Resource<DynamicType = ()> + DeserializeOwned,
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
        K: Resource<DynamicType = ()> + DeserializeOwned,
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
        let slices: Api<Typed<EndpointSlice>> = Api::namespaced(self.client.clone(), "default");
        let slice = match slices.get("kubernetes").await {
            Err(kube::Error::Api(status)) if !is_temporary_status(status.code) => {
                return Ok(BTreeSet::new());
            }
            found => found.map_err(|error| self.error("read the addresses of the API servers", &error))?,
        };
        Ok(slice.0.endpoints.into_iter().flat_map(|endpoint| endpoint.addresses).collect())
    }

    /// Requests the pages of a list one after the other. `keep` receives the objects of a page
    /// before the next one is requested, so that one page at a time is in memory.
    async fn list_pages<K>(
        &self,
        namespace: Option<&str>,
        params: ListParams,
        mut keep: impl FnMut(K),
    ) -> Result<(), kube::Error>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let path = K::url_path(&(), namespace);
        let mut params = params.limit(PAGE_SIZE);
        for _ in 0..MAX_PAGES {
            let request = Request::new(&path).list(&params).map_err(kube::Error::BuildRequest)?;
            let page: ObjectList<Typed<K>> = self.client.request(request).await?;
            let next_page = page.next_page().map(str::to_owned);
            page.items.into_iter().map(|object| object.0).for_each(&mut keep);
            let Some(token) = next_page else { return Ok(()) };
            params = params.continue_token(&token);
        }
        Err(kube::Error::Service(AnswerError::TooManyPages { path, pages: MAX_PAGES }.into()))
    }

    /// Checks permissions in every namespace.
    ///
    /// # Errors
    /// The names of the missing permissions.
    pub async fn permits(&self, required: &[Permission]) -> Result<(), ExistingError> {
        let missing = permissions::missing(&self.client, required).await;
        if missing.is_empty() {
            Ok(())
        } else {
            Err(ExistingError::Forbidden { cluster: self.name.clone(), missing })
        }
    }

    pub(super) fn error(&self, operation: &'static str, error: &kube::Error) -> ExistingError {
        let (cluster, server) = (self.name.clone(), self.server.clone());
        match error {
            // The message names the verb and the resource.
            kube::Error::Api(status) if status.code == 403 => {
                ExistingError::Forbidden { cluster, missing: vec![status.message.clone()] }
            }
            error => ExistingError::Api { cluster, server, operation, problem: api_error_message(error) },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use k8s_openapi::api::core::v1::Pod;
    use kube::client::Body;

    use super::*;

    /// An API server with three pages of pods, which counts the requests for pages at a time.
    fn three_pages(requested: &'static AtomicUsize) -> ClusterClient {
        let service = tower::service_fn(async |request: http::Request<Body>| {
            requested.fetch_add(1, Ordering::Relaxed);
            let query = request.uri().query().unwrap_or_default();
            let page = ["first", "second", "third"].into_iter().position(|token| query.contains(token));
            let (token, names) = match page {
                None => ("second", ["a", "b"]),
                Some(1) => ("third", ["c", "d"]),
                _ => ("", ["e", "f"]),
            };
            let items = names.map(|name| serde_json::json!({"metadata": {"name": name}}));
            let page = serde_json::json!({"metadata": {"continue": token}, "items": items});
            Ok::<_, std::convert::Infallible>(http::Response::new(Body::from(page.to_string().into_bytes())))
        });
        let client = Client::new(service, "default");
        ClusterClient { name: "c".to_owned(), server: "https://c".to_owned(), client }
    }

    #[tokio::test]
    async fn a_page_is_kept_before_the_next_one_is_requested() {
        static REQUESTED: AtomicUsize = AtomicUsize::new(0);
        let mut kept = Vec::new();
        let keep = |pod: Pod| kept.push((pod.metadata.name.unwrap(), REQUESTED.load(Ordering::Relaxed)));
        three_pages(&REQUESTED).for_each_pod(None, keep).await.unwrap();
        let expected = [("a", 1), ("b", 1), ("c", 2), ("d", 2), ("e", 3), ("f", 3)];
        assert_eq!(kept, expected.map(|(name, requests)| (name.to_owned(), requests)));
    }

    #[tokio::test]
    async fn a_denied_request_names_the_missing_permission() {
        let service = tower::service_fn(async |_: http::Request<Body>| {
            let message = "nodes is forbidden: User \"u\" cannot list resource \"nodes\"";
            let status =
                serde_json::json!({"kind": "Status", "status": "Failure", "message": message, "code": 403});
            let response = http::Response::builder().status(403);
            response.body(Body::from(status.to_string().into_bytes()))
        });
        let client = Client::new(service, "default");
        let cluster = ClusterClient { name: "c".to_owned(), server: "https://c".to_owned(), client };
        let error = cluster.nodes(None).await.unwrap_err().to_string();
        assert!(error.contains("permission denied: nodes is forbidden: User \"u\" cannot list"), "{error}");
    }

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
