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
    /// An event, new or counted up.
    Event(Value),
    /// A watch broke; it is opened again.
    Broken(String),
}

/// How long a broken watch is left alone: twice as long every time until it works again. Always the same, so that a run on a model can be
/// repeated; one harness alone is no crowd that would have to be spread.
#[derive(Debug, Default)]
struct Pause {
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

/// Everything that happens to the pods and events of a namespace, from its beginning.
pub fn watch(client: &Client, namespace: &str) -> impl Stream<Item = Seen> + Send + Unpin + use<> {
    let of = |kind: &str, wrap: fn(Value) -> Seen| {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", kind));
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
        watcher(api, watcher::Config::default()).backoff(Pause::default()).filter_map(
            move |seen| async move {
                match seen {
                    Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) => {
                        serde_json::to_value(object).ok().map(|object| wrap(plain(object)))
                    }
                    Ok(_) => None,
                    Err(error) => Some(Seen::Broken(error.to_string())),
                }
            },
        )
    };
    stream::select(of("Pod", Seen::Pod).boxed(), of("Event", Seen::Event).boxed())
}

/// An object without `managedFields`, which nobody reads and which are half of it.
pub fn plain(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}
