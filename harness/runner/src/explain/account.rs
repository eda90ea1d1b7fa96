//! From what is at hand to what there is to say.

use evictlab_rules::KubeletVersion;
use evictlab_rules::invariant::{EvictedEvent, evicted_events};
use evictlab_rules::message::{EvictionMessage, NodePressure, ReadError};
use evictlab_rules::pod::Pod;
use evictlab_rules::threshold::{Resource, Signal};
use serde::Deserialize;
use serde_json::Value;

use super::bugs::Marks;
use super::containers::containers;
use super::explanation::Explanation;
use super::input::{Input, modern};
use super::relatives::relative;
use super::witnesses::{Said, witnesses};
use super::words::amount;
use crate::observe::ended_by_kubelet;

/// Nothing in the input tells of an eviction.
#[derive(Debug, thiserror::Error)]
pub enum NothingToExplain {
    /// Objects that are about something else.
    #[error("nothing here tells of an eviction: {0}")]
    NoEviction(String),
    /// An Evicted event whose message no kubelet of 1.26 to 1.36 writes.
    #[error("{of} is no eviction by a kubelet, or by one that is not known: {problem}")]
    Message {
        /// Whose message it is.
        of: String,
        /// Where reading stopped.
        problem: ReadError,
    },
}

/// Explains each pod of the input that was evicted, or went in another way; then each message. `version` is the kubelets', where no Node
/// tells.
///
/// # Errors
/// Where there is nothing to explain.
pub fn explain(
    input: &Input,
    version: Option<&KubeletVersion>,
) -> Result<Vec<Explanation>, NothingToExplain> {
    let evicted = evicted_events(&input.events);
    let mut all = Vec::new();
    for pod in &input.pods {
        let of_pod: Vec<EvictedEvent> =
            evicted.iter().filter(|event| is_about(event, pod)).cloned().collect();
        all.extend(Subject::of_pod(input, pod, &of_pod, version).explanation()?);
    }
    let mut told: Vec<(&str, &str)> = Vec::new();
    for event in evicted.iter().filter(|event| !input.pods.iter().any(|pod| is_about(event, pod))) {
        let key = (event.namespace.as_str(), event.pod.as_str());
        if told.contains(&key) {
            continue;
        }
        told.push(key);
        let same = |other: &&EvictedEvent| (other.namespace.as_str(), other.pod.as_str()) == key;
        let of_pod: Vec<EvictedEvent> = evicted.iter().filter(same).cloned().collect();
        all.extend(Subject::of_events(input, &of_pod, version).explanation()?);
    }
    for message in &input.messages {
        all.extend(
            Subject { version: version.cloned(), message: Some(message), ..Subject::default() }
                .explanation()?,
        );
    }
    match all.is_empty() {
        true => Err(NothingToExplain::NoEviction(seen_instead(input))),
        false => Ok(all),
    }
}

fn is_about(event: &EvictedEvent, pod: &Value) -> bool {
    let meta = &pod["metadata"];
    let named =
        meta["name"] == *event.pod && meta["namespace"].as_str().unwrap_or_default() == event.namespace;
    match meta["uid"].as_str() {
        Some(uid) if !event.uid.is_empty() => uid == event.uid,
        _ => named,
    }
}

/// What the input is about instead, of the first few objects.
fn seen_instead(input: &Input) -> String {
    const FEW: usize = 3;
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let event = |event: &Value| {
        format!(
            "an event {} about {} {}",
            text(&event["reason"]),
            text(&event["involvedObject"]["kind"]),
            text(&event["involvedObject"]["name"])
        )
    };
    let pod = |pod: &Value| {
        format!("pod {} in phase {}", text(&pod["metadata"]["name"]), text(&pod["status"]["phase"]))
    };
    let all: Vec<String> = input.events.iter().map(event).chain(input.pods.iter().map(pod)).collect();
    let few = all.iter().take(FEW).cloned().collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(FEW) {
        0 => few,
        more => format!("{few} and {more} more"),
    }
}

