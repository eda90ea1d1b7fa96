//! Evidence that is read once at the end of a case: final pods and events, the node's status, the
//! eviction counters and the kubelet's log.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::ListParams;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use evictlab_case::expression::KeysRead;
use evictlab_cluster::{MAX_KUBELET_LOG_LINES, MetricLine, Node, api_error_message};
use evictlab_evidence::{
    EvidenceSource, ListedPods, LiveState, Metric, MissingEvidence, NodeState, Observations, Recorded,
    RecordedEvent, RecordedPod, UndecodablePod,
};

use crate::case_runner::observation::raw_list::{RawList, recorded_form, without_nulls};
use crate::case_runner::observation::read_budget::ReadBudget;

/// State of a node before the pods of a case.
#[derive(Clone, Debug, Default)]
pub(crate) struct StateBefore {
    /// Time of the reading, by the clock of the node: events and log lines have its times.
    pub at: Timestamp,
    /// The Summary.
    pub summary: Value,
    /// The metrics of the kubelet.
    pub metrics: Vec<MetricLine>,
}

/// Source of the final evidence of a case.
pub(crate) struct Collector<'a> {
    /// The case's node.
    pub node: &'a Node,
    /// The case's namespace.
    pub namespace: &'a str,
    /// State of the node before the pods.
    pub before: &'a StateBefore,
    /// Names of the metrics to keep.
    pub metrics: KeysRead,
    /// Keep every line of the kubelet's log instead of those about evictions.
    pub full_kubelet_log: bool,
    /// True if the case itself restarts the kubelet.
    pub restarts_kubelet: bool,
}

