//! GET of several objects.

use std::sync::Arc;

use axum::response::Response;
use serde_json::{Value, json};

use super::Place;
use super::page::{Continue, Moment, Page};
use crate::api::refusal;
use crate::api::request::Request;
use crate::api::selector::Selector;
use crate::cluster::Cluster;
use crate::registry::Status;
use crate::store::Store;

/// Lists objects.
pub fn list(cluster: &Cluster, request: &Request, place: Place) -> Result<Response, Status> {
    let selector = Selector::read(&request.query, place.view.resource.source)?;
    let page = Page::read(&request.query)?;
    let namespace = request.target.namespace.as_deref();
    let (objects, metadata) = cluster.with(|world| held(&world.store, place, namespace, &selector, &page))?;
    Ok(place.view.many(&objects, metadata))
}

/// The objects of a page, and the metadata of their list.
fn held(
    store: &Store,
    place: Place,
    namespace: Option<&str>,
    selector: &Selector,
    page: &Page,
) -> Result<(Vec<Arc<Value>>, Value), Status> {
    let current = store.version();
    let (version, all) = match page.moment {
        Moment::Present(least) if least > current => return Err(refusal::too_large(least, current)),
        Moment::At(version) if version > current => return Err(refusal::too_large(version, current)),
        Moment::Present(_) => (current, store.list(place.kind, namespace).cloned().collect()),
        Moment::At(version) => {
            let all = store.list_at(place.kind, namespace, version);
            (version, all.map_err(|_| refusal::list_expired(page.after.is_some()))?)
        }
    };
    let begins = |object: &Arc<Value>| match &page.after {
        Some(after) => name(object) > after.end(),
        None => true,
    };
    let mut rest = all.into_iter().filter(|object| begins(object) && selector.chooses(object));
    let objects: Vec<_> = rest.by_ref().take(page.limit.unwrap_or(usize::MAX)).collect();
    let remain = rest.count();
    let mut metadata = json!({"resourceVersion": version.to_string()});
    if let (Some(last), 1..) = (objects.last(), remain) {
        let (namespace, name) = name(last);
        metadata["continue"] = json!(Continue::after(version, namespace, name).token());
        // It is told only where all that is left will be in the list.
        if selector.is_empty() {
            metadata["remainingItemCount"] = json!(remain);
        }
    }
    Ok((objects, metadata))
}

fn name(object: &Value) -> (&str, &str) {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    (text("namespace"), text("name"))
}
