//! The state of a case while it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use evictlab_case::case_name;
use evictlab_rules::message::EVICTED_REASON;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::history::{self, MAX_HISTORY, NodeHistoryEntry, NodeImage, PodHistoryEntry};
use crate::missing::{EvidenceSource, MissingEvidence};
use crate::objects::{RecordedEvent, RecordedNode, RecordedPod};
use crate::recorded::Recorded;
use crate::undecodable_pod::UndecodablePod;

/// Cause of gaps in a history.
const MISSED_CHANGES: &str = "the watch expired and may have missed changes";

/// Maximum number of events of a case, and of Evicted events beyond it.
const MAX_EVENTS: usize = 5000;
/// Maximum number of pods whose last version is kept: a controller may create pods in a loop.
const MAX_GONE_PODS: usize = 1000;

/// Objects that a watch delivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchedKind {
    /// The pods of the case's namespace.
    Pods,
    /// The case's node.
    Node,
}

/// The pods that a list contains, by name, with their UIDs. A listed pod without a UID is any pod
/// of its name.
#[derive(Clone, Debug, Default)]
pub struct ListedPods(BTreeSet<(String, Option<String>)>);

impl ListedPods {
    /// Adds a pod.
    pub fn insert(&mut self, pod: &RecordedPod) {
        self.0.insert((pod.case_name().to_owned(), pod.uid().map(str::to_owned)));
    }

    /// Adds a pod that cannot be decoded.
    pub fn insert_undecodable(&mut self, pod: &UndecodablePod) {
        self.0.insert((pod.name.clone(), pod.uid.clone()));
    }

    fn contains(&self, pod: &RecordedPod) -> bool {
        let first = (pod.case_name().to_owned(), None);
        let mut listed = self.0.range(first..).take_while(|(name, _)| name == pod.case_name());
        listed.any(|(_, uid)| uid.is_none() || uid.as_deref() == pod.uid())
    }
}

/// Pods, events and the node as watches delivered them so far.
#[derive(Clone, Debug, Default)]
pub struct LiveState {
    /// The existing pods, by the names that the case uses.
    pub pods: BTreeMap<String, RecordedPod>,
    /// The events in order of arrival, one entry per UID.
    pub events: Vec<RecordedEvent>,
    /// The history of each pod, by name.
    pub history: BTreeMap<String, Vec<Recorded<PodHistoryEntry>>>,
    /// The latest version of the node.
    pub node: RecordedNode,
    /// The history of the node.
    pub node_history: Vec<Recorded<NodeHistoryEntry>>,
    /// Images that the node has listed.
    pub images: Vec<NodeImage>,
    /// The last version of each pod that no longer exists.
    pub gone: Vec<RecordedPod>,
    /// Time of the first request to delete each pod, by UID.
    pub deletion_requests: BTreeMap<String, Timestamp>,
    /// Evidence that watches did not deliver.
    missing: Vec<MissingEvidence>,
    /// The pods whose last version cannot be decoded, by name.
    undecodable: BTreeMap<String, UndecodablePod>,
    /// `Some` while the watch on pods lists them.
    listed: Option<ListedPods>,
    /// True while the watch on the node lists it.
    is_listing_node: bool,
}

impl LiveState {
    /// Returns the state before anything was observed.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records a pod's new version, `t` seconds after the first pod was created.
    pub fn record_pod(&mut self, t: f64, pod: RecordedPod) {
        let name = pod.case_name().to_owned();
        let is_listed = self.listed.is_some();
        if let Some(listed) = &mut self.listed {
            listed.insert(&pod);
        }
        self.note_missed_changes(t, &name, &pod, is_listed);
        self.note_decoded(&pod);
        self.push_pod_history(PodHistoryEntry::new(t, &pod, false), &name);
        self.note_deletion_request(&pod);
        self.pods.insert(name, pod);
    }

    /// Keeps the time of the first request to delete a pod: the last one, of the kubelet after the
    /// containers have terminated, replaces it.
    fn note_deletion_request(&mut self, pod: &RecordedPod) {
        if let (Some(uid), Some(time)) = (pod.uid(), pod.deletion_requested_at()) {
            self.deletion_requests.entry(uid.to_owned()).or_insert(time);
        }
    }

    fn push_pod_history(&mut self, entry: PodHistoryEntry, pod: &str) {
        let history = self.history.entry(pod.to_owned()).or_default();
        if !history::push_change(history, entry) {
            self.record_missing(MissingEvidence::new(EvidenceSource::PodHistory, full_history(pod)));
        }
    }

