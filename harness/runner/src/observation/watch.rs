//! Watches on the pods and events of a namespace and on one node.

use evictlab_cluster::{WatchBackoff, without_managed_fields};
use evictlab_evidence::WatchedKind;
use futures::{Stream, StreamExt, stream};
use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client};
use serde_json::Value;

/// One change that a watch delivers.
#[derive(Clone, Debug)]
pub(crate) enum WatchUpdate {
    /// A pod was created or changed.
    Pod(Value),
    /// A pod was deleted; its last state.
    PodDeleted(Value),
    /// The node changed.
    Node(Value),
    /// An event was created or its count changed.
    Event(Value),
    /// A watch begins to list its objects.
    ListStarted(WatchedKind),
    /// A watch has listed its objects.
    ListEnded(WatchedKind),
    /// A watch failed and is retried.
    Failed(String),
}

impl WatchUpdate {
    /// Returns the variables of case expressions that the update may change.
    pub(crate) fn changed_variables(&self) -> &'static [&'static str] {
        match self {
            Self::Pod(_) | Self::PodDeleted(_) | Self::ListEnded(WatchedKind::Pods) => {
                &["history", "podList", "pods"]
            }
            Self::Node(_) => &["node", "nodeHistory"],
            Self::Event(_) => &["events"],
            Self::ListStarted(_) | Self::ListEnded(WatchedKind::Node) | Self::Failed(_) => &[],
        }
    }
}

/// Watches the pods and events of a namespace and one node, from the current state on.
pub(crate) fn watch_case(
    client: &Client,
    namespace: &str,
    node: &str,
) -> impl Stream<Item = WatchUpdate> + Send + Unpin + use<> {
    let resource = |kind: &str| ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", kind));
    let in_namespace = |kind: &str| Api::namespaced_with(client.clone(), namespace, &resource(kind));
    let all_objects = watcher::Config::default;
    let pods = Watched {
        applied: WatchUpdate::Pod,
        deleted: Some(WatchUpdate::PodDeleted),
        kind: Some(WatchedKind::Pods),
    };
    let pods = watch(in_namespace("Pod"), all_objects(), pods);
    let events = Watched { applied: WatchUpdate::Event, deleted: None, kind: None };
    let events = watch(in_namespace("Event"), all_objects(), events);
    let one_node = all_objects().fields(&format!("metadata.name={node}"));
    let node = Watched { applied: WatchUpdate::Node, deleted: None, kind: Some(WatchedKind::Node) };
    let node = watch(Api::all_with(client.clone(), &resource("Node")), one_node, node);
    stream::select_all([pods.boxed(), events.boxed(), node.boxed()])
}

/// The updates of one watch.
#[derive(Clone, Copy)]
struct Watched {
    applied: fn(Value) -> WatchUpdate,
    deleted: Option<fn(Value) -> WatchUpdate>,
    /// Objects whose lists are reported; events are listed again at the end of the case.
    kind: Option<WatchedKind>,
}

fn watch(
    api: Api<DynamicObject>,
    config: watcher::Config,
    watched: Watched,
) -> impl Stream<Item = WatchUpdate> + Send + use<> {
    watcher(api, config).backoff(WatchBackoff::default()).filter_map(move |event| async move {
        let value = |object: DynamicObject| serde_json::to_value(object).ok().map(without_managed_fields);
        match event {
            Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) => {
                value(object).map(watched.applied)
            }
            Ok(watcher::Event::Delete(object)) => {
                watched.deleted.and_then(|deleted| value(object).map(deleted))
            }
            Ok(watcher::Event::Init) => watched.kind.map(WatchUpdate::ListStarted),
            Ok(watcher::Event::InitDone) => watched.kind.map(WatchUpdate::ListEnded),
            Err(error) => Some(WatchUpdate::Failed(error.to_string())),
        }
    })
}
