//! Watches on the pods and events of a namespace and on one node.

use evictlab_case::expression::Variable;
use evictlab_cluster::WatchBackoff;
use evictlab_evidence::{
    DecodeError, EvidenceSource, MissingEvidence, Recorded, RecordedEvent, RecordedNode, RecordedPod,
    UndecodablePod, WatchedKind,
};
use futures::{Stream, StreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::case_runner::observation::raw_list::recorded_form;

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
    /// A version of a pod could not be decoded.
    UndecodablePod(UndecodablePod),
    /// An event or the node could not be decoded.
    Undecodable(MissingEvidence),
    /// A watch failed and is retried.
    Failed(String),
}

impl WatchUpdate {
    /// Returns the variables of case expressions that the update may change.
    pub(crate) fn changed_variables(&self) -> &'static [Variable] {
        match self {
            Self::Pod(_) | Self::PodDeleted(_) | Self::ListEnded(WatchedKind::Pods) => {
                &[Variable::Evictions, Variable::History, Variable::PodList, Variable::Pods]
            }
            Self::Node(_) => &[Variable::Images, Variable::Node, Variable::NodeHistory],
            Self::Event(_) => &[Variable::Events, Variable::Evictions],
            Self::ListStarted(_) | Self::ListEnded(WatchedKind::Node) => &[],
            Self::UndecodablePod(_) | Self::Undecodable(_) | Self::Failed(_) => &[],
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
    let pods = watch(in_namespace("Pod"), all_objects(), watched_pods());
    // Events are listed again at the end of the case.
    let events = Watched {
        object_kind: "Event",
        undecodable: |_, error| missing(EvidenceSource::Events, error),
        applied: WatchUpdate::Event,
        deleted: None,
        kind: None,
    };
    let events = watch(in_namespace("Event"), all_objects(), events);
    let one_node = all_objects().fields(&format!("metadata.name={node}"));
    let node = Watched {
        object_kind: "Node",
        undecodable: |_, error| missing(EvidenceSource::Node, error),
        applied: WatchUpdate::Node,
        deleted: None,
        kind: Some(WatchedKind::Node),
    };
    let node = watch(Api::all_with(client.clone(), &resource("Node")), one_node, node);
    stream::select_all([pods.boxed(), events.boxed(), node.boxed()])
}

fn watched_pods() -> Watched<Pod> {
    Watched {
        object_kind: "Pod",
        undecodable: |pod, error| WatchUpdate::UndecodablePod(UndecodablePod::new(pod, error)),
        applied: WatchUpdate::Pod,
        deleted: Some(WatchUpdate::PodDeleted),
        kind: Some(WatchedKind::Pods),
    }
}

fn missing(source: EvidenceSource, error: &DecodeError) -> WatchUpdate {
    WatchUpdate::Undecodable(MissingEvidence::new(source, error))
}

/// The updates of one watch.
#[derive(Clone)]
struct Watched<T> {
    object_kind: &'static str,
    /// The update for an object that cannot be decoded.
    undecodable: fn(&Value, &DecodeError) -> WatchUpdate,
    applied: fn(Recorded<T>) -> WatchUpdate,
    /// `None` if deletions are not reported.
    deleted: Option<fn(Recorded<T>) -> WatchUpdate>,
    /// `Some` if the begin and end of each list are reported.
    kind: Option<WatchedKind>,
}

impl<T: DeserializeOwned> Watched<T> {
    /// Decodes an object and reports it.
    fn report(&self, object: DynamicObject, update: fn(Recorded<T>) -> WatchUpdate) -> WatchUpdate {
        let object = serde_json::to_value(object).expect("the object was read from JSON");
        match Recorded::try_decode(recorded_form(object, self.object_kind)) {
            Ok(object) => update(object),
            Err((object, error)) => (self.undecodable)(&object, &error),
        }
    }

    fn update(&self, event: Result<watcher::Event<DynamicObject>, watcher::Error>) -> Option<WatchUpdate> {
        match event {
            Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) => {
                Some(self.report(object, self.applied))
            }
            Ok(watcher::Event::Delete(object)) => Some(self.report(object, self.deleted?)),
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
    use serde_json::json;

    /// Variables that change with samples, with time or with a step, or not before the end.
    const OTHERS: [Variable; 16] = [
        Variable::Answers,
        Variable::Cgroup,
        Variable::Configz,
        Variable::Counted,
        Variable::Created,
        Variable::Kubelet,
        Variable::KubeletLog,
        Variable::Logs,
        Variable::Metrics,
        Variable::Minor,
        Variable::Objects,
        Variable::PodStats,
        Variable::Samples,
        Variable::Stats,
        Variable::SummaryBefore,
        Variable::T,
    ];

    #[test]
    fn every_variable_changes_with_an_update_or_otherwise() {
        let updates = [
            WatchUpdate::Pod(RecordedPod::default()),
            WatchUpdate::Node(RecordedNode::default()),
            WatchUpdate::Event(RecordedEvent::default()),
        ];
        let mut changed: Vec<Variable> =
            updates.iter().flat_map(WatchUpdate::changed_variables).copied().collect();
        changed.extend(OTHERS);
        changed.sort_unstable();
        changed.dedup();
        assert_eq!(changed, Variable::ALL);
    }

    /// A list omits the type of its items.
    #[test]
    fn a_listed_pod_has_its_type_and_one_that_cannot_be_decoded_has_its_name() {
        let update = |phase: Value| {
            let object = json!({"metadata": {"name": "web", "uid": "u"}, "status": {"phase": phase}});
            let object: DynamicObject = serde_json::from_value(object).unwrap();
            watched_pods().update(Ok(watcher::Event::InitApply(object))).unwrap()
        };
        let WatchUpdate::Pod(pod) = update(json!("Running")) else { panic!("it can be decoded") };
        let start = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"#;
        assert!(pod.json().to_string().starts_with(start), "{}", pod.json());
        let WatchUpdate::UndecodablePod(pod) = update(json!(7)) else { panic!("it cannot be decoded") };
        assert_eq!(pod.missing_evidence().source.to_string(), "pods/web");
    }
}