    /// Compares a new version of a pod with the known pod of that name.
    fn note_missed_changes(&mut self, t: f64, name: &str, new: &RecordedPod, is_listed: bool) {
        let Some(known) = self.pods.get(name) else { return };
        if known.uid() != new.uid() {
            self.record_vanished(t, known.clone());
        } else if is_listed && known.metadata.resource_version != new.metadata.resource_version {
            self.record_missing(MissingEvidence::new(EvidenceSource::PodHistory, MISSED_CHANGES));
        }
    }

    /// Records that the API server returned a version of a pod that cannot be decoded. The end of
    /// the pod is missing evidence until a later version is decoded.
    pub fn record_undecodable_pod(&mut self, pod: UndecodablePod) {
        if let Some(listed) = &mut self.listed {
            listed.insert_undecodable(&pod);
        }
        self.undecodable.insert(pod.name.clone(), pod);
    }

    /// Records that the last version of a pod could be decoded. The history lacks an earlier one
    /// that could not.
    pub fn note_decoded(&mut self, pod: &RecordedPod) {
        if let Some(earlier) = self.undecodable.remove(pod.case_name()) {
            let cause = format!("a version of {} was not recorded: {}", earlier.name, earlier.cause);
            self.record_missing(MissingEvidence::new(EvidenceSource::PodHistory, cause));
        }
    }

    /// Records that a watch begins to list its objects: at its start, and after it has expired.
    pub fn record_list_start(&mut self, kind: WatchedKind) {
        match kind {
            WatchedKind::Pods => self.listed = Some(ListedPods::default()),
            WatchedKind::Node => self.is_listing_node = true,
        }
    }

    /// Records that a watch has listed its objects. Pods that were known and are not listed any
    /// more were deleted while the watch had expired: their last known version is kept, and their
    /// end is missing evidence.
    pub fn record_list_end(&mut self, t: f64, kind: WatchedKind) {
        match kind {
            WatchedKind::Node => self.is_listing_node = false,
            WatchedKind::Pods => {
                let Some(listed) = self.listed.take() else { return };
                self.record_unlisted_pods(t, &listed);
            }
        }
    }

    /// Records the deletion of each known pod that a complete list does not contain, such as one of
    /// which another pod has the name now.
    pub fn record_unlisted_pods(&mut self, t: f64, listed: &ListedPods) {
        let vanished: Vec<RecordedPod> =
            self.pods.values().filter(|pod| !listed.contains(pod)).cloned().collect();
        vanished.into_iter().for_each(|pod| self.record_vanished(t, pod));
    }

    fn record_vanished(&mut self, t: f64, pod: RecordedPod) {
        let name = pod.case_name().to_owned();
        let cause = "the pod was deleted, and its last version was not observed";
        self.record_missing(MissingEvidence::new(EvidenceSource::Pod(name), cause));
        self.record_pod_gone(t, pod);
    }

    /// Records evidence that was not delivered, once.
    pub fn record_missing(&mut self, missing: MissingEvidence) {
        if !self.missing.contains(&missing) {
            self.missing.push(missing);
        }
    }

    /// Returns the evidence that was not delivered, or that could not be decoded.
    pub fn missing(&self) -> impl Iterator<Item = MissingEvidence> {
        let undecodable = self.undecodable.values().map(UndecodablePod::missing_evidence);
        self.missing.iter().cloned().chain(undecodable)
    }

    /// Records that a pod was deleted; `pod` is its last version.
    pub fn record_pod_gone(&mut self, t: f64, pod: RecordedPod) {
        let name = pod.case_name().to_owned();
        self.note_decoded(&pod);
        self.push_pod_history(PodHistoryEntry::new(t, &pod, true), &name);
        self.note_deletion_request(&pod);
        if self.pods.get(&name).is_some_and(|known| known.uid() == pod.uid()) {
            self.pods.remove(&name);
        }
        self.gone.retain(|gone| gone.uid() != pod.uid());
        self.gone.push(pod);
        if self.gone.len() > MAX_GONE_PODS {
            self.forget_oldest_gone_pod();
        }
    }

    fn forget_oldest_gone_pod(&mut self) {
        let oldest = self.gone.remove(0);
        let name = oldest.case_name();
        if !self.all_pods().any(|other| other.case_name() == name) {
            self.history.remove(name);
        }
        if let Some(uid) = oldest.uid() {
            self.deletion_requests.remove(uid);
        }
        let cause = format!("more than {MAX_GONE_PODS} pods were deleted; the first ones were not kept");
        for source in [EvidenceSource::Pods, EvidenceSource::PodHistory] {
            self.record_missing(MissingEvidence::new(source, &cause));
        }
    }

