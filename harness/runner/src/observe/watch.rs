//! Watches on the pods and the events of a namespace, opened before anything happens in it.

use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::runtime::WatchStreamExt;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client};
use serde_json::Value;

/// Something that the API server told.
#[derive(Clone, Debug)]
pub enum Seen {
    /// A pod as it is now.
    Pod(Value),
    /// A pod as it last was: it is gone.
    PodGone(Value),
    /// The node as it is now.
    Node(Value),
    /// An event, new or counted up.
    Event(Value),
    /// A watch broke; it is opened again.
    Broken(String),
}

impl Seen {
    /// The variables of expressions that it changes.
    pub fn changes(&self) -> &'static [&'static str] {
        match self {
            Self::Pod(_) | Self::PodGone(_) => &["history", "podList", "pods"],
            Self::Node(_) => &["node", "nodeHistory"],
            Self::Event(_) => &["events"],
            Self::Broken(_) => &[],
        }
    }
}

/// How long a broken watch is left alone: twice as long every time until it works again. Always the same, so that a run on a model can be
/// repeated; one harness alone is no crowd that would have to be spread.
#[derive(Debug, Default)]
pub(crate) struct Pause {
    last: Option<Duration>,
}

impl Iterator for Pause {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let next = self.last.map_or(Duration::from_millis(800), |last| last * 2);
        self.last = Some(next.min(Duration::from_secs(30)));
        self.last
    }
}

impl Backoff for Pause {
    fn reset(&mut self) {
        self.last = None;
    }
}

/// Everything that happens to the pods and events of a namespace, from its beginning, and to a node.
pub fn watch(
    client: &Client,
    namespace: &str,
    node: &str,
) -> impl Stream<Item = Seen> + Send + Unpin + use<> {
    let resource = |kind: &str| ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", kind));
    let in_namespace = |kind: &str| Api::namespaced_with(client.clone(), namespace, &resource(kind));
    let everything = watcher::Config::default;
    let pods = of(in_namespace("Pod"), everything(), Seen::Pod, Some(Seen::PodGone));
    let events = of(in_namespace("Event"), everything(), Seen::Event, None);
    let only = everything().fields(&format!("metadata.name={node}"));
    let node = of(Api::all_with(client.clone(), &resource("Node")), only, Seen::Node, None);
    stream::select_all([pods.boxed(), events.boxed(), node.boxed()])
}

fn of(
    api: Api<DynamicObject>,
    config: watcher::Config,
    wrap: fn(Value) -> Seen,
    wrap_gone: Option<fn(Value) -> Seen>,
) -> impl Stream<Item = Seen> + Send + use<> {
    watcher(api, config).backoff(Pause::default()).filter_map(move |seen| async move {
        let value = |object: DynamicObject| serde_json::to_value(object).ok().map(plain);
        match seen {
            Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) => value(object).map(wrap),
            Ok(watcher::Event::Delete(object)) => wrap_gone.and_then(|wrap| value(object).map(wrap)),
            Ok(_) => None,
            Err(error) => Some(Seen::Broken(error.to_string())),
        }
    })
}

/// An object without `managedFields`, which nobody reads and which are half of it.
pub fn plain(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}
