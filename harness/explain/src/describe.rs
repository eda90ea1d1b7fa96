//! The output of `kubectl describe pod`.

use std::sync::LazyLock;

use evictlab_rules::message::EVICTED_REASON;
use regex::Regex;
use serde_json::{Map, Value, json};

use crate::message_text::parse_message;
use crate::objects::qualified;

/// A row of the events: type, reason, age, source and message. Old versions of kubectl write the
/// node after the source. Text that is neither an age nor the name of a component belongs to the
/// message.
pub(crate) static EVENT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"^\s*(?:Normal|Warning)\s+(?<reason>\S+)\s+(?:(?:\d+[a-z]+)+|<\w+>)(?: \(x\d+ over \S+\))?\s+(?:(?<source>[a-z][^\s,]*)(?:, (?<host>[a-z0-9.-]+))?\s+)?(?<message>.*)$",
    )
    .expect("the pattern is valid")
});

/// A described pod.
pub(crate) struct DescribedPod {
    /// `namespace/name`.
    pub name: String,
    /// Name of the node, if the pod has one.
    pub node: Option<String>,
    /// The pod's manifest and status, as far as the description has them.
    pub object: Value,
    /// Events; without the kubelet's `Evicted` event if the pod's status has the message.
    pub events: Vec<DescribedEvent>,
}

/// An event in the description of a pod.
pub(crate) struct DescribedEvent {
    pub reason: String,
    pub source: Option<String>,
    pub message: String,
}

/// Returns the described pods of a text, and the rest of the text.
pub(crate) fn described_pods(text: &str) -> (Vec<DescribedPod>, String) {
    let mut blocks: Vec<Vec<&str>> = Vec::new();
    let mut rest = String::new();
    for line in text.lines() {
        match blocks.last_mut() {
            _ if line.starts_with("Name:") => blocks.push(vec![line]),
            // Everything in a description is a key at the margin, or indented.
            Some(block) if is_part_of_description(line) => block.push(line),
            _ => {
                rest.push_str(line);
                rest.push('\n');
            }
        }
    }
    let mut pods = Vec::new();
    for block in blocks {
        match described_pod(&block) {
            Some(pod) => pods.push(pod),
            None => block.iter().for_each(|line| {
                rest.push_str(line);
                rest.push('\n');
            }),
        }
    }
    (pods, rest)
}

fn is_part_of_description(line: &str) -> bool {
    let is_key = line.split_once(':').is_some_and(|(key, _)| {
        key.starts_with(|c: char| c.is_ascii_uppercase())
            && key.chars().all(|c| c.is_ascii_alphanumeric() || " -()".contains(c))
    });
    line.trim().is_empty() || line.starts_with([' ', '\t']) || is_key
}

fn described_pod(block: &[&str]) -> Option<DescribedPod> {
    let field = |name: &str| {
        let value = block.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.map(str::trim).filter(|value| !value.is_empty())
    };
    // `kubectl describe event`: the name is that of the event.
    let name = field("Name").filter(|_| field("Kind") != Some("Event"))?;
    // A description of another kind, such as a node, has no containers. They may be cut.
    let is_start_of_pod = ["Namespace", "Node", "Status"].iter().all(|name| field(name).is_some());
    let has_containers = is_start_of_pod || block.iter().any(|line| line.starts_with("Containers:"));
    let eviction = field("Message").filter(|message| parse_message(message).is_ok());
    let reason = field("Reason").or(eviction.map(|_| EVICTED_REASON));
    if !has_containers && reason != Some(EVICTED_REASON) {
        return None;
    }
    let mut metadata = Map::from_iter([("name".to_owned(), json!(name))]);
    if let Some(namespace) = field("Namespace") {
        metadata.insert("namespace".to_owned(), json!(namespace));
    }
    // `node-3/10.0.0.3`
    let node = field("Node").and_then(|node| node.split('/').next()).filter(|node| *node != "<none>");
    let (regular, regular_statuses) = containers(block, "Containers:");
    let (init, init_statuses) = containers(block, "Init Containers:");
    let status = json!({
        "phase": field("Status"),
        "reason": reason,
        // Messages end with a space, which `describe` keeps and copying loses.
        "message": field("Message").map(|message| format!("{message} ")),
        "containerStatuses": regular_statuses,
        "initContainerStatuses": init_statuses,
    });
    let object = json!({
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": node, "containers": regular, "initContainers": init},
        "status": status,
    });
    let events = block.iter().filter_map(|line| EVENT.captures(line)).map(|event| DescribedEvent {
        reason: event["reason"].to_owned(),
        source: event.name("source").map(|source| source.as_str().to_owned()),
        message: event["message"].to_owned(),
    });
    let in_status = reason == Some(EVICTED_REASON) && field("Message").is_some();
    let is_repeated = |event: &DescribedEvent| {
        in_status && event.source.as_deref().is_none_or(|source| source == "kubelet")
    };
    let events = events.filter(|event| event.reason != EVICTED_REASON || !is_repeated(event)).collect();
    let node = node.map(str::to_owned);
    Some(DescribedPod { name: qualified(field("Namespace"), name), node, object, events })
}

