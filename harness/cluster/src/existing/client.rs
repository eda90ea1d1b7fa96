//! Client of an existing cluster.

use std::fmt::Debug;

use k8s_openapi::api::core::v1::Node as ApiNode;
use kube::api::ListParams;
use kube::client::ClientBuilder;
use kube::{Api, Client, Config, Resource};
use serde::de::DeserializeOwned;

use super::permissions::{self, Permission};
use super::request_limit::RequestLimit;
use crate::api_error::api_error_message;
use crate::error::ExistingError;

/// Number of objects in a page of a list.
const PAGE_SIZE: u32 = 500;

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

/// Creates a client that sends a limited number of requests at a time.
///
/// # Errors
/// The certificates of the configuration are invalid.
pub(super) fn limited_client(config: Config) -> Result<Client, kube::Error> {
    Ok(ClientBuilder::try_from(config)?.with_layer(&RequestLimit::default()).build())
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
        match (self.list_pages(params, |node| nodes.push(without_images(node))).await, selector) {
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

    /// Lists the pods of the cluster in pages. `keep` receives each of them, before the next page
    /// arrives, so that it can drop the fields that it does not need.
    ///
    /// # Errors
    /// The API server refuses or does not answer.
    pub async fn for_each_pod<K>(&self, keep: impl FnMut(K)) -> Result<(), ExistingError>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let listed = self.list_pages(ListParams::default(), keep).await;
        listed.map_err(|error| self.error("list pods", &error))
    }

    async fn list_pages<K>(&self, params: ListParams, mut keep: impl FnMut(K)) -> Result<(), kube::Error>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let api: Api<K> = Api::all(self.client.clone());
        let mut page = params.limit(PAGE_SIZE);
        loop {
            let listed = api.list(&page).await?;
            listed.items.into_iter().for_each(&mut keep);
            match listed.metadata.continue_ {
                Some(token) if !token.is_empty() => page = page.continue_token(&token),
                _ => return Ok(()),
            }
        }
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
