//! Explanations from objects and messages.

use std::collections::HashSet;

use evictlab_rules::EvictedEvent;
use evictlab_rules::message::{EvictionMessage, MessageParseError, NodePressure};
use evictlab_rules::threshold::Resource;

use crate::consistency::{EvictionEvidence, check_consistency};
use crate::containers::{container_reports, pod_level_report};
use crate::explanation::{ConsistencyCheck, Explanation};
use crate::input::{Input, MAX_DESCRIBED};
use crate::input_index::InputIndex;
use crate::kernel_log::KernelLog;
use crate::known_bugs::BugMatcher;
use crate::message_text::{MessageEnd, cut_after, find_messages, parse_message};
use crate::objects::{Pod, PodStatus, qualified};
use crate::other_causes::{other_cause, unknown_eviction};
use crate::stated_version::StatedVersion;
use crate::text::{POD_HINT, VERSION_HINT};
use crate::text_input::{TextCause, TextMessage};
use crate::why::why;

/// The input contains no eviction.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// The objects are about something else.
    #[error(
        "failed to find an eviction in the input: it contains only {0}\nhelp: pass the Pod that was evicted and its Events: kubectl get events,pods,nodes -o yaml"
    )]
    NoEviction(String),
    /// An Evicted event has a message of which the end is missing.
    #[error(
        "failed to explain the eviction of {of}: its message is cut after {after:?}\nhelp: pass the whole message: kubectl get events,pods -o yaml"
    )]
    Cut {
        /// The pod.
        of: String,
        /// The last word.
        after: String,
    },
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
pub fn explain(input: &Input, version: Option<&StatedVersion>) -> Result<Vec<Explanation>, ExplainError> {
    let index = InputIndex::of(input);
    let mut all = Explanations::default();
    for pod in &input.pods {
        let mut events = index.evictions_of(pod);
        if pod.status.eviction_message().is_some_and(|message| !message.trim().is_empty()) {
            events.retain(|event| !event.message.trim().is_empty());
        }
        let events = all.add_foreign(&index, events);
        Subject::of_pod(&index, pod, &events, version).explain(&mut all);
    }
    let of_pods = ExplainedPods::of(&all.known);
    for events in index.evictions_without_pod() {
        let events = all.add_foreign(&index, events.iter().map(|event| (*event).clone()).collect());
        if !events.is_empty() {
            Subject::of_events(&index, &events, version).explain(&mut all);
        }
    }
    let of_objects = ExplainedPods::of(&all.known);
    for text in input.messages.iter().filter(|text| !of_objects.have_message(text)) {
        let (name, node, version) = (text.pod.clone(), text.node.clone(), version.cloned());
        let is_cut = input.is_cut;
        let subject = Subject { name, node, version, message: Some(text), is_cut, ..Subject::default() };
        subject.explain(&mut all);
    }
    let with_message = ExplainedPods::of(&all.known);
    let mut stated = HashSet::new();
    let of_events = input.event_causes.iter().filter(|cause| {
        // The object of the pod states the same.
        !of_pods.contain(cause.pod.as_deref()) && stated.insert((&cause.pod, &cause.why))
    });
    let (repeated, of_text): (Vec<_>, Vec<_>) = input.causes.iter().partition(|cause| {
        of_objects.contain(cause.pod.as_deref())
            || (cause.is_row && with_message.contain(cause.pod.as_deref()))
    });
    repeated.into_iter().for_each(|cause| all.add_rank(cause));
    for cause in of_events.chain(of_text).chain(&oom_kills(&input.oom_kills)) {
        all.known.push(Explanation {
            pod: cause.pod.clone(),
            node: cause.node.clone(),
            why: cause.why.clone(),
            unnamed: cause.unnamed,
            ..Explanation::default()
        });
    }
    let Explanations { mut known, unclear, problem } = all;
    if known.is_empty() {
        return Err(problem.unwrap_or_else(|| ExplainError::NoEviction(describe_input(input))));
    }
    known.extend(unclear);
    Ok(known)
}

/// Explains the OOM kills that events of nodes state.
fn oom_kills(events: &[(Option<String>, String)]) -> Vec<TextCause> {
    let mut log = KernelLog::default();
    for (node, message) in events {
        log.read(message, node.as_deref());
    }
    log.explain().map(TextCause::of_kill).collect()
}

