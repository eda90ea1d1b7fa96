//! The evidence of a case, by pod.

use evictlab_rules::KubeletVersion;
use evictlab_rules::invariant::{EvictedEvent, evicted_events};
use evictlab_rules::message::EvictionMessage;
use evictlab_rules::pod::{Pod, Sample};
use evictlab_rules::threshold::Threshold;
use serde::Deserialize;
use serde_json::Value;

use super::Testimony;
use crate::observe::{Observations, ended_by_kubelet, statuses};

/// What was seen, read.
pub(super) struct Seen<'a> {
    pub kubelet: &'a KubeletVersion,
    pub observations: &'a Observations,
    pub pods: Vec<PodSeen<'a>>,
    pub samples: Vec<Sample>,
    pub thresholds: Vec<Threshold>,
    /// The API's refusal of an ephemeral container.
    pub refused: Option<&'a Value>,
}

/// One pod of the case.
pub(super) struct PodSeen<'a> {
    pub name: String,
    pub pod: Pod,
    /// As the API had it last; as created if nothing was seen of it since.
    pub object: &'a Value,
    /// Whether the API had it no more at the end.
    pub gone: bool,
    /// Its Evicted events, oldest first; rejections are not among them.
    pub events: Vec<EvictedEvent>,
    /// `status.message`, where `status.reason` is `Evicted`; neither is a rejection's.
    pub status: Option<&'a str>,
    /// The message of the kubelet's `DisruptionTarget` condition.
    pub condition: Option<&'a str>,
    /// Why the kubelet did not admit it.
    pub rejected: Option<String>,
    /// Its other events, as `reason: message`.
    pub told: Vec<String>,
    /// Whether a container of it ever ran.
    pub ran: bool,
}

impl<'a> Seen<'a> {
    pub(super) fn of(kubelet: &'a KubeletVersion, seen: &'a Observations) -> Self {
        let evicted = evicted_events(&seen.events);
        let pods = seen.pods_created.iter().map(|created| PodSeen::of(created, seen, &evicted)).collect();
        Self {
            kubelet,
            observations: seen,
            pods,
            samples: seen.samples.iter().filter_map(|sample| Sample::deserialize(sample).ok()).collect(),
            thresholds: seen.thresholds(),
            refused: seen.refused.as_ref(),
        }
    }

    pub(super) fn pod(&self, name: &str) -> Option<&PodSeen<'a>> {
        self.pods.iter().find(|pod| pod.name == name)
    }
}

impl<'a> PodSeen<'a> {
    fn of(created: &'a Value, seen: &'a Observations, evicted: &[EvictedEvent]) -> Self {
        let uid = &created["metadata"]["uid"];
        let last = seen.pods_final.iter().find(|pod| pod["metadata"]["uid"] == *uid);
        let before_it_went = || seen.pods_gone.iter().find(|pod| pod["metadata"]["uid"] == *uid);
        let object = last.or_else(before_it_went).unwrap_or(created);
        let is_its = |event: &&EvictedEvent| *uid == *event.uid;
        let (rejections, events): (Vec<_>, Vec<_>) =
            evicted.iter().filter(is_its).cloned().partition(|event| is_rejection(&event.message));
        let status = &object["status"];
        let said = status["message"].as_str().filter(|_| status["reason"] == "Evicted");
        let condition = ended_by_kubelet(status);
        let others = seen.events.iter().filter(|event| {
            event["involvedObject"]["uid"] == *uid
                && event["type"] == "Warning"
                && event["reason"] != "Evicted"
        });
        let text = |value: &Value| value.as_str().unwrap_or_default().trim_end().to_owned();
        let mut told: Vec<_> =
            others.map(|event| format!("{}: {}", text(&event["reason"]), text(&event["message"]))).collect();
        told.dedup();
        let started = seen
            .events
            .iter()
            .any(|event| event["involvedObject"]["uid"] == *uid && event["reason"] == "Started");
        Self {
            name: text(&created["metadata"]["name"]),
            pod: Pod::deserialize(object).unwrap_or_default(),
            object,
            gone: last.is_none(),
            events,
            status: said.filter(|message| !is_rejection(message)),
            condition: condition.and_then(|condition| condition["message"].as_str()),
            rejected: said
                .filter(|message| is_rejection(message))
                .map(str::to_owned)
                .or_else(|| rejections.first().map(|event| event.message.clone()))
                .or_else(|| not_taken(status)),
            told,
            ran: started || statuses(status).any(ran),
        }
    }

    pub(super) fn was_evicted(&self) -> bool {
        !self.events.is_empty() || self.status.is_some()
    }

    /// What the kubelet said when it decided: the first event's message, or where the event is lost, the status.
    pub(super) fn message(&self) -> Option<&str> {
        self.events.first().map(|event| event.message.as_str()).or(self.status)
    }

    /// Statuses of all containers, of every kind.
    pub(super) fn containers(&self) -> impl Iterator<Item = &'a Value> {
        statuses(&self.object["status"])
    }

    pub(super) fn testimony(&self) -> Testimony {
        let annotations = |event: &EvictedEvent| {
            event.annotations.iter().map(|(key, value)| (key.clone(), Value::from(value.clone()))).collect()
        };
        Testimony {
            pod: self.name.clone(),
            events: self.events.iter().map(|event| event.message.clone()).collect(),
            status: self.status.map(str::to_owned),
            condition: self.condition.map(str::to_owned),
            annotations: self.events.first().map(annotations),
        }
    }
}

/// What never started and is no more has an end all the same, without a start: the kubelet's status manager gives every container of a pod
/// that is over one (`TerminatePod`).
pub(super) fn ran(status: &Value) -> bool {
    let [running, terminated] = ["running", "terminated"].map(|state| &status["state"][state]);
    !running.is_null() || !terminated["startedAt"].is_null()
}

/// Why a node did not take a pod at all, such as one that asks for more than it has: no container of such a pod ever was.
fn not_taken(status: &Value) -> Option<String> {
    let reason = status["reason"].as_str().filter(|_| status["phase"] == "Failed")?;
    let message = status["message"].as_str().unwrap_or_default();
    let at_admission = reason.starts_with("OutOf") || message.starts_with("Pod was rejected: ");
    (at_admission && reason != "Evicted").then(|| format!("{reason}: {message}"))
}

fn is_rejection(message: &str) -> bool {
    matches!(message.parse(), Ok(EvictionMessage::Rejected { .. }))
        || message.starts_with("Pod was rejected: ")
}
