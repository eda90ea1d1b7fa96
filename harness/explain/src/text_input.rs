//! Text that people copy: output of `kubectl describe` and `kubectl get`, logs, lines from a chat.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use evictlab_rules::message::EvictionMessage;
use regex::Regex;
use serde_json::Value;

use crate::describe::{EVENT, described_pods};
use crate::kernel_log::KernelLog;
use crate::kubelet_log::KubeletLog;
use crate::log_line::{LogLine, log_lines, unquoted};
use crate::message_text::{MessageEnd, find_messages, join_lines};
use crate::objects::qualified;
use crate::other_causes::unknown_eviction;
use crate::pod_in_line::{pod_in_line, pod_in_words, with_namespace};
use crate::table::TableColumns;
use crate::text_cause::{ApiEviction, Cause, cause_in_text, is_node_pressure};

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextMessage {
    /// `namespace/name` or the name of the pod, if the text has it.
    pub pod: Option<String>,
    pub message: EvictionMessage,
    pub end: MessageEnd,
}

/// A termination that a text or an event states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TextCause {
    /// `namespace/name` or the name of the pod, if the text has it.
    pub pod: Option<String>,
    /// The cause in sentences.
    pub why: Vec<String>,
    /// `None` if the text is not about the Eviction API.
    pub api_eviction: Option<ApiEviction>,
    /// True if the text is about a process outside of pods.
    pub is_about_process: bool,
}

/// Pods and messages of a text.
#[derive(Clone, Debug, Default)]
pub(crate) struct TextInput {
    /// Pods, as far as `kubectl describe` shows them.
    pub pods: Vec<Value>,
    pub messages: Vec<TextMessage>,
    pub causes: Vec<TextCause>,
    /// The first line that states that a node was under pressure.
    pub node_pressure: Option<String>,
}

impl TextInput {
    pub(crate) fn is_empty(&self) -> bool {
        self.pods.is_empty() && self.messages.is_empty() && self.causes.is_empty()
    }
}

/// Reads a text.
pub(crate) fn read_text(text: &str) -> TextInput {
    let text = ESCAPE.replace_all(text, "");
    let text = join_lines(&unquoted(&text));
    let mut reader = TextReader::default();
    let (pods, rest) = described_pods(&text);
    for pod in pods {
        for event in &pod.events {
            reader.read_event(Some(pod.name.clone()), event.source.as_deref(), &event.reason, &event.message);
        }
        reader.input.pods.push(pod.object);
    }
    rest.lines().flat_map(log_lines).for_each(|line| reader.read_line(&line));
    reader.finish()
}

/// Reads the texts of structured values.
pub(crate) fn read_lines(lines: impl IntoIterator<Item = LogLine<'static>>) -> TextInput {
    let mut reader = TextReader::default();
    lines.into_iter().for_each(|line| reader.read_line(&line));
    reader.finish()
}

/// Collects what lines state.
#[derive(Default)]
struct TextReader {
    input: TextInput,
    kubelet: KubeletLog,
    kernel: KernelLog,
    /// Columns of the table that the lines are rows of.
    table: Option<TableColumns>,
}

impl TextReader {
    fn read_line(&mut self, LogLine { pod, text }: &LogLine<'_>) {
        let line = text.as_ref();
        if self.kubelet.read(line) || self.kernel.read(line) {
            return;
        }
        if let Some(columns) = TableColumns::of_header(line) {
            self.table = Some(columns);
            return;
        }
        if let Some(row) = EVENT_ROW.captures(line) {
            let pod = qualified(row.name("namespace").map(|found| found.as_str()), &row["pod"]);
            self.read_event(Some(pod), None, &row["reason"], &row["message"]);
        } else if let Some(row) = POD_ROW.captures(line) {
            let pod = qualified(row.name("namespace").map(|found| found.as_str()), &row["pod"]);
            if !self.read_message(Some(&pod), line) {
                self.read_pod_row(pod, &row["pod"], &row["status"]);
            }
        } else if let Some(row) = EVENT.captures(line) {
            self.read_event(pod.clone(), Some(&row["source"]), &row["reason"], &row["message"]);
        } else if !self.read_message(pod.as_deref(), line) {
            match cause_in_text(line) {
                Some(cause) => self.add_cause(pod.clone().or_else(|| pod_in_line(line)), cause),
                None if is_node_pressure(line) && self.input.node_pressure.is_none() => {
                    self.input.node_pressure = Some(line.trim().to_owned());
                }
                None => {}
            }
        }
    }

    /// Reads an event, such as a row of a table. `pod`: the pod that it is about, if known.
    fn read_event(&mut self, pod: Option<String>, source: Option<&str>, reason: &str, message: &str) {
        let event = format!("{reason}: {message}");
        if self.read_message(pod.as_deref(), message) {
            return;
        }
        if let Some(cause) = cause_in_text(&event) {
            let pod = pod.map(|pod| with_namespace(pod, message));
            self.add_cause(pod.or_else(|| pod_in_line(&event)), cause);
        } else if reason == "Evicted" {
            self.add_statement(pod, unknown_eviction(source, message));
        } else if is_node_pressure(&event) && self.input.node_pressure.is_none() {
            self.input.node_pressure = Some(event);
        }
    }