impl Collector<'_> {
    /// Completes the observations with the live state and with readings of the API server and the
    /// node, as far as they are read in time. Returns the sources that could not be read; the
    /// others are kept.
    pub(crate) async fn collect(
        &self,
        live: &LiveState,
        budget: &mut ReadBudget,
        observations: &mut Observations,
    ) -> Vec<MissingEvidence> {
        let mut missing = Vec::new();
        let mut live = live.clone();
        let final_pods = match budget.read(self.final_pods()).await {
            Ok(listed) => listed.add_to(&mut live, observations.seconds.unwrap_or_default(), &mut missing),
            Err(error) => {
                missing.push(MissingEvidence::new(EvidenceSource::Pods, error));
                live.pods.values().cloned().collect()
            }
        };
        copy_live_state(&live, observations);
        observations.pods_final = final_pods;
        missing.extend(live.missing());
        self.add_missed_events(budget, &mut observations.events, &mut missing).await;
        self.read_node(budget, observations, &mut missing).await;
        let is_known = missing.iter().any(|missing| missing.source == EvidenceSource::Summary);
        if observations.samples.is_empty() && !is_known {
            missing.push(MissingEvidence::new(EvidenceSource::Summary, "the node returned no Summary"));
        }
        if observations.samples.dropped() > 0 {
            let cause = format!("{} older ones were dropped to limit memory", observations.samples.dropped());
            missing.push(MissingEvidence::new(EvidenceSource::Summary, cause));
        }
        missing
    }

    async fn read_node(
        &self,
        budget: &mut ReadBudget,
        observations: &mut Observations,
        missing: &mut Vec<MissingEvidence>,
    ) {
        match budget.read(self.node.object()).await {
            Ok(node) => {
                let conditions = node.status.and_then(|status| status.conditions);
                let taints = node.spec.and_then(|spec| spec.taints);
                observations.node_status = Recorded::of(NodeState { conditions, taints }).unwrap_or_default();
            }
            Err(error) => missing.push(MissingEvidence::new(EvidenceSource::Node, error)),
        }
        match budget.read(self.node.metrics()).await {
            Ok(after) => {
                if !self.restarts_kubelet && has_restarted(&self.before.metrics, &after) {
                    let cause = "the kubelet restarted during the case, which resets its counters";
                    missing.push(MissingEvidence::new(EvidenceSource::Metrics, cause));
                }
                let mut metrics = metrics(&self.before.metrics, after);
                observations.evictions_counted = evictions_counted(&metrics);
                metrics.retain(|name, _| self.metrics.contains(name));
                observations.metrics = metrics;
            }
            Err(error) => missing.push(MissingEvidence::new(EvidenceSource::Metrics, error)),
        }
        self.read_resource_metrics(budget, observations, missing).await;
        match budget.read(self.node.kubelet_log(self.before.at)).await {
            Ok(Some(lines)) => {
                if lines.len() >= MAX_KUBELET_LOG_LINES {
                    let cause = format!("only the last {MAX_KUBELET_LOG_LINES} lines were read");
                    missing.push(MissingEvidence::new(EvidenceSource::KubeletLog, cause));
                }
                let keep = |line: &String| self.full_kubelet_log || is_about_eviction(line);
                observations.kubelet_log = lines.into_iter().filter(keep).collect();
            }
            Ok(None) => {
                let cause = "the node does not give access to it";
                missing.extend(
                    self.full_kubelet_log.then(|| MissingEvidence::new(EvidenceSource::KubeletLog, cause)),
                );
            }
            Err(error) => missing.push(MissingEvidence::new(EvidenceSource::KubeletLog, error)),
        }
    }

    /// Adds the usage that metrics-server reads, if the case reads one of its metrics.
    async fn read_resource_metrics(
        &self,
        budget: &mut ReadBudget,
        observations: &mut Observations,
        missing: &mut Vec<MissingEvidence>,
    ) {
        let is_read = |name: &str| RESOURCE_METRICS.contains(&name) && self.metrics.contains(name);
        if !RESOURCE_METRICS.into_iter().any(is_read) {
            return;
        }
        match budget.read(self.node.resource_metrics()).await {
            Ok(lines) => {
                let mut usage = metrics(&[], lines);
                usage.retain(|name, _| is_read(name));
                observations.metrics.append(&mut usage);
            }
            Err(error) => missing.push(MissingEvidence::new(EvidenceSource::Metrics, error)),
        }
    }

    /// Lists the pods of the case.
    async fn final_pods(&self) -> Result<FinalPods, String> {
        let list = RawList::read::<Pod>(self.node.client(), self.namespace, &ListParams::default()).await;
        list.and_then(FinalPods::decode).map_err(|error| api_error_message(&error))
    }

    /// Adds the events that a failed watch may have missed, and replaces those of which the API
    /// server has a newer version. Events about a node are in the namespace `default`.
    async fn add_missed_events(
        &self,
        budget: &mut ReadBudget,
        events: &mut Vec<RecordedEvent>,
        missing: &mut Vec<MissingEvidence>,
    ) {
        let node = &self.node.name;
        let of_node = format!("involvedObject.kind=Node,involvedObject.name={node}");
        let of_node = ListParams::default().fields(&of_node);
        for (namespace, filter) in [(self.namespace, ListParams::default()), ("default", of_node)] {
            match budget.read(RawList::read::<Event>(self.node.client(), namespace, &filter)).await {
                Ok(list) => {
                    let cut = (!list.is_complete).then(RawList::describe_cut);
                    missing.extend(cut.map(|cause| MissingEvidence::new(EvidenceSource::Events, cause)));
                    // Older events, of which a node has many, are not parsed.
                    let recent = list.items.iter().filter(|event| is_since(event, self.before.at));
                    missing.extend(recent.filter_map(|event| add_event(events, event)));
                }
                Err(error) => {
                    let cause = format!("failed to list events in {namespace}: {error}");
                    missing.push(MissingEvidence::new(EvidenceSource::Events, cause));
                }
            }
        }
    }
}

fn copy_live_state(live: &LiveState, observations: &mut Observations) {
    observations.pods_gone = live.gone.clone();
    observations.deletion_requests = live.deletion_requests.clone();
    observations.pod_history = live.history.clone();
    observations.node_history = live.node_history.clone();
    observations.images = live.images.clone();
    observations.node_object = live.node.clone();
    observations.events = live.events.clone();
}

/// The pods at the end of a case.
struct FinalPods {
    pods: Vec<RecordedPod>,
    undecodable: Vec<UndecodablePod>,
    /// False if there are more pods.
    is_complete: bool,
}

