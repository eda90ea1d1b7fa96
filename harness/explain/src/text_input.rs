//! Text that people copy: output of `kubectl describe` and `kubectl get`, logs, lines from a chat.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::describe::described_pods;
use crate::log_line::{LogLine, log_lines, unquoted};
use crate::node_log::{KubeletLog, kernel_oom_kill};
use crate::objects::qualified;
use crate::text_cause::cause_in_text;

/// Escape sequences of terminals, such as colours.
static ESCAPE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("\u{1b}\\[[0-9;?]*[A-Za-z]").expect("the pattern is valid"));
/// A row of `kubectl get events`, with or without the namespace and the columns of `-o wide`.
static EVENT_ROW: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"^\s*(?:(?<namespace>[a-z0-9.-]+)\s+)?\S+(?: ago)?(?: \(x\d+ over \S+\))?\s+(?:Normal|Warning)\s+(?<reason>[A-Za-z]+)\s+(?i:pod)/(?<pod>[a-z0-9.-]+)\s+(?<message>.*)$",
    )
    .expect("the pattern is valid")
});
/// A row of `kubectl get pods`.
static POD_ROW: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"^\s*(?:(?<namespace>[a-z0-9.-]+)\s+)?(?<pod>[a-z0-9.-]+)\s+\d+/\d+\s+(?<status>[A-Za-z:]+)\s+\d+",
    )
    .expect("the pattern is valid")
});

/// An eviction message from a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TextMessage {
    /// `namespace/name` or the name of the pod, if the text has it.
    pub pod: Option<String>,
    pub message: String,
}

/// A termination that a text states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextCause {
    /// `namespace/name` or the name of the pod, if the text has it.
    pub pod: Option<String>,
    /// The cause in sentences.
    pub why: Vec<String>,
}

/// Pods and messages of a text.
#[derive(Clone, Debug, Default)]
pub(crate) struct TextInput {
    /// Pods, as far as `kubectl describe` shows them.
    pub pods: Vec<Value>,
    pub messages: Vec<TextMessage>,
    pub causes: Vec<TextCause>,
}

impl TextInput {
    pub(crate) fn is_empty(&self) -> bool {
        self.pods.is_empty() && self.messages.is_empty() && self.causes.is_empty()
    }

    fn add_message(&mut self, pod: Option<String>, message: String) {
        let known = self.messages.iter_mut().find(|known| {
            known.message == message && (known.pod == pod || known.pod.is_none() || pod.is_none())
        });
        match known {
            Some(known) => known.pod = known.pod.take().or(pod),
            None => self.messages.push(TextMessage { pod, message }),
        }
    }

    fn add_cause(&mut self, pod: Option<String>, why: Vec<String>) {
        let cause = TextCause { pod, why };
        if !self.causes.contains(&cause) {
            self.causes.push(cause);
        }
    }
}

/// Reads a text. `message` extracts the eviction message of a line.
pub(crate) fn read_text(text: &str, message: impl Fn(&str) -> Option<String>) -> TextInput {
    let text = ESCAPE.replace_all(text, "");
    let text = unquoted(&text);
    let mut input = TextInput::default();
    let (pods, rest) = described_pods(&text);
    for pod in pods {
        for event in &pod.events {
            if let Some(why) = cause_in_text(event) {
                input.add_cause(Some(pod.name.clone()), vec![why]);
            }
        }
        if pod.is_terminated {
            input.pods.push(pod.object);
        }
    }
    let mut log = KubeletLog::default();
    for LogLine { pod, text } in rest.lines().flat_map(log_lines) {
        let line = text.as_ref();
        if log.read(line) {
            continue;
        }
        if let Some(row) = EVENT_ROW.captures(line) {
            let pod = Some(qualified(row.name("namespace").map(|found| found.as_str()), &row["pod"]));
            match message(&row["message"]) {
                Some(message) => input.add_message(pod, message),
                None => {
                    let event = format!("{}: {}", &row["reason"], &row["message"]);
                    cause_in_text(&event).into_iter().for_each(|why| input.add_cause(pod.clone(), vec![why]));
                }
            }
        } else if let Some(message) = message(line) {
            input.add_message(pod, message);
        } else if let Some(why) = kernel_oom_kill(line) {
            input.add_cause(None, why);
        } else if let Some(row) = POD_ROW.captures(line).filter(|row| &row["status"] == "Evicted") {
            let name = row["pod"].to_owned();
            let pod = qualified(row.name("namespace").map(|found| found.as_str()), &name);
            let why = format!(
                "The table states that the kubelet evicted the pod, and not why: kubectl get pod {name} -o yaml"
            );
            input.add_cause(Some(pod), vec![why]);
        } else if let Some(why) = cause_in_text(line) {
            input.add_cause(pod, vec![why]);
        }
    }
    for (pod, why) in log.evictions() {
        input.add_cause(Some(pod), why);
    }
    input
}