    fn read_pod_row(&mut self, pod: String, name: &str, status: &str) {
        if status == "Evicted" {
            let why = format!(
                "The table states that the kubelet evicted the pod, and not why: kubectl get pod {name} -o yaml"
            );
            self.add_statement(Some(pod), why);
        } else if let Some(cause) = cause_in_text(status) {
            self.add_cause(Some(pod), cause);
        }
    }

    /// Reads the eviction messages of a line; returns whether the line has one.
    fn read_message(&mut self, pod: Option<&str>, line: &str) -> bool {
        let found = find_messages(line);
        if let [first, ..] = &found[..] {
            let in_row = || self.table.as_ref().and_then(|table| table.pod(line));
            let pod = pod.map(str::to_owned).or_else(in_row).or_else(|| {
                // Words of the message are not names.
                pod_in_line(&line[..first.range.start]).or_else(|| pod_in_words(&line[first.range.end..]))
            });
            self.input.messages.extend(found.iter().map(|found| TextMessage {
                pod: pod.clone(),
                message: found.message.clone(),
                end: found.end.clone(),
            }));
        }
        !found.is_empty()
    }

    fn add_cause(&mut self, pod: Option<String>, Cause { why, api_eviction }: Cause) {
        self.input.causes.push(TextCause { pod, why: vec![why], api_eviction, ..TextCause::default() });
    }

    fn add_statement(&mut self, pod: Option<String>, why: String) {
        self.input.causes.push(TextCause { pod, why: vec![why], ..TextCause::default() });
    }

    /// Returns what the lines state, each statement once.
    fn finish(mut self) -> TextInput {
        let evictions = self.kubelet.evictions().into_iter();
        let kills = self.kernel.explain().map(|kill| TextCause {
            why: kill.why,
            is_about_process: kill.is_outside_of_pods,
            ..TextCause::default()
        });
        self.input.causes.extend(evictions.map(|(pod, why)| TextCause {
            pod: Some(pod),
            why,
            ..TextCause::default()
        }));
        self.input.causes.extend(kills);
        let TextInput { messages, causes, .. } = &mut self.input;
        join_api_evictions(causes);
        keep_most_precise(messages, |message| (&message.pod, message.message.to_string()));
        keep_most_precise(causes, |cause| (&cause.pod, cause.why.concat()));
        self.input
    }
}

/// Removes the attempts to evict a pod of which the text states the result. A result without the
/// namespace, such as `pod/web-0 evicted`, gets that of the attempt.
fn join_api_evictions(causes: &mut Vec<TextCause>) {
    let is_attempt = |cause: &TextCause| cause.api_eviction == Some(ApiEviction::Attempted);
    let is_result = |cause: &TextCause| cause.api_eviction.is_some() && !is_attempt(cause);
    // Of each name, the pods that have it.
    let mut attempted: HashMap<String, HashSet<String>> = HashMap::new();
    for pod in causes.iter().filter(|cause| is_attempt(cause)).filter_map(|cause| cause.pod.as_ref()) {
        if let Some((_, name)) = pod.split_once('/') {
            attempted.entry(name.to_owned()).or_default().insert(pod.clone());
        }
    }
    let mut results = HashSet::new();
    for cause in causes.iter_mut().filter(|cause| is_result(cause)) {
        let pods = cause.pod.as_ref().and_then(|pod| attempted.get(pod)).filter(|pods| pods.len() == 1);
        if let Some(pod) = pods.and_then(|pods| pods.iter().next()) {
            cause.pod = Some(pod.clone());
        }
        results.extend(cause.pod.clone());
    }
    causes.retain(|cause| !is_attempt(cause) || cause.pod.as_ref().is_none_or(|pod| !results.contains(pod)));
}

/// Removes repeated statements, and those without the namespace or the pod that another one with
/// the same text has.
fn keep_most_precise<T>(all: &mut Vec<T>, key: impl Fn(&T) -> (&Option<String>, String)) {
    // Of each text, the pods and the parts of their names.
    let mut complete: HashSet<(Option<String>, String)> = HashSet::new();
    for item in &*all {
        let (pod, text) = key(item);
        if let Some(pod) = pod {
            if let Some((_, name)) = pod.split_once('/') {
                complete.insert((Some(name.to_owned()), text.clone()));
            }
            complete.insert((None, text));
        }
    }
    let mut kept = HashSet::new();
    all.retain(|item| {
        let (pod, text) = key(item);
        let key = (pod.clone(), text);
        !complete.contains(&key) && kept.insert(key)
    });
}
