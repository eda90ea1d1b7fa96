//! Objects in YAML or JSON of which the end is missing: the eviction message may be complete.

use evictlab_evidence::yaml_documents_as;
use serde_json::Value;

use crate::input::{Input, InputError};
use crate::objects::qualified;
use crate::text_input::read_text;

/// Maximum number of lines that belong to a value in YAML that is cut: a message is folded.
const MAX_FOLDED: usize = 8;
/// Maximum size of an input whose object is read for the name of the pod, in bytes.
const MAX_OBJECT: usize = 1 << 20;
/// Maximum number of lists and objects in each other, that of serde_json.
const MAX_DEPTH: usize = 128;

/// Reads the eviction messages of objects that are cut; `None` for objects with another error, or
/// without a message.
pub(crate) fn of_cut_objects(text: &str, error: &InputError) -> Option<Input> {
    let text = text.trim_end();
    let InputError::Syntax { format, line, is_end, .. } = error else { return None };
    let is_json = *format == "JSON";
    // Errors of YAML about a value that is cut refer to its beginning or to the end of the text.
    let folded = if *is_end { MAX_FOLDED } else { 0 };
    let is_cut = if is_json { *is_end } else { line + folded >= text.lines().count() };
    if !is_cut {
        return None;
    }
    let mut messages = read_text(text).messages;
    if messages.is_empty() {
        return None;
    }
    let object = Some(text)
        .filter(|text| text.len() <= MAX_OBJECT)
        .and_then(|text| if is_json { complete_json(text) } else { complete_yaml(text) });
    if let Some((pod, node)) = object.as_ref().and_then(pod_of) {
        for message in &mut messages {
            message.pod = Some(pod.clone());
            message.node.clone_from(&node);
        }
    }
    Some(Input { messages, is_cut: true, ..Input::default() })
}

/// Returns the object without the last value, which is cut; `None` if it is nested too deeply.
fn complete_json(text: &str) -> Option<Value> {
    let (mut open, mut open_at_end) = (String::new(), String::new());
    let (mut end, mut is_text, mut is_escaped) = (0, false, false);
    for (at, c) in text.char_indices() {
        if open.len() > MAX_DEPTH {
            return None;
        }
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = is_text,
            '"' => is_text = !is_text,
            _ if is_text => {}
            '{' => open.push('}'),
            '[' => open.push(']'),
            '}' | ']' => drop(open.pop()),
            ',' => {
                end = at;
                open_at_end.clone_from(&open);
            }
            _ => {}
        }
    }
    let closed: String = open_at_end.chars().rev().collect();
    serde_json::from_str(&(text[..end].to_owned() + &closed)).ok()
}

/// Returns the object without the last lines, of which one is cut; `None` for several documents.
fn complete_yaml(text: &str) -> Option<Value> {
    let lines: Vec<&str> = text.lines().collect();
    let documents = (1..=MAX_FOLDED.min(lines.len()))
        .find_map(|cut| yaml_documents_as::<Value>(&lines[..lines.len() - cut].join("\n")).ok())?;
    let mut objects = documents.into_iter().filter(|document| !document.is_null());
    objects.next().filter(|_| objects.next().is_none())
}

/// Returns the pod that an object is about, and its node; `None` for several objects.
fn pod_of(object: &Value) -> Option<(String, Option<String>)> {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str);
    if let Some(items) = object.get("items").and_then(Value::as_array) {
        return items.first().filter(|_| items.len() == 1).and_then(pod_of);
    }
    let (path, node) = match text("/kind")? {
        "Pod" => ("/metadata", text("/spec/nodeName")),
        "Event" if text("/involvedObject/kind") == Some("Pod") => ("/involvedObject", text("/source/host")),
        _ => return None,
    };
    let pod = qualified(text(&format!("{path}/namespace")), text(&format!("{path}/name"))?);
    Some((pod, node.map(str::to_owned)))
}
