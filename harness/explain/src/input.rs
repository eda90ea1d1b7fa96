//! Input of explanations: objects, messages, and other terminations that a text states.

use std::collections::HashSet;

use evictlab_rules::message::EVICTED_REASON;
use evictlab_rules::{EvictedEvent, evicted_events};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::log_line::value_lines;
use crate::objects::{Event, Node, Pod, qualified};
use crate::other_causes::NOT_AN_EVICTION;
use crate::pod_in_line::with_namespace;
use crate::text_cause::{ATTEMPTED, ApiEviction, EVICTED, REFUSED, cause_in_text};
use crate::text_input::{TextCause, TextMessage, read_lines};

/// Maximum number of objects that the description of an input names.
pub(crate) const MAX_DESCRIBED: usize = 3;
/// Reason of events about pods that wait, of which a cluster may have many.
const WAITING: &str = "FailedScheduling";
/// Reasons of events of nodes about OOM kills.
const OOM_KILLS: [&str; 2] = ["SystemOOM", "OOMKilling"];

/// Objects and messages to explain.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// Number of events.
    pub(crate) event_count: usize,
    /// Descriptions of the first events.
    pub(crate) first_events: Vec<String>,
    /// Evicted events, as explanations compare them.
    pub(crate) evicted: Vec<EvictedEvent>,
    /// Objects and sources of the events with the reason `Evicted`.
    pub(crate) evicted_sources: Vec<Event>,
    /// Terminations that other events state.
    pub(crate) event_causes: Vec<TextCause>,
    /// Node and message of events about OOM kills.
    pub(crate) oom_kills: Vec<(Option<String>, String)>,
    /// UIDs of the objects with an event of a kubelet that is not an eviction.
    pub(crate) other_kubelet_events: HashSet<Option<String>>,
    pub(crate) pods: Vec<Pod>,
    /// Nodes, which contain the kubelet versions.
    pub(crate) nodes: Vec<Node>,
    /// Eviction messages without an object.
    pub(crate) messages: Vec<TextMessage>,
    /// Other terminations that a text states.
    pub(crate) causes: Vec<TextCause>,
    /// True if the messages are all that could be read of objects that are cut.
    pub(crate) is_cut: bool,
    /// Descriptions of the first objects that explanations do not use.
    pub(crate) others: Vec<String>,
}

/// The input could not be read.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The input is empty.
    #[error(
        "failed to read the input: it is empty\nhelp: pass an Event, a Pod, a list of them (kubectl get events,pods -o yaml), or an eviction message"
    )]
    Empty,
    /// The input contains no Event or Pod, only the object named here.
    #[error(
        "failed to read the input: expected an Event, a Pod, or a list of them, found {0}\nhelp: pass the output of kubectl get events,pods -o yaml"
    )]
    Kind(String),
    /// Invalid YAML or JSON.
    #[error("failed to parse {format}, line {line}, column {column}: {problem}")]
    Syntax {
        /// `YAML` or `JSON`.
        format: &'static str,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// The parse error.
        problem: String,
        /// True if the text ends where more is expected.
        is_end: bool,
    },
    /// An object has a field of another type than Kubernetes defines.
    #[error("failed to read {kind}: {source}")]
    Object {
        /// Kind of the object.
        kind: &'static str,
        /// The error.
        source: serde_json::Error,
    },
    /// A text that ends within the first sentence of an eviction message.
    #[error(
        "failed to read the eviction message: it is cut after {0:?}\nhelp: pass the whole message: kubectl get events -A --field-selector reason=Evicted -o yaml"
    )]
    Truncated(String),
    /// A text with an eviction message that no kubelet writes.
    #[error("failed to read the eviction message: after {after:?}, expected {expected}, found {found:?}")]
    Message {
        /// The last characters that could be read.
        after: String,
        /// Description of the expected text.
        expected: String,
        /// The first characters that could not be read.
        found: String,
    },
    /// A text about a node under pressure, and not about a pod.
    #[error(
        "failed to find an eviction in this text: a node was under pressure, and no evicted pod is named: {0:?}\nhelp: list the evictions: kubectl get events -A --field-selector reason=Evicted"
    )]
    NodePressure(String),
    /// A text that is not about an eviction.
    #[error(
        "failed to find an eviction in this text, which begins with {0:?}\nhelp: pass an Event, a Pod, a list of them (kubectl get events,pods -o yaml), an eviction message, or the output of kubectl describe pod"
    )]
    Text(String),
}

