//! Watches on the pods and events of a namespace and on one node.

use evictlab_cluster::{WatchBackoff, without_managed_fields};
use evictlab_evidence::{
    EvidenceSource, MissingEvidence, Recorded, RecordedEvent, RecordedNode, RecordedPod, WatchedKind,
};
use futures::{Stream, StreamExt, stream};
use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client};
use serde::de::DeserializeOwned;

/// One change that a watch delivers.
#[derive(Clone, Debug)]
pub(crate) enum WatchUpdate {
    /// A pod was created or changed.
    Pod(RecordedPod),
    /// A pod was deleted; its last state.
    PodDeleted(RecordedPod),
    /// The node changed.
    Node(RecordedNode),
    /// An event was created or its count changed.
    Event(RecordedEvent),
    /// A watch begins to list its objects.
    ListStarted(WatchedKind),
    /// A watch has listed its objects.
    ListEnded(WatchedKind),
    /// An object could not be decoded.
    Undecodable(MissingEvidence),
    /// A watch failed and is retried.
    Failed(String),
}

impl WatchUpdate {
    /// Returns the variables of case expressions that the update may change.
    pub(crate) fn changed_variables(&self) -> &'static [&'static str] {
        match self {
            Self::Pod(_) | Self::PodDeleted(_) | Self::ListEnded(WatchedKind::Pods) => {
                &["evictions", "history", "podList", "pods"]
            }
            Self::Node(_) => &["node", "nodeHistory"],
            Self::Event(_) => &["events", "evictions"],
            Self::ListStarted(_) | Self::ListEnded(WatchedKind::Node) => &[],
            Self::Undecodable(_) | Self::Failed(_) => &[],
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
        source: EvidenceSource::Pods,
        applied: WatchUpdate::Pod,
        deleted: Some(WatchUpdate::PodDeleted),
        kind: Some(WatchedKind::Pods),
    };
    let pods = watch(in_namespace("Pod"), all_objects(), pods);
    // Events are listed again at the end of the case.
    let events =
        Watched { source: EvidenceSource::Events, applied: WatchUpdate::Event, deleted: None, kind: None };
    let events = watch(in_namespace("Event"), all_objects(), events);
    let one_node = all_objects().fields(&format!("metadata.name={node}"));
    let node = Watched {
        source: EvidenceSource::Node,
        applied: WatchUpdate::Node,
        deleted: None,
        kind: Some(WatchedKind::Node),
    };
    let node = watch(Api::all_with(client.clone(), &resource("Node")), one_node, node);
    stream::select_all([pods.boxed(), events.boxed(), node.boxed()])
}

/// The updates of one watch.
#[derive(Clone)]
struct Watched<T> {
    /// Evidence that is missing if an object cannot be decoded.
    source: EvidenceSource,
    applied: fn(Recorded<T>) -> WatchUpdate,
    /// `None` if deletions are not reported.
    deleted: Option<fn(Recorded<T>) -> WatchUpdate>,
    /// `Some` if the begin and end of each list are reported.
    kind: Option<WatchedKind>,
}

impl<T: DeserializeOwned> Watched<T> {
    /// Decodes an object and reports it.
    fn report(&self, object: DynamicObject, update: fn(Recorded<T>) -> WatchUpdate) -> Option<WatchUpdate> {
        let object = serde_json::to_value(object).ok().map(without_managed_fields)?;
        Some(match Recorded::decode(object) {
            Ok(object) => update(object),
            Err(error) => WatchUpdate::Undecodable(MissingEvidence::new(self.source.clone(), error)),
        })
    }

    fn update(&self, event: Result<watcher::Event<DynamicObject>, watcher::Error>) -> Option<WatchUpdate> {
        match event {
            Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) => {
                self.report(object, self.applied)
            }
            Ok(watcher::Event::Delete(object)) => self.report(object, self.deleted?),
            Ok(watcher::Event::Init) => self.kind.map(WatchUpdate::ListStarted),
            Ok(watcher::Event::InitDone) => self.kind.map(WatchUpdate::ListEnded),
            Err(error) => Some(WatchUpdate::Failed(error.to_string())),
        }
    }
}

fn watch<T: DeserializeOwned + Send + 'static>(
    api: Api<DynamicObject>,
    config: watcher::Config,
    watched: Watched<T>,
) -> impl Stream<Item = WatchUpdate> + Send {
    let events = watcher(api, config).backoff(WatchBackoff::default());
    events.filter_map(move |event| std::future::ready(watched.update(event)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use evictlab_case::expression::VARIABLES;

    /// Variables that change with samples, with time or with a step, or not before the end.
    const OTHERS: [&str; 15] = [
        "answers",
        "cgroup",
        "configz",
        "counted",
        "created",
        "kubelet",
        "kubeletLog",
        "logs",
        "metrics",
        "minor",
        "objects",
        "samples",
        "stats",
        "summaryBefore",
        "t",
    ];

    #[test]
    fn every_variable_changes_with_an_update_or_otherwise() {
        let updates = [
            WatchUpdate::Pod(RecordedPod::default()),
            WatchUpdate::Node(RecordedNode::default()),
            WatchUpdate::Event(RecordedEvent::default()),
        ];
        let mut changed: Vec<&str> =
            updates.iter().flat_map(WatchUpdate::changed_variables).copied().collect();
        changed.extend(OTHERS);
        changed.sort_unstable();
        changed.dedup();
        assert_eq!(changed, VARIABLES);
    }
}
