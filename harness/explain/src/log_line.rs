//! Lines as other programs wrap them: quotes of a chat, borders of a terminal, structured logs.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Deserializer, Map, Value};

use crate::message_text::join_lines;
use crate::objects::qualified;

/// The quote of a mail, of GitHub or of Slack.
static QUOTE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\s*(?:(?:>|&gt;) ?)+").expect("the pattern is valid"));
/// The borders of a box, as k9s draws them around a description.
static BORDERS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\s*[│┃║] ?(?<text>.*?)\s*[│┃║]?\s*$").expect("the pattern is valid"));
/// A quote as a program escapes it that writes a line into a field of its own log.
static ESCAPED_QUOTE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"\\+""#).expect("the pattern is valid"));

/// Maximum depth of the values of a structured line.
const MAX_DEPTH: usize = 16;
/// Maximum number of braces at which a line is read as JSON.
const MAX_BRACES: usize = 4;

/// A line without its wrapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogLine<'a> {
    /// `namespace/name` or the name of the pod, if the wrapping has it.
    pub pod: Option<String>,
    /// Name of the node, if the wrapping has it.
    pub node: Option<String>,
    pub text: Cow<'a, str>,
}

/// Returns a text without quotes and borders. A text of which all lines are quoted may be objects.
pub(crate) fn unquoted(text: &str) -> Cow<'_, str> {
    let text = text.trim_start_matches('\u{feff}');
    let is_wrapped = |line: &str| QUOTE.is_match(line) || BORDERS.is_match(line);
    if !text.lines().any(is_wrapped) {
        return Cow::Borrowed(text);
    }
    let line = |line: &str| {
        let line = QUOTE.replace(line, "");
        let inner = BORDERS.captures(&line).map(|found| found["text"].to_owned());
        inner.unwrap_or_else(|| line.into_owned()) + "\n"
    };
    Cow::Owned(text.lines().map(line).collect())
}

/// Returns whether all lines of a text are quoted.
pub(crate) fn is_quoted(text: &str) -> bool {
    text.lines().filter(|line| !line.trim().is_empty()).all(|line| QUOTE.is_match(line))
}

/// Returns the texts of a line: those in the values of a JSON object, and the line without it.
pub(crate) fn log_lines(line: &str) -> Vec<LogLine<'_>> {
    let Some((object, at)) = json_object(line) else {
        // A cell of CSV has each quote twice.
        let single = Some(line).filter(|line| line.contains("{\"\"")).map(|line| line.replace("\"\"", "\""));
        if let Some((object, _)) = single.as_deref().and_then(json_object) {
            return value_lines(&object);
        }
        let text = ESCAPED_QUOTE.replace_all(line, "\"");
        return vec![LogLine { pod: None, node: None, text }];
    };
    let mut lines = value_lines(&object);
    let rest = &line[at..];
    if !rest.trim_end_matches([',', ']', ' ']).is_empty() {
        lines.push(LogLine { pod: None, node: None, text: Cow::Borrowed(rest) });
    }
    lines
}

/// Returns the lines of all strings of a value.
pub(crate) fn value_lines(value: &Value) -> Vec<LogLine<'static>> {
    let mut lines = Vec::new();
    add_strings(value, (None, None), MAX_DEPTH, &mut lines);
    lines
}

/// Returns the JSON object in a line, and the position after it.
fn json_object(line: &str) -> Option<(Value, usize)> {
    line.match_indices('{').take(MAX_BRACES).find_map(|(from, _)| {
        let mut values = Deserializer::from_str(&line[from..]).into_iter::<Value>();
        let object =
            values.next()?.ok().filter(|value| value.as_object().is_some_and(|all| !all.is_empty()))?;
        Some((object, from + values.byte_offset()))
    })
}

/// Adds the lines of all strings of a value. `about`: pod and node of the event that contains the
/// value.
fn add_strings(
    value: &Value,
    about: (Option<&str>, Option<&str>),
    depth: usize,
    lines: &mut Vec<LogLine<'static>>,
) {
    match value {
        Value::String(text) => match json_object(text).filter(|_| depth > 0 && text.starts_with('{')) {
            // An object that was logged as a text.
            Some((object, _)) => add_strings(&object, about, depth - 1, lines),
            None => lines.extend(join_lines(text).lines().map(|line| {
                let (pod, node) = (about.0.map(str::to_owned), about.1.map(str::to_owned));
                LogLine { pod, node, text: Cow::Owned(line.to_owned()) }
            })),
        },
        Value::Array(list) if depth > 0 => {
            list.iter().for_each(|item| add_strings(item, about, depth - 1, lines));
        }
        Value::Object(fields) if depth > 0 => {
            if let Some(text) = klog_line(fields) {
                let (pod, node) = (about.0.map(str::to_owned), about.1.map(str::to_owned));
                lines.push(LogLine { pod, node, text: Cow::Owned(text) });
                return;
            }
            let (pod, node) = (pod_of(fields), node_of(fields));
            let about = (pod.as_deref().or(about.0), node.or(about.1));
            fields.values().for_each(|field| add_strings(field, about, depth - 1, lines));
        }
        _ => {}
    }
}

