//! Input of explanations: the output of `kubectl get -o yaml`, single objects, or messages.

use std::collections::HashSet;

use evictlab_evidence::{YamlError, yaml_documents_as};
use evictlab_rules::invariant::{EvictedEvent, evicted_events};
use evictlab_rules::message::{EvictionMessage, MessageParseError};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::document::Document;
use crate::log_line::{is_quoted, unquoted};
use crate::objects::{Event, Node, Pod};
use crate::text_input::{TextCause, TextMessage, read_text};

/// Beginnings of eviction messages.
const MESSAGE_STARTS: [&str; 6] = [
    "The node was low on resource: ",
    "Usage of EmptyDir volume ",
    "Pod ephemeral local storage usage exceeds ",
    "Container ",
    "Pod was rejected: The node had condition: ",
    "The node had condition: ",
];

/// Maximum number of objects that the description of an input names.
pub(crate) const MAX_DESCRIBED: usize = 3;

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
    /// UIDs of the objects with an event of a kubelet that is not an eviction.
    pub(crate) other_kubelet_events: HashSet<Option<String>>,
    pub(crate) pods: Vec<Pod>,
    /// Nodes, which contain the kubelet versions.
    pub(crate) nodes: Vec<Node>,
    /// Eviction messages without an object.
    pub(crate) messages: Vec<TextMessage>,
    /// Other terminations that a text states.
    pub(crate) causes: Vec<TextCause>,
}

/// The input could not be read.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The input is empty.
    #[error(
        "the input is empty\nhelp: pass an Event, a Pod, a list of them (kubectl get events,pods -o yaml), or an eviction message"
    )]
    Empty,
    /// The input contains no Event or Pod, only the object named here.
    #[error("expected an Event, a Pod, or a list of them, found {0}\nhelp: kubectl get events,pods -o yaml")]
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
    },
    /// An object has a field of another type than Kubernetes defines.
    #[error("failed to read {kind}: {source}")]
    Object {
        /// Kind of the object.
        kind: &'static str,
        /// The error.
        source: serde_json::Error,
    },
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
    /// A text that is not about an eviction.
    #[error(
        "no eviction found in this text, which begins with {0:?}\nhelp: pass an Event, a Pod, a list of them (kubectl get events,pods -o yaml), an eviction message, or the output of kubectl describe pod"
    )]
    Text(String),
}

impl Input {
    /// Reads objects as JSON or YAML (one or more documents), or text that contains eviction
    /// messages, such as the output of `kubectl describe`.
    ///
    /// # Errors
    /// The text contains none of them; the error has the position where parsing failed.
    pub fn read(text: &str) -> Result<Self, InputError> {
        if text.trim().is_empty() {
            return Err(InputError::Empty);
        }
        let text = text.trim_start_matches('\u{feff}');
        let plain = if is_quoted(text) { unquoted(text) } else { text.into() };
        let text = plain.as_ref();
        let is_object = text.trim_start().starts_with('{')
            || text.lines().any(|line| line.starts_with("kind:") || line.starts_with("apiVersion:"));
        // YAML may start with a brace, too; errors refer to JSON then.
        let documents = match text.trim_start().starts_with(['{', '[']) {
            true => json(text).or_else(|error| yaml(text).map_err(|_| error)),
            false => yaml(text),
        };
        match documents {
            Ok(documents) if documents.iter().any(Document::has_kind) => of_documents(documents),
            Ok(_) => of_text(text),
            // A message parses as an invalid mapping.
            Err(error) if is_object => Err(error),
            Err(_) => of_text(text),
        }
    }
}

/// Reads one object, or several one after the other, as in the output of `kubectl get -o json --watch`.
fn json(text: &str) -> Result<Vec<Document>, InputError> {
    let documents = serde_json::Deserializer::from_str(text).into_iter::<Document>();
    documents.collect::<Result<_, _>>().map_err(|error| InputError::Syntax {
        format: "JSON",
        line: error.line(),
        column: error.column(),
        problem: error.to_string(),
    })
}

fn yaml(text: &str) -> Result<Vec<Document>, InputError> {
    yaml_documents_as(text).map_err(|YamlError { line, column, problem }| InputError::Syntax {
        format: "YAML",
        line,
        column,
        problem,
    })
}

fn of_documents(documents: Vec<Document>) -> Result<Input, InputError> {
    let mut input = Input::default();
    let mut others = Vec::new();
    for document in documents {
        document.add_to(&mut input, &mut others)?;
    }
    if input.event_count == 0 && input.pods.is_empty() {
        let nodes = (!input.nodes.is_empty()).then(|| "a Node".to_owned());
        let what = nodes.or_else(|| others.first().cloned()).unwrap_or_else(|| "an empty list".to_owned());
        return Err(InputError::Kind(what));
    }
    Ok(input)
}

