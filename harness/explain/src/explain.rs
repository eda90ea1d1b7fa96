//! Explanations from objects and messages.

use evictlab_rules::KubeletVersion;
use evictlab_rules::invariant::EvictedEvent;
use evictlab_rules::message::{EvictionMessage, MessageParseError, NodePressure};
use evictlab_rules::threshold::{Resource, Signal};

use crate::consistency::{EvictionEvidence, check_consistency};
use crate::containers::container_reports;
use crate::explanation::Explanation;
use crate::input::{Input, MAX_DESCRIBED};
use crate::input_index::InputIndex;
use crate::known_bugs::BugMatcher;
use crate::message_text::modernize;
use crate::objects::{Pod, PodStatus};
use crate::other_causes::other_cause;
use crate::text::amount;

/// The input contains no eviction.
#[derive(Debug, thiserror::Error)]
pub enum NothingToExplain {
    /// The objects are about something else.
    #[error(
        "failed to find an eviction in the input: it contains only {0}\nhelp: pass the Pod that was evicted and its Events: kubectl get events,pods,nodes -o yaml"
    )]
    NoEviction(String),
    /// An Evicted event has a message that no kubelet of 1.26 to 1.37 writes.
    #[error(
        "failed to explain the eviction of {of}: not evicted by a kubelet, or by an unknown version: {problem}"
    )]
    Message {
        /// The pod.
        of: String,
        /// The parse error.
        problem: MessageParseError,
    },
}

/// Explains each pod of the input that was evicted or failed for a similar reason, then each
/// message. `version` is the kubelet version for pods whose Node is not in the input.
///
/// # Errors
/// The input contains no eviction.
pub fn explain(
    input: &Input,
    version: Option<&KubeletVersion>,
) -> Result<Vec<Explanation>, NothingToExplain> {
    let index = InputIndex::of(input);
    let mut all = Vec::new();
    for pod in &input.pods {
        let events = index.evictions_of(pod);
        all.extend(Subject::of_pod(&index, pod, &events, version).explanation()?);
    }
    for events in index.evictions_without_pod() {
        let events: Vec<EvictedEvent> = events.iter().map(|event| (*event).clone()).collect();
        all.extend(Subject::of_events(&index, &events, version).explanation()?);
    }
    for text in &input.messages {
        let (name, message) = (text.pod.clone(), Some(text.message.as_str()));
        let subject = Subject { name, version: version.cloned(), message, ..Subject::default() };
        all.extend(subject.explanation()?);
    }
    for cause in &input.causes {
        all.push(Explanation { pod: cause.pod.clone(), why: cause.why.clone(), ..Explanation::default() });
    }
    match all.is_empty() {
        true => Err(NothingToExplain::NoEviction(describe_input(input))),
        false => Ok(all),
    }
}

/// Describes the first few objects of the input.
fn describe_input(input: &Input) -> String {
    let pods = input.pods.iter().take(MAX_DESCRIBED).map(Pod::describe);
    let first: Vec<String> = input.first_events.iter().cloned().chain(pods).take(MAX_DESCRIBED).collect();
    match (input.event_count + input.pods.len()).saturating_sub(MAX_DESCRIBED) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// A pod or a message to explain.
#[derive(Default)]
struct Subject<'a> {
    pod: Option<&'a Pod>,
    name: Option<String>,
    node: Option<String>,
    version: Option<KubeletVersion>,
    events: &'a [EvictedEvent],
    other_events: bool,
    message: Option<&'a str>,
}

impl<'a> Subject<'a> {
    fn of_pod(
        index: &InputIndex<'_>,
        pod: &'a Pod,
        events: &'a [EvictedEvent],
        version: Option<&KubeletVersion>,
    ) -> Self {
        let meta = &pod.metadata;
        let node = pod.spec.node_name.clone();
        let name = meta.name.as_ref().map(|name| match &meta.namespace {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name.clone(),
        });
        Self {
            pod: Some(pod),
            name,
            version: index.version_of(node.as_deref()).or_else(|| version.cloned()),
            node,
            events,
            other_events: index.has_other_events(pod),
            message: None,
        }
    }

    fn of_events(
        index: &InputIndex<'_>,
        events: &'a [EvictedEvent],
        version: Option<&KubeletVersion>,
    ) -> Self {
        let first = events.first();
        let host = first.and_then(|first| index.host_of(first));
        Self {
            name: first.map(|first| format!("{}/{}", first.namespace, first.pod)),
            version: index.version_of(host).or_else(|| version.cloned()),
            node: host.map(str::to_owned),
            events,
            ..Self::default()
        }
    }