    /// Records the node's new version.
    pub fn record_node(&mut self, t: f64, node: RecordedNode) {
        let known = &self.node;
        let is_changed =
            !known.is_null() && known.metadata.resource_version != node.metadata.resource_version;
        if self.is_listing_node && is_changed {
            self.record_missing(MissingEvidence::new(EvidenceSource::NodeHistory, MISSED_CHANGES));
        }
        if !history::push_change(&mut self.node_history, NodeHistoryEntry::new(t, &node)) {
            self.record_missing(MissingEvidence::new(EvidenceSource::NodeHistory, full_history("the node")));
        }
        self.note_images(&node);
        self.node = node;
    }

    /// Keeps the images that the node lists, and those that it has listed before.
    fn note_images(&mut self, node: &RecordedNode) {
        for image in NodeImage::listed_by(node) {
            let is_same = |known: &&mut NodeImage| known.names.iter().any(|name| image.names.contains(name));
            match self.images.iter_mut().find(is_same) {
                Some(known) => *known = image,
                None => self.images.push(image),
            }
        }
    }

    /// Records an event. A newer version, such as one with a higher count, replaces the previous
    /// one. If there are too many, only Evicted events are kept, up to twice the limit.
    pub fn record_event(&mut self, event: RecordedEvent) {
        let Some(event) = event.replace_in(&mut self.events) else { return };
        let max = if event.reason() == EVICTED_REASON { 2 * MAX_EVENTS } else { MAX_EVENTS };
        if self.events.len() < max {
            self.events.push(event);
        } else {
            let cause = format!("there were more than {max}; later ones were not kept");
            self.record_missing(MissingEvidence::new(EvidenceSource::Events, cause));
        }
    }

    /// Returns all pods, deleted ones first.
    pub fn all_pods(&self) -> impl Iterator<Item = &RecordedPod> {
        self.gone.iter().chain(self.pods.values())
    }

    /// Returns the name in the case of each existing pod whose status reports an eviction, not a
    /// rejection at admission.
    pub fn evicted_pods(&self) -> Vec<&str> {
        let pods = self.pods.iter().filter(|(_, pod)| pod.is_evicted());
        pods.map(|(name, _)| name.as_str()).collect()
    }

    /// Returns whether every regular container of a pod runs, hence init containers are done.
    pub fn is_running(&self, pod: &str) -> bool {
        self.pods.get(pod).is_some_and(RecordedPod::is_running)
    }

    /// Returns the time from the creation of the first pod to the first start of a container of one
    /// of these pods.
    pub fn first_container_start(&self, created: &[Map<String, Value>]) -> Option<Duration> {
        let names = created.iter().filter_map(case_name);
        let starts = names.filter_map(|name| history::first_container_start(self.history.get(name)?));
        Duration::try_from_secs_f64(starts.reduce(f64::min)?).ok()
    }
}

