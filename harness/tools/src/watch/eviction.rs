//! Evicted events, their number, and their comparison with the ranking.

use std::collections::BTreeMap;

use evictlab_rules::message::{EVICTED_REASON, EvictionKind, EvictionMessage};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;

use super::ranking::EvictionCandidate;
use super::reading::Reading;
use evictlab_report::describe_message;

/// Result of the comparison of an eviction with the ranking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PredictionOutcome {
    /// The pod was a first eviction candidate.
    Hit,
    /// Another pod was the first eviction candidate.
    Miss,
    /// The ranking does not apply to the eviction.
    NotApplicable,
}

impl PredictionOutcome {
    /// All outcomes.
    pub(super) const ALL: [Self; 3] = [Self::Hit, Self::Miss, Self::NotApplicable];

    /// Returns the value of the label `outcome` of the metric.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Miss => "miss",
            Self::NotApplicable => "none",
        }
    }
}

/// An Evicted event of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EvictionEvent {
    /// Time of the event, with a resolution of one second.
    pub at: Option<Timestamp>,
    /// Node of the kubelet that reported the event.
    pub node: Option<String>,
    /// `namespace/name`.
    pub pod: String,
    /// UID of the pod.
    pub uid: String,
    /// The message.
    pub message: String,
}

impl EvictionEvent {
    /// Returns `None` for any other event.
    pub(crate) fn from_event(event: &Event) -> Option<Self> {
        let about = &event.involved_object;
        if event.reason.as_deref() != Some(EVICTED_REASON) || about.kind.as_deref() != Some("Pod") {
            return None;
        }
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let host = event.source.as_ref().and_then(|source| source.host.clone());
        let node = host.or_else(|| event.reporting_instance.clone());
        let seconds = event.last_timestamp.as_ref().map(|time| time.0);
        Some(Self {
            at: seconds.or_else(|| event.event_time.as_ref().map(|time| time.0)),
            node: node.filter(|name| !name.is_empty()),
            pod: format!("{}/{}", text(&about.namespace), text(&about.name)),
            uid: text(&about.uid),
            message: text(&event.message),
        })
    }

    /// Returns the parsed message in one line.
    pub(crate) fn summary(&self) -> String {
        describe_message(&self.message).join("; ")
    }

    /// Returns the resource or the limit that the message names, as a label of a metric; `unknown`
    /// for a text that is not an eviction message.
    fn cause(&self) -> &'static str {
        match self.message.parse() {
            Ok(EvictionMessage::NodePressure(pressure)) => pressure.resource.as_str(),
            Ok(message) => match message.kind() {
                EvictionKind::EmptyDirLimit => "emptydir-limit",
                kind => kind.as_str(),
            },
            Err(_) => "unknown",
        }
    }

    /// Compares the eviction with the last ranking.
    pub(super) fn prediction_outcome(&self, reading: Option<&Reading>) -> PredictionOutcome {
        let Ok(EvictionMessage::NodePressure(pressure)) = self.message.parse() else {
            return PredictionOutcome::NotApplicable;
        };
        let Some(reading) = reading.filter(|reading| pressure.resource == reading.signal.resource()) else {
            return PredictionOutcome::NotApplicable;
        };
        let is_predicted = reading.first_candidates().any(|candidate| candidate.uid == self.uid);
        if is_predicted { PredictionOutcome::Hit } else { PredictionOutcome::Miss }
    }

    /// Returns a sentence that compares the eviction with the last ranking.
    pub(crate) fn describe_prediction(&self, reading: Option<&Reading>) -> String {
        let pressure = match self.message.parse() {
            Ok(EvictionMessage::NodePressure(pressure)) => pressure,
            Ok(EvictionMessage::Rejected { .. }) => {
                return "rejected at admission, the pod never ran".to_owned();
            }
            Ok(_) => return "exceeded its own limit, ranking does not apply".to_owned(),
            Err(_) => return "unknown message, cannot compare with the ranking".to_owned(),
        };
        let Some(reading) = reading else {
            return "no ranking: the node could not be queried".to_owned();
        };
        if pressure.resource != reading.signal.resource() {
            return format!("evicted for {}, the ranking is for {}", pressure.resource, reading.signal);
        }
        if reading.exempt.iter().any(|never| never.uid == self.uid) {
            return "not predicted: the pod was considered exempt from eviction".to_owned();
        }
        let Some(candidate) = reading.order.iter().find(|candidate| candidate.uid == self.uid) else {
            return "not predicted: the pod was not on the node at the last query".to_owned();
        };
        let EvictionCandidate { rank, reason, .. } = candidate;
        let first: Vec<&str> = reading.first_candidates().map(|first| first.pod.as_str()).collect();
        match (candidate.is_first(), first.len()) {
            (true, 1) => format!("as predicted, first in the ranking: {reason}"),
            (true, equal) => {
                format!("as predicted, one of {equal} equal first pods in the ranking: {reason}")
            }
            (false, _) => {
                let first = first.join(", ");
                let first_reason = &reading.order[0].reason;
                format!("not predicted: rank {rank} ({reason}); the first was {first} ({first_reason})")
            }
        }
    }
}

/// Numbers of evictions since the start of a watch.
#[derive(Debug, Default)]
pub(super) struct EvictionCounters {
    /// By node and cause.
    pub(super) evictions: BTreeMap<(String, &'static str), u64>,
    /// By the outcome of the prediction.
    pub(super) predictions: BTreeMap<PredictionOutcome, u64>,
}

impl EvictionCounters {
    pub(super) fn add(&mut self, node: &str, eviction: &EvictionEvent, outcome: PredictionOutcome) {
        *self.evictions.entry((node.to_owned(), eviction.cause())).or_default() += 1;
        *self.predictions.entry(outcome).or_default() += 1;
    }
}
