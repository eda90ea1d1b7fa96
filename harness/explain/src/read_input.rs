//! Reads input: the output of `kubectl get -o yaml`, single objects, or texts.

use std::sync::LazyLock;

use evictlab_evidence::{YamlError, yaml_documents_as};
use evictlab_rules::message::MessageParseError;
use regex::Regex;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::cut_input::of_cut_objects;
use crate::input::{Input, InputError, MAX_DESCRIBED};
use crate::input_document::InputDocument;
use crate::log_line::{is_quoted, unquoted, value_lines};
use crate::message_text::{cut_after, message_error};
use crate::text_input::{TextInput, read_lines, read_text};

impl Input {
    /// Reads objects as JSON or YAML (one or more documents), or text that contains eviction
    /// messages, such as the output of `kubectl describe`.
    ///
    /// # Errors
    /// The text contains none of them; the error has the position where parsing failed.
    pub fn read(text: &str) -> Result<Self, InputError> {
        let mut input = Self::default();
        input.add_text(text)?;
        input.check()?;
        Ok(input)
    }

    /// Adds the objects or the messages of a text, such as one of several files.
    ///
    /// # Errors
    /// As for [`Self::read`], but the text may contain only objects that complete others, such as
    /// Nodes.
    pub fn add_text(&mut self, text: &str) -> Result<(), InputError> {
        self.append(read_part(text)?);
        Ok(())
    }

    /// Checks that the input contains an object or a text that may be about an eviction.
    ///
    /// # Errors
    /// There are only other objects, of which the error names one.
    pub fn check(&self) -> Result<(), InputError> {
        let has_object = self.event_count > 0 || !self.pods.is_empty();
        if has_object || !self.messages.is_empty() || !self.causes.is_empty() {
            return Ok(());
        }
        let nodes = (!self.nodes.is_empty()).then(|| "a Node".to_owned());
        let what = nodes.or_else(|| self.others.first().cloned());
        Err(InputError::Kind(what.unwrap_or_else(|| "an empty list".to_owned())))
    }
}

/// Reads one text.
fn read_part(text: &str) -> Result<Input, InputError> {
    if text.trim().is_empty() {
        return Err(InputError::Empty);
    }
    let text = text.trim_start_matches('\u{feff}');
    let plain = if is_quoted(text) { unquoted(text) } else { text.into() };
    let text = plain.as_ref();
    let starts_as_json = text.trim_start().starts_with(['{', '[']);
    // YAML may start with a brace, too; errors refer to JSON then.
    let documents =
        if starts_as_json { json(text).or_else(|error| yaml(text).map_err(|_| error)) } else { yaml(text) };
    match documents {
        Ok(documents) if documents.iter().any(InputDocument::has_kind) => of_documents(documents),
        Ok(_) if starts_as_json => of_json_without_kind(text),
        Ok(_) if HAS_EVENT.is_match(text) => of_values(yaml_documents_as(text).unwrap_or_default(), text),
        Ok(_) => of_text(text),
        // A message parses as an invalid mapping, and a log may contain lines of JSON.
        Err(error) if HAS_KIND.is_match(text) && !starts_with_json_line(text) => {
            of_cut_objects(text, &error).or_else(|| of_session(text)).ok_or(error)
        }
        Err(_) => of_text(text),
    }
}

/// Reads the output of several commands, such as a copied session: objects between other text.
/// Returns `None` if the text is not such an output, or an object in it cannot be read.
fn of_session(text: &str) -> Option<Input> {
    let (mut objects, mut rest) = (Vec::new(), String::new());
    // The object that the lines belong to.
    let mut object: Option<String> = None;
    for line in text.lines() {
        let begins = line.starts_with("apiVersion:") || line == "{";
        let continues = object.as_ref().is_some_and(|object| is_in_object(object, line));
        if !continues {
            objects.extend(object.take());
            object = begins.then(String::new);
        }
        let part = object.as_mut().unwrap_or(&mut rest);
        part.push_str(line);
        part.push('\n');
    }
    objects.extend(object);
    if objects.is_empty() || rest.trim().is_empty() {
        return None;
    }
    let mut input = Input::default();
    for object in objects {
        let documents = if object.starts_with('{') { json(&object) } else { yaml(&object) };
        input.append(of_documents(documents.ok()?).ok()?);
    }
    input.append(of_found(read_text(&rest)).ok()?);
    Some(input)
}

