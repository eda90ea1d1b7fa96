//! State of a watched cluster, and the changes that each observation makes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::{SignedDuration, Timestamp};

use super::bounded_set::BoundedSet;
use super::change::{ChangeKind, WatchChange};
use super::eviction::{EvictionCounters, EvictionEvent};
use super::node::NodeView;
use super::ranking::EvictionCandidate;
use super::reading::{Reading, ThresholdStatus};
use evictlab_explain::amount;

/// Number of evictions kept for each node.
const MAX_EVICTIONS: usize = 3;
/// Maximum number of previous readings kept for each node: an event may arrive when the pod has no
/// statistics any more.
const MAX_READINGS: usize = 10;
/// Age from which only the last of the previous readings is kept: on a large cluster, readings take
/// most of the memory.
const MAX_READING_AGE: SignedDuration = SignedDuration::from_secs(30);
/// Time without a denial after which a watch counts as working; twice the maximum backoff.
const DENIAL_EXPIRY: SignedDuration = SignedDuration::from_secs(60);

/// A reported eviction.
#[derive(Clone, Debug)]
pub(super) struct ReportedEviction {
    pub at: Timestamp,
    pub pod: String,
    /// The parsed message.
    pub summary: String,
    /// The comparison with the ranking.
    pub prediction: String,
}

/// State of a watched cluster.
#[derive(Debug, Default)]
pub(super) struct WatchState {
    /// Nodes by name.
    pub nodes: BTreeMap<String, NodeView>,
    /// Most recent evictions by node.
    pub evictions: BTreeMap<String, Vec<ReportedEviction>>,
    /// Previous readings by node, the oldest first.
    previous_readings: BTreeMap<String, VecDeque<Reading>>,
    /// Numbers of evictions since the start.
    pub counters: EvictionCounters,
    /// UIDs of pods that are being evicted.
    pub evicted: BoundedSet<String>,
    /// Error of the API server while it does not answer.
    pub server_error: Option<String>,
    /// True if the initial state is complete.
    pub started: bool,
    /// Denied watches, with the reason and time of the last denial.
    denied: BTreeMap<&'static str, (String, Timestamp)>,
}

impl WatchState {
    /// Applies an observation of a node and returns the changes.
    pub(crate) fn apply(&mut self, mut view: NodeView, at: Timestamp) -> Vec<WatchChange> {
        let name = view.name.clone();
        let changes = match self.nodes.remove(&name) {
            Some(before) => {
                let changes = changes_between(&before, &view);
                self.keep_reading(before.reading, &mut view, at);
                changes
            }
            None if self.started => vec![(ChangeKind::NodeRecovered, "node added".to_owned())],
            None => Vec::new(),
        };
        self.nodes.insert(name.clone(), view);
        changes.into_iter().map(|(kind, text)| change(at, &name, kind, text)).collect()
    }

    /// Keeps the previous reading of a node: beside the new one, or as the last one of a node that
    /// does not answer.
    fn keep_reading(&mut self, previous: Option<Reading>, view: &mut NodeView, at: Timestamp) {
        let Some(previous) = previous else { return };
        let Some(reading) = &mut view.reading else {
            view.reading = Some(previous);
            return;
        };
        keep_since(&previous, reading);
        let kept = self.previous_readings.entry(view.name.clone()).or_default();
        kept.push_back(previous);
        let is_old = |reading: &Reading| at.duration_since(reading.at) > MAX_READING_AGE;
        while kept.len() > MAX_READINGS || (kept.len() > 1 && kept.front().is_some_and(is_old)) {
            kept.pop_front();
        }
    }

    /// Applies an eviction and returns the changes. `node` is the node to which the pod is bound,
    /// if known.
    pub(crate) fn apply_eviction(
        &mut self,
        eviction: &EvictionEvent,
        node: Option<String>,
        at: Timestamp,
    ) -> Vec<WatchChange> {
        let Some(node) = eviction.node.clone().or(node).filter(|node| self.nodes.contains_key(node)) else {
            return Vec::new();
        };
        let summary = eviction.summary();
        let EvictionEvent { pod, uid, .. } = eviction;
        let is_repeated = !self.evicted.insert(uid.clone());
        if is_repeated {
            // Kubelets with cgroup v1 notifications report one eviction up to three times.
            let text = format!("{pod}: {summary}; repeated event for the same pod");
            return vec![change(at, &node, ChangeKind::PodEvicted, text)];
        }
        let reading = self.reading_at(&node, eviction.at);
        let outcome = eviction.prediction_outcome(reading);
        let prediction = eviction.describe_prediction(reading);
        self.counters.add(&node, eviction, outcome);
        let text = format!("{pod}: {summary}; {prediction}");
        let kept = self.evictions.entry(node.clone()).or_default();
        kept.push(ReportedEviction { at: eviction.at.unwrap_or(at), pod: pod.clone(), summary, prediction });
        if kept.len() > MAX_EVICTIONS {
            kept.remove(0);
        }
        vec![change(at, &node, ChangeKind::PodEvicted, text)]
    }

