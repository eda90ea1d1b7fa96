//! Reasons for evictions, from their messages.

use evictlab_rules::message::{EvictionMessage, NodePressure};
use evictlab_rules::threshold::{Resource, Signal};

use crate::message_text::MessageEnd;
use crate::text::{difference, printed_amount};

/// Maximum number of characters of a text that could not be read.
const MAX_QUOTED: usize = 120;

/// Explains a message in sentences.
/// `has_run`: true if the input shows that a container of the pod ran.
pub(crate) fn why(message: &EvictionMessage, end: &MessageEnd, has_run: bool) -> Vec<String> {
    match message {
        EvictionMessage::NodePressure(pressure) => explain_pressure(pressure, end),
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
            // A kubelet that starts again admits the pods of its node again.
            let ran = if has_run {
                "Its containers had run before: a kubelet that restarts may reject pods of its node."
            } else {
                "The pod never ran there."
            };
            vec![
                format!("The kubelet rejected the pod because its node had {}. {ran}", names.join(" and ")),
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

fn explain_pressure(pressure: &NodePressure, end: &MessageEnd) -> Vec<String> {
    vec![threshold_sentence(pressure, end), ranking_sentence(pressure, end)]
}

/// Describes the shortage, and the signals that may have shown it.
fn threshold_sentence(pressure: &NodePressure, end: &MessageEnd) -> String {
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
        Resource::Pids => "process IDs",
    };
    let Some(clause) = &pressure.threshold else {
        let message = match end {
            MessageEnd::Whole => "The message does not state the threshold.",
            MessageEnd::Shortened => {
                "The message is shortened and does not state the threshold with the available amount."
            }
            MessageEnd::Unread(_) => {
                "The part of the message that could be read does not state the threshold."
            }
        };
        return format!("The node was low on {name} ({signals}). {message}");
    };
    let [available, threshold] =
        [&clause.available, &clause.quantity].map(|quantity| printed_amount(quantity, resource));
    let short = clause.quantity.value().saturating_sub(clause.available.value());
    if short > 0 {
        format!(
            "The node was low on {name}: {available} available, {} below the threshold of {threshold} \
             ({signals}).",
            difference(short, resource)
        )
    } else {
        format!(
            "The message states that the node was low on {name}, but {available} available is not below \
             the threshold of {threshold} ({signals}). A threshold that was met stays met until \
             evictionMinimumReclaim is available in addition; without this setting, the amounts \
             contradict the message."
        )
    }
}

/// Describes why the pod was chosen.
fn ranking_sentence(pressure: &NodePressure, end: &MessageEnd) -> String {
    const FIRST: &str = "The pod was first in the eviction order: usage above request, priority, amount \
                         above request.";
    let resource = pressure.resource;
    match (pressure.containers.len(), resource, end) {
        (_, Resource::Inodes | Resource::Pids, _) => format!(
            "Messages for {resource} name no containers. The pod was first in the order of priority and \
             usage."
        ),
        (_, _, MessageEnd::Shortened) => format!(
            "{FIRST} The message is shortened: it may name more containers that exceed their requests."
        ),
        (_, _, MessageEnd::Unread(rest)) => format!(
            "{FIRST} The message may name more containers that exceed their requests; the rest could not \
             be read: {:?}.",
            quoted(rest)
        ),
        (0, _, MessageEnd::Whole) if pressure.pod.is_some() => format!(
            "The message states the usage of the whole pod, as it has a pod-level request. No container is \
             named: each was within its own request when the kubelet measured it, or the kubelet had no \
             statistics of it. {FIRST}"
        ),
        (0, _, MessageEnd::Whole) if pressure.threshold.is_none() => format!(
            "No container is named: each was within its request when the kubelet measured it, or the \
             kubelet had no statistics of the pod, or it is an old one, which names none. {FIRST}"
        ),
        (0, _, MessageEnd::Whole) => format!(
            "No container is named: each was within its request when the kubelet measured it, or the \
             kubelet had no statistics of the pod. {FIRST}"
        ),
        (_, _, MessageEnd::Whole) => format!(
            "{FIRST} The message names its containers that exceed their requests; they did not \
             necessarily cause the pressure."
        ),
    }
}

/// Returns the beginning of a text.
fn quoted(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