/// Returns whether a line belongs to an object in YAML or JSON, as kubectl prints it.
fn is_in_object(object: &str, line: &str) -> bool {
    if object.starts_with('{') {
        return !object.ends_with("\n}\n");
    }
    let is_key = line.split_once(':').is_some_and(|(key, _)| {
        key.starts_with(|c: char| c.is_ascii_lowercase()) && key.chars().all(|c| c.is_ascii_alphabetic())
    });
    line.is_empty() || line.starts_with([' ', '-', '#']) || is_key
}

/// The kind of an object in YAML or JSON.
static HAS_KIND: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?m)^(?:kind|apiVersion):|^\s*\{?\s*"(?:kind|apiVersion)"\s*:"#)
        .expect("the pattern is valid")
});

/// An event within a document in YAML, as log services export it.
static HAS_EVENT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?m)^\s+(?:- )?(?:involvedObject|regarding):").expect("the pattern is valid")
});

/// Returns whether the first line is a JSON object of its own.
fn starts_with_json_line(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().filter(|line| line.trim_start().starts_with('{'));
    first.is_some_and(|line| serde_json::from_str::<IgnoredAny>(line).is_ok()) && lines.next().is_some()
}

/// Reads one object, or several one after the other, as in the output of
/// `kubectl get -o json --watch`.
fn json(text: &str) -> Result<Vec<InputDocument>, InputError> {
    let documents = serde_json::Deserializer::from_str(text).into_iter::<InputDocument>();
    documents.collect::<Result<_, _>>().map_err(|error| InputError::Syntax {
        format: "JSON",
        line: error.line(),
        column: error.column(),
        problem: json_problem(&error),
        is_end: error.is_eof(),
    })
}

fn yaml(text: &str) -> Result<Vec<InputDocument>, InputError> {
    yaml_documents_as(text).map_err(|YamlError { line, column, problem }| InputError::Syntax {
        format: "YAML",
        line,
        column,
        is_end: problem.contains("unclosed quote"),
        problem: yaml_problem(&problem),
    })
}

/// Describes an error of the JSON parser, without the position.
fn json_problem(error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "the text ends within a value: it is not complete".to_owned();
    }
    let problem = error.to_string();
    if problem.starts_with("key must be a string") {
        return "a key needs double quotes".to_owned();
    }
    problem.rsplit_once(" at line ").map_or(problem.as_str(), |(problem, _)| problem).to_owned()
}

/// Describes an error of the YAML parser, without the position.
fn yaml_problem(problem: &str) -> String {
    let known = [
        ("did not find expected key", "expected a key at the indentation of the keys above"),
        ("mapping values are not allowed", "a text with a colon needs quotes, or the indentation is wrong"),
        ("simple key expected", "expected a colon after the key"),
        ("duplicate mapping key", "a key occurs twice"),
        ("tabs disallowed", "found a tab; YAML is indented with spaces"),
        ("unexpected character", "a value that begins with this character needs quotes"),
        ("unknown anchor", "a value that begins with `*` needs quotes"),
        ("unclosed quote", "a quote is not closed"),
        ("multiline quoted scalar", "a quote is not closed, or its next line is not indented"),
    ];
    match known.into_iter().find(|(part, _)| problem.contains(part)) {
        Some((_, words)) => words.to_owned(),
        None => problem.split(" at line ").next().unwrap_or(problem).to_owned(),
    }
}

fn of_documents(documents: Vec<InputDocument>) -> Result<Input, InputError> {
    let mut input = Input::default();
    let mut others = Vec::new();
    for document in documents {
        document.add_to(&mut input, &mut others)?;
    }
    others.truncate(MAX_DESCRIBED);
    input.others = others;
    Ok(input)
}

fn of_json_without_kind(text: &str) -> Result<Input, InputError> {
    let values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    of_values(values.map_while(Result::ok), text)
}