/// One pod, or one message.
#[derive(Default)]
struct Subject<'a> {
    pod: Option<&'a Value>,
    name: Option<String>,
    node: Option<String>,
    version: Option<KubeletVersion>,
    events: &'a [EvictedEvent],
    other_events: bool,
    message: Option<&'a str>,
}

impl<'a> Subject<'a> {
    fn of_pod(
        input: &Input,
        pod: &'a Value,
        events: &'a [EvictedEvent],
        version: Option<&KubeletVersion>,
    ) -> Self {
        let meta = &pod["metadata"];
        let node = pod["spec"]["nodeName"].as_str().map(str::to_owned);
        let name = meta["name"].as_str().map(|name| match meta["namespace"].as_str() {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name.to_owned(),
        });
        let other = |event: &&Value| {
            event["involvedObject"]["uid"] == meta["uid"]
                && event["reason"] != "Evicted"
                && event["source"]["component"] == "kubelet"
        };
        Self {
            pod: Some(pod),
            name,
            version: of_node(input, node.as_deref()).or_else(|| version.cloned()),
            node,
            events,
            other_events: input.events.iter().any(|event| other(&event)),
            message: None,
        }
    }

    fn of_events(input: &Input, events: &'a [EvictedEvent], version: Option<&KubeletVersion>) -> Self {
        let first = events.first();
        let object = first.and_then(|first| {
            input
                .events
                .iter()
                .find(|event| event["reason"] == "Evicted" && event["involvedObject"]["name"] == *first.pod)
        });
        let host = object.and_then(|event| {
            let places = [&event["source"]["host"], &event["reportingInstance"]];
            places.into_iter().find_map(|place| place.as_str().filter(|host| !host.is_empty()))
        });
        Self {
            name: first.map(|first| format!("{}/{}", first.namespace, first.pod)),
            version: of_node(input, host).or_else(|| version.cloned()),
            node: host.map(str::to_owned),
            events,
            ..Self::default()
        }
    }

    /// What there is to say; nothing of a pod that nothing took away.
    fn explanation(self) -> Result<Option<Explanation>, NothingToExplain> {
        let status = self.pod.map_or(&Value::Null, |pod| &pod["status"]);
        let in_status = status["message"].as_str().filter(|_| status["reason"] == "Evicted");
        let condition = ended_by_kubelet(status).and_then(|condition| condition["message"].as_str());
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
            let why = self.pod.and_then(relative);
            return Ok(why.map(|why| Explanation { why: vec![why], ..common }));
        };
        let message: EvictionMessage = modern(text).parse().map_err(|problem| NothingToExplain::Message {
            of: self.name.clone().unwrap_or_else(|| "the message".to_owned()),
            problem,
        })?;
        let rules = self.pod.and_then(|pod| Pod::deserialize(pod).ok());
        let told = match &message {
            EvictionMessage::NodePressure(pressure) => {
                containers(pressure, rules.as_ref(), status, self.version.as_ref())
            }
            _ => Vec::new(),
        };
        let marks = Marks {
            message: &message,
            containers: &told,
            pod: rules.as_ref(),
            status,
            version: self.version.as_ref(),
            event: !self.events.is_empty(),
            other_events: self.other_events,
        };
        let said = Said {
            pod: rules.as_ref(),
            version: self.version.as_ref(),
            events: self.events,
            status: in_status,
            condition,
        };
        let bugs = marks.bugs();
        let witnesses = if self.message.is_some() { Vec::new() } else { witnesses(said) };
        Ok(Some(Explanation {
            why: why(&message),
            bugs,
            witnesses,
            ask: self.ask(&message),
            containers: told,
            ..common
        }))
    }

    fn ask(&self, message: &EvictionMessage) -> Vec<String> {
        let mut ask = Vec::new();
        if self.pod.is_none() && matches!(message, EvictionMessage::NodePressure(_)) {
            ask.push("the pod tells who is not named, and why: kubectl get pod NAME -o yaml".to_owned());
        }
        if self.version.is_none() {
            ask.push(
                "the kubelet's version, by --kubelet v1.31 or the node: kubectl get node NAME -o yaml"
                    .to_owned(),
            );
        }
        ask
    }
}