fn of_text(text: &str) -> Result<Input, InputError> {
    let found = read_text(text, |line| message(line).ok());
    if found.is_empty() {
        // A wrapped message.
        let whole = message(text).map_err(|error| not_a_message(text, &error))?;
        let messages = vec![TextMessage { pod: None, message: whole }];
        return Ok(Input { messages, ..Input::default() });
    }
    let mut input = Input { messages: found.messages, causes: found.causes, ..Input::default() };
    for pod in found.pods {
        input.add_pod(pod)?;
    }
    input.pods.iter_mut().for_each(|pod| pod.is_partial = true);
    Ok(input)
}

/// Maximum number of characters of the input in an error.
const MAX_QUOTED: usize = 40;

fn not_a_message(text: &str, error: &MessageParseError) -> InputError {
    let first = |text: &str| text.chars().take(MAX_QUOTED).collect::<String>();
    if error.offset == 0 {
        return InputError::Text(first(text.trim()));
    }
    let (before, rest) = error.text.split_at(error.offset);
    let skipped = before.chars().count().saturating_sub(MAX_QUOTED);
    let after = before.chars().skip(skipped).collect();
    let found = if rest.trim().is_empty() { "the end".to_owned() } else { first(rest) };
    InputError::Message { after, expected: error.expected.clone(), found }
}

/// Extracts the eviction message from a text.
fn message(text: &str) -> Result<String, MessageParseError> {
    let from = MESSAGE_STARTS.iter().filter_map(|start| text.find(start)).min().unwrap_or(0);
    let found = parse_message(&text[from..]);
    let (Err(error), true) = (&found, from > 0) else { return found };
    // A value in quotes, as in `msg="…" level=info`.
    let quote = text[..from].chars().next_back().filter(|c| matches!(c, '"' | '\''));
    let value = quote.and_then(|quote| quoted_value(&text[from..], quote));
    value.and_then(|value| parse_message(&value).ok()).ok_or_else(|| error.clone())
}

/// Returns the text up to an unescaped quote, without escapes.
fn quoted_value(text: &str, quote: char) -> Option<String> {
    let mut value = String::new();
    let mut characters = text.chars();
    loop {
        match characters.next()? {
            '\\' => value.extend(characters.next()),
            c if c == quote => return Some(value),
            c => value.push(c),
        }
    }
}

/// Ends of a message that a table or a chat shortened.
const ELLIPSES: [&str; 3] = ["…", "...", "[truncated]"];

/// Parses a text that begins with an eviction message; of a shortened one, its complete sentences.
fn parse_message(text: &str) -> Result<String, MessageParseError> {
    let words: Vec<&str> = text.split_whitespace().collect();
    // Messages end with a full stop and a space. Copying loses the space and adds quotes.
    let text =
        format!("{} ", words.join(" ").trim_end_matches(['"', '\'', '`', '*', '_', ')', '>', '|', '”', '’']));
    let text = modernize(&text);
    match text.parse::<EvictionMessage>() {
        Ok(_) => Ok(text),
        Err(error) if error.offset > 0 && text[..error.offset].parse::<EvictionMessage>().is_ok() => {
            Ok(text[..error.offset].to_owned())
        }
        Err(error) => {
            let is_shortened = ELLIPSES.iter().any(|end| text.contains(end));
            let ends = text.rmatch_indices(". ").map(|(at, _)| &text[..at + 2]);
            let complete = ends.filter(|_| is_shortened).find(|part| part.parse::<EvictionMessage>().is_ok());
            complete.map(str::to_owned).ok_or(error)
        }
    }
}