/// Reads values that may contain events, such as the entries of a log; otherwise their text.
fn of_values(values: impl IntoIterator<Item = Value>, text: &str) -> Result<Input, InputError> {
    let found = read_lines(values.into_iter().flat_map(|value| value_lines(&value)));
    if found.is_empty() { of_text(text) } else { of_found(found) }
}

fn of_text(text: &str) -> Result<Input, InputError> {
    let found = read_text(text);
    if !found.is_empty() {
        return of_found(found);
    }
    if let Some(after) = cut_after(text) {
        return Err(InputError::Truncated(after));
    }
    Err(match (message_error(text), found.node_pressure) {
        (Some(error), _) => not_a_message(&error),
        (None, Some(line)) => InputError::NodePressure(line),
        (None, None) => InputError::Text(beginning(text.trim())),
    })
}

fn of_found(found: TextInput) -> Result<Input, InputError> {
    let mut input = Input { messages: found.messages, causes: found.causes, ..Input::default() };
    for pod in found.pods {
        input.add_pod(pod)?;
    }
    input.pods.iter_mut().for_each(|pod| pod.is_partial = true);
    Ok(input)
}

/// Maximum number of characters of the input in an error.
const MAX_QUOTED: usize = 40;

fn beginning(text: &str) -> String {
    text.chars().take(MAX_QUOTED).collect()
}

fn not_a_message(error: &MessageParseError) -> InputError {
    let (before, rest) = error.text.split_at(error.offset);
    let skipped = before.chars().count().saturating_sub(MAX_QUOTED);
    let after = before.chars().skip(skipped).collect();
    let found = if rest.trim().is_empty() { "the end".to_owned() } else { beginning(rest) };
    InputError::Message { after, expected: error.expected.clone(), found }
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
        assert_eq!(Input::read(old).unwrap().messages[0].message.to_string(), new);
        assert_eq!(Input::read(LOW).unwrap().messages[0].message.to_string(), LOW);
    }

    #[test]
    fn errors_have_a_position() {
        let rows = [
            (" \n", "failed to read the input: it is empty"),
            ("kind: Service", "found a Service"),
            ("kind: List\nitems: []", "found an empty list"),
            ("kind: EventList\nitems: x", "found an empty list"),
            ("items: [{kind: Event}]\nkind: Example", "found a Example"),
            ("kind: PodList\nitems: [{spec: 1}, {]}]", "YAML, line 2, column"),
            ("items: [{spec: {nodeName: [a]}}]\nkind: PodList", "failed to read Pod: invalid type"),
            ("kind: Node", "found a Node"),
            ("kind: Pod\nmetadata: {name: [}", "YAML, line 2, column"),
            ("{\"kind\": ", "JSON, line 1, column 9"),
            ("hello", "failed to find an eviction in this text, which begins with \"hello\""),
            ("Container el1 was using 3Gi. ", "after \"Container \", expected a container's name"),
            (
                "The node was low on resource: patience. ",
                "after \"The node was low on resource: \", expected memory, ephemeral-storage, inodes or pids",
            ),
            (
                "The node was low on resource: memor ",
                "it is cut after \"memor\"\nhelp: pass the whole message",
            ),
            ("web-0: The node was low on resource: mem…", "cut after \"mem\""),
            ("The node was low on resource: \n", "cut after \"resource:\""),
            ("The node was low on", "cut after \"on\""),
            ("{\"msg\": \"The node was low on resource: me\", \"reason\": \"Evicted\"}", "cut after \"me\""),
            ("Usage of EmptyDir volume \"cache\" exceeds the", "cut after \"the\""),
            ("Usage of EmptyDir volume \"cache\" exceeds the limit \"10", "cut after \"10\""),
            ("Container web exceeded its local", "cut after \"local\""),
            ("The node had condition: [MemoryPressure", "cut after \"MemoryPressure\""),
            ("- 1\n- 2", "failed to find an eviction in this text"),
            ("kind: Pod\nspec: {nodeName: [a]}", "failed to read Pod: invalid type: sequence"),
        ];
        for (text, expected) in rows {
            let error = Input::read(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