impl Input {
    /// Adds an Event of core/v1 or events.k8s.io/v1.
    ///
    /// # Errors
    /// A field has an unexpected type.
    pub fn add_event(&mut self, event: Value) -> Result<(), InputError> {
        let event = to_core_event(event);
        self.evicted.extend(evicted_events(std::slice::from_ref(&event)));
        let event: Event = decode("Event", event)?;
        self.event_count += 1;
        if self.first_events.len() < MAX_DESCRIBED {
            self.first_events.push(event.describe());
        }
        self.event_causes.extend(other_termination(&event));
        if let (Some(reason), Some(message)) = (event.reason.as_deref(), &event.message)
            && OOM_KILLS.contains(&reason)
        {
            let object = &event.involved_object;
            let node = object.name.clone().filter(|_| object.kind.as_deref() == Some("Node"));
            self.oom_kills.push((node, message.clone()));
        }
        if event.reason.as_deref() == Some(EVICTED_REASON) {
            self.evicted_sources.push(event);
        } else if event.source.component.as_deref() == Some("kubelet") {
            self.other_kubelet_events.insert(event.involved_object.uid);
        }
        Ok(())
    }

    /// Adds a Pod.
    ///
    /// # Errors
    /// A field has an unexpected type.
    pub fn add_pod(&mut self, pod: Value) -> Result<(), InputError> {
        let manifest = evictlab_rules::pod::Pod::deserialize(&pod).ok();
        let manifest = manifest.map(evictlab_rules::pod::Pod::with_allocated_resources);
        self.pods.push(Pod { manifest, ..decode("Pod", pod)? });
        Ok(())
    }

    /// Adds the objects of another input.
    pub(crate) fn append(&mut self, other: Self) {
        self.event_count += other.event_count;
        self.first_events.extend(other.first_events);
        self.first_events.truncate(MAX_DESCRIBED);
        self.evicted.extend(other.evicted);
        self.evicted_sources.extend(other.evicted_sources);
        self.event_causes.extend(other.event_causes);
        self.oom_kills.extend(other.oom_kills);
        self.other_kubelet_events.extend(other.other_kubelet_events);
        self.pods.extend(other.pods);
        self.nodes.extend(other.nodes);
        self.messages.extend(other.messages);
        self.causes.extend(other.causes);
        self.is_cut |= other.is_cut;
        self.others.extend(other.others);
        self.others.truncate(MAX_DESCRIBED);
    }

    /// Adds an object or the items of a list. `item_kind` is the kind of items without one.
    pub(crate) fn add(
        &mut self,
        mut object: Value,
        item_kind: Option<&str>,
        others: &mut Vec<String>,
    ) -> Result<(), InputError> {
        let kind = kind(&object).or(item_kind).unwrap_or_default().to_owned();
        match kind.as_str() {
            "Event" if is_audit_event(&object) => match (eviction_request(&object), written_object(object)) {
                (Some(cause), _) => self.causes.push(cause),
                (None, Some(written)) => self.add(written, None, others)?,
                (None, None) => others.push("an audit event".to_owned()),
            },
            // A resource in the tree of Argo CD, with its health instead of a status.
            "Pod" if object.get("metadata").is_none() && object.pointer("/health/message").is_some() => {
                let text = read_lines(value_lines(&object));
                self.messages.extend(text.messages);
                self.causes.extend(text.causes);
            }
            "Event" => self.add_event(object)?,
            "Pod" => self.add_pod(object)?,
            "Node" => self.nodes.push(decode("Node", object)?),
            list if list.ends_with("List") => {
                let item_kind = list.strip_suffix("List").filter(|kind| !kind.is_empty());
                let items = object.get_mut("items").and_then(Value::as_array_mut).map(std::mem::take);
                for item in items.into_iter().flatten() {
                    self.add(item, item_kind, others)?;
                }
            }
            "" => others.push("an object without a kind".to_owned()),
            other => others.push(format!("a {other}")),
        }
        Ok(())
    }
}