impl FinalPods {
    /// Decodes a list. A pod that cannot be decoded does not affect the others.
    fn decode(list: RawList) -> Result<Self, kube::Error> {
        let mut listed = Self { pods: vec![], undecodable: vec![], is_complete: list.is_complete };
        for item in list.items {
            let mut pod = serde_json::from_str(item.get()).map_err(kube::Error::SerdeError)?;
            without_nulls(&mut pod);
            match RecordedPod::try_decode(recorded_form(pod, "Pod")) {
                Ok(pod) => listed.pods.push(pod),
                Err((pod, error)) => listed.undecodable.push(UndecodablePod::new(&pod, &error)),
            }
        }
        Ok(listed)
    }

    /// Adds the list to the state of the case at its end, `t` seconds after the first pod was
    /// created. Returns the last version of each pod that exists: the listed one or, if that is not
    /// known, the last one that a watch delivered.
    fn add_to(self, live: &mut LiveState, t: f64, missing: &mut Vec<MissingEvidence>) -> Vec<RecordedPod> {
        let mut listed = ListedPods::default();
        self.pods.iter().for_each(|pod| listed.insert(pod));
        self.undecodable.iter().for_each(|pod| listed.insert_undecodable(pod));
        if self.is_complete {
            live.record_unlisted_pods(t, &listed);
        } else {
            missing.push(MissingEvidence::new(EvidenceSource::Pods, RawList::describe_cut()));
        }
        self.pods.iter().for_each(|pod| live.note_decoded(pod));
        self.undecodable.into_iter().for_each(|pod| live.record_undecodable_pod(pod));
        let is_unknown = |watched: &&RecordedPod| {
            !self.pods.iter().any(|pod| pod.uid() == watched.uid() && pod.case_name() == watched.case_name())
        };
        let unknown: Vec<RecordedPod> = live.pods.values().filter(is_unknown).cloned().collect();
        self.pods.into_iter().chain(unknown).collect()
    }
}