fn full_history(object: &str) -> String {
    format!("{object} changed more than {MAX_HISTORY} times; later changes were not kept")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::DeserializeOwned;
    use serde_json::json;

    #[test]
    fn first_container_start_ignores_other_pods() {
        let of = |name: &str, state: &str| {
            let mut pod = json!({"metadata": {"name": name}, "status": {"phase": "Pending"}});
            pod["status"]["initContainerStatuses"] = json!([{"name": "i", "state": {state: {}}}]);
            Recorded::decode(pod).unwrap()
        };
        let created =
            ["a", "b"].map(|name| json!({"metadata": {"name": name}}).as_object().cloned().unwrap());
        let mut state = LiveState::new();
        state.record_pod(0.1, of("static", "running"));
        state.record_pod(0.2, of("a", "waiting"));
        assert_eq!(state.first_container_start(&created), None);
        state.record_pod(1.5, of("b", "terminated"));
        state.record_pod(2.5, of("a", "running"));
        assert_eq!(state.first_container_start(&created), Some(Duration::from_millis(1500)));
        assert_eq!(state.first_container_start(&created[..1]), Some(Duration::from_millis(2500)));
    }

    #[test]
    fn a_newer_version_of_an_event_replaces_the_old_one() {
        let mut state = LiveState::new();
        for (uid, version, count) in [("1", "9", 1), ("2", "10", 1), ("1", "11", 2), ("1", "9", 1)] {
            let event = json!({"metadata": {"uid": uid, "resourceVersion": version}, "count": count});
            state.record_event(Recorded::decode(event).unwrap());
        }
        let counts: Vec<_> = state.events.iter().map(|event| (event.uid(), event.count)).collect();
        assert_eq!(counts, [(Some("1"), Some(2)), (Some("2"), Some(1))]);
    }

    #[test]
    fn the_first_request_to_delete_a_pod_is_kept() {
        let mut state = LiveState::new();
        let deleting = |time: &str, grace: u32| {
            let metadata = json!({"name": "p", "uid": "u", "deletionTimestamp": time, "deletionGracePeriodSeconds": grace});
            Recorded::decode(json!({"metadata": metadata})).unwrap()
        };
        state.record_pod(1.0, deleting("2026-11-21T00:45:30Z", 10));
        state.record_pod_gone(2.0, deleting("2026-11-21T00:45:35Z", 0));
        let requested: Timestamp = "2026-11-21T00:45:20Z".parse().unwrap();
        assert_eq!(state.deletion_requests, BTreeMap::from([("u".to_owned(), requested)]));
    }

    fn versioned<T: DeserializeOwned>(name: &str, version: &str) -> Recorded<T> {
        let object = json!({"metadata": {"name": name, "uid": name, "resourceVersion": version}, "status": {"phase": "Running"}});
        Recorded::decode(object).unwrap()
    }

    #[test]
    fn a_pod_that_a_new_list_lacks_is_gone_and_its_end_is_missing() {
        let mut state = LiveState::new();
        let list = |state: &mut LiveState, pods: &[RecordedPod]| {
            state.record_list_start(WatchedKind::Pods);
            pods.iter().for_each(|pod| state.record_pod(1.0, pod.clone()));
            state.record_list_end(2.0, WatchedKind::Pods);
        };
        list(&mut state, &[versioned("a", "1"), versioned("b", "2")]);
        assert_eq!((state.pods.len(), state.missing().count()), (2, 0));
        list(&mut state, &[versioned("a", "1")]);
        assert_eq!(state.pods.keys().collect::<Vec<_>>(), ["a"]);
        assert_eq!(state.gone, [versioned("b", "2")]);
        assert!(state.history["b"].last().unwrap().gone);
        assert_eq!(sources(&state), ["pods/b"]);
    }

    fn sources(state: &LiveState) -> Vec<String> {
        state.missing().map(|missing| missing.source.to_string()).collect()
    }

    fn with_uid(uid: &str, phase: &str) -> RecordedPod {
        let metadata = json!({"name": "a", "uid": uid});
        Recorded::decode(json!({"metadata": metadata, "status": {"phase": phase}})).unwrap()
    }

    /// The deletion of the first pod was not observed.
    #[test]
    fn another_pod_of_the_same_name_does_not_replace_the_last_version_of_the_first() {
        let mut watched = LiveState::new();
        watched.record_pod(1.0, with_uid("1", "Failed"));
        let mut listed = watched.clone();
        watched.record_pod(2.0, with_uid("2", "Running"));
        assert_eq!((&watched.gone, watched.pods["a"].uid()), (&vec![with_uid("1", "Failed")], Some("2")));
        assert_eq!(sources(&watched), ["pods/a"]);
        // A late report of the deletion does not remove the second pod.
        watched.record_pod_gone(3.0, with_uid("1", "Failed"));
        assert_eq!((watched.gone.len(), watched.pods["a"].uid()), (1, Some("2")));

        for (uid, gone) in [("1", 0), ("2", 1)] {
            let mut pods = ListedPods::default();
            pods.insert(&with_uid(uid, "Running"));
            listed.record_unlisted_pods(2.0, &pods);
            assert_eq!(listed.gone.len(), gone, "{uid}");
        }
        assert_eq!(sources(&listed), ["pods/a"]);
    }

    /// A node lists an image by its tag first, and by its digest, too, as soon as it is known.
    #[test]
    fn images_that_a_node_has_listed_stay() {
        let node = |images: Value| RecordedNode::decode(json!({"status": {"images": images}})).unwrap();
        let image = |names: &[&str], bytes: i64| json!({"names": names, "sizeBytes": bytes});
        let mut state = LiveState::new();
        state.record_node(1.0, node(json!([image(&["a:1"], 7), image(&["b:1"], 7)])));
        state.record_node(2.0, node(json!([image(&["a@sha256:1", "a:1"], 8)])));
        state.record_node(3.0, node(json!([])));
        let listed = [image(&["a@sha256:1", "a:1"], 8), image(&["b:1"], 7)];
        assert_eq!(json!(state.images), json!(listed));
    }

    /// The pod exists, and its state is not known until a version can be decoded.
    #[test]
    fn a_pod_that_cannot_be_decoded_is_missing_evidence() {
        let undecodable = |uid: &str| {
            let document = json!({"metadata": {"name": "a", "uid": uid}, "status": {"phase": 7}});
            UndecodablePod::new(&document, &RecordedPod::decode(document.clone()).unwrap_err())
        };
        let mut state = LiveState::new();
        state.record_pod(1.0, with_uid("1", "Running"));
        state.record_list_start(WatchedKind::Pods);
        state.record_undecodable_pod(undecodable("1"));
        state.record_list_end(2.0, WatchedKind::Pods);
        assert_eq!((state.pods.len(), state.gone.len()), (1, 0), "it was listed");
        assert_eq!(sources(&state), ["pods/a"]);
        let mut decoded = state.clone();
        decoded.record_pod(3.0, with_uid("1", "Failed"));
        assert_eq!(sources(&decoded), ["history"]);
        state.record_pod_gone(3.0, with_uid("1", "Failed"));
        assert_eq!(sources(&state), ["history"]);
    }

    #[test]
    fn a_new_list_with_another_version_leaves_a_gap_in_the_history() {
        let mut state = LiveState::new();
        for (version, expected) in [("1", &[][..]), ("1", &[]), ("2", &["history", "nodeHistory"])] {
            state.record_list_start(WatchedKind::Pods);
            state.record_list_start(WatchedKind::Node);
            state.record_pod(1.0, versioned("a", version));
            state.record_node(1.0, versioned("node", version));
            state.record_list_end(1.0, WatchedKind::Pods);
            state.record_list_end(1.0, WatchedKind::Node);
            assert_eq!(sources(&state), expected, "{version}");
        }
        state.missing.clear();
        state.record_pod(2.0, versioned("a", "3"));
        state.record_node(2.0, versioned("node", "3"));
        assert_eq!(sources(&state), [""; 0]);
    }

    #[test]
    fn evidence_beyond_its_limits_is_cut_with_a_note() {
        let causes = |state: &LiveState| -> Vec<String> {
            state.missing().map(|missing| missing.to_string()).collect()
        };
        let event = |nth: usize, reason: &str| {
            Recorded::decode(json!({"metadata": {"uid": format!("{nth}")}, "reason": reason})).unwrap()
        };
        let mut state = LiveState::new();
        (0..=MAX_EVENTS).for_each(|nth| state.record_event(event(nth, "Pulled")));
        state.record_event(event(MAX_EVENTS + 1, "Evicted"));
        assert_eq!(state.events.len(), MAX_EVENTS + 1);
        assert_eq!(state.events.last().unwrap().reason.as_deref(), Some("Evicted"));
        assert_eq!(
            causes(&state),
            ["events not collected: there were more than 5000; later ones were not kept"]
        );

        let pod = |name: &str, phase: &str| -> RecordedPod {
            let metadata = json!({"name": name, "uid": name, "deletionTimestamp": "2026-11-21T00:45:30Z"});
            Recorded::decode(json!({"metadata": metadata, "status": {"phase": phase}})).unwrap()
        };
        let mut state = LiveState::new();
        for nth in 0..=MAX_HISTORY {
            state.record_pod(nth as f64, pod("a", ["Running", "Pending"][nth % 2]));
        }
        assert_eq!(state.history["a"].len(), MAX_HISTORY);
        let cause = "history not collected: a changed more than 1000 times; later changes were not kept";
        assert_eq!(causes(&state), [cause]);

        let mut state = LiveState::new();
        for nth in 0..=MAX_GONE_PODS {
            let pod = pod(&format!("web-{nth}"), "Failed");
            state.record_pod(nth as f64, pod.clone());
            state.record_pod_gone(nth as f64, pod);
        }
        assert_eq!((state.gone.len(), state.history.len()), (MAX_GONE_PODS, MAX_GONE_PODS));
        assert_eq!(state.deletion_requests.len(), MAX_GONE_PODS);
        assert_eq!(state.gone[0].name(), "web-1");
        let cut = "not collected: more than 1000 pods were deleted; the first ones were not kept";
        assert_eq!(causes(&state), [format!("pods {cut}"), format!("history {cut}")]);
    }
}
