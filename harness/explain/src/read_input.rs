//! Reads input: the output of `kubectl get -o yaml`, single objects, or texts.

use evictlab_evidence::{YamlError, yaml_documents_as};
use evictlab_rules::message::MessageParseError;

use crate::document::Document;
use crate::input::{Input, InputError};
use crate::log_line::{is_quoted, unquoted};
use crate::message_text::message;
use crate::text_input::{TextMessage, read_text};

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

/// Reads one object, or several one after the other, as in the output of
/// `kubectl get -o json --watch`.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message_text::modernize;

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
            ("- 1\n- 2", "failed to find an eviction in this text"),
            ("kind: Pod\nspec: {nodeName: [a]}", "failed to read Pod: invalid type: sequence"),
        ];
        for (text, expected) in rows {
            let error = Input::read(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
