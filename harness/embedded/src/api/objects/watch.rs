//! Watches.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures::stream::unfold;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::Place;
use super::page::version;
use crate::api::refusal;
use crate::api::request::{Form, Query, Request};
use crate::api::respond;
use crate::api::selector::Selector;
use crate::cluster::Cluster;
use crate::news::Listener;
use crate::registry::Status;
use crate::store::{Change, ChangeKind, Feed};
use crate::world::World;

/// How long a watch lasts that states nothing. A real server takes 30 to 60 minutes by chance.
const UNSTATED: Duration = Duration::from_secs(45 * 60);
/// How often a bookmark comes at least.
const BOOKMARKS: Duration = Duration::from_secs(60);
/// How long before the end the last one comes (`bookmarkFrequency` and the deadline of `cacher.go`).
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// Watches objects: newline-delimited events until the time is over.
pub fn watch(cluster: &Cluster, request: &Request, place: Place) -> Result<Response, Status> {
    let selector = Selector::read(&request.query, place.view.resource.source)?;
    let from = version(&request.query)?;
    let initial = initial(&request.query)?;
    let now = Instant::now();
    let ends = now + request.query.timeout()?.unwrap_or(UNSTATED);
    let bookmarks = request.query.is("allowWatchBookmarks");
    let mut watch = Watch {
        cluster: cluster.clone(),
        namespace: request.target.namespace.clone(),
        selector,
        seen: 0,
        feed: cluster.with(|world| world.store.watch(place.kind, request.target.namespace.as_deref())),
        cuts: cluster.with(|world| world.faults.cuts()),
        opened: cluster.with(|world| world.faults.cuts().heard()),
        ends,
        bookmark: next_bookmark(now, ends).filter(|_| bookmarks),
        columns: true,
        waiting: Vec::new(),
        over: false,
        place,
    };
    cluster.with(|world| match from {
        // From the beginning: what there is comes first.
        _ if initial == Some(true) => {
            watch.present(world);
            if bookmarks {
                watch.mark(true);
            }
        }
        None | Some(0) if initial.is_none() => watch.present(world),
        None | Some(0) => watch.seen = world.store.version(),
        Some(version) => watch.catch_up(version, world),
    });
    let pieces = unfold(watch, |mut watch| async move {
        let piece = watch.next().await?;
        Some((Ok::<_, std::convert::Infallible>(Bytes::from(piece)), watch))
    });
    Ok(respond::of(200, "application/json", Body::from_stream(pieces)))
}

/// `sendInitialEvents`, checked as `validateWatchOptions` does.
fn initial(query: &Query) -> Result<Option<bool>, Status> {
    let matching = query.text("resourceVersionMatch");
    let stated = query.get("sendInitialEvents").map(|_| query.is("sendInitialEvents"));
    let mut errors = Vec::new();
    const MATCH: &str = "resourceVersionMatch";
    if stated.is_some() && matching != "NotOlderThan" {
        let text = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        errors.push((MATCH, text.to_owned()));
    }
    if stated.is_none() && !matching.is_empty() {
        let text =
            "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        errors.push((MATCH, text.to_owned()));
    }
    if errors.is_empty() { Ok(stated) } else { Err(refusal::invalid_options(&errors)) }
}

/// When the next bookmark is due; none comes after the last one.
fn next_bookmark(now: Instant, ends: Instant) -> Option<Instant> {
    let last = ends.checked_sub(LAST_BOOKMARK).filter(|last| *last > now)?;
    Some(last.min(now + BOOKMARKS))
}

/// One who watches.
struct Watch {
    cluster: Cluster,
    place: Place,
    namespace: Option<String>,
    selector: Selector,
    /// The version up to which all was sent.
    seen: u64,
    feed: Arc<Feed>,
    /// Tells when the script of faults cuts watches.
    cuts: Listener,
    /// How many cuts there had been when it was opened.
    opened: u64,
    ends: Instant,
    /// When the next bookmark is due, if they are wanted.
    bookmark: Option<Instant>,
    /// Whether a table's columns are still to be told.
    columns: bool,
    /// What is to be sent.
    waiting: Vec<u8>,
    /// Nothing follows.
    over: bool,
}

