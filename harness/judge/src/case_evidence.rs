//! The evidence of a case, decoded and grouped by pod.

use std::collections::HashSet;

use evictlab_rules::message::{EVICTED_REASON, is_rejection_message};
use evictlab_rules::pod::Pod;
use evictlab_rules::summary::Sample;
use evictlab_rules::threshold::Threshold;
use evictlab_rules::{EvictedEvent, KubeletVersion, event_time, evicted_events};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, PodCondition};
use serde_json::Value;

use crate::case_result::EvictionRecord;
use crate::known_bug::known_bug;
use crate::verdict::Inconclusive;
use evictlab_case::Case;
use evictlab_case::expression::Expression;
use evictlab_evidence::{
    ApiAnswer, ContainerStatusExt, DecodeError, EvidenceSource, MissingEvidence, Observations,
    PodHistoryEntry, Recorded, RecordedEvent, RecordedPod,
};

/// The decoded evidence of a case.
pub(crate) struct CaseEvidence<'a> {
    pub(crate) kubelet: &'a KubeletVersion,
    pub(crate) observations: &'a Observations,
    pub(crate) pods: Vec<PodEvidence<'a>>,
    /// Evicted events of all pods, including those of controllers, oldest first, without rejections
    /// at admission.
    pub(crate) evictions: Vec<EvictedEvent>,
    pub(crate) samples: Vec<Sample>,
    /// The first error of a sample that the rules cannot read.
    undecodable_sample: Option<String>,
    pub(crate) thresholds: Vec<Threshold>,
    /// The API's answer that rejected an ephemeral container.
    pub(crate) ephemeral_container_error: Option<&'a ApiAnswer>,
    /// The events, if one was lost or delivered twice.
    unreliable_events: Option<UnreliableEvents>,
    /// Descriptions of assertions on events that the known bug replaces. Missing events do not make
    /// them inconclusive: they may be the bug itself.
    assertions_excused_by_bug: Vec<String>,
}

/// The evidence of one pod of the case.
pub(crate) struct PodEvidence<'a> {
    pub(crate) name: String,
    /// The pod as the rules read it; only its name and UID if they cannot.
    pub(crate) pod: Pod,
    /// The error of the rules that cannot read the pod.
    pub(crate) undecodable: Option<String>,
    /// The last version that the API returned.
    pub(crate) recorded: &'a RecordedPod,
    /// Time of the first request to delete the pod.
    pub(crate) deletion_requested_at: Option<Timestamp>,
    /// True if the pod did not exist at the end.
    pub(crate) gone: bool,
    /// True if the pod did not exist at the end, and no watch reported its deletion.
    pub(crate) vanished: bool,
    /// Evicted events of the pod, oldest first, without rejections at admission.
    pub(crate) events: Vec<EvictedEvent>,
    /// `status.message` if `status.reason` is `Evicted` and the pod was not rejected at admission.
    pub(crate) status: Option<&'a str>,
    /// The message of the kubelet's `DisruptionTarget` condition.
    pub(crate) condition: Option<&'a str>,
    /// The reason why the kubelet rejected the pod at admission.
    pub(crate) admission_rejection: Option<String>,
    /// True if the status of the pod reports a rejection because of node pressure, and no event
    /// does.
    pub(crate) lacks_rejection_event: bool,
    /// Other warning events of the pod, as `reason: message`, without consecutive duplicates.
    pub(crate) warnings: Vec<String>,
    /// Time of the pod's first ExceededGracePeriod event.
    pub(crate) exceeded_grace: Option<Timestamp>,
    /// True if the kubelet reported in a Killing event that it terminates a container. The kubelet
    /// sends Killing events after the Evicted event.
    pub(crate) was_killed: bool,
    /// True if any container of the pod ever ran.
    pub(crate) has_run: bool,
    /// All events of the pod.
    own_events: Vec<&'a RecordedEvent>,
}

