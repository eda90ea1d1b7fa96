//! Watches.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures::stream::unfold;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::Endpoint;
use super::endpoint::resource_version;
use crate::apiserver::Status;
use crate::cluster::Cluster;
use crate::http::request::{ApiRequest, Query, Representation};
use crate::http::selector::ObjectSelector;
use crate::http::{errors, responses};
use crate::resource::ObjectExt;
use crate::simulation::Simulation;
use crate::storage::{ObjectChange, WatchChannel, WatchEnd, WatchEventType};

/// Length of a watch without `timeoutSeconds`. A real API server chooses 30 to 60 minutes at
/// random.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(45 * 60);
/// Largest length of a watch: ten years. The clock cannot represent the end of every length that a
/// request may state.
const MAX_TIMEOUT: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
/// Interval of bookmarks.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);
/// Time between the last bookmark and the end (`bookmarkFrequency` and the deadline of
/// `cacher.go`).
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// Handles GET with `watch`: streams events as lines of JSON until the timeout.
pub(crate) fn watch(cluster: &Cluster, request: &ApiRequest, endpoint: Endpoint) -> Result<Response, Status> {
    let chunks = unfold(open(cluster, request, endpoint)?, |mut watch| async move {
        let chunk = watch.next_chunk().await?;
        Some((Ok::<_, Infallible>(Bytes::from(chunk)), watch))
    });
    Ok(responses::with_body(200, "application/json", Body::from_stream(chunks)))
}

/// Opens the watch of a request, with its initial events in the buffer.
fn open(cluster: &Cluster, request: &ApiRequest, endpoint: Endpoint) -> Result<Watch, Status> {
    let selector = ObjectSelector::from_query(&request.query, endpoint.view.kind)?;
    let version = resource_version(&request.query)?;
    reject_initial_events(&request.query)?;
    let now = Instant::now();
    let deadline = now + request.query.timeout()?.unwrap_or(DEFAULT_TIMEOUT).min(MAX_TIMEOUT);
    let bookmarks = request.query.is_true("allowWatchBookmarks");
    Ok(cluster.with(|simulation| {
        let mut watch = Watch {
            cluster: cluster.clone(),
            namespace: request.path.namespace.clone(),
            selector,
            sent_version: 0,
            channel: simulation.store.watch(endpoint.view.kind, request.path.namespace.as_deref()),
            deadline,
            next_bookmark: next_bookmark(now, deadline).filter(|_| bookmarks),
            with_columns: true,
            buffer: Vec::new(),
            is_done: false,
            endpoint,
        };
        match version {
            None | Some(0) => watch.send_current_objects(simulation),
            Some(version) => watch.send_changes_since(version, simulation),
        }
        watch
    }))
}

/// Rejects `sendInitialEvents` as a server without the feature gate `WatchList`: the client lists
/// the objects before it watches them.
fn reject_initial_events(query: &Query) -> Result<(), Status> {
    const FIELD: &str = "sendInitialEvents";
    if query.get(FIELD).is_none() {
        return Ok(());
    }
    let error =
        "Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
    Err(errors::invalid_list_options(FIELD, error))
}

/// Returns the time of the next bookmark; `None` after the last one.
fn next_bookmark(now: Instant, deadline: Instant) -> Option<Instant> {
    let last = deadline.checked_sub(LAST_BOOKMARK).filter(|last| *last > now)?;
    Some(last.min(now + BOOKMARK_INTERVAL))
}

/// An open watch.
struct Watch {
    cluster: Cluster,
    endpoint: Endpoint,
    namespace: Option<String>,
    selector: ObjectSelector,
    /// All changes up to this version were sent.
    sent_version: u64,
    channel: Arc<WatchChannel>,
    deadline: Instant,
    /// Time of the next bookmark, if the client wants bookmarks.
    next_bookmark: Option<Instant>,
    /// The first table of a watch has column definitions.
    with_columns: bool,
    /// Lines to send.
    buffer: Vec<u8>,
    is_done: bool,
}

impl Watch {
    /// Returns the next lines; `None` at the end of the watch.
    async fn next_chunk(&mut self) -> Option<Vec<u8>> {
        loop {
            if !self.buffer.is_empty() {
                return Some(std::mem::take(&mut self.buffer));
            }
            if self.is_done || Instant::now() >= self.deadline {
                return None;
            }
            self.send_new_changes();
            if !self.buffer.is_empty() || self.is_done {
                continue;
            }
            let bookmark = self.next_bookmark.unwrap_or(self.deadline);
            tokio::select! {
                biased;
                () = self.channel.next() => {}
                () = sleep_until(bookmark), if self.next_bookmark.is_some() => self.send_due_bookmark(),
                () = sleep_until(self.deadline) => return None,
            }
        }
    }

    /// Sends new changes, and a bookmark unless they end the watch.
    fn send_due_bookmark(&mut self) {
        let current = self.cluster.with(|simulation| simulation.store.version());
        self.send_new_changes();
        if self.is_done {
            return;
        }
        self.sent_version = self.sent_version.max(current);
        self.send_bookmark();
        self.next_bookmark = next_bookmark(Instant::now(), self.deadline);
    }

    fn send_current_objects(&mut self, simulation: &Simulation) {
        let namespace = self.namespace.clone();
        for object in simulation.store.list(self.endpoint.view.kind, namespace.as_deref()) {
            if self.selector.matches(object) {
                self.send("ADDED", object);
            }
        }
        self.sent_version = simulation.store.version();
    }

