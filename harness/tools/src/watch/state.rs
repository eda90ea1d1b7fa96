//! State of a watched cluster, and the changes that each observation makes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::{SignedDuration, Timestamp};

use super::bounded_set::BoundedSet;
use super::change::{ChangeKind, WatchChange};
use super::eviction::{EvictionCounters, EvictionEvent};
use super::node::NodeView;
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
    before: BTreeMap<String, VecDeque<Reading>>,
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
        let Some(before) = self.nodes.get(&name) else {
            let added = change(at, &name, ChangeKind::NodeRecovered, "node added".to_owned());
            self.nodes.insert(name, view);
            return if self.started { vec![added] } else { Vec::new() };
        };
        let mut changes = Vec::new();
        let mut add = |kind: ChangeKind, text: String| changes.push(change(at, &name, kind, text));
        for (kind, text) in compare_conditions(before, &view) {
            add(kind, text);
        }
        match (&before.problem, &view.problem) {
            (None, Some(problem)) => {
                add(ChangeKind::NodeLost, format!("cannot query node, retrying: {problem}"))
            }
            (Some(_), None) => add(ChangeKind::NodeRecovered, "node can be queried again".to_owned()),
            _ => {}
        }
        for (uid, pod) in &before.active {
            if !view.active.contains_key(uid) {
                let how = view.ended.get(uid).map_or("deleted", String::as_str);
                add(ChangeKind::PodGone, format!("{pod}: {how}"));
            }
        }
        if let (Some(old), Some(new)) = (&before.reading, &mut view.reading) {
            keep_since(old, new);
            compare_readings(old, new).into_iter().for_each(|(kind, text)| add(kind, text));
        }
        match (before.reading.clone(), &mut view.reading) {
            (Some(old), Some(_)) => {
                let kept = self.before.entry(name.clone()).or_default();
                kept.push_back(old);
                let is_old = |reading: &Reading| at.duration_since(reading.at) > MAX_READING_AGE;
                while kept.len() > MAX_READINGS || (kept.len() > 1 && kept.front().is_some_and(is_old)) {
                    kept.pop_front();
                }
            }
            (old, new) => *new = new.take().or(old),
        }
        self.nodes.insert(name, view);
        changes
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
        let again = !self.evicted.insert(uid.clone());
        if again {
            // Kubelets with cgroup v1 notifications report one eviction up to three times.
            let text = format!("{pod}: {summary}; repeated event for the same pod");
            return vec![change(at, &node, ChangeKind::PodEvicted, text)];
        }
        let reading = self.reading_at(&node, eviction.at);
        let (forecast, prediction) = (eviction.forecast(reading), eviction.describe_prediction(reading));
        self.counters.add(&node, eviction, forecast);
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
        self.before.clear();
        self.nodes.values_mut().for_each(|view| view.reading = None);
    }

    /// Returns the last reading before an event, whose time has a resolution of one second. If the
    /// clocks differ too much, returns the last reading.
    fn reading_at(&self, node: &str, at: Option<Timestamp>) -> Option<&Reading> {
        let last = self.nodes.get(node)?.reading.as_ref();
        let end = at.and_then(|at| at.checked_add(SignedDuration::from_secs(1)).ok());
        let before = self.before.get(node).into_iter().flat_map(|before| before.iter().rev());
        last.into_iter().chain(before).find(|reading| end.is_none_or(|end| reading.at < end)).or(last)
    }

    /// Removes nodes that are no longer in the cluster.
    pub(crate) fn retain(&mut self, there: &BTreeSet<String>, at: Timestamp) -> Vec<WatchChange> {
        let gone: Vec<String> = self.nodes.keys().filter(|name| !there.contains(*name)).cloned().collect();
        gone.into_iter()
            .map(|name| {
                self.nodes.remove(&name);
                self.evictions.remove(&name);
                self.before.remove(&name);
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

fn compare_conditions(before: &NodeView, now: &NodeView) -> Vec<(ChangeKind, String)> {
    let came = now.conditions.iter().filter(|(name, _)| !before.conditions.contains_key(*name));
    let went = before.conditions.keys().filter(|name| !now.conditions.contains_key(*name));
    let came = came.map(|(name, message)| (ChangeKind::ConditionSet, format!("{name}: {message}")));
    came.chain(went.map(|name| (ChangeKind::ConditionCleared, format!("{name} cleared")))).collect()
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
    let head = now.order.first();
    for status in &now.thresholds {
        match (was_met(status), status.met) {
            (false, true) => {
                let next =
                    head.map(|head| format!("; first eviction candidate: {}", head.pod)).unwrap_or_default();
                changes
                    .push((ChangeKind::ThresholdCrossed, format!("{}{next}", describe_margin(now, status))));
            }
            (true, false) => changes.push((ChangeKind::ThresholdCleared, describe_margin(now, status))),
            _ => {}
        }
    }
    let first = |reading: &Reading| -> BTreeSet<String> {
        let first = reading.order.iter().filter(|candidate| candidate.rank == 1);
        first.map(|candidate| candidate.uid.clone()).collect()
    };
    if first(before) != first(now) {
        changes.push((ChangeKind::TopCandidateChanged, describe_top_candidate(now)));
    }
    changes
}

/// Describes the first eviction candidates.
fn describe_top_candidate(now: &Reading) -> String {
    let first: Vec<&str> =
        now.order.iter().filter(|candidate| candidate.rank == 1).map(|own| own.pod.as_str()).collect();
    match (&first[..], now.order.first()) {
        ([one], Some(head)) => format!("{one}: {}", head.reason),
        ([one, rest @ ..], Some(head)) => {
            format!("{one} and {} equal pods: {}", rest.len(), head.reason)
        }
        _ => "no pod can be evicted".to_owned(),
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
    let say = |value: i64| amount(value, now.signal.resource());
    let available = now.available.as_ref().map(|available| say(available.value())).unwrap_or_default();
    let (quantity, left) = (say(status.quantity.value()), say(status.margin.saturating_abs()));
    let side = if status.met { "below" } else { "above" };
    format!("{} {available}, {left} {side} the {} threshold of {quantity}", now.signal, status.kind())
}
