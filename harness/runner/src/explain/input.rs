//! What people have at hand: `kubectl get … -o yaml`, an event, a pod, or only the message.

use evictlab_rules::message::{EvictionMessage, ReadError};
use serde::Deserialize;
use serde_json::{Value, json};

/// How eviction messages begin.
const BEGINNINGS: [&str; 6] = [
    "The node was low on resource: ",
    "Usage of EmptyDir volume ",
    "Pod ephemeral local storage usage exceeds ",
    "Container ",
    "Pod was rejected: The node had condition: ",
    "The node had condition: ",
];

/// Objects and messages to explain.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// Events, as core/v1 has them.
    pub events: Vec<Value>,
    /// Pods.
    pub pods: Vec<Value>,
    /// Nodes: they tell their kubelets' versions.
    pub nodes: Vec<Value>,
    /// Messages without an object.
    pub messages: Vec<String>,
}

/// The input is nothing that can be explained.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// There is nothing.
    #[error(
        "the input is empty: give it an Event, a Pod, a list of them (kubectl get events,pods -o yaml), or an eviction message"
    )]
    Empty,
    /// Objects of other kinds.
    #[error("{0} is no Event, Pod or Node, nor a list of them: kubectl get events,pods -o yaml")]
    Kind(String),
    /// Objects that cannot be read.
    #[error("{format}, line {line}, column {column}: {problem}")]
    Syntax {
        /// `YAML` or `JSON`.
        format: &'static str,
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// What is wrong.
        problem: String,
    },
    /// A text that is no message.
    #[error("this is neither an object nor a message that kubelets write when they evict: {0}")]
    Message(ReadError),
}

impl Input {
    /// Reads objects as JSON or YAML, several documents too, or text with eviction messages in it, such as lines of `kubectl describe`.
    ///
    /// # Errors
    /// Where nothing of that is in it, with the place where reading stopped.
    pub fn read(text: &str) -> Result<Self, InputError> {
        if text.trim().is_empty() {
            return Err(InputError::Empty);
        }
        let is_object = text.trim_start().starts_with('{')
            || text.lines().any(|line| line.starts_with("kind:") || line.starts_with("apiVersion:"));
        // YAML may begin with a brace, too; what is meant as JSON is told as such.
        let objects = match text.trim_start().starts_with(['{', '[']) {
            true => json(text).map(|value| vec![value]).or_else(|wrong| yaml(text).map_err(|_| wrong)),
            false => yaml(text),
        };
        match objects {
            Ok(objects) if objects.iter().any(|object| object["kind"].is_string()) => of_objects(objects),
            Ok(_) => of_text(text),
            // A message reads as a broken mapping.
            Err(error) if is_object => Err(error),
            Err(_) => of_text(text),
        }
    }
}

fn json(text: &str) -> Result<Value, InputError> {
    serde_json::from_str(text).map_err(|error| InputError::Syntax {
        format: "JSON",
        line: error.line(),
        column: error.column(),
        problem: error.to_string(),
    })
}

fn yaml(text: &str) -> Result<Vec<Value>, InputError> {
    let documents = serde_yaml::Deserializer::from_str(text).map(Value::deserialize);
    let read: Result<Vec<Value>, serde_yaml::Error> = documents.collect();
    read.map_err(|error| {
        let (line, column) = error.location().map_or((1, 1), |at| (at.line(), at.column()));
        InputError::Syntax { format: "YAML", line, column, problem: error.to_string() }
    })
}

fn of_objects(objects: Vec<Value>) -> Result<Input, InputError> {
    let mut input = Input::default();
    let mut others = Vec::new();
    for object in objects.into_iter().filter(|object| !object.is_null()) {
        input.add(object, None, &mut others);
    }
    if input.events.is_empty() && input.pods.is_empty() {
        let nodes = (!input.nodes.is_empty()).then(|| "a Node".to_owned());
        let what = nodes.or_else(|| others.first().cloned()).unwrap_or_else(|| "an empty list".to_owned());
        return Err(InputError::Kind(what));
    }
    Ok(input)
}

fn of_text(text: &str) -> Result<Input, InputError> {
    let found: Vec<String> = text.lines().filter_map(|line| message(line).ok()).collect();
    // `kubectl describe` breaks long messages.
    let messages = if found.is_empty() { vec![message(text).map_err(InputError::Message)?] } else { found };
    Ok(Input { messages, ..Input::default() })
}