/// Returns the containers below a heading, with their requests and states.
fn containers(block: &[&str], heading: &str) -> (Vec<Value>, Vec<Value>) {
    let (mut specs, mut statuses) = (Vec::new(), Vec::new());
    let lines = block.iter().skip_while(|line| **line != heading).skip(1);
    let mut lines = lines.take_while(|line| line.starts_with(' ')).peekable();
    while let Some(line) = lines.next() {
        let Some(name) = container_name(line) else { continue };
        let mut requests = Map::new();
        let mut status = Map::from_iter([("name".to_owned(), json!(name))]);
        // The key at the indentation of the container, and its value.
        let mut section = (String::new(), String::new());
        while let Some(line) = lines.next_if(|line| container_name(line).is_none()) {
            let indent = line.len() - line.trim_start().len();
            let Some((key, value)) = line.trim().split_once(':') else { continue };
            let value = value.trim();
            if indent <= 4 {
                section = (key.to_owned(), value.to_owned());
                add_to_status(&mut status, key, value);
            } else if section.0 == "Requests" {
                requests.insert(key.to_owned(), json!(value));
            } else {
                add_to_state(&mut status, (&section.0, &section.1), key, value);
            }
        }
        specs.push(json!({"name": name, "resources": {"requests": requests}}));
        statuses.push(Value::Object(status));
    }
    (specs, statuses)
}

/// Adds a field of a container that shows whether it ran.
fn add_to_status(status: &mut Map<String, Value>, key: &str, value: &str) {
    match key {
        "Container ID" => drop(status.insert("containerID".to_owned(), json!(value))),
        "Restart Count" => {
            drop(status.insert("restartCount".to_owned(), json!(value.parse::<i64>().unwrap_or(0))));
        }
        _ => {}
    }
}

/// Adds a field of a state. `section`: the key of the state and the name of the state.
fn add_to_state(status: &mut Map<String, Value>, section: (&str, &str), key: &str, value: &str) {
    let state = match section.0 {
        "State" => "state",
        "Last State" => "lastState",
        _ => return,
    };
    let field = match key {
        "Reason" => "reason",
        "Started" => "startedAt",
        "Exit Code" => "exitCode",
        _ => return,
    };
    // A state without a name is one of a container that ended.
    let kind = if section.1 == "Waiting" || section.1 == "Running" { section.1 } else { "Terminated" };
    let state = status.entry(state).or_insert_with(|| json!({}));
    let fields = &mut state[kind.to_ascii_lowercase()];
    fields[field] = match key {
        "Exit Code" => json!(value.parse::<i64>().unwrap_or(0)),
        // The zero time is that of a container that never started.
        "Started" if value.contains(" 0001 ") => Value::Null,
        _ => json!(value),
    };
    // A description that is cut does not state that the container never started.
    if key == "Reason" && value != "ContainerStatusUnknown" {
        fields["startedAt"] = json!("");
    }
}

/// A line such as `  web:` begins a container.
fn container_name(line: &str) -> Option<&str> {
    let name = line.strip_prefix("  ")?.strip_suffix(':')?;
    (!name.starts_with(' ')).then_some(name)
}
