//! GET of lists.

use std::sync::Arc;

use axum::response::Response;
use serde_json::{Value, json};

use super::Endpoint;
use super::list_options::{ContinueToken, ListOptions, ListVersion};
use crate::apiserver::Status;
use crate::cluster::Cluster;
use crate::http::errors;
use crate::http::request::ApiRequest;
use crate::http::selector::ObjectSelector;
use crate::resource::ObjectExt;
use crate::storage::Store;

/// Handles GET of a list.
pub(crate) fn list(cluster: &Cluster, request: &ApiRequest, endpoint: Endpoint) -> Result<Response, Status> {
    let selector = ObjectSelector::from_query(&request.query, endpoint.view.resource.source)?;
    let options = ListOptions::from_query(&request.query)?;
    let namespace = request.target.namespace.as_deref();
    let (version, all) =
        cluster.with(|simulation| objects_at(&simulation.store, endpoint, namespace, &options))?;
    let is_after_token = |object: &Arc<Value>| match &options.token {
        Some(token) => sort_key(object) > token.last_object(),
        None => true,
    };
    let mut rest = all.into_iter().filter(|object| is_after_token(object) && selector.matches(object));
    let page: Vec<_> = rest.by_ref().take(options.limit.unwrap_or(usize::MAX)).collect();
    let remaining = rest.count();
    let mut metadata = json!({"resourceVersion": version.to_string()});
    if let (Some(last), 1..) = (page.last(), remaining) {
        let (namespace, name) = sort_key(last);
        metadata["continue"] = json!(ContinueToken::new(version, namespace, name).encode());
        // The API server cannot count the remaining matches of a selector.
        if selector.is_empty() {
            metadata["remainingItemCount"] = json!(remaining);
        }
    }
    Ok(endpoint.view.list(&page, metadata))
}

/// Returns the requested version, and all objects at that version.
fn objects_at(
    store: &Store,
    endpoint: Endpoint,
    namespace: Option<&str>,
    options: &ListOptions,
) -> Result<(u64, Vec<Arc<Value>>), Status> {
    let current = store.version();
    let (ListVersion::NotOlderThan(requested) | ListVersion::Exact(requested)) = options.version;
    if requested > current {
        return Err(errors::version_too_large(requested, current));
    }
    match options.version {
        ListVersion::NotOlderThan(_) => {
            Ok((current, store.list(endpoint.kind, namespace).cloned().collect()))
        }
        ListVersion::Exact(version) => {
            let all = store.list_at(endpoint.kind, namespace, version);
            Ok((version, all.map_err(|_| errors::list_expired(options.token.is_some()))?))
        }
    }
}

fn sort_key(object: &Value) -> (&str, &str) {
    let text = |field: &str| object["metadata"].text(field);
    (text("namespace"), text("name"))
}
