//! Lines as other programs wrap them: quotes of a chat, borders of a terminal, structured logs.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::objects::qualified;

/// The quote of a mail, of GitHub or of Slack.
static QUOTE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\s*(?:(?:>|&gt;) ?)+").expect("the pattern is valid"));
/// The borders of a box, as k9s draws them around a description.
static BORDERS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\s*[│┃║] ?(?<text>.*?)\s*[│┃║]?\s*$").expect("the pattern is valid"));
/// The pod in a line of pairs, such as `pod=shop/web-0` or `kube_namespace:shop pod_name:web-0`.
static POD: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"\bpod(?:_name)?[=:]"?(?<pod>[a-z0-9][a-z0-9.-]*(?:/[a-z0-9.-]+)?)"#)
        .expect("the pattern is valid")
});
static NAMESPACE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"\b(?:kube_)?namespace(?:_name)?[=:]"?(?<namespace>[a-z0-9-]+)"#)
        .expect("the pattern is valid")
});

/// Maximum depth of the values of a structured line.
const MAX_DEPTH: usize = 16;

/// A line without its wrapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogLine<'a> {
    /// `namespace/name` or the name of the pod, if the wrapping has it.
    pub pod: Option<String>,
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

/// Reports whether all lines of a text are quoted.
pub(crate) fn is_quoted(text: &str) -> bool {
    text.lines().filter(|line| !line.trim().is_empty()).all(|line| QUOTE.is_match(line))
}

/// Returns the texts of a line: those in the values of a JSON object, else the line itself.
pub(crate) fn log_lines(line: &str) -> Vec<LogLine<'_>> {
    let json = line.find('{').map(|at| line[at..].trim_end_matches([',', ']', ' ']));
    match json.and_then(|json| serde_json::from_str::<Value>(json).ok()) {
        Some(object) => {
            let mut lines = Vec::new();
            add_strings(&object, None, MAX_DEPTH, &mut lines);
            lines
        }
        None => {
            let namespace = NAMESPACE.captures(line);
            let namespace = namespace.as_ref().map(|found| &found["namespace"]);
            let pod = POD.captures(line).map(|found| match &found["pod"] {
                pod if pod.contains('/') => pod.to_owned(),
                pod => qualified(namespace, pod),
            });
            vec![LogLine { pod, text: Cow::Borrowed(line) }]
        }
    }
}

/// Adds the lines of all strings of a value. `pod`: of the event that contains the value.
fn add_strings(value: &Value, pod: Option<&str>, depth: usize, lines: &mut Vec<LogLine<'static>>) {
    match value {
        Value::String(text) => lines.extend(
            text.lines()
                .map(|line| LogLine { pod: pod.map(str::to_owned), text: Cow::Owned(line.to_owned()) }),
        ),
        Value::Array(list) if depth > 0 => {
            list.iter().for_each(|item| add_strings(item, pod, depth - 1, lines));
        }
        Value::Object(fields) if depth > 0 => {
            let object = fields.get("involvedObject").or_else(|| fields.get("regarding"));
            let of_object = |key: &str| object?.get(key)?.as_str();
            let own = of_object("name").map(|name| qualified(of_object("namespace"), name));
            let pod = own.as_deref().or(pod);
            fields.values().for_each(|field| add_strings(field, pod, depth - 1, lines));
        }
        _ => {}
    }
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
        assert_eq!(texts(pairs), [(pod("shop/web-0"), pairs.to_owned())]);
        assert_eq!(texts("{unit=\"kubelet\"} a")[0].0, None);
    }
}
