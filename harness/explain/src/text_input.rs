//! Text that people copy: output of `kubectl describe` and `kubectl get`, logs, lines from a chat.

use std::collections::{HashMap, HashSet};
use std::mem::take;
use std::sync::LazyLock;

use evictlab_rules::message::{EVICTED_REASON, EvictionMessage};
use regex::Regex;
use serde_json::Value;

use crate::describe::{EVENT, described_pods};
use crate::explanation::Unnamed;
use crate::kernel_log::{KernelLog, KillReport};
use crate::kubelet_log::{KubeletLog, LoggedEviction};
use crate::line_context::{LineContext, node_in_line};
use crate::log_line::{LogLine, log_lines, unquoted};
use crate::message_text::{MessageEnd, find_messages, join_lines};
use crate::objects::qualified;
use crate::other_causes::{NODE_SHUT_DOWN, NOT_AN_EVICTION, unknown_eviction};
use crate::pod_in_line::{pod_in_line, pod_in_words, with_namespace};
use crate::table::TableColumns;
use crate::text_case::without_capitals;
use crate::text_cause::{ApiEviction, Cause, cause_in_text, is_node_pressure};

/// Escape sequences of terminals, such as colors.
static ESCAPE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("\u{1b}\\[[0-9;?]*[A-Za-z]").expect("the pattern is valid"));
/// A space as word processors and web pages write it.
static NO_BREAK_SPACE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("\u{a0}|&(?:amp;)?(?:nbsp|#160|#xa0);").expect("the pattern is valid"));
/// A row of `kubectl get events`, with or without the namespace, the age, and the columns of
/// `-o wide`.
static EVENT_ROW: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"^\s*(?:(?:(?<namespace>[a-z0-9.-]+)\s+)?\S+(?: ago)?(?: \(x\d+ over \S+\))?\s+)?(?:Normal|Warning)\s+(?<reason>[A-Za-z]+)\s+(?i:pod)/(?<pod>[a-z0-9.-]+)\s+(?<message>.*)$",
    )
    .expect("the pattern is valid")
});
/// Words about the end of a pod.
static ENDED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:evicted|kicked|killed|died|crashed|expuls|(?:was|got) (?:removed|terminated))")
        .expect("the pattern is valid")
});
/// Words that state an eviction, and not that there was none.
static EVICTED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:was|were|got|been|is|wurde) (?:again )?evicted\b").expect("the pattern is valid")
});
/// The metric of kube-state-metrics for the reason of a pod's status.
static REASON_METRIC: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"\bkube_pod_status_reason\{(?<labels>[^}]*\breason="Evicted"[^}]*)\}(?: =>)? 1\b"#)
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
    /// Name of the node, if the text has it.
    pub node: Option<String>,
    pub message: EvictionMessage,
    pub end: MessageEnd,
}

/// A termination that a text or an event states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TextCause {
    /// `namespace/name` or the name of the pod, if the text has it.
    pub pod: Option<String>,
    /// Name of the node, if the text has it.
    pub node: Option<String>,
    /// The cause in sentences.
    pub why: Vec<String>,
    /// `None` if the text is not about the Eviction API.
    pub api_eviction: Option<ApiEviction>,
    /// True for a row of a table or a log, of which the message of the pod states more.
    pub is_row: bool,
    /// The place of the pod in the order of eviction, in a sentence.
    pub rank: Option<String>,
    /// Subject, if the text does not have the pod.
    pub unnamed: Unnamed,
}

