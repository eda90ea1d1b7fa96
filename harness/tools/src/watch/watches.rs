//! Watches on the nodes, pods and Evicted events of a cluster.

use futures::{Stream, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{Event, Node as ApiNode};
use kube::runtime::reflector::{self, Store};
use kube::runtime::watcher::{self, watcher};
use kube::runtime::{WatchStreamExt, reflector as store_objects};
use kube::{Api, Client, Resource};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio_util::task::AbortOnDropHandle;

use super::options::WatchOptions;
use super::pod_fields::ApiPod;
use super::pod_index::PodIndex;
use evictlab_cluster::{Typed, WatchBackoff};

/// A message of a watch.
pub(super) enum WatchMessage {
    /// The watch on this resource has listed the existing objects.
    ListComplete(&'static str),
    /// An existing or new event.
    Event(Box<Event>),
    /// The API server denied the watch on this resource, with the reason.
    Denied(&'static str, String),
}

/// Objects of the cluster. Dropping it ends the watches.
pub(super) struct Watches {
    pub nodes: Store<Typed<ApiNode>>,
    pub pods: PodIndex,
    pub messages: Receiver<WatchMessage>,
    _tasks: [AbortOnDropHandle<()>; 3],
}

impl Watches {
    /// Number of watches.
    pub(crate) const COUNT: usize = 3;

    /// Opens the watches.
    pub(crate) fn open(client: &Client, options: &WatchOptions) -> Self {
        let (sender, messages) = channel(64);
        let nodes_config = match (&options.selector, &options.nodes[..]) {
            (Some(selector), _) => watcher::Config::default().labels(selector),
            (None, [one]) => watcher::Config::default().fields(&format!("metadata.name={one}")),
            (None, _) => watcher::Config::default(),
        };
        let pods_config = match (&options.selector, &options.nodes[..]) {
            (None, [one]) => watcher::Config::default().fields(&format!("spec.nodeName={one}")),
            _ => watcher::Config::default(),
        };
        let (nodes, nodes_writer) = reflector::store();
        let pods = PodIndex::default();
        let without_images = |event: watcher::Event<Typed<ApiNode>>| {
            event.modify(|node| node.0.status.iter_mut().for_each(|status| status.images = None))
        };
        let node_events = watch_all(Api::all(client.clone()), nodes_config).map_ok(without_images);
        let node_events = store_objects(nodes_writer, node_events);
        let index = pods.clone();
        let pod_events = watch_all(Api::<ApiPod>::all(client.clone()), pods_config)
            .inspect_ok(move |event| index.apply(event));
        let evicted = watcher::Config::default().fields("reason=Evicted");
        let events = watch_all(Api::<Typed<Event>>::all(client.clone()), evicted);
        let tasks = [
            forward("nodes", node_events, sender.clone(), |_| None),
            forward("pods", pod_events, sender.clone(), |_| None),
            forward("events", events, sender, |event| Some(WatchMessage::Event(Box::new(event.0)))),
        ];
        Self { nodes, pods, messages, _tasks: tasks }
    }
}

/// Watches a resource, reconnects after errors, and removes managed fields.
fn watch_all<K>(
    api: Api<K>,
    config: watcher::Config,
) -> impl Stream<Item = watcher::Result<watcher::Event<K>>> + Send + 'static
where
    K: Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let clear = |event: watcher::Event<K>| event.modify(|object| object.meta_mut().managed_fields = None);
    watcher(api, config).backoff(WatchBackoff::default()).map_ok(clear)
}

/// Forwards the messages of a watch.
fn forward<K: Send + 'static>(
    resource: &'static str,
    events: impl Stream<Item = watcher::Result<watcher::Event<K>>> + Send + 'static,
    sender: Sender<WatchMessage>,
    wrap: fn(K) -> Option<WatchMessage>,
) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            let message = match event {
                Ok(watcher::Event::InitDone) => Some(WatchMessage::ListComplete(resource)),
                Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) => wrap(object),
                Ok(watcher::Event::Init | watcher::Event::Delete(_)) => None,
                Err(error) => denial_reason(&error).map(|reason| WatchMessage::Denied(resource, reason)),
            };
            if let Some(message) = message
                && sender.send(message).await.is_err()
            {
                return;
            }
        }
    }))
}

/// Returns the reason for which the API server denied a watch. Returns `None` for connection
/// errors, which queries of the kubelets report, and for expired resource versions.
fn denial_reason(error: &watcher::Error) -> Option<String> {
    let status = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status,
        _ => return None,
    };
    (status.code != 410).then(|| status.message.clone())
}