/// Pods that are explained: texts may repeat what objects state, without the namespace.
struct ExplainedPods {
    /// `namespace/name`, and names, with the message.
    messages: HashSet<(String, Option<String>)>,
    /// `namespace/name`, and names.
    names: HashSet<String>,
    /// Names of pods whose namespace is not known.
    short: HashSet<String>,
}

impl ExplainedPods {
    fn of(explanations: &[Explanation]) -> Self {
        let (mut names, mut short, mut messages) = (HashSet::new(), HashSet::new(), HashSet::new());
        for explanation in explanations {
            let Some(pod) = &explanation.pod else { continue };
            if !pod.contains('/') {
                short.insert(pod.clone());
            }
            for name in [Some(pod.as_str()), pod.split_once('/').map(|(_, name)| name)].into_iter().flatten()
            {
                let message = explanation.message.as_ref().map(|message| message.trim_end().to_owned());
                names.insert(name.to_owned());
                messages.insert((name.to_owned(), message));
            }
        }
        Self { messages, names, short }
    }

    fn contain(&self, pod: Option<&str>) -> bool {
        let without_namespace =
            |pod: &str| pod.split_once('/').is_some_and(|(_, name)| self.short.contains(name));
        pod.is_some_and(|pod| self.names.contains(pod) || without_namespace(pod))
    }

    fn have_message(&self, text: &TextMessage) -> bool {
        let message = || text.message.to_string().trim_end().to_owned();
        text.pod.as_ref().is_some_and(|pod| self.messages.contains(&(pod.clone(), Some(message()))))
    }
}

/// The explanations of an input.
#[derive(Default)]
struct Explanations {
    known: Vec<Explanation>,
    /// Evictions with an unknown message of an unknown component.
    unclear: Vec<Explanation>,
    /// The problem of the first one.
    problem: Option<ExplainError>,
}

impl Explanations {
    /// Explains the events that are not of a kubelet, and returns the others.
    fn add_foreign(&mut self, index: &InputIndex<'_>, events: Vec<EvictedEvent>) -> Vec<EvictedEvent> {
        let parsed = |event: EvictedEvent| (parse_message(&event.message).err(), event);
        let (kubelet, foreign): (Vec<_>, Vec<_>) =
            events.into_iter().map(parsed).partition(|(problem, _)| problem.is_none());
        for (problem, event) in foreign {
            let evictor = index.evictor_of(&event);
            let has_message = !event.message.trim().is_empty();
            let explanation = Explanation {
                pod: Some(qualified(Some(&event.namespace), &event.pod)),
                at: event.at,
                why: vec![unknown_eviction(evictor, &event.message)],
                message: has_message.then_some(event.message),
                ..Explanation::default()
            };
            match problem.filter(|_| evictor.is_none() && has_message) {
                Some(problem) => self.add_unclear(explanation, problem),
                None => self.known.push(explanation),
            }
        }
        kubelet.into_iter().map(|(_, event)| event).collect()
    }

    /// Adds the place of an explained pod in the order of eviction, and its namespace.
    fn add_rank(&mut self, cause: &TextCause) {
        let (Some(pod), Some(rank)) = (&cause.pod, &cause.rank) else { return };
        let is_same =
            |known: &&mut Explanation| known.pod.as_ref().is_some_and(|known| is_same_pod(known, pod));
        if let Some(known) = self.known.iter_mut().find(is_same) {
            known.why.push(rank.clone());
            if pod.contains('/') {
                known.pod = Some(pod.clone());
            }
        }
    }

    fn add_unclear(&mut self, explanation: Explanation, problem: MessageParseError) {
        let of = explanation.pod.clone().unwrap_or_else(|| "the message".to_owned());
        self.problem.get_or_insert_with(|| match cut_after(&problem.text) {
            Some(after) => ExplainError::Cut { of, after },
            None => ExplainError::Message { of, problem },
        });
        self.unclear.push(explanation);
    }
}