/// Returns the termination that an event of a pod states; `None` for evictions by the kubelet.
fn other_termination(event: &Event) -> Option<TextCause> {
    let object = &event.involved_object;
    let reason = event.reason.as_deref().filter(|reason| *reason != EVICTED_REASON && *reason != WAITING)?;
    let name = object.name.as_ref().filter(|_| object.kind.as_ref().is_none_or(|kind| kind == "Pod"))?;
    let message = event.message.as_deref().unwrap_or_default();
    let cause = cause_in_text(&format!("{reason}: {message}"))?;
    let pod = with_namespace(qualified(object.namespace.as_deref(), name), message);
    Some(TextCause { pod: Some(pod), why: vec![cause.why], ..TextCause::default() })
}

/// Returns whether an object is an event of the API server's audit log.
fn is_audit_event(object: &Value) -> bool {
    let version = object.get("apiVersion").and_then(Value::as_str);
    version.is_some_and(|version| version.starts_with("audit.k8s.io/"))
}

/// Returns the request for an eviction that an audit event is about, with its result.
fn eviction_request(event: &Value) -> Option<TextCause> {
    let text = |path: &str| event.pointer(path).and_then(Value::as_str);
    text("/objectRef/subresource").filter(|subresource| *subresource == "eviction")?;
    let (why, progress) = match event.pointer("/responseStatus/code").and_then(Value::as_u64) {
        Some(200..300) => (EVICTED, ApiEviction::Done),
        Some(429) => (REFUSED, ApiEviction::Refused),
        _ => (ATTEMPTED, ApiEviction::Attempted),
    };
    let user = text("/user/username").map(|user| format!(" The request was of the user {user}."));
    Some(TextCause {
        pod: Some(qualified(text("/objectRef/namespace"), text("/objectRef/name")?)),
        why: vec![format!("{why}{} {NOT_AN_EVICTION}", user.unwrap_or_default())],
        api_eviction: Some(progress),
        ..TextCause::default()
    })
}

/// Returns the Event or the Pod that an audit event contains, as a kubelet writes it: the response,
/// which is complete, or else the request. A patch of a pod's status has no name of its own.
fn written_object(mut event: Value) -> Option<Value> {
    let text = |path: &str| event.pointer(path).and_then(Value::as_str).map(str::to_owned);
    let resource = text("/objectRef/resource")?;
    let (namespace, name) = (text("/objectRef/namespace"), text("/objectRef/name"));
    let kind = match resource.as_str() {
        "events" => "Event",
        "pods" => "Pod",
        _ => return None,
    };
    let fields = event.as_object_mut()?;
    let is_object = |value: &Value| self::kind(value).is_none_or(|written| written == kind);
    let body =
        ["responseObject", "requestObject"].iter().find_map(|key| fields.remove(*key).filter(is_object));
    let mut object = body.filter(Value::is_object)?;
    let fields = object.as_object_mut()?;
    fields.entry("kind").or_insert_with(|| kind.into());
    let metadata = fields.entry("metadata").or_insert_with(|| json!({})).as_object_mut()?;
    for (key, value) in [("namespace", namespace), ("name", name)] {
        if let Some(value) = value {
            metadata.entry(key).or_insert_with(|| value.into());
        }
    }
    Some(object)
}

fn kind(object: &Value) -> Option<&str> {
    object.get("kind")?.as_str()
}

fn decode<T: DeserializeOwned>(kind: &'static str, object: Value) -> Result<T, InputError> {
    serde_json::from_value(object).map_err(|source| InputError::Object { kind, source })
}

/// Renames the fields of an Event of events.k8s.io/v1 to those of core/v1.
fn to_core_event(mut event: Value) -> Value {
    let renamed = [
        ("regarding", "involvedObject"),
        ("note", "message"),
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedSource", "source"),
        ("reportingController", "reportingComponent"),
        ("deprecatedCount", "count"),
    ];
    if let Some(fields) = event.as_object_mut() {
        for (new, old) in renamed {
            if let Some(value) = fields.remove(new) {
                fields.entry(old).or_insert(value);
            }
        }
        fields.entry("metadata").or_insert_with(|| json!({}));
    }
    event
}