/// The eviction message in a text, whatever stands before and after it.
fn message(text: &str) -> Result<String, ReadError> {
    let from = BEGINNINGS.iter().filter_map(|beginning| text.find(beginning)).min().unwrap_or(0);
    let words: Vec<&str> = text[from..].split_whitespace().collect();
    // Messages end with a space, which copying loses.
    let text = format!("{} ", words.join(" ").trim_end_matches(['"', '\'']));
    let text = modern(&text);
    match text.parse::<EvictionMessage>() {
        Ok(_) => Ok(text),
        Err(error) if error.offset > 0 && text[..error.offset].parse::<EvictionMessage>().is_ok() => {
            Ok(text[..error.offset].to_owned())
        }
        Err(error) => Err(error),
    }
}

/// A message of kubelets before 1.26 in the words of those since: `Container a was using 2Gi, which exceeds its request of 1Gi. `
pub(super) fn modern(text: &str) -> String {
    let resource =
        text.strip_prefix(BEGINNINGS[0]).and_then(|rest| rest.split(". ").next()).unwrap_or_default();
    let mut parts = text.split(", which exceeds its request of ");
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (request, rest) = part.split_once(". ").unwrap_or((part.trim_end(), ""));
        all += &format!(", request is {request}, has larger consumption of {resource}. {rest}");
    }
    all
}

impl Input {
    /// Adds an object, or what is in a list; `kind` is what the items of a list are where they do not say so.
    fn add(&mut self, object: Value, kind: Option<&str>, others: &mut Vec<String>) {
        let kind = object["kind"].as_str().or(kind).unwrap_or_default().to_owned();
        match kind.as_str() {
            "Event" => self.events.push(core(object)),
            "Pod" => self.pods.push(object),
            "Node" => self.nodes.push(object),
            list if list.ends_with("List") => {
                let of = list.strip_suffix("List").filter(|of| !of.is_empty()).map(str::to_owned);
                for item in object["items"].as_array().into_iter().flatten() {
                    self.add(item.clone(), of.as_deref(), others);
                }
            }
            "" => others.push("an object without a kind".to_owned()),
            other => others.push(format!("a {other}")),
        }
    }
}

/// An event of events.k8s.io/v1 with the names of core/v1.
fn core(mut event: Value) -> Value {
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
        (input.events.len(), input.pods.len(), input.nodes.len(), input.messages.len())
    }

    #[test]
    fn objects_are_found_in_whatever_kubectl_prints() {
        let rows = [
            ("kind: Pod\nmetadata: {name: a}", (0, 1, 0, 0)),
            (r#"{"kind": "Event", "reason": "Evicted"}"#, (1, 0, 0, 0)),
            ("kind: List\nitems:\n- kind: Event\n- kind: Pod\n- kind: Node\n- kind: Service", (1, 1, 1, 0)),
            ("kind: EventList\nitems: [{}, {}]", (2, 0, 0, 0)),
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
    fn events_of_the_new_group_read_as_the_old_ones() {
        let text = format!("kind: Event\nregarding: {{kind: Pod, name: a}}\nnote: '{LOW}'\nreason: Evicted");
        let event = &Input::read(&text).unwrap().events[0];
        assert_eq!((&event["involvedObject"]["name"], &event["message"]), (&json!("a"), &json!(LOW)));
    }

    #[test]
    fn words_of_old_kubelets_are_put_into_new_ones() {
        let old = "The node was low on resource: memory. Container a was using 30332Ki, which exceeds its request of 0. Container b was using 2Gi, which exceeds its request of 1Gi.";
        let new = "The node was low on resource: memory. Container a was using 30332Ki, request is 0, has larger consumption of memory. \
                   Container b was using 2Gi, request is 1Gi, has larger consumption of memory. ";
        assert_eq!(Input::read(old).unwrap().messages, [new]);
        assert_eq!(modern(LOW), LOW);
    }

    #[test]
    fn what_cannot_be_explained_is_told_with_its_place() {
        let rows = [
            (" \n", "the input is empty"),
            ("kind: Service", "a Service is no Event, Pod or Node"),
            ("kind: List\nitems: []", "an empty list is no Event"),
            ("kind: Node", "a Node is no Event"),
            ("kind: Pod\nmetadata: {name: [}", "YAML, line 2, column"),
            ("{\"kind\": ", "JSON, line 1, column 9"),
            ("hello", "expected the beginning of an eviction message, found \"hello \""),
            ("Container el1 was using 3Gi. ", "at byte 10 expected a container's name"),
            (
                "The node was low on resource: patience. ",
                "read \"The node was low on resource: \", then at byte 30 expected memory, ephemeral-storage, inodes or pids",
            ),
            ("- 1\n- 2", "neither an object nor a message"),
        ];
        for (text, says) in rows {
            let error = Input::read(text).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