impl<'a> CaseEvidence<'a> {
    pub(crate) fn new(case: &Case, kubelet: &'a KubeletVersion, observations: &'a Observations) -> Self {
        let mut evictions = evicted_events(latest_versions(&observations.events));
        let created = observations.pods_created.iter();
        let pods: Vec<_> = created.map(|pod| PodEvidence::new(pod, observations, &evictions)).collect();
        evictions.retain(|event| !is_rejection_message(&event.message));
        let unreliable_events = unreliable_events(&pods, observations);
        let bug = known_bug(case, kubelet, observations.cgroup);
        let of_bug = bug.into_iter().flat_map(|bug| &bug.that);
        let replaces = |what: &str| case.expect.that.iter().any(|assertion| assertion.what == what);
        let mut samples = vec![];
        let mut undecodable_sample = None;
        for sample in observations.samples.decode() {
            match sample {
                Ok(sample) => samples.push(sample),
                Err(error) => _ = undecodable_sample.get_or_insert_with(|| error.to_string()),
            }
        }
        let about_events =
            of_bug.filter(|of_bug| replaces(&of_bug.what) && EvidenceSource::Events.affects(&of_bug.value));
        Self {
            kubelet,
            observations,
            unreliable_events,
            assertions_excused_by_bug: about_events.map(|of_bug| of_bug.what.clone()).collect(),
            pods,
            evictions,
            samples,
            undecodable_sample,
            thresholds: observations.thresholds(),
            ephemeral_container_error: observations.api_rejection.as_deref(),
        }
    }

    pub(crate) fn pod(&self, name: &str) -> Option<&PodEvidence<'a>> {
        self.pods.iter().find(|pod| pod.name == name)
    }

    /// Returns the reason why an expression has no value: it reads evidence that was not collected,
    /// or events of which one was lost or delivered twice. `what` is the assertion's description.
    pub(crate) fn missing_evidence_for(&self, what: &str, expression: &Expression) -> Option<Inconclusive> {
        let inconclusive =
            |missing: &MissingEvidence| Inconclusive::evidence_lost(format!("{what}: {missing}"));
        let affects = |missing: &MissingEvidence| missing.source.affects(expression);
        if let Some(missing) = self.observations.missing.iter().find(|missing| affects(missing)) {
            return Some(inconclusive(missing));
        }
        let is_excused = self.assertions_excused_by_bug.iter().any(|of_bug| of_bug == what);
        let unreliable = self.unreliable_events.as_ref().filter(|_| !is_excused)?;
        affects(&unreliable.missing).then(|| Inconclusive {
            pod_without_event: unreliable.pod_without_event.clone(),
            ..inconclusive(&unreliable.missing)
        })
    }

    /// Returns the reason why an eviction that only the status reports is not decided; `None` if
    /// the known bug is about missing events.
    pub(crate) fn eviction_without_event(&self) -> Option<Inconclusive> {
        let pod = self.pods.iter().find(|pod| pod.lacks_event())?;
        self.assertions_excused_by_bug.is_empty().then(|| pod.missing_event())
    }

    /// Returns the reason of a verdict for which no sample has the evidence that `missing`
    /// describes.
    pub(crate) fn no_sample(&self, missing: &str) -> Inconclusive {
        let cause =
            self.undecodable_sample.iter().map(|error| format!("; failed to decode a sample: {error}"));
        Inconclusive::evidence_lost(format!("{missing}{}", cause.collect::<String>()))
    }

    /// Returns the reason why the rules cannot be applied to a pod: they cannot read it.
    pub(crate) fn undecodable_pod(&self) -> Option<Inconclusive> {
        let error = |pod: &PodEvidence<'_>| Some(format!("{}: {}", pod.name, pod.undecodable.as_ref()?));
        Some(Inconclusive::evidence_lost(self.pods.iter().find_map(error)?))
    }

    /// Returns the reason why a pod without a report of its eviction may have been evicted; `None`
    /// if its end, or its state at the end of the case, was observed.
    pub(crate) fn unknown_end(&self, pod: &PodEvidence<'_>) -> Option<Inconclusive> {
        let missing = &self.observations.missing;
        let is_about = |source: &EvidenceSource| match source {
            EvidenceSource::Pods | EvidenceSource::Events | EvidenceSource::Summary => true,
            EvidenceSource::Pod(name) => *name == pod.name,
            EvidenceSource::PodHistory
            | EvidenceSource::NodeHistory
            | EvidenceSource::Node
            | EvidenceSource::KubeletLog
            | EvidenceSource::Metrics
            | EvidenceSource::Object { .. }
            | EvidenceSource::Log { .. } => false,
        };
        if let Some(missing) = missing.iter().find(|missing| is_about(&missing.source)) {
            let why = format!("whether {} was evicted is not known: {missing}", pod.name);
            return Some(Inconclusive::evidence_lost(why));
        }
        pod.vanished.then(|| {
            Inconclusive::evidence_lost(format!(
                "{} was deleted externally before the end of the case, and its end was not observed",
                pod.name
            ))
        })
    }
}

/// The events as missing evidence.
struct UnreliableEvents {
    missing: MissingEvidence,
    /// Name of the pod whose Evicted event is missing; `None` if an event was delivered twice.
    pod_without_event: Option<String>,
}