/// Converts a message of kubelets before 1.26 to the form of newer ones. An old message:
/// `Container a was using 2Gi, which exceeds its request of 1Gi. `
pub(crate) fn modernize(text: &str) -> String {
    let resource =
        text.strip_prefix(MESSAGE_STARTS[0]).and_then(|rest| rest.split(". ").next()).unwrap_or_default();
    let mut parts = text.split(", which exceeds its request of ");
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (request, rest) = part.split_once(". ").unwrap_or((part.trim_end(), ""));
        all += &format!(", request is {request}, has larger consumption of {resource}. {rest}");
    }
    all
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
        if event.reason.as_deref() == Some("Evicted") {
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
        self.other_kubelet_events.extend(other.other_kubelet_events);
        self.pods.extend(other.pods);
        self.nodes.extend(other.nodes);
        self.messages.extend(other.messages);
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
            "Event" => self.add_event(object)?,
            "Pod" => self.add_pod(object)?,
            "Node" => self.nodes.push(decode("Node", object)?),
            list if list.ends_with("List") => {
                let of = list.strip_suffix("List").filter(|of| !of.is_empty());
                let items = object.get_mut("items").and_then(Value::as_array_mut).map(std::mem::take);
                for item in items.into_iter().flatten() {
                    self.add(item, of, others)?;
                }
            }
            "" => others.push("an object without a kind".to_owned()),
            other => others.push(format!("a {other}")),
        }
        Ok(())
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    const LOW: &str = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 52Mi. ";

    fn counts(text: &str) -> (usize, usize, usize, usize) {
        let input = Input::read(text).unwrap();
        (input.event_count, input.pods.len(), input.nodes.len(), input.messages.len())
    }

    #[test]
    fn reads_output_of_kubectl() {
        let rows = [
            ("{\"kind\": \"Event\"}\n{\"kind\": \"Pod\"}\n", (1, 1, 0, 0)),
            ("kind: Pod\nmetadata: {name: a}", (0, 1, 0, 0)),
            (r#"{"kind": "Event", "reason": "Evicted"}"#, (1, 0, 0, 0)),
            ("kind: List\nitems:\n- kind: Event\n- kind: Pod\n- kind: Node\n- kind: Service", (1, 1, 1, 0)),
            ("kind: EventList\nitems: [{}, {}]", (2, 0, 0, 0)),
            // kubectl writes the items before the kind of their list.
            ("items: [{kind: Event}, {kind: Node}, {}]\nkind: PodList\n---\nkind: Node", (1, 1, 2, 0)),
            (r#"{"items": [{}, {}], "metadata": {}, "kind": "EventList"}"#, (2, 0, 0, 0)),
            (
                r#"{"kind": "List", "items": [{"kind": "PodList", "items": [{}, {"kind": "Event"}]}]}"#,
                (1, 1, 0, 0),
            ),
            ("kind: Pod\n---\nkind: Event\n---\n", (1, 1, 0, 0)),
            (LOW, (0, 0, 0, 1)),
            (LOW.trim(), (0, 0, 0, 1)),
            (
                "Message:  The node was low on resource: memory.\n          Threshold quantity: 100Mi, available: 52Mi.\nIP: 10.0.0.1",
                (0, 0, 0, 1),
            ),
            (
                &format!(
                    "  Warning  Evicted  12s  kubelet  {LOW}\n  Normal  Killing  12s  kubelet  Stopping container el1"
                ),
                (0, 0, 0, 1),
            ),
        ];
        for (text, expected) in rows {
            assert_eq!(counts(text), expected, "{text}");
        }
    }

    #[test]
    fn reads_events_of_both_api_groups() {
        let text = format!("kind: Event\nregarding: {{kind: Pod, name: a}}\nnote: '{LOW}'\nreason: Evicted");
        let input = Input::read(&text).unwrap();
        assert_eq!(input.evicted_sources[0].involved_object.name.as_deref(), Some("a"));
        assert_eq!((input.evicted[0].pod.as_str(), input.evicted[0].message.as_str()), ("a", LOW));
    }

    #[test]
    fn converts_messages_of_old_kubelets() {
        let old = "The node was low on resource: memory. Container a was using 30332Ki, which exceeds its request of 0. Container b was using 2Gi, which exceeds its request of 1Gi.";
        let new = "The node was low on resource: memory. Container a was using 30332Ki, request is 0, has larger consumption of memory. \
                   Container b was using 2Gi, request is 1Gi, has larger consumption of memory. ";
        assert_eq!(Input::read(old).unwrap().messages[0].message, new);
        assert_eq!(modernize(LOW), LOW);
    }

    #[test]
    fn errors_have_a_position() {
        let rows = [
            (" \n", "the input is empty"),
            ("kind: Service", "found a Service"),
            ("kind: List\nitems: []", "found an empty list"),
            ("kind: EventList\nitems: x", "found an empty list"),
            ("items: [{kind: Event}]\nkind: Example", "found a Example"),
            ("kind: PodList\nitems: [{spec: 1}, {]}]", "YAML, line 2, column"),
            ("items: [{spec: {nodeName: [a]}}]\nkind: PodList", "failed to read Pod: invalid type"),
            ("kind: Node", "found a Node"),
            ("kind: Pod\nmetadata: {name: [}", "YAML, line 2, column"),
            ("{\"kind\": ", "JSON, line 1, column 9"),
            ("hello", "no eviction found in this text, which begins with \"hello\""),
            ("Container el1 was using 3Gi. ", "after \"Container \", expected a container's name"),
            (
                "The node was low on resource: patience. ",
                "after \"The node was low on resource: \", expected memory, ephemeral-storage, inodes or pids",
            ),
            ("- 1\n- 2", "no eviction found in this text"),
            ("kind: Pod\nspec: {nodeName: [a]}", "failed to read Pod: invalid type: sequence"),
        ];
        for (text, expected) in rows {
            let error = Input::read(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
