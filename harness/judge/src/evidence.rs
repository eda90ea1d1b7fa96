//! The evidence of a case, decoded and grouped by pod.

use evictlab_rules::KubeletVersion;
use evictlab_rules::invariant::{EvictedEvent, evicted_events};
use evictlab_rules::message::EvictionMessage;
use evictlab_rules::pod::Pod;
use evictlab_rules::summary::Sample;
use evictlab_rules::threshold::Threshold;
use serde_json::Value;

use crate::verdict::EvictionRecord;
use evictlab_evidence::{ApiAnswer, ContainerStatusView, EventView, Observations, PodView};

/// Prefix of the message of a pod that failed the kubelet's admission.
const REJECTION_PREFIX: &str = "Pod was rejected: ";

/// The decoded evidence of a case.
pub(crate) struct CaseEvidence<'a> {
    pub(crate) kubelet: &'a KubeletVersion,
    pub(crate) observations: &'a Observations,
    pub(crate) pods: Vec<PodEvidence<'a>>,
    pub(crate) samples: Vec<Sample>,
    pub(crate) thresholds: Vec<Threshold>,
    /// The API's answer that rejected an ephemeral container.
    pub(crate) rejection: Option<ApiAnswer>,
}

/// The evidence of one pod of the case.
pub(crate) struct PodEvidence<'a> {
    pub(crate) name: String,
    /// The pod as the rules read it.
    pub(crate) pod: Pod,
    /// The last version that the API returned.
    pub(crate) view: PodView<'a>,
    /// True if the pod did not exist at the end.
    pub(crate) gone: bool,
    /// Its Evicted events, oldest first, without rejections at admission.
    pub(crate) events: Vec<EvictedEvent>,
    /// `status.message` if `status.reason` is `Evicted` and the pod was not rejected at admission.
    pub(crate) status: Option<&'a str>,
    /// The message of the kubelet's `DisruptionTarget` condition.
    pub(crate) condition: Option<&'a str>,
    /// The reason why the kubelet rejected the pod at admission.
    pub(crate) rejection: Option<String>,
    /// Its other warning events, as `reason: message`, without consecutive duplicates.
    pub(crate) warnings: Vec<String>,
    /// True if any of its containers ever ran.
    pub(crate) has_run: bool,
}

impl<'a> CaseEvidence<'a> {
    pub(crate) fn new(kubelet: &'a KubeletVersion, observations: &'a Observations) -> Self {
        let evicted = evicted_events(&observations.events);
        let created = observations.pods_created.iter();
        Self {
            kubelet,
            observations,
            pods: created.map(|pod| PodEvidence::new(pod, observations, &evicted)).collect(),
            samples: observations.samples.decode().collect(),
            thresholds: observations.thresholds(),
            rejection: observations.rejection(),
        }
    }

    pub(crate) fn pod(&self, name: &str) -> Option<&PodEvidence<'a>> {
        self.pods.iter().find(|pod| pod.name == name)
    }
}

impl<'a> PodEvidence<'a> {
    fn new(created: &'a Value, observations: &'a Observations, evicted: &[EvictedEvent]) -> Self {
        let created = PodView::new(created);
        let uid = created.uid();
        let find = |pods: &'a [Value]| pods.iter().map(PodView::new).find(|pod| pod.uid() == uid);
        let last = find(&observations.pods_final);
        let view = last.or_else(|| find(&observations.pods_gone)).unwrap_or(created);
        let is_own = |event: &&EvictedEvent| uid == Some(event.uid.as_str());
        let (rejections, events): (Vec<_>, Vec<_>) =
            evicted.iter().filter(is_own).cloned().partition(|event| is_rejection(&event.message));
        let message = view.message().filter(|_| view.is_evicted());
        let own_events: Vec<EventView<'_>> = observations
            .events
            .iter()
            .map(EventView::new)
            .filter(|event| event.object_uid() == uid)
            .collect();
        let status_rejection = message.filter(|message| is_rejection(message)).map(str::to_owned);
        Self {
            name: created.name().trim_end().to_owned(),
            pod: view.decode(),
            view,
            gone: last.is_none(),
            events,
            status: message.filter(|message| !is_rejection(message)),
            condition: view.kubelet_termination_condition().and_then(|condition| condition.message()),
            rejection: status_rejection
                .or_else(|| rejections.first().map(|event| event.message.clone()))
                .or_else(|| admission_failure(view)),
            warnings: warnings(&own_events),
            has_run: own_events.iter().any(|event| event.reason() == "Started")
                || view.container_statuses().any(ContainerStatusView::has_run),
        }
    }

    pub(crate) fn was_evicted(&self) -> bool {
        !self.events.is_empty() || self.status.is_some()
    }

    /// Returns the time of the first Evicted event.
    pub(crate) fn evicted_at(&self) -> Option<jiff::Timestamp> {
        self.events.first()?.at
    }

    /// Returns the kubelet's message at the time of the decision: that of the first event or, if
    /// the event is lost, that of the status.
    pub(crate) fn message(&self) -> Option<&str> {
        self.events.first().map(|event| event.message.as_str()).or(self.status)
    }

    /// Returns the statuses of all containers, of every kind.
    pub(crate) fn container_statuses(&self) -> impl Iterator<Item = ContainerStatusView<'a>> {
        self.view.container_statuses()
    }

    pub(crate) fn eviction_record(&self) -> EvictionRecord {
        let annotations = |event: &EvictedEvent| {
            event.annotations.iter().map(|(key, value)| (key.clone(), Value::from(value.clone()))).collect()
        };
        EvictionRecord {
            pod: self.name.clone(),
            events: self.events.iter().map(|event| event.message.clone()).collect(),
            status: self.status.map(str::to_owned),
            condition: self.condition.map(str::to_owned),
            annotations: self.events.first().map(annotations),
        }
    }
}

fn warnings(events: &[EventView<'_>]) -> Vec<String> {
    let warnings = events.iter().filter(|event| event.is_warning() && event.reason() != "Evicted");
    let mut warnings: Vec<_> = warnings
        .map(|event| format!("{}: {}", event.reason().trim_end(), event.message().trim_end()))
        .collect();
    warnings.dedup();
    warnings
}

/// Returns the reason why the kubelet rejected a pod for anything but node pressure, such as more
/// requests than the node has.
fn admission_failure(pod: PodView<'_>) -> Option<String> {
    let reason = pod.reason().filter(|_| pod.phase() == Some("Failed"))?;
    let message = pod.message().unwrap_or_default();
    let at_admission = reason.starts_with("OutOf") || message.starts_with(REJECTION_PREFIX);
    (at_admission && reason != "Evicted").then(|| format!("{reason}: {message}"))
}

fn is_rejection(message: &str) -> bool {
    matches!(message.parse(), Ok(EvictionMessage::Rejected { .. })) || message.starts_with(REJECTION_PREFIX)
}