/// Returns whether two names may be of one pod; either may lack the namespace.
fn is_same_pod(one: &str, other: &str) -> bool {
    let name = |pod: &str| pod.rsplit('/').next().map(str::to_owned);
    one == other || (one.contains('/') != other.contains('/') && name(one) == name(other))
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
    version: Option<StatedVersion>,
    events: &'a [EvictedEvent],
    other_events: bool,
    message: Option<&'a TextMessage>,
    /// True if the message is all that could be read of an object that is cut.
    is_cut: bool,
}

impl<'a> Subject<'a> {
    fn of_pod(
        index: &InputIndex<'_>,
        pod: &'a Pod,
        events: &'a [EvictedEvent],
        version: Option<&StatedVersion>,
    ) -> Self {
        let meta = &pod.metadata;
        let node = pod.spec.node_name.clone();
        let name = meta.name.as_ref().map(|name| qualified(meta.namespace.as_deref(), name));
        Self {
            pod: Some(pod),
            name,
            version: index.version_of(node.as_deref()).or_else(|| version.cloned()),
            node,
            events,
            other_events: index.has_other_events(pod),
            message: None,
            is_cut: false,
        }
    }

    fn of_events(
        index: &InputIndex<'_>,
        events: &'a [EvictedEvent],
        version: Option<&StatedVersion>,
    ) -> Self {
        let first = events.first();
        let host = first.and_then(|first| index.host_of(first));
        Self {
            name: first.map(|first| qualified(Some(&first.namespace), &first.pod)),
            version: index.version_of(host).or_else(|| version.cloned()),
            node: host.map(str::to_owned),
            events,
            ..Self::default()
        }
    }

    /// Adds the explanation of the subject; none for a pod that neither was evicted nor failed.
    fn explain(self, all: &mut Explanations) {
        let no_status = PodStatus::default();
        let status = self.pod.map_or(&no_status, |pod| &pod.status);
        let in_status = status.eviction_message().filter(|message| !message.trim().is_empty());
        // The kubelet reports other terminations with the same reason of the condition.
        let condition = status.kubelet_termination().and_then(|condition| condition.message.as_deref());
        let in_condition = condition.filter(|message| parse_message(message).is_ok());
        // The reason follows the message, and may be cut.
        let without_reason = status.message.as_deref().filter(|_| status.reason.is_none());
        let without_reason = without_reason.filter(|message| parse_message(message).is_ok());
        let event = self.events.first().map(|event| event.message.as_str());
        let text = event.or(in_status).or(in_condition).or(without_reason);
        let found = match (text, self.message) {
            (Some(text), _) if self.is_partial() => find_message(text),
            (Some(text), _) => parse_message(text).map(|message| (message, MessageEnd::Whole)),
            (None, Some(text)) => Ok((text.message.clone(), text.end.clone())),
            (None, None) => {
                let cause = self.pod.and_then(other_cause);
                all.known.extend(cause.map(|cause| Explanation { why: vec![cause], ..self.common(None) }));
                return;
            }
        };
        let text = text
            .map_or_else(|| self.message.map(|text| text.message.to_string()), |text| Some(text.to_owned()));
        match found {
            Ok((message, end)) => all.known.push(self.explain_message(&message, &end, text)),
            Err(problem) => {
                let why = vec![unknown_eviction(None, text.as_deref().unwrap_or_default())];
                all.add_unclear(Explanation { why, ..self.common(text) }, problem);
            }
        }
    }

    /// True if the input is a text, which may lack conditions, annotations and parts of messages.
    fn is_partial(&self) -> bool {
        self.message.is_some() || self.pod.is_some_and(|pod| pod.is_partial)
    }

    /// The parts of an explanation that do not depend on the message.
    fn common(&self, message: Option<String>) -> Explanation {
        Explanation {
            pod: self.name.clone(),
            node: self.node.clone(),
            at: self.events.first().and_then(|event| event.at),
            kubelet: self.version.clone(),
            message,
            ..Explanation::default()
        }
    }

