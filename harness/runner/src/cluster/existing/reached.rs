//! A cluster that was found, and what it lists.

use k8s_openapi::api::core::v1::{Node as ApiNode, Pod};
use kube::api::ListParams;
use kube::{Api, Client};

use super::ExistingError;
use super::rights::{self, Right};
use crate::cluster::said;

/// A cluster that can be asked.
#[derive(Clone)]
pub struct Reached {
    /// The context's name.
    pub name: String,
    /// The address of its API server.
    pub server: String,
    /// How it is asked.
    pub client: Client,
}

impl Reached {
    /// The nodes of the cluster, or those that a selector selects.
    ///
    /// # Errors
    /// A selector that is none or selects nothing; an API server that does not answer, or refuses to.
    pub async fn nodes(&self, selector: Option<&str>) -> Result<Vec<ApiNode>, ExistingError> {
        let api: Api<ApiNode> = Api::all(self.client.clone());
        let wanted = ListParams { label_selector: selector.map(str::to_owned), ..ListParams::default() };
        match (api.list(&wanted).await, selector) {
            (Ok(listed), Some(selector)) if listed.items.is_empty() => Err(ExistingError::Selector {
                selector: selector.to_owned(),
                problem: format!("selects no node of {}", self.name),
            }),
            (Ok(listed), _) => Ok(listed.items),
            (Err(kube::Error::Api(status)), Some(selector)) if status.code == 400 => {
                Err(ExistingError::Selector {
                    selector: selector.to_owned(),
                    problem: format!("is none: {}", status.message),
                })
            }
            (Err(error), _) => Err(self.refused("list nodes", &error)),
        }
    }

    /// The pods of the cluster.
    ///
    /// # Errors
    /// An API server that does not answer, or refuses to.
    pub async fn pods(&self) -> Result<Vec<Pod>, ExistingError> {
        let api: Api<Pod> = Api::all(self.client.clone());
        let listed = api.list(&ListParams::default()).await;
        Ok(listed.map_err(|error| self.refused("list pods", &error))?.items)
    }

    /// Makes sure of rights in every namespace.
    ///
    /// # Errors
    /// Those that are missing, by name.
    pub async fn permits(&self, rights: &[Right]) -> Result<(), ExistingError> {
        let missing = rights::missing(&self.client, rights).await;
        match missing.is_empty() {
            true => Ok(()),
            false => Err(ExistingError::Forbidden { cluster: self.name.clone(), missing }),
        }
    }

    fn refused(&self, doing: &'static str, error: &kube::Error) -> ExistingError {
        let (cluster, server) = (self.name.clone(), self.server.clone());
        match error {
            kube::Error::Api(status) if status.code == 403 => {
                ExistingError::Forbidden { cluster, missing: vec![doing.to_owned()] }
            }
            error => ExistingError::Api { cluster, server, doing, problem: said(error) },
        }
    }
}