/// Returns an entry of klog in JSON (`--logging-format=json`) as the line that klog writes as text.
fn klog_line(fields: &Map<String, Value>) -> Option<String> {
    let caller = fields.get("caller")?.as_str().filter(|caller| caller.contains(".go:"))?;
    let message = fields.get("msg")?.as_str()?;
    let file = caller.rsplit('/').next().unwrap_or(caller);
    let name = |value: &Value| match value {
        Value::String(text) => Some(text.replace('\n', " ")),
        Value::Object(object) => {
            Some(qualified(object.get("namespace").and_then(Value::as_str), object.get("name")?.as_str()?))
        }
        _ => None,
    };
    let pair = |key: &str, value: &Value| match value {
        Value::Array(list) => {
            let names: Vec<_> = list.iter().filter_map(name).map(|name| format!("{name:?}")).collect();
            Some(format!(" {key}=[{}]", names.join(",")))
        }
        value => name(value).map(|name| format!(" {key}=\"{name}\"")),
    };
    let is_pair = |key: &str| !["caller", "msg", "ts", "v", "object"].contains(&key);
    // The line begins with the object that it is about.
    let object = fields.get("object").and_then(|object| pair("object", object));
    let others = fields.iter().filter(|(key, _)| is_pair(key)).filter_map(|(key, value)| pair(key, value));
    Some(format!("{file}] \"{message}\"{}", object.into_iter().chain(others).collect::<String>()))
}

/// Returns the node whose kubelet sent an event, or wrote a line to journald.
fn node_of(fields: &Map<String, Value>) -> Option<&str> {
    let text = |fields: &'_ Map<String, Value>, key: &str| fields.get(key)?.as_str().map(str::to_owned);
    let source = fields.get("source").and_then(Value::as_object);
    if let Some(source) = source.filter(|source| text(source, "component").as_deref() == Some("kubelet")) {
        return source.get("host")?.as_str();
    }
    let is_kubelet = text(fields, "SYSLOG_IDENTIFIER").as_deref() == Some("kubelet");
    fields.get("_HOSTNAME").filter(|_| is_kubelet)?.as_str()
}

/// Returns the pod that an object of a log is about: that of an event, or of fields such as `pod`
/// and `namespace`. Labels in objects of their own, as of Fluentd, are those of the pod that wrote
/// the log.
fn pod_of(fields: &Map<String, Value>) -> Option<String> {
    let text = |fields: &Map<String, Value>, keys: &[&str]| {
        keys.iter().find_map(|key| fields.get(*key)?.as_str()).map(str::to_owned)
    };
    let object = ["involvedObject", "regarding", "involved_object"].iter().find_map(|key| fields.get(*key));
    if let Some(object) = object.and_then(Value::as_object) {
        let name =
            text(object, &["name"]).filter(|_| text(object, &["kind"]).is_none_or(|kind| kind == "Pod"));
        return Some(qualified(text(object, &["namespace"]).as_deref(), &name?));
    }
    let is_pod = text(fields, &["kind"]).is_some_and(|kind| kind == "Pod");
    if let Some(metadata) = fields.get("metadata").and_then(Value::as_object).filter(|_| is_pod) {
        return Some(qualified(text(metadata, &["namespace"]).as_deref(), &text(metadata, &["name"])?));
    }
    if let Some(pod) = pod_of_attributes(fields) {
        return Some(pod);
    }
    // An event of Grafana's agent, or a resource in the tree of Argo CD.
    if is_pod && let Some(name) = text(fields, &["name"]) {
        return Some(qualified(text(fields, &["namespace"]).as_deref(), &name));
    }
    let has_message = ["message", "msg", "log", "note"].iter().any(|key| fields.contains_key(*key));
    let name = text(fields, &["pod", "pod_name", "podName"]).filter(|_| has_message)?;
    let namespace = text(fields, &["namespace", "pod_namespace", "podNamespace", "kube_namespace"]);
    Some(qualified(namespace.as_deref().filter(|_| !name.contains('/')), &name))
}

/// Returns the pod that an event of OpenTelemetry is about (`k8seventsreceiver`).
fn pod_of_attributes(fields: &Map<String, Value>) -> Option<String> {
    fields.get("body")?;
    let groups = ["attributes", "resource"].map(|group| fields.get(group).and_then(Value::as_object));
    let text = |key: &str| groups.iter().flatten().find_map(|group| group.get(key)?.as_str());
    let name = text("k8s.object.name").filter(|_| text("k8s.object.kind") == Some("Pod"))?;
    Some(qualified(text("k8s.namespace.name"), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_borders_are_removed() {
        let rows = [
            ("> a\n> > b\n&gt; c", "a\nb\nc\n"),
            ("│ Name:  web-0   │\n│   x: y │", "Name:  web-0\n  x: y\n"),
            ("a > b", "a > b"),
        ];
        for (text, expected) in rows {
            assert_eq!(unquoted(text), expected);
        }
        assert!(is_quoted("> a\n\n> b") && !is_quoted("> a\nb"));
    }

    #[test]
    fn structured_lines_are_their_strings() {
        let texts = |line: &str| {
            let lines = log_lines(line).into_iter();
            lines.map(|line| (line.pod, line.text.into_owned())).collect::<Vec<_>>()
        };
        let pod = |name: &str| Some(name.to_owned());
        assert_eq!(
            texts(r#"12:00 {"log": "a\nb", "n": 1},"#),
            [(None, "a".to_owned()), (None, "b".to_owned())]
        );
        let event = r#"{"event": {"involvedObject": {"name": "p", "namespace": "n"}, "message": "m"}}"#;
        assert!(texts(event).contains(&(pod("n/p"), "m".to_owned())));
        let pairs = "kube_namespace:shop pod_name:web-0 m";
        assert_eq!(texts(pairs), [(None, pairs.to_owned())]);
        assert_eq!(texts("{unit=\"kubelet\"} a"), [(None, "{unit=\"kubelet\"} a".to_owned())]);
    }
}