impl TextCause {
    pub(crate) fn of_kill(kill: KillReport) -> Self {
        Self { node: kill.node, why: kill.why, unnamed: kill.unnamed, ..Self::default() }
    }
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
    let text = NO_BREAK_SPACE.replace_all(&text, " ").into_owned();
    let text = without_capitals(text);
    let text = join_lines(&unquoted(&text));
    let mut reader = TextReader::default();
    let (pods, rest) = described_pods(&text);
    for pod in pods {
        for event in &pod.events {
            let facts = LineFacts { pod: Some(pod.name.clone()), node: pod.node.clone() };
            reader.read_event(facts, event.source.as_deref(), &event.reason, &event.message);
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
    /// The pod that the lines before name.
    context: LineContext,
    /// Pods of which sentences before the first message state that they ended.
    ended: HashSet<String>,
    /// Pods of which sentences or metrics state that they were evicted.
    evicted: Vec<String>,
}

/// Facts that a line, or the wrapping around it, states about an event besides its message.
#[derive(Clone, Debug, Default)]
struct LineFacts {
    pod: Option<String>,
    node: Option<String>,
}

impl TextReader {
    fn read_line(&mut self, LogLine { pod, node, text }: &LogLine<'_>) {
        let line = text.as_ref();
        let node = node.clone().or_else(|| node_in_line(line));
        if self.kubelet.read(line, node.as_deref()) || self.kernel.read(line, node.as_deref()) {
            return;
        }
        if let Some(columns) = TableColumns::of_header(line) {
            self.table = Some(columns);
            return;
        }
        let mut facts = LineFacts { pod: pod.clone(), node };
        if let Some(row) = EVENT_ROW.captures(line) {
            let pod = qualified(row.name("namespace").map(|found| found.as_str()), &row["pod"]);
            facts.pod = Some(self.with_namespace_of_row(pod, line));
            self.read_event(facts, None, &row["reason"], &row["message"]);
        } else if let Some(row) = POD_ROW.captures(line) {
            let pod = qualified(row.name("namespace").map(|found| found.as_str()), &row["pod"]);
            facts.pod = Some(pod.clone());
            if !self.read_message(&facts, line) {
                self.read_pod_row(pod, &row["status"]);
            }
        } else if let Some(row) = EVENT.captures(line) {
            facts.node = facts.node.or_else(|| row.name("host").map(|host| host.as_str().to_owned()));
            let source = row.name("source").map(|source| source.as_str());
            self.read_event(facts, source, &row["reason"], &row["message"]);
        } else if !self.read_message(&facts, line) {
            match cause_in_text(line) {
                Some(cause) => {
                    let named = facts.pod.take().or_else(|| self.pod_of_row(line));
                    facts.pod = named.or_else(|| pod_in_line(line));
                    self.add_cause(facts, cause);
                }
                None => self.read_words(line),
            }
        }
        self.context.read(line);
    }

    /// Reads a line without an event, a message or a cause.
    fn read_words(&mut self, line: &str) {
        if EVICTED.is_match(line) {
            self.evicted.extend(pod_in_line(line));
        } else if let Some(metric) = REASON_METRIC.captures(line) {
            self.evicted.extend(pod_in_words(&metric["labels"]));
        }
        if is_node_pressure(line) {
            self.input.node_pressure.get_or_insert_with(|| words(line));
        } else if self.input.messages.is_empty() && ENDED.is_match(line) {
            self.ended.extend(pod_in_line(line));
        }
    }

    fn pod_of_row(&self, line: &str) -> Option<String> {
        self.table.as_ref().and_then(|table| table.pod(line))
    }

    /// Adds the namespace that a column of the row has.
    fn with_namespace_of_row(&self, pod: String, line: &str) -> String {
        let in_row = self.pod_of_row(line);
        let is_same = |found: &String| found.split_once('/').is_some_and(|(_, name)| name == pod);
        in_row.filter(is_same).unwrap_or(pod)
    }

    /// Reads an event, such as a row of a table.
    fn read_event(&mut self, mut facts: LineFacts, source: Option<&str>, reason: &str, message: &str) {
        let event = format!("{reason}: {message}");
        if self.read_message(&facts, message) {
            return;
        }
        if let Some(cause) = cause_in_text(&event) {
            let pod = facts.pod.take().map(|pod| with_namespace(pod, message));
            facts.pod = pod.or_else(|| pod_in_line(&event));
            self.add_cause(facts, cause);
        } else if reason == EVICTED_REASON {
            self.add_statement(facts, unknown_eviction(source, message));
        } else if is_node_pressure(&event) && self.input.node_pressure.is_none() {
            self.input.node_pressure = Some(words(&event));
        }
    }

    fn read_pod_row(&mut self, pod: String, status: &str) {
        let command = get_pod(&pod);
        let facts = LineFacts { pod: Some(pod), node: None };
        match status {
            "Evicted" => {
                let why =
                    format!("The table states that the kubelet evicted the pod, and not why: {command}");
                self.add_row(facts, why);
            }
            "ContainerStatusUnknown" => {
                let why = format!(
                    "The kubelet lost the state of a container, as after an eviction or a restart of the node. The \
                     table does not state why the pod ended: {command}"
                );
                self.add_row(facts, why);
            }
            "Terminated" | "Shutdown" => {
                self.add_statement(facts, format!("{NODE_SHUT_DOWN} {NOT_AN_EVICTION}"));
            }
            _ => {
                if let Some(cause) = cause_in_text(status) {
                    self.add_cause(facts, cause);
                }
            }
        }
    }

    /// Reads the eviction messages of a line; returns whether the line has one.
    fn read_message(&mut self, facts: &LineFacts, line: &str) -> bool {
        let found = find_messages(line);
        if let [first, ..] = &found[..] {
            let before = &line[..first.range.start];
            let pod = facts.pod.clone().or_else(|| self.pod_of_row(line)).or_else(|| {
                // Words of the message are not names.
                let in_line = pod_in_line(before).or_else(|| pod_in_words(&line[first.range.end..]));
                in_line.or_else(|| self.context.pod(before))
            });
            let node = facts.node.clone().or_else(|| node_in_line(before));
            self.input.messages.extend(found.iter().map(|found| TextMessage {
                pod: pod.clone(),
                node: node.clone(),
                message: found.message.clone(),
                end: found.end.clone(),
            }));
        }
        !found.is_empty()
    }

    fn add_cause(&mut self, LineFacts { pod, node }: LineFacts, Cause { why, api_eviction }: Cause) {
        self.input.causes.push(TextCause { pod, node, why: vec![why], api_eviction, ..TextCause::default() });
    }

    /// Adds a statement of a table, which an object or a message explains better.
    fn add_row(&mut self, facts: LineFacts, why: String) {
        self.add_statement(facts, why);
        if let Some(cause) = self.input.causes.last_mut() {
            cause.is_row = true;
        }
    }

    fn add_statement(&mut self, LineFacts { pod, node }: LineFacts, why: String) {
        self.input.causes.push(TextCause { pod, node, why: vec![why], ..TextCause::default() });
    }

    /// Returns what the lines state, each statement once.
    fn finish(mut self) -> TextInput {
        let pressure = self.kubelet.pressure();
        self.input.node_pressure = self.input.node_pressure.or(pressure);
        let evictions = take(&mut self.kubelet).evictions().into_iter();
        let kills = take(&mut self.kernel).explain().map(TextCause::of_kill);
        self.input.causes.extend(evictions.map(|LoggedEviction { pod, node, why, rank }| TextCause {
            pod: Some(pod),
            node,
            why,
            rank,
            is_row: true,
            ..TextCause::default()
        }));
        self.input.causes.extend(kills);
        if self.input.is_empty() {
            for pod in take(&mut self.evicted) {
                let why = format!("The text states that the pod was evicted, and not why: {}", get_pod(&pod));
                self.add_row(LineFacts { pod: Some(pod), node: None }, why);
            }
        }
        let TextInput { messages, causes, .. } = &mut self.input;
        join_api_evictions(causes);
        keep_most_precise(messages, |message| (&message.pod, message.message.to_string()));
        keep_most_precise(causes, |cause| (&cause.pod, cause.why.concat()));
        if let ([message], 1) = (&mut messages[..], self.ended.len())
            && message.pod.is_none()
        {
            message.pod = self.ended.into_iter().next();
        }
        self.input
    }
}

/// Returns the command that prints a pod.
fn get_pod(pod: &str) -> String {
    match pod.split_once('/') {
        Some((namespace, name)) => format!("kubectl get pod {name} -n {namespace} -o yaml"),
        None => format!("kubectl get pod {pod} -o yaml"),
    }
}

/// Returns a line with single spaces, without the columns of a table.
fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
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