    /// Forgets the readings: those of another signal cannot be compared with the next.
    pub(crate) fn forget_readings(&mut self) {
        self.previous_readings.clear();
        self.nodes.values_mut().for_each(|view| view.reading = None);
    }

    /// Returns the last reading before an event, whose time has a resolution of one second. If the
    /// clocks differ too much, returns the last reading.
    fn reading_at(&self, node: &str, at: Option<Timestamp>) -> Option<&Reading> {
        let last = self.nodes.get(node)?.reading.as_ref();
        let end = at.and_then(|at| at.checked_add(SignedDuration::from_secs(1)).ok());
        let previous = self.previous_readings.get(node).into_iter().flatten().rev();
        last.into_iter().chain(previous).find(|reading| end.is_none_or(|end| reading.at < end)).or(last)
    }

    /// Removes nodes that are no longer in the cluster.
    pub(crate) fn retain(&mut self, present: &BTreeSet<String>, at: Timestamp) -> Vec<WatchChange> {
        let gone: Vec<String> = self.nodes.keys().filter(|name| !present.contains(*name)).cloned().collect();
        gone.into_iter()
            .map(|name| {
                self.nodes.remove(&name);
                self.evictions.remove(&name);
                self.previous_readings.remove(&name);
                change(at, &name, ChangeKind::NodeLost, "node removed from the cluster".to_owned())
            })
            .collect()
    }

    /// Sets or clears the error of the API server.
    pub(crate) fn set_server_error(&mut self, error: Option<String>, at: Timestamp) -> Vec<WatchChange> {
        let changed = match (&self.server_error, &error) {
            (None, Some(reason)) => {
                Some((ChangeKind::ServerLost, format!("API server does not answer, retrying: {reason}")))
            }
            (Some(_), None) => Some((ChangeKind::ServerRecovered, "API server answers again".to_owned())),
            _ => None,
        };
        self.server_error = error;
        changed.map(|(kind, text)| change(at, "", kind, text)).into_iter().collect()
    }

    /// Records that a watch was denied.
    pub(crate) fn watch_denied(
        &mut self,
        resource: &'static str,
        reason: String,
        at: Timestamp,
    ) -> Vec<WatchChange> {
        let before = self.denied.insert(resource, (reason.clone(), at));
        if before.is_some_and(|(before, _)| before == reason) {
            return Vec::new();
        }
        vec![change(
            at,
            "",
            ChangeKind::ServerLost,
            format!("watch on {resource} denied, retrying: {reason}"),
        )]
    }

    /// Clears old denials: a working watch sends nothing until an object changes.
    pub(crate) fn watches_recovered(&mut self, at: Timestamp) -> Vec<WatchChange> {
        let expired = |(_, last): &(String, Timestamp)| at.duration_since(*last) > DENIAL_EXPIRY;
        let recovered: Vec<&'static str> =
            self.denied.iter().filter(|(_, last)| expired(last)).map(|(resource, _)| *resource).collect();
        self.denied.retain(|_, last| !expired(last));
        let text = |resource: &&str| format!("watch on {resource} works again");
        recovered.iter().map(|resource| change(at, "", ChangeKind::ServerRecovered, text(resource))).collect()
    }
}

fn change(at: Timestamp, node: &str, kind: ChangeKind, text: String) -> WatchChange {
    WatchChange { at, node: node.to_owned(), kind, text }
}

