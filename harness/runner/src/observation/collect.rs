//! Evidence that is read once at the end of a case: final pods and events, the node's status, the
//! eviction counters and the kubelet's log.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::api::ListParams;
use kube::core::Request;
use kube::{Api, Client, Resource};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use evictlab_case::expression::KeysRead;
use evictlab_cluster::{MAX_KUBELET_LOG_LINES, MetricLine, Node, api_error_message, without_managed_fields};
use evictlab_evidence::{
    DecodeError, EvidenceSource, LiveState, Metric, MissingEvidence, NodeState, Observations, Recorded,
    RecordedEvent, RecordedPod,
};

use crate::observation::read_budget::ReadBudget;

/// Maximum number of pods, and of events, that are listed at the end of a case.
const MAX_LISTED: u32 = 10_000;

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

/// Reason why the final pods could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FinalPodsError {
    #[error("{}", api_error_message(.0))]
    List(#[from] kube::Error),
    #[error(transparent)]
    Decode(#[from] DecodeError),
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
        match budget.read(self.final_pods()).await {
            Ok((pods, is_complete)) => {
                if is_complete {
                    let listed = pods.iter().map(|pod| pod.case_name().to_owned()).collect();
                    live.record_unlisted_pods(observations.seconds.unwrap_or_default(), &listed);
                } else {
                    missing.push(MissingEvidence::new(EvidenceSource::Pods, cut_list()));
                }
                copy_live_state(&live, observations);
                observations.pods_final = pods;
            }
            Err(error) => {
                copy_live_state(&live, observations);
                missing.push(MissingEvidence::new(EvidenceSource::Pods, error));
            }
        }
        missing.extend(live.missing);
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

    /// Lists the pods of the case. Returns whether the list is complete.
    async fn final_pods(&self) -> Result<(Vec<RecordedPod>, bool), FinalPodsError> {
        let pods: Api<Pod> = Api::namespaced(self.node.client().clone(), self.namespace);
        let list = pods.list(&ListParams::default().limit(MAX_LISTED)).await?;
        let is_complete = list.metadata.continue_.is_none_or(|token| token.is_empty());
        let recorded = |pod: Pod| {
            let value = serde_json::to_value(pod).ok()?;
            Some(Recorded::decode(with_type_meta(without_managed_fields(value), "Pod")))
        };
        Ok((list.items.into_iter().filter_map(recorded).collect::<Result<_, _>>()?, is_complete))
    }

    /// Adds the events that a failed watch may have missed. Events about a node are in the
    /// namespace `default`.
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
            let listed = list_events(self.node.client(), namespace, &filter, self.before.at);
            match budget.read(listed).await {
                Ok((listed, is_complete)) => {
                    let cut =
                        (!is_complete).then(|| MissingEvidence::new(EvidenceSource::Events, cut_list()));
                    missing.extend(cut);
                    missing.extend(listed.into_iter().filter_map(|event| add_unless_known(events, event)))
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
    observations.node_object = live.node.clone();
    observations.events = live.events.clone();
    observations.pods_final = live.pods.values().cloned().collect();
}

/// Adds `apiVersion` and `kind`, which the API server omits in the items of a list.
fn with_type_meta(mut object: Value, kind: &str) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), json!("v1"));
        fields.insert("kind".to_owned(), json!(kind));
    }
    object
}

fn cut_list() -> String {
    format!("the list was cut after {MAX_LISTED}")
}

/// Lists the events of a namespace since `since`. Older events, of which a node has many, are not
/// parsed. Returns whether the list is complete.
async fn list_events(
    client: &Client,
    namespace: &str,
    filter: &ListParams,
    since: Timestamp,
) -> Result<(Vec<Value>, bool), kube::Error> {
    #[derive(Deserialize)]
    struct EventList {
        #[serde(default)]
        metadata: ListMeta,
        items: Option<Vec<Box<RawValue>>>,
    }
    let filter = filter.clone().limit(MAX_LISTED);
    let request = Request::new(Event::url_path(&(), Some(namespace))).list(&filter);
    let list: EventList = client.request(request.map_err(kube::Error::BuildRequest)?).await?;
    let items = list.items.unwrap_or_default();
    let recent = items.iter().filter(|event| is_since(event, since));
    let recent = recent.map(|event| serde_json::from_str(event.get()).map_err(kube::Error::SerdeError));
    let is_complete = list.metadata.continue_.is_none_or(|token| token.is_empty());
    Ok((recent.collect::<Result<_, _>>()?, is_complete))
}

fn is_since(event: &RawValue, since: Timestamp) -> bool {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct EventTimes {
        last_timestamp: Option<Timestamp>,
        event_time: Option<Timestamp>,
    }
    // An event whose times cannot be parsed is kept as evidence.
    let times: EventTimes = serde_json::from_str(event.get()).unwrap_or_default();
    // Event times have a resolution of one second.
    times.last_timestamp.or(times.event_time).is_none_or(|time| time.as_second() >= since.as_second())
}

/// Adds an event that no watch delivered. Returns the events as missing evidence if it cannot be
/// decoded.
fn add_unless_known(events: &mut Vec<RecordedEvent>, event: Value) -> Option<MissingEvidence> {
    match RecordedEvent::decode(with_type_meta(without_managed_fields(event), "Event")) {
        Ok(event) => {
            if !events.iter().any(|known| known.uid() == event.uid()) {
                events.push(event);
            }
            None
        }
        Err(error) => Some(MissingEvidence::new(EvidenceSource::Events, error)),
    }
}

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

    #[test]
    fn keeps_events_since_a_time_and_those_without_a_valid_time() {
        let since = "2026-11-21T09:30:12.7Z".parse().unwrap();
        let rows = [
            (r#"{"lastTimestamp": "2026-11-21T09:30:12Z"}"#, true),
            (r#"{"lastTimestamp": "2026-11-21T09:30:11Z", "eventTime": null}"#, false),
            (r#"{"lastTimestamp": null, "eventTime": "2026-11-21T09:30:11.999999Z"}"#, false),
            (r#"{"lastTimestamp": null, "eventTime": "2026-11-21T09:30:13.000001Z"}"#, true),
            (r#"{"metadata": {}}"#, true),
            (r#"{"lastTimestamp": "yesterday"}"#, true),
        ];
        for (event, kept) in rows {
            let event: Box<RawValue> = serde_json::from_str(event).unwrap();
            assert_eq!(is_since(&event, since), kept, "{event}");
        }
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