/// Returns the events as missing evidence if a pod's Evicted event was lost, or was delivered twice
/// as two objects: events are delivered at best effort.
fn unreliable_events(pods: &[PodEvidence<'_>], observations: &Observations) -> Option<UnreliableEvents> {
    let missing = |cause: String| MissingEvidence::new(EvidenceSource::Events, cause);
    if let Some(pod) = pods.iter().find(|pod| pod.lacks_event() || pod.lacks_rejection_event) {
        let reason = pod.missing_event();
        return Some(UnreliableEvents {
            missing: missing(reason.why),
            pod_without_event: reason.pod_without_event,
        });
    }
    let evicted = observations.events.iter().filter(|event| event.reason() == EVICTED_REASON);
    let contents: Vec<(&RecordedEvent, Value)> = evicted.map(|event| (event, event.content())).collect();
    let is_repeated =
        |index: usize| contents[..index].iter().any(|(_, content)| *content == contents[index].1);
    let doubled = (0..contents.len()).find(|index| is_repeated(*index));
    doubled.map(|index| {
        let pod = contents[index].0.object_name().unwrap_or_default();
        let missing = missing(format!("an Evicted event of {pod} was delivered twice"));
        UnreliableEvents { missing, pod_without_event: None }
    })
}

impl<'a> PodEvidence<'a> {
    fn new(created: &'a RecordedPod, observations: &'a Observations, evicted: &[EvictedEvent]) -> Self {
        let uid = created.uid();
        let find = |pods: &'a [RecordedPod]| pods.iter().find(|pod| pod.uid() == uid);
        let last = find(&observations.pods_final);
        let before_deletion = find(&observations.pods_gone);
        let recorded = last.or(before_deletion).unwrap_or(created);
        let is_own = |event: &&EvictedEvent| uid == Some(event.uid.as_str());
        let (rejections, events): (Vec<_>, Vec<_>) =
            evicted.iter().filter(is_own).cloned().partition(|event| is_rejection_message(&event.message));
        let message = recorded.message().filter(|_| recorded.reason() == Some(EVICTED_REASON));
        let own_events: Vec<&RecordedEvent> =
            observations.events.iter().filter(|event| event.object_uid() == uid).collect();
        let status_rejection = message.filter(|message| is_rejection_message(message)).map(str::to_owned);
        let history = observations.pod_history.get(created.case_name());
        let ranked = with_allocated_requests(recorded, created, history);
        let undecodable = ranked.as_ref().err().map(ToString::to_string);
        Self {
            name: created.case_name().to_owned(),
            pod: ranked.unwrap_or_else(|_| with_identity(recorded)),
            undecodable,
            recorded,
            deletion_requested_at: uid
                .and_then(|uid| observations.deletion_requests.get(uid).copied())
                .or_else(|| recorded.deletion_requested_at()),
            gone: last.is_none(),
            vanished: last.is_none() && before_deletion.is_none(),
            events,
            status: message.filter(|message| !is_rejection_message(message)),
            condition: recorded
                .kubelet_termination_condition()
                .and_then(|condition| condition.message.as_deref()),
            lacks_rejection_event: status_rejection.is_some() && rejections.is_empty(),
            admission_rejection: status_rejection
                .or_else(|| rejections.first().map(|event| event.message.clone()))
                .or_else(|| admission_failure(recorded)),
            warnings: warnings(&own_events),
            exceeded_grace: own_events
                .iter()
                .filter(|event| event.reason() == "ExceededGracePeriod")
                .filter_map(|event| event_time(event.json()))
                .min(),
            was_killed: own_events.iter().any(|event| event.reason() == "Killing"),
            has_run: own_events.iter().any(|event| event.reason() == "Started")
                || recorded.container_statuses().any(ContainerStatusExt::has_run),
            own_events,
        }
    }

    /// Returns whether the kubelet evicted the pod. A rejection at admission is not an eviction.
    pub(crate) fn was_evicted(&self) -> bool {
        !self.events.is_empty() || self.status.is_some()
    }

    /// Returns whether only the status reports the eviction.
    pub(crate) fn lacks_event(&self) -> bool {
        self.status.is_some() && self.events.is_empty()
    }

    /// Returns the reason of a verdict for which the pod's Evicted event is missing.
    pub(crate) fn missing_event(&self) -> Inconclusive {
        let why = format!("the Evicted event of {} is missing", self.name);
        let pod_without_event = Some(self.name.clone());
        Inconclusive { pod_without_event, ..Inconclusive::evidence_lost(why) }
    }

    /// Returns the time of the first Evicted event.
    pub(crate) fn evicted_at(&self) -> Option<Timestamp> {
        self.events.first()?.at
    }

    /// Returns the kubelet's message at the time of the decision: that of the first event or, if
    /// the event is lost, that of the status.
    pub(crate) fn message(&self) -> Option<&str> {
        self.events.first().map(|event| event.message.as_str()).or(self.status)
    }

    /// Returns the known times at which a container started, in any order: those of its status, and
    /// the first and last one of its Started event. A runtime that restarts a container repeatedly
    /// has further ones.
    pub(crate) fn starts(&self, container: &str) -> impl Iterator<Item = Timestamp> {
        let statuses = self.recorded.container_statuses().filter(move |status| status.name == container);
        let path_end = format!("{{{container}}}");
        let events = self.own_events.iter().filter(move |event| {
            let path = event.involved_object.field_path.as_deref();
            event.reason() == "Started" && path.is_some_and(|path| path.ends_with(&path_end))
        });
        let times = events.flat_map(|event| [&event.first_timestamp, &event.last_timestamp]);
        statuses.flat_map(ContainerStatusExt::starts).chain(times.flatten().map(|time| time.0))
    }

    /// Returns the statuses of all containers, of every kind.
    pub(crate) fn container_statuses(&self) -> impl Iterator<Item = &'a ContainerStatus> {
        self.recorded.container_statuses()
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

/// Returns the pod with the requests that the kubelet had allocated to it. If a resize is pending,
/// or was while the pod ran, and the kubelet lost the status of a container
/// (kubernetes/kubernetes#122160), its requests are those with which the pod was created.
///
/// # Errors
/// The rules cannot read the pod.
fn with_allocated_requests(
    recorded: &RecordedPod,
    created: &RecordedPod,
    history: Option<&Vec<Recorded<PodHistoryEntry>>>,
) -> Result<Pod, DecodeError> {
    const PENDING: &str = "PodResizePending";
    let mut pod = recorded.as_ranked()?;
    let is_pending = |condition: &PodCondition| condition.type_ == PENDING && condition.status == "True";
    let running = history.and_then(|history| {
        history.iter().rfind(|entry| entry.phase.as_deref() == Some("Running"))?.conditions.get(PENDING)
    });
    let was_pending = running.is_some_and(|condition| condition.status.as_deref() == Some("True"));
    if !was_pending && !recorded.conditions().any(is_pending) {
        return Ok(pod);
    }
    let created = created.as_ranked()?.spec;
    for container in pod.spec.containers.iter_mut().chain(&mut pod.spec.init_containers) {
        let mut statuses = recorded.container_statuses().filter(|status| status.name == container.name);
        let mut before = created.containers.iter().chain(&created.init_containers);
        if !statuses.any(|status| status.allocated_resources.is_some())
            && let Some(before) = before.find(|before| before.name == container.name)
        {
            container.resources = before.resources.clone();
        }
    }
    if pod.status.allocated_resources.is_none() {
        pod.spec.resources = created.resources;
    }
    Ok(pod)
}

/// Returns a pod of which only the name, the namespace and the UID are known.
fn with_identity(recorded: &RecordedPod) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.name = recorded.name().to_owned();
    pod.metadata.namespace = recorded.metadata.namespace.clone().unwrap_or_default();
    pod.metadata.uid = recorded.uid().unwrap_or_default().to_owned();
    pod
}

/// Returns the last version of each event, in the order of the versions.
fn latest_versions(events: &[RecordedEvent]) -> impl Iterator<Item = &Value> {
    let mut seen = HashSet::new();
    let mut latest: Vec<&RecordedEvent> =
        events.iter().rev().filter(|event| event.uid().is_none_or(|uid| seen.insert(uid))).collect();
    latest.reverse();
    latest.into_iter().map(|event| event.json())
}

fn warnings(events: &[&RecordedEvent]) -> Vec<String> {
    let warnings = events.iter().filter(|event| event.is_warning() && event.reason() != EVICTED_REASON);
    let mut warnings: Vec<_> = warnings
        .map(|event| format!("{}: {}", event.reason().trim_end(), event.message().trim_end()))
        .collect();
    warnings.dedup();
    warnings
}

/// Returns the reason why the kubelet rejected a pod for anything but node pressure, such as more
/// requests than the node has.
fn admission_failure(pod: &RecordedPod) -> Option<String> {
    let reason = pod.reason().filter(|_| pod.phase() == Some("Failed"))?;
    let message = pod.message().unwrap_or_default();
    let at_admission = reason.starts_with("OutOf") || pod.is_rejected();
    (at_admission && reason != EVICTED_REASON).then(|| format!("{reason}: {message}"))
}