impl Watch {
    /// The next piece; nothing at the end.
    async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            if !self.waiting.is_empty() {
                return Some(std::mem::take(&mut self.waiting));
            }
            if self.over || Instant::now() >= self.ends {
                return None;
            }
            self.changes();
            if !self.waiting.is_empty() {
                continue;
            }
            let bookmark = self.bookmark.unwrap_or(self.ends);
            tokio::select! {
                biased;
                () = self.cuts.next() => self.cut(),
                () = self.feed.next() => {}
                () = sleep_until(bookmark), if self.bookmark.is_some() => {
                    let current = self.cluster.with(|world| world.store.version());
                    self.changes();
                    self.seen = self.seen.max(current);
                    self.mark(false);
                    self.bookmark = next_bookmark(Instant::now(), self.ends);
                }
                () = sleep_until(self.ends) => return None,
            }
        }
    }

    /// Ends if the script of faults says so, with or without a word.
    fn cut(&mut self) {
        let resource = self.place.view.resource.plural;
        let namespace = self.namespace.as_deref();
        let cluster = self.cluster.clone();
        let (cut, current) =
            cluster.with(|world| (world.faults.cut(self.opened, resource, namespace), world.store.version()));
        let Some(expired) = cut else { return };
        self.over = true;
        if expired.0 {
            self.expire(current);
        }
    }

    /// All that there is, as added.
    fn present(&mut self, world: &World) {
        let namespace = self.namespace.clone();
        for object in world.store.list(self.place.kind, namespace.as_deref()) {
            if self.selector.chooses(object) {
                self.send("ADDED", object);
            }
        }
        self.seen = world.store.version();
    }

    /// What has changed since a version.
    fn catch_up(&mut self, version: u64, world: &World) {
        self.seen = version;
        match world.store.since(version) {
            // A version that is yet to come: what is older is not told.
            _ if version > world.store.version() => {}
            Ok(changes) => {
                let here = |change: &&Change| {
                    let namespace = change.object["metadata"]["namespace"].as_str();
                    change.kind == self.place.kind
                        && self.namespace.as_deref().is_none_or(|here| namespace == Some(here))
                };
                let changes: Vec<Change> = changes.filter(here).cloned().collect();
                changes.iter().for_each(|change| self.change(change));
                self.seen = world.store.version();
            }
            Err(old) => self.expire(old.oldest),
        }
    }

    /// What was told since the last time.
    fn changes(&mut self) {
        match self.feed.take() {
            Some(changes) => {
                for change in changes {
                    // What was there when the watch began was told then.
                    if change.version > self.seen {
                        self.change(&change);
                        self.seen = change.version;
                    }
                }
            }
            None => {
                let current = self.cluster.clone().with(|world| world.store.version());
                self.expire(current);
            }
        }
    }

    /// Ends it: what follows is not known any more.
    fn expire(&mut self, oldest: u64) {
        let status = refusal::expired(self.seen, oldest);
        self.line("ERROR", &status.object());
        self.over = true;
    }

    fn change(&mut self, change: &Change) {
        let before = change.before.as_ref().filter(|before| self.selector.chooses(before));
        let after = change.what != ChangeKind::Deleted && self.selector.chooses(&change.object);
        match (before, after) {
            (None, true) => self.send("ADDED", &change.object),
            (Some(_), true) => self.send("MODIFIED", &change.object),
            (Some(_), false) if change.what == ChangeKind::Deleted => self.send("DELETED", &change.object),
            (Some(before), false) => {
                // It is there still, but no longer chosen: its last chosen state, with the version of the change (`watch_cache.go`).
                let mut last = Value::clone(before);
                last["metadata"]["resourceVersion"] = change.object["metadata"]["resourceVersion"].clone();
                self.send("DELETED", &last);
            }
            (None, false) => {}
        }
    }

    fn send(&mut self, what: &str, object: &Value) {
        let view = self.place.view;
        self.line(what, &view.shaped(object, self.columns));
        self.columns = false;
    }

    /// A bookmark, at the end of the initial events or later.
    fn mark(&mut self, initial: bool) {
        let resource = self.place.view.resource;
        let mut metadata = json!({"resourceVersion": self.seen.to_string(), "creationTimestamp": null});
        if initial {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object = match self.place.view.accept.form {
            Form::Table => json!({
                "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "columnDefinitions": null, "rows": [],
            }),
            Form::Metadata => {
                json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
            }
            Form::Object | Form::Discovery => {
                json!({"kind": resource.kind, "apiVersion": resource.api_version(), "metadata": metadata})
            }
        };
        self.line("BOOKMARK", &object);
    }

    fn line(&mut self, what: &str, object: &Value) {
        self.waiting.extend_from_slice(b"{\"type\":\"");
        self.waiting.extend_from_slice(what.as_bytes());
        self.waiting.extend_from_slice(b"\",\"object\":");
        // A value cannot fail to be written.
        self.waiting.extend(serde_json::to_vec(object).unwrap_or_else(|_| b"null".to_vec()));
        self.waiting.extend_from_slice(b"}\n");
    }
}
