//! The watches on nodes, pods and evictions of a cluster.

use futures::{Stream, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{Event, Node as ApiNode, Pod as ApiPod};
use kube::runtime::reflector::{self, Store};
use kube::runtime::watcher::{self, watcher};
use kube::runtime::{WatchStreamExt, reflector as keep};
use kube::{Api, Client, Resource};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio_util::task::AbortOnDropHandle;

use super::run::Asked;
use crate::observe::Pause;

/// What a watch tells.
pub(super) enum News {
    /// Everything that was there is known.
    Complete(&'static str),
    /// An event, one that was there already or a new one.
    Event(Box<Event>),
    /// The API server refuses the watch.
    Refused(&'static str, String),
}

/// What is known of the cluster's objects. The watches end with it.
pub(super) struct Sources {
    pub nodes: Store<ApiNode>,
    pub pods: Store<ApiPod>,
    pub news: Receiver<News>,
    _tasks: [AbortOnDropHandle<()>; 3],
}

impl Sources {
    /// How many tell that they are complete.
    pub const COUNT: usize = 3;

    /// Opens the watches.
    pub fn open(client: &Client, asked: &Asked) -> Self {
        let (tell, news) = channel(64);
        let nodes_config = match (&asked.selector, &asked.nodes[..]) {
            (Some(selector), _) => watcher::Config::default().labels(selector),
            (None, [one]) => watcher::Config::default().fields(&format!("metadata.name={one}")),
            (None, _) => watcher::Config::default(),
        };
        let pods_config = match (&asked.selector, &asked.nodes[..]) {
            (None, [one]) => watcher::Config::default().fields(&format!("spec.nodeName={one}")),
            _ => watcher::Config::default(),
        };
        let (nodes, nodes_writer) = reflector::store();
        let (pods, pods_writer) = reflector::store();
        let node_events = keep(nodes_writer, slim(Api::<ApiNode>::all(client.clone()), nodes_config));
        let pod_events = keep(pods_writer, slim(Api::<ApiPod>::all(client.clone()), pods_config));
        let evicted = watcher::Config::default().fields("reason=Evicted");
        let events = slim(Api::<Event>::all(client.clone()), evicted);
        let tasks = [
            follow("nodes", node_events, tell.clone(), |_| None),
            follow("pods", pod_events, tell.clone(), |_| None),
            follow("events", events, tell, |event| Some(News::Event(Box::new(event)))),
        ];
        Self { nodes, pods, news, _tasks: tasks }
    }
}

/// A watch that is opened again when it breaks, without what nobody reads.
fn slim<K>(
    api: Api<K>,
    config: watcher::Config,
) -> impl Stream<Item = watcher::Result<watcher::Event<K>>> + Send + 'static
where
    K: Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let clear = |event: watcher::Event<K>| event.modify(|object| object.meta_mut().managed_fields = None);
    watcher(api, config).backoff(Pause::default()).map_ok(clear)
}

/// Passes on what a watch tells.
fn follow<K: Send + 'static>(
    of: &'static str,
    events: impl Stream<Item = watcher::Result<watcher::Event<K>>> + Send + 'static,
    tell: Sender<News>,
    wrap: fn(K) -> Option<News>,
) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            let news = match event {
                Ok(watcher::Event::InitDone) => Some(News::Complete(of)),
                Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) => wrap(object),
                Ok(watcher::Event::Init | watcher::Event::Delete(_)) => None,
                Err(error) => refusal(&error).map(|why| News::Refused(of, why)),
            };
            if let Some(news) = news
                && tell.send(news).await.is_err()
            {
                return;
            }
        }
    }))
}

/// What the API server says against a watch; none where it only did not answer, as the kubelets' answers will show, or where the watch was old.
fn refusal(error: &watcher::Error) -> Option<String> {
    let status = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status,
        _ => return None,
    };
    (status.code != 410).then(|| status.message.clone())
}