/// The version that a node of the input tells.
fn of_node(input: &Input, name: Option<&str>) -> Option<KubeletVersion> {
    let node = input.nodes.iter().find(|node| node["metadata"]["name"].as_str() == name)?;
    node["status"]["nodeInfo"]["kubeletVersion"].as_str()?.parse().ok()
}

/// What a message means.
fn why(message: &EvictionMessage) -> Vec<String> {
    match message {
        EvictionMessage::NodePressure(pressure) => of_pressure(pressure),
        EvictionMessage::EmptyDirLimit { volume, limit } => vec![
            format!("Its emptyDir {volume} held more than its sizeLimit of {limit}."),
            OWN_LIMIT.to_owned(),
        ],
        EvictionMessage::PodLimit { limit } => vec![
            format!(
                "Its writable layers, logs and emptyDirs held together more than {limit}, which is what its containers' limits on ephemeral-storage sum up to."
            ),
            OWN_LIMIT.to_owned(),
        ],
        EvictionMessage::ContainerLimit { container, limit } => vec![
            format!(
                "The writable layer and the logs of its container {container} held more than its limit on ephemeral-storage, {limit}."
            ),
            OWN_LIMIT.to_owned(),
        ],
        EvictionMessage::Rejected { conditions, .. } => {
            let names: Vec<_> = conditions.iter().map(|condition| condition.as_str()).collect();
            vec![
                format!("The kubelet did not admit it: its node had {}. It never ran there.", names.join(" and ")),
                "While a node has MemoryPressure it admits no BestEffort pods, unless they tolerate it; with DiskPressure or PIDPressure, critical pods only.".to_owned(),
            ]
        }
    }
}

const OWN_LIMIT: &str = "That is its own limit: the node was not short of anything, so that there is no DisruptionTarget condition, and a Job's podFailurePolicy sees no disruption.";

fn of_pressure(pressure: &NodePressure) -> Vec<String> {
    let resource = pressure.resource;
    let signals: Vec<&str> =
        Signal::ALL.into_iter().filter(|signal| signal.resource() == resource).map(Signal::as_str).collect();
    let signals = match &signals[..] {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    };
    let what = match resource {
        Resource::Memory => "memory",
        Resource::EphemeralStorage => "disk",
        Resource::Inodes => "inodes",
        Resource::Pids => "process ids",
    };
    let mut all = vec![match &pressure.threshold {
        Some(clause) => {
            let [left, wanted] =
                [&clause.available, &clause.quantity].map(|quantity| amount(quantity.value(), resource));
            let short = clause.quantity.value().saturating_sub(clause.available.value());
            match short > 0 {
                true => format!(
                    "The node was low on {what}: {left} was left, {} below the threshold of {wanted} ({signals}).",
                    amount(short, resource)
                ),
                false => format!(
                    "The node was low on {what}, it says; but {left} was left, which is no less than the threshold of {wanted} ({signals})."
                ),
            }
        }
        None => format!("The node was low on {what} ({signals}). The message does not tell the threshold."),
    }];
    all.push(match (pressure.containers.len(), resource) {
        (_, Resource::Inodes | Resource::Pids) => {
            format!("For {resource} a message names no container. The pod was the first in the order of priority and of what pods use.")
        }
        (0, _) => "No container is named: each was within its request when the kubelet looked, or there were no statistics of the pod. It was still the first in \
                   the order of use above request, priority, and amount above request.".to_owned(),
        _ => "Of the pods on the node it was the first in the order of use above request, priority, and amount above request. Its containers that use more than they \
              asked for are named: that says who may have starved the node, not who did.".to_owned(),
    });
    all
}