    fn send_changes_since(&mut self, version: u64, simulation: &Simulation) {
        self.sent_version = version;
        match simulation.store.since(version) {
            // Changes before a version in the future are not sent.
            _ if version > simulation.store.version() => {}
            Ok(changes) => {
                let is_watched = |change: &&ObjectChange| {
                    let namespace = change.object.namespace();
                    change.kind == self.endpoint.view.kind
                        && self.namespace.as_deref().is_none_or(|watched| namespace == watched)
                };
                let changes: Vec<ObjectChange> = changes.filter(is_watched).cloned().collect();
                changes.iter().for_each(|change| self.send_change(change));
                self.sent_version = simulation.store.version();
            }
            Err(expired) => self.send_expired(expired.oldest),
        }
    }

    /// Sends the changes of the channel; ends the watch if the history was dropped, or if the fault
    /// script ends it.
    fn send_new_changes(&mut self) {
        match self.channel.take() {
            Ok(changes) => {
                for change in changes {
                    // Earlier changes were sent when the watch was opened.
                    if change.version > self.sent_version {
                        self.send_change(&change);
                        self.sent_version = change.version;
                    }
                }
            }
            Err(WatchEnd::Closed) => self.is_done = true,
            Err(WatchEnd::Expired) => {
                let current = self.cluster.clone().with(|simulation| simulation.store.version());
                self.send_expired(current);
            }
        }
    }

    /// Sends 410 and ends the watch.
    fn send_expired(&mut self, oldest: u64) {
        let status = errors::expired(self.sent_version, oldest);
        self.write_line("ERROR", &status.object());
        self.is_done = true;
    }

    fn send_change(&mut self, change: &ObjectChange) {
        let before = change.before.as_ref().filter(|before| self.selector.matches(before));
        let is_deleted = change.event_type == WatchEventType::Deleted;
        let is_selected = !is_deleted && self.selector.matches(&change.object);
        match (before, is_selected) {
            (None, true) => self.send("ADDED", &change.object),
            (Some(_), true) => self.send("MODIFIED", &change.object),
            (Some(_), false) if is_deleted => self.send("DELETED", &change.object),
            (Some(before), false) => {
                // The object exists, but the selector no longer matches: its last matching state,
                // with the version of the change (`watch_cache.go`).
                let mut last = Value::clone(before);
                last.metadata_mut().write("resourceVersion", change.object.resource_version());
                self.send("DELETED", &last);
            }
            (None, false) => {}
        }
    }

    fn send(&mut self, event_type: &str, object: &Value) {
        let view = self.endpoint.view;
        self.write_line(event_type, &view.represent(object, self.with_columns));
        self.with_columns = false;
    }

    fn send_bookmark(&mut self) {
        let resource = self.endpoint.view.resource;
        let metadata = json!({"resourceVersion": self.sent_version.to_string(), "creationTimestamp": null});
        let (kind, api_version) = match self.endpoint.view.representation {
            Representation::Table => ("Table", "meta.k8s.io/v1".to_owned()),
            Representation::Metadata => ("PartialObjectMetadata", "meta.k8s.io/v1".to_owned()),
            Representation::Object => (resource.kind, resource.api_version()),
        };
        let mut object = json!({"kind": kind, "apiVersion": api_version, "metadata": metadata});
        if self.endpoint.view.representation == Representation::Table {
            object.write("columnDefinitions", Value::Null);
            object.write("rows", json!([]));
        }
        self.write_line("BOOKMARK", &object);
    }

    fn write_line(&mut self, event_type: &str, object: &Value) {
        self.buffer.extend_from_slice(b"{\"type\":\"");
        self.buffer.extend_from_slice(event_type.as_bytes());
        self.buffer.extend_from_slice(b"\",\"object\":");
        // Serializing a value to memory cannot fail.
        self.buffer.extend(serde_json::to_vec(object).unwrap_or_else(|_| b"null".to_vec()));
        self.buffer.extend_from_slice(b"}\n");
    }
}

#[cfg(test)]
mod tests {
    use evictlab_rules::KubeletVersion;
    use http::{HeaderMap, Method};

    use super::*;
    use crate::http::request::ResourcePath;
    use crate::http::resource;
    use crate::http::view::View;
    use crate::options::{ClusterOptions, NodeOptions};
    use crate::resource::Kind;

    #[tokio::test]
    async fn an_expired_watch_ends_without_a_bookmark() {
        let node = NodeOptions::new("worker", KubeletVersion::from_minor(33));
        let options = ClusterOptions::new(7, "2026-01-01T00:00:00Z".parse().unwrap(), vec![node]);
        let cluster = Cluster::new(options).unwrap();
        let request = ApiRequest {
            method: Method::GET,
            path: ResourcePath::parse("/api/v1/namespaces/default/configmaps").unwrap(),
            query: Query::default(),
            representation: Representation::default(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
        };
        let resource = resource::find(&request.path).unwrap();
        let view = View::from_request(&cluster, &request, resource, Kind::ConfigMap).unwrap();
        let mut watch = open(&cluster, &request, Endpoint { view, subresource: None }).unwrap();
        watch.buffer.clear();
        cluster.with(|simulation| simulation.store.forget_history());
        watch.send_due_bookmark();
        let sent = String::from_utf8(watch.buffer).unwrap();
        assert!(sent.starts_with(r#"{"type":"ERROR","#) && sent.lines().count() == 1, "{sent}");
    }
}