    /// Explains an eviction by the kubelet. `text`: the message, verbatim.
    fn explain_message(
        &self,
        message: &EvictionMessage,
        end: &MessageEnd,
        text: Option<String>,
    ) -> Explanation {
        let no_status = PodStatus::default();
        let status = self.pod.map_or(&no_status, |pod| &pod.status);
        // A message without its end may lack containers.
        let is_whole = *end == MessageEnd::Whole;
        let manifest = self.pod.and_then(|pod| pod.manifest.as_ref()).filter(|_| is_whole);
        let version = self.version.as_ref();
        let (containers, pod_level) = match message {
            EvictionMessage::NodePressure(pressure) => {
                (container_reports(pressure, manifest, status, version), pod_level_report(pressure))
            }
            _ => (Vec::new(), None),
        };
        let matcher = BugMatcher {
            message,
            containers: &containers,
            pod: manifest,
            status,
            version,
            has_evicted_event: !self.events.is_empty(),
            has_other_events: self.other_events,
        };
        let bugs = matcher.matches();
        let checks = if self.is_partial() { Vec::new() } else { self.check_consistency(status) };
        let has_run = self.pod.is_some_and(Pod::has_run);
        let (why, missing) = (why(message, end, has_run), self.missing_input(message));
        let common = self.common(text);
        let pod = common.pod.clone().or_else(|| pod_level.as_ref().map(|pod| pod.name.clone()));
        Explanation { pod, why, bugs, checks, missing, pod_level, containers, ..common }
    }

    /// Checks the records of the eviction. Copied objects may lack the space at the end of
    /// messages, and the status of a rejected pod has a prefix that its event does not have.
    fn check_consistency(&self, status: &PodStatus) -> Vec<ConsistencyCheck> {
        let whole = |text: &str| match parse_message(text) {
            Ok(EvictionMessage::Rejected { conditions, .. }) => {
                EvictionMessage::Rejected { conditions, in_status: false }.to_string()
            }
            Ok(message) => message.to_string(),
            Err(_) => text.to_owned(),
        };
        let event = |event: &EvictedEvent| EvictedEvent { message: whole(&event.message), ..event.clone() };
        let events: Vec<EvictedEvent> = self.events.iter().map(event).collect();
        let in_status = status.eviction_message().map(whole);
        let condition = status.kubelet_termination().and_then(|condition| condition.message.as_deref());
        let condition = condition.map(whole);
        check_consistency(EvictionEvidence {
            pod: self.pod.and_then(|pod| pod.manifest.as_ref()),
            version: self.version.as_ref().map(StatedVersion::version),
            events: &events,
            status: in_status.as_deref(),
            condition: condition.as_deref(),
        })
    }

    /// The name of the pod for kubectl, or `NAME`.
    fn pod_argument(&self) -> String {
        let name = self.name.as_deref().unwrap_or("NAME");
        match name.split_once('/') {
            Some((namespace, pod)) if is_object_name(namespace) && is_object_name(pod) => {
                format!("{pod} -n {namespace}")
            }
            None if is_object_name(name) => name.to_owned(),
            _ => "NAME".to_owned(),
        }
    }

    /// Input that would make the explanation more complete.
    fn missing_input(&self, message: &EvictionMessage) -> Vec<String> {
        let mut missing = Vec::new();
        if self.is_cut {
            let text = "the end of the object: the input is cut, and only the eviction message was read";
            missing.push(text.to_owned());
        }
        let names_containers = |pressure: &NodePressure| {
            matches!(pressure.resource, Resource::Memory | Resource::EphemeralStorage)
        };
        if self.pod.is_none()
            && matches!(message, EvictionMessage::NodePressure(pressure) if names_containers(pressure))
        {
            missing.push(format!("{POD_HINT}: kubectl get pod {} -o yaml", self.pod_argument()));
        }
        if self.version.is_none() {
            let node = self.node.as_deref().filter(|node| is_object_name(node)).unwrap_or("NAME");
            let text =
                format!("{VERSION_HINT}: --kubelet v1.31, or the node: kubectl get node {node} -o yaml");
            missing.push(text);
        }
        missing
    }
}

/// Returns whether a text of the input can be a name in a command that is meant to be pasted.
fn is_object_name(text: &str) -> bool {
    let is_valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(is_valid)
}

/// Finds a message in the status of a described pod.
fn find_message(text: &str) -> Result<(EvictionMessage, MessageEnd), MessageParseError> {
    match find_messages(text).into_iter().next() {
        Some(found) => Ok((found.message, found.end)),
        None => parse_message(text).map(|message| (message, MessageEnd::Whole)),
    }
}