/// Returns the changes of a node between two observations.
fn changes_between(before: &NodeView, now: &NodeView) -> Vec<(ChangeKind, String)> {
    let mut changes = compare_conditions(before, now);
    match (&before.problem, &now.problem) {
        (None, Some(problem)) => {
            changes.push((ChangeKind::NodeLost, format!("cannot query node, retrying: {problem}")));
        }
        (Some(_), None) => {
            changes.push((ChangeKind::NodeRecovered, "node can be queried again".to_owned()));
        }
        _ => {}
    }
    for (uid, pod) in &before.active {
        if !now.active.contains_key(uid) {
            let how = now.ended.get(uid).map_or("deleted", String::as_str);
            changes.push((ChangeKind::PodGone, format!("{pod}: {how}")));
        }
    }
    if let (Some(before), Some(now)) = (&before.reading, &now.reading) {
        changes.extend(compare_readings(before, now));
    }
    changes
}

fn compare_conditions(before: &NodeView, now: &NodeView) -> Vec<(ChangeKind, String)> {
    let set = now.conditions.iter().filter(|(name, _)| !before.conditions.contains_key(*name));
    let set = set.map(|(name, message)| (ChangeKind::ConditionSet, format!("{name}: {message}")));
    let cleared = before.conditions.keys().filter(|name| !now.conditions.contains_key(*name));
    let cleared = cleared.map(|name| (ChangeKind::ConditionCleared, format!("{name} cleared")));
    set.chain(cleared).collect()
}

/// Keeps the time at which a threshold was first observed as met.
fn keep_since(before: &Reading, now: &mut Reading) {
    for status in &mut now.thresholds {
        let old = before.thresholds.iter().find(|old| old.is_same(status));
        if let Some(since) = old.and_then(|old| old.since).filter(|_| status.met) {
            status.since = Some(since);
        }
    }
}

fn compare_readings(before: &Reading, now: &Reading) -> Vec<(ChangeKind, String)> {
    let mut changes = Vec::new();
    let same = before.thresholds.len() == now.thresholds.len()
        && before.thresholds.iter().zip(&now.thresholds).all(|(old, new)| old.is_same(new));
    if !same {
        changes.push((ChangeKind::ThresholdsChanged, describe_thresholds(now)));
    }
    let was_met =
        |status: &ThresholdStatus| before.thresholds.iter().any(|old| old.is_same(status) && old.met);
    let first = now.order.first();
    for status in &now.thresholds {
        match (was_met(status), status.met) {
            (false, true) => {
                let next = first.map(|first| format!("; first eviction candidate: {}", first.pod));
                let text = describe_margin(now, status) + &next.unwrap_or_default();
                changes.push((ChangeKind::ThresholdCrossed, text));
            }
            (true, false) => changes.push((ChangeKind::ThresholdCleared, describe_margin(now, status))),
            _ => {}
        }
    }
    let first_uids = |reading: &Reading| -> BTreeSet<String> {
        reading.first_candidates().map(|candidate| candidate.uid.clone()).collect()
    };
    if first_uids(before) != first_uids(now) {
        changes.push((ChangeKind::TopCandidateChanged, describe_top_candidate(now)));
    }
    changes
}

/// Describes the first eviction candidates.
fn describe_top_candidate(now: &Reading) -> String {
    let first: Vec<&EvictionCandidate> = now.first_candidates().collect();
    match &first[..] {
        [only] => format!("{}: {}", only.pod, only.reason),
        [one, others @ ..] => format!("{} and {} equal pods: {}", one.pod, others.len(), one.reason),
        [] => "no pod can be evicted".to_owned(),
    }
}

/// Describes the configured thresholds.
fn describe_thresholds(now: &Reading) -> String {
    let all: Vec<String> =
        now.thresholds.iter().map(|status| format!("{} {}", status.kind(), status.configured)).collect();
    if all.is_empty() {
        format!("{}: none", now.signal)
    } else {
        format!("{}: {}", now.signal, all.join(", "))
    }
}

/// Describes the distance to a threshold: `memory.available 95Mi, 5Mi below the hard threshold of
/// 100Mi`.
fn describe_margin(now: &Reading, status: &ThresholdStatus) -> String {
    let format_amount = |value: i64| amount(value, now.signal.resource());
    let available = now.available.as_ref().map(|available| format_amount(available.value()));
    let available = available.unwrap_or_default();
    let quantity = format_amount(status.quantity.value());
    let left = format_amount(status.margin.saturating_abs());
    let side = if status.met { "below" } else { "above" };
    format!("{} {available}, {left} {side} the {} threshold of {quantity}", now.signal, status.kind())
}