fn is_since(event: &RawValue, since: Timestamp) -> bool {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct EventTimes {
        last_timestamp: Option<Timestamp>,
        event_time: Option<Timestamp>,
        series: Option<Series>,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Series {
        last_observed_time: Option<Timestamp>,
    }
    // An event whose times cannot be parsed is kept as evidence.
    let times: EventTimes = serde_json::from_str(event.get()).unwrap_or_default();
    let of_series = times.series.and_then(|series| series.last_observed_time);
    let last = [times.last_timestamp, times.event_time, of_series].into_iter().flatten().max();
    // Event times have a resolution of one second.
    last.is_none_or(|time| time.as_second() >= since.as_second())
}

/// Adds a listed event that no watch delivered, or replaces its older version. Returns the events
/// as missing evidence if it cannot be decoded.
fn add_event(events: &mut Vec<RecordedEvent>, event: &RawValue) -> Option<MissingEvidence> {
    let event = serde_json::from_str(event.get()).map_err(|error| error.to_string());
    let event = event.and_then(|event: Value| {
        RecordedEvent::decode(recorded_form(event, "Event")).map_err(|error| error.to_string())
    });
    match event {
        Ok(event) => {
            let unknown = event.replace_in(events);
            events.extend(unknown);
            None
        }
        Err(error) => Some(MissingEvidence::new(EvidenceSource::Events, error)),
    }
}

/// Names of the memory metrics of `/metrics/resource`
/// (`pkg/kubelet/metrics/collectors/resource_metrics.go`).
const RESOURCE_METRICS: [&str; 3] =
    ["node_memory_working_set_bytes", "pod_memory_working_set_bytes", "container_memory_working_set_bytes"];

/// Returns whether the readings are of two processes.
fn has_restarted(before: &[MetricLine], after: &[MetricLine]) -> bool {
    let started = |lines: &[MetricLine]| {
        lines.iter().find(|line| line.name == "process_start_time_seconds").map(|line| line.value)
    };
    started(before).zip(started(after)).is_some_and(|(before, after)| before != after)
}

/// Returns the metrics after a case by name, with their increases.
fn metrics(before: &[MetricLine], after: Vec<MetricLine>) -> BTreeMap<String, Vec<Metric>> {
    let mut metrics: BTreeMap<String, Vec<Metric>> = BTreeMap::new();
    let before: HashMap<_, f64> =
        before.iter().map(|line| ((&line.name, &line.labels), line.value)).collect();
    for MetricLine { name, labels, value } in after {
        let previous = before.get(&(&name, &labels)).copied().filter(|previous| *previous <= value);
        let increase = value - previous.unwrap_or(0.0);
        metrics.entry(name).or_default().push(Metric { labels, value, increase });
    }
    metrics
}

/// Returns the increase of `kubelet_evictions` by signal, for each signal that increased.
fn evictions_counted(metrics: &BTreeMap<String, Vec<Metric>>) -> BTreeMap<String, u64> {
    let counters = metrics.get("kubelet_evictions").into_iter().flatten();
    counters
        .filter(|counter| counter.increase > 0.0)
        .filter_map(|counter| Some((counter.labels.get("eviction_signal")?.clone(), counter.increase as u64)))
        .collect()
}

fn is_about_eviction(line: &str) -> bool {
    line.contains("viction") || line.contains("vict pod") || line.contains("OOM")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keeps_events_since_a_time_and_those_without_a_valid_time() {
        let since = "2026-11-21T09:30:12.7Z".parse().unwrap();
        let rows = [
            (r#"{"lastTimestamp": "2026-11-21T09:30:12Z"}"#, true),
            (r#"{"lastTimestamp": "2026-11-21T09:30:11Z", "eventTime": null}"#, false),
            (r#"{"lastTimestamp": null, "eventTime": "2026-11-21T09:30:11.999999Z"}"#, false),
            (r#"{"lastTimestamp": null, "eventTime": "2026-11-21T09:30:13.000001Z"}"#, true),
            (
                r#"{"eventTime": "2026-11-21T09:29:00.000001Z", "series": {"count": 2, "lastObservedTime": "2026-11-21T09:30:13.000001Z"}}"#,
                true,
            ),
            (
                r#"{"eventTime": "2026-11-21T09:29:00.000001Z", "series": {"count": 2, "lastObservedTime": "2026-11-21T09:30:11.000001Z"}}"#,
                false,
            ),
            (r#"{"metadata": {}}"#, true),
            (r#"{"lastTimestamp": "yesterday"}"#, true),
        ];
        for (event, kept) in rows {
            let event: Box<RawValue> = serde_json::from_str(event).unwrap();
            assert_eq!(is_since(&event, since), kept, "{event}");
        }
    }

    fn raw(json: &Value) -> Box<RawValue> {
        serde_json::value::to_raw_value(json).unwrap()
    }

    /// The list is read after the last event of the watch.
    #[test]
    fn listed_events_are_added_or_replace_their_older_versions() {
        let event = |uid: &str, version: &str, count: u32| json!({"metadata": {"uid": uid, "resourceVersion": version}, "reason": "Evicted", "count": count});
        let watched = |uid, version, count| recorded_form(event(uid, version, count), "Event");
        let mut events: Vec<RecordedEvent> =
            [watched("a", "5", 1), watched("b", "7", 2)].map(|event| Recorded::decode(event).unwrap()).into();
        let listed = [event("b", "6", 1), event("a", "9", 3), event("c", "8", 1)];
        for event in listed {
            assert_eq!(add_event(&mut events, &raw(&event)), None);
        }
        let kept: Vec<&Value> = events.iter().map(Recorded::json).collect();
        assert_eq!(kept, [&watched("a", "9", 3), &watched("b", "7", 2), &watched("c", "8", 1)]);
        assert!(
            kept[0].to_string().starts_with(r#"{"apiVersion":"v1","kind":"Event","metadata":"#),
            "{}",
            kept[0]
        );
        let missing = add_event(&mut events, &raw(&json!({"count": "many"}))).unwrap();
        assert!(missing.cause.contains("failed to decode Event at count"), "{missing}");
    }

    fn pod(name: &str, uid: &str, phase: Value) -> Value {
        let metadata = json!({"name": name, "uid": uid, "creationTimestamp": null});
        json!({"metadata": metadata, "status": {"phase": phase, "newerField": 1}})
    }

    fn watched(pods: &[(&str, &str)]) -> LiveState {
        let mut live = LiveState::new();
        for (name, uid) in pods {
            live.record_pod(1.0, Recorded::decode(pod(name, uid, json!("Running"))).unwrap());
        }
        live
    }

    /// Adds a list of pods. Returns the names, UIDs and phases of the final pods, the UIDs of those
    /// that are gone, and the missing evidence.
    fn add_list(
        live: &mut LiveState,
        pods: &[Value],
        is_complete: bool,
    ) -> (Vec<String>, Vec<String>, Vec<String>) {
        let list = RawList { items: pods.iter().map(raw).collect(), is_complete };
        let mut missing = vec![];
        let pods = FinalPods::decode(list).unwrap().add_to(live, 2.0, &mut missing);
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        let describe =
            |pod: &RecordedPod| format!("{} {} {}", pod.name(), text(pod.uid()), text(pod.phase()));
        let sources = missing.into_iter().chain(live.missing()).map(|missing| missing.source.to_string());
        (
            pods.iter().map(describe).collect(),
            live.gone.iter().map(|pod| text(pod.uid())).collect(),
            sources.collect(),
        )
    }

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn final_pods_are_the_listed_ones_and_those_whose_listed_version_is_not_known() {
        let [a, b] = [("a", "1"), ("b", "2")];
        let failed = |name, uid| pod(name, uid, json!("Failed"));
        let undecodable = |name, uid| pod(name, uid, json!(7));
        let rows = [
            (
                vec![failed("a", "1"), failed("b", "2")],
                true,
                &["a 1 Failed", "b 2 Failed"][..],
                &[][..],
                &[][..],
            ),
            (vec![failed("a", "1")], true, &["a 1 Failed"], &["2"], &["pods/b"]),
            (vec![failed("a", "1")], false, &["a 1 Failed", "b 2 Running"], &[], &["pods"]),
            // Another pod has the name of the first one.
            (
                vec![failed("a", "3"), failed("b", "2")],
                true,
                &["a 3 Failed", "b 2 Failed"],
                &["1"],
                &["pods/a"],
            ),
            (
                vec![undecodable("a", "1"), failed("b", "2")],
                true,
                &["b 2 Failed", "a 1 Running"],
                &[],
                &["pods/a"],
            ),
            (
                vec![undecodable("c", "3"), failed("a", "1"), failed("b", "2")],
                true,
                &["a 1 Failed", "b 2 Failed"],
                &[],
                &["pods/c"],
            ),
        ];
        for (listed, is_complete, pods, gone, missing) in rows {
            let mut live = watched(&[a, b]);
            let result = add_list(&mut live, &listed, is_complete);
            assert_eq!(result, (texts(pods), texts(gone), texts(missing)), "{listed:?}");
        }
    }

    #[test]
    fn a_listed_pod_is_recorded_with_all_its_fields_but_nulls() {
        let list = RawList { items: vec![raw(&pod("a", "1", json!("Failed")))], is_complete: true };
        let listed = FinalPods::decode(list).unwrap();
        let expected = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","uid":"1"},"status":{"phase":"Failed","newerField":1}}"#;
        assert_eq!(listed.pods[0].json().to_string(), expected);
    }

    #[test]
    fn metrics_have_their_increase_and_a_restart_resets_them() {
        let line = |name: &str, signal: &str, value| MetricLine {
            name: name.to_owned(),
            labels: BTreeMap::from([("eviction_signal".to_owned(), signal.to_owned())]),
            value,
        };
        let evictions = |signal: &str, value| line("kubelet_evictions", signal, value);
        let before =
            [evictions("memory.available", 1.0), evictions("pid.available", 1.0), line("other", "a", 5.0)];
        let after = vec![
            evictions("memory.available", 3.0),
            evictions("pid.available", 1.0),
            evictions("emptydirfs.limit", 1.0),
            line("other", "a", 2.0),
        ];
        let metrics = metrics(&before, after);
        let counted = [("memory.available", 2), ("emptydirfs.limit", 1)];
        assert_eq!(
            evictions_counted(&metrics),
            counted.map(|(signal, count)| (signal.to_owned(), count)).into()
        );
        assert_eq!((metrics["other"][0].value, metrics["other"][0].increase), (2.0, 2.0));
    }
}