    /// Explains the subject; `None` for a pod that neither was evicted nor failed.
    fn explanation(self) -> Result<Option<Explanation>, NothingToExplain> {
        let no_status = PodStatus::default();
        let status = self.pod.map_or(&no_status, |pod| &pod.status);
        let in_status = status.eviction_message();
        let text = self.events.first().map(|event| event.message.as_str()).or(in_status).or(self.message);
        let common = Explanation {
            pod: self.name.clone(),
            node: self.node.clone(),
            at: self.events.first().and_then(|event| event.at),
            kubelet: self.version.clone(),
            message: text.map(str::to_owned),
            ..Explanation::default()
        };
        let Some(text) = text else {
            let cause = self.pod.and_then(other_cause);
            return Ok(cause.map(|cause| Explanation { why: vec![cause], ..common }));
        };
        let message: EvictionMessage =
            modernize(text).parse().map_err(|problem| NothingToExplain::Message {
                of: self.name.clone().unwrap_or_else(|| "the message".to_owned()),
                problem,
            })?;
        let manifest = self.pod.and_then(|pod| pod.manifest.as_ref());
        let version = self.version.as_ref();
        let containers = match &message {
            EvictionMessage::NodePressure(pressure) => container_reports(pressure, manifest, status, version),
            _ => Vec::new(),
        };
        let matcher = BugMatcher {
            message: &message,
            containers: &containers,
            pod: manifest,
            status,
            version,
            has_evicted_event: !self.events.is_empty(),
            has_other_events: self.other_events,
        };
        let evidence = EvictionEvidence {
            pod: manifest,
            version,
            events: self.events,
            status: in_status,
            condition: status.kubelet_termination().and_then(|condition| condition.message.as_deref()),
        };
        let bugs = matcher.matches();
        let is_partial = self.message.is_some() || self.pod.is_some_and(|pod| pod.is_partial);
        let checks = if is_partial { Vec::new() } else { check_consistency(evidence) };
        let missing = self.missing_input(&message);
        Ok(Some(Explanation { why: why(&message), bugs, checks, missing, containers, ..common }))
    }

    /// Input that would make the explanation more complete.
    fn missing_input(&self, message: &EvictionMessage) -> Vec<String> {
        let mut missing = Vec::new();
        if self.pod.is_none() && matches!(message, EvictionMessage::NodePressure(_)) {
            let text = "the pod, to explain which containers are not named: kubectl get pod NAME -o yaml";
            missing.push(text.to_owned());
        }
        if self.version.is_none() {
            let text = "the kubelet version: --kubelet v1.31, or the node: kubectl get node NAME -o yaml";
            missing.push(text.to_owned());
        }
        missing
    }
}

/// Explains a message in sentences.
fn why(message: &EvictionMessage) -> Vec<String> {
    match message {
        EvictionMessage::NodePressure(pressure) => explain_pressure(pressure),
        EvictionMessage::EmptyDirLimit { volume, limit } => {
            vec![format!("The emptyDir volume {volume} exceeded its sizeLimit of {limit}."), own_limit()]
        }
        EvictionMessage::PodLimit { limit } => vec![
            format!(
                "The pod's writable layers, logs and emptyDir volumes together exceeded {limit}, the \
                 sum of its containers' ephemeral-storage limits."
            ),
            own_limit(),
        ],
        EvictionMessage::ContainerLimit { container, limit } => vec![
            format!(
                "The writable layer and logs of container {container} exceeded its ephemeral-storage \
                 limit of {limit}."
            ),
            own_limit(),
        ],
        EvictionMessage::Rejected { conditions, .. } => {
            let names: Vec<_> = conditions.iter().map(|condition| condition.as_str()).collect();
            vec![
                format!("The kubelet rejected the pod because its node had {}.", names.join(" and "))
                    + " The pod never ran there.",
                "Under MemoryPressure, a node admits no BestEffort pods that do not tolerate it; under \
                 DiskPressure or PIDPressure, only critical pods."
                    .to_owned(),
            ]
        }
    }
}

fn own_limit() -> String {
    "The pod exceeded its own limit; the node was not under pressure. Therefore the pod has no \
     DisruptionTarget condition, and a Job's podFailurePolicy does not see a disruption."
        .to_owned()
}

fn explain_pressure(pressure: &NodePressure) -> Vec<String> {
    let resource = pressure.resource;
    let signals: Vec<&str> =
        Signal::ALL.into_iter().filter(|signal| signal.resource() == resource).map(Signal::as_str).collect();
    let signals = match &signals[..] {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    };
    let name = match resource {
        Resource::Memory => "memory",
        Resource::EphemeralStorage => "disk space",
        Resource::Inodes => "inodes",
        Resource::Pids => "process ids",
    };
    let threshold = match &pressure.threshold {
        Some(clause) => {
            let [available, threshold] =
                [&clause.available, &clause.quantity].map(|quantity| amount(quantity.value(), resource));
            let short = clause.quantity.value().saturating_sub(clause.available.value());
            match short > 0 {
                true => format!(
                    "The node was low on {name}: {available} available, {} below the threshold of \
                     {threshold} ({signals}).",
                    amount(short, resource)
                ),
                false => format!(
                    "The message states that the node was low on {name}, but {available} available is \
                     not below the threshold of {threshold} ({signals})."
                ),
            }
        }
        None => format!("The node was low on {name} ({signals}). The message does not state the threshold."),
    };
    let ranking = match (pressure.containers.len(), resource) {
        (_, Resource::Inodes | Resource::Pids) => format!(
            "Messages for {resource} name no containers. The pod was first in the order of priority \
             and usage."
        ),
        (0, _) => "No container is named: each was within its request when the kubelet measured it, or \
                   the kubelet had no statistics of the pod. The pod was first in the eviction order: \
                   usage above request, priority, amount above request."
            .to_owned(),
        _ => "The pod was first in the eviction order: usage above request, priority, amount above \
              request. The message names its containers that exceed their requests; they did not \
              necessarily cause the pressure."
            .to_owned(),
    };
    vec![threshold, ranking]
}
