//! The state of a case while it runs.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::history;
use crate::views::{ContainerStatusView, EventView, PodView};

/// Times of the observation's last changes.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    pub(crate) last_change: Instant,
    pub(crate) fingerprint: String,
    pub(crate) settled_since: Option<Instant>,
    pub(crate) stuck_since: Option<Instant>,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            last_change: Instant::now(),
            fingerprint: String::new(),
            settled_since: None,
            stuck_since: None,
        }
    }
}

/// Pods, events and the node as watches delivered them so far.
#[derive(Clone, Debug, Default)]
pub struct LiveState {
    /// The existing pods, by the names that the case uses.
    pub pods: BTreeMap<String, Value>,
    /// The events in order of arrival, one entry per UID.
    pub events: Vec<Value>,
    /// The history of each pod, by name.
    pub history: BTreeMap<String, Vec<Value>>,
    /// The latest version of the node.
    pub node: Value,
    /// The history of the node.
    pub node_history: Vec<Value>,
    /// The last version of each pod that no longer exists.
    pub gone: Vec<Value>,
    pub(crate) progress: Progress,
}

impl LiveState {
    /// Returns the state before anything was observed.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records a pod's new version, `t` seconds after the first pod was created.
    pub fn record_pod(&mut self, t: f64, pod: Value) {
        let name = PodView::new(&pod).case_name().to_owned();
        let history = self.history.entry(name.clone()).or_default();
        history::push_change(history, history::pod_entry(t, &pod, false));
        self.pods.insert(name, pod);
    }

    /// Records that a pod was deleted; `pod` is its last version.
    pub fn record_pod_gone(&mut self, t: f64, pod: Value) {
        let view = PodView::new(&pod);
        let name = view.case_name().to_owned();
        let history = self.history.entry(name.clone()).or_default();
        history::push_change(history, history::pod_entry(t, &pod, true));
        self.pods.remove(&name);
        self.gone.retain(|gone| PodView::new(gone).uid() != view.uid());
        self.gone.push(pod);
    }

    /// Records the node's new version.
    pub fn record_node(&mut self, t: f64, node: Value) {
        history::push_change(&mut self.node_history, history::node_entry(t, &node));
        self.node = node;
    }

    /// Records an event. A new version, such as one with a higher count, replaces the previous one.
    pub fn record_event(&mut self, event: Value) {
        let uid = EventView::new(&event).uid();
        match self.events.iter_mut().find(|known| EventView::new(known).uid() == uid) {
            Some(known) => *known = event,
            None => self.events.push(event),
        }
    }

    /// Returns all pods, deleted ones first.
    pub fn all_pods(&self) -> impl Iterator<Item = &Value> {
        self.gone.iter().chain(self.pods.values())
    }

    /// Returns `metadata.name` of each existing pod whose status reports an eviction.
    pub fn evicted_pods(&self) -> Vec<&str> {
        let pods = self.pods.values().map(PodView::new);
        pods.filter(|pod| pod.is_evicted()).map(PodView::name).filter(|name| !name.is_empty()).collect()
    }

    /// Reports whether every regular container of a pod runs, hence init containers are done.
    pub fn is_running(&self, pod: &str) -> bool {
        let Some(pod) = self.pods.get(pod).map(PodView::new) else { return false };
        let count = pod.regular_container_count();
        let running =
            pod.regular_container_statuses().filter(|status| ContainerStatusView::is_running(*status));
        count > 0 && running.count() == count
    }

    /// Returns the time from the creation of the first pod to the first start of a container of one
    /// of these pods.
    pub fn first_container_start(&self, created: &[Map<String, Value>]) -> Option<Duration> {
        let names = created.iter().filter_map(|pod| pod.get("metadata")?.get("name")?.as_str());
        let starts = names.filter_map(|name| history::first_container_start(self.history.get(name)?));
        Duration::try_from_secs_f64(starts.reduce(f64::min)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn first_container_start_ignores_other_pods() {
        let of = |name: &str, state: &str| {
            let mut pod = json!({"metadata": {"name": name}, "status": {"phase": "Pending"}});
            pod["status"]["initContainerStatuses"] = json!([{"name": "i", "state": {state: {}}}]);
            pod
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
    fn a_new_version_of_an_event_replaces_the_old_one() {
        let mut state = LiveState::new();
        state.record_event(json!({"metadata": {"uid": "1"}, "count": 1}));
        state.record_event(json!({"metadata": {"uid": "2"}, "count": 1}));
        state.record_event(json!({"metadata": {"uid": "1"}, "count": 2}));
        assert_eq!(state.events.len(), 2);
        assert_eq!(state.events[0]["count"], 2);
    }
}
