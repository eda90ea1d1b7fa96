//! What is known of a watched cluster, and what each new look changes in it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::{SignedDuration, Timestamp};

use super::change::{Change, What};
use super::eviction::Eviction;
use super::node::NodeView;
use super::reading::{Limit, Reading};
use crate::explain::amount;

/// How many evictions are kept for each node.
const KEPT: usize = 3;
/// How many readings are kept for each node: an event may be told late, when its pod has no statistics any more.
const READINGS: usize = 10;
/// A refused watch is asked for again after half of this at the latest.
const GRANTED: SignedDuration = SignedDuration::from_secs(60);

/// An eviction that was seen.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub at: Timestamp,
    pub pod: String,
    /// The message in short.
    pub short: String,
    /// Whether it was foreseen.
    pub foreseen: String,
}

/// What is known.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// By name.
    pub nodes: BTreeMap<String, NodeView>,
    /// The last evictions, by node.
    pub evictions: BTreeMap<String, Vec<Told>>,
    /// The readings before the last, by node, the oldest first.
    before: BTreeMap<String, VecDeque<Reading>>,
    /// The uids of pods that are being evicted.
    pub evicted: BTreeSet<String>,
    /// Why the API server does not answer.
    pub silent: Option<String>,
    /// Whether the first look is over.
    pub begun: bool,
    /// The watches that are refused, why, and when they last were.
    refused: BTreeMap<&'static str, (String, Timestamp)>,
}

impl Ledger {
    /// Takes a new look at a node; returns what it changed.
    pub fn take(&mut self, mut view: NodeView, at: Timestamp) -> Vec<Change> {
        let name = view.name.clone();
        let Some(before) = self.nodes.get(&name) else {
            let came = change(at, &name, What::Came, "it is watched from now on".to_owned());
            self.nodes.insert(name, view);
            return if self.begun { vec![came] } else { Vec::new() };
        };
        let mut changes = Vec::new();
        let mut add = |what: What, text: String| changes.push(change(at, &name, what, text));
        for (what, text) in conditions(before, &view) {
            add(what, text);
        }
        match (&before.problem, &view.problem) {
            (None, Some(problem)) => {
                add(What::Lost, format!("it cannot be read, and is asked again: {problem}"))
            }
            (Some(_), None) => add(What::Came, "it can be read again".to_owned()),
            _ => {}
        }
        for (uid, pod) in &before.active {
            if !view.active.contains_key(uid) {
                let how = view.ended.get(uid).map_or("deleted", String::as_str);
                add(What::Gone, format!("{pod}: {how}"));
            }
        }
        if let (Some(old), Some(new)) = (&before.reading, &mut view.reading) {
            keep_since(old, new);
            readings(old, new).into_iter().for_each(|(what, text)| add(what, text));
        }
        match (before.reading.clone(), &mut view.reading) {
            (Some(old), Some(_)) => {
                let kept = self.before.entry(name.clone()).or_default();
                kept.push_back(old);
                if kept.len() > READINGS {
                    kept.pop_front();
                }
            }
            (old, new) => *new = new.take().or(old),
        }
        self.nodes.insert(name, view);
        changes
    }

    /// Takes an eviction; `node` is where the pod is bound, if that is known.
    pub fn evict(&mut self, eviction: &Eviction, node: Option<String>, at: Timestamp) -> Vec<Change> {
        let Some(node) = eviction.node.clone().or(node).filter(|node| self.nodes.contains_key(node)) else {
            return Vec::new();
        };
        let short = eviction.short();
        let Eviction { pod, uid, .. } = eviction;
        let again = !self.evicted.insert(uid.clone());
        if again {
            // Kubelets that are notified of pressure tell of one eviction twice or thrice.
            let text = format!("{pod}: {short}; told once more of the same pod");
            return vec![change(at, &node, What::Evicted, text)];
        }
        let foreseen = eviction.foreseen(self.reading_at(&node, eviction.at));
        let text = format!("{pod}: {short}; {foreseen}");
        let kept = self.evictions.entry(node.clone()).or_default();
        kept.push(Told { at: eviction.at.unwrap_or(at), pod: pod.clone(), short, foreseen });
        if kept.len() > KEPT {
            kept.remove(0);
        }
        vec![change(at, &node, What::Evicted, text)]
    }

    /// What was read of a node last before a moment that is told to the second; if clocks differ so much that nothing was, the last reading.
    fn reading_at(&self, node: &str, at: Option<Timestamp>) -> Option<&Reading> {
        let last = self.nodes.get(node)?.reading.as_ref();
        let end = at.and_then(|at| at.checked_add(SignedDuration::from_secs(1)).ok());
        let before = self.before.get(node).into_iter().flat_map(|before| before.iter().rev());
        last.into_iter().chain(before).find(|reading| end.is_none_or(|end| reading.at < end)).or(last)
    }

    /// Forgets the nodes that are there no more.
    pub fn retain(&mut self, there: &BTreeSet<String>, at: Timestamp) -> Vec<Change> {
        let gone: Vec<String> = self.nodes.keys().filter(|name| !there.contains(*name)).cloned().collect();
        gone.into_iter()
            .map(|name| {
                self.nodes.remove(&name);
                self.evictions.remove(&name);
                self.before.remove(&name);
                change(at, &name, What::Lost, "the node is gone from the cluster".to_owned())
            })
            .collect()
    }

    /// The API server answers, or does not and why.
    pub fn server(&mut self, silent: Option<String>, at: Timestamp) -> Vec<Change> {
        let told = match (&self.silent, &silent) {
            (None, Some(why)) => {
                Some((What::Silent, format!("the API server does not answer, and is asked again: {why}")))
            }
            (Some(_), None) => Some((What::Answers, "the API server answers again".to_owned())),
            _ => None,
        };
        self.silent = silent;
        told.map(|(what, text)| change(at, "", what, text)).into_iter().collect()
    }

    /// A watch is refused.
    pub fn refused(&mut self, of: &'static str, why: String, at: Timestamp) -> Vec<Change> {
        let before = self.refused.insert(of, (why.clone(), at));
        if before.is_some_and(|(before, _)| before == why) {
            return Vec::new();
        }
        vec![change(
            at,
            "",
            What::Silent,
            format!("the watch on {of} is refused, and is asked for again: {why}"),
        )]
    }

    /// A watch that has not been refused for a while is granted: it says so only when there is something to tell.
    pub fn granted(&mut self, at: Timestamp) -> Vec<Change> {
        let over = |(_, last): &(String, Timestamp)| at.duration_since(*last) > GRANTED;
        let of: Vec<&'static str> =
            self.refused.iter().filter(|(_, last)| over(last)).map(|(of, _)| *of).collect();
        self.refused.retain(|_, last| !over(last));
        of.iter().map(|of| change(at, "", What::Answers, format!("the watch on {of} goes on"))).collect()
    }
}

fn change(at: Timestamp, node: &str, what: What, text: String) -> Change {
    Change { at, node: node.to_owned(), what, text }
}

fn conditions(before: &NodeView, now: &NodeView) -> Vec<(What, String)> {
    let came = now.conditions.iter().filter(|(name, _)| !before.conditions.contains_key(*name));
    let went = before.conditions.keys().filter(|name| !now.conditions.contains_key(*name));
    let came = came.map(|(name, message)| (What::Condition, format!("{name}: {message}")));
    came.chain(went.map(|name| (What::ConditionOver, format!("{name} is over")))).collect()
}

/// A threshold is met since it was first seen to be.
fn keep_since(before: &Reading, now: &mut Reading) {
    for limit in &mut now.thresholds {
        let old = before.thresholds.iter().find(|old| old.is(limit));
        if let Some(since) = old.and_then(|old| old.since).filter(|_| limit.met) {
            limit.since = Some(since);
        }
    }
}

fn readings(before: &Reading, now: &Reading) -> Vec<(What, String)> {
    let mut told = Vec::new();
    let same = before.thresholds.len() == now.thresholds.len()
        && before.thresholds.iter().zip(&now.thresholds).all(|(old, new)| old.is(new));
    if !same {
        told.push((What::Configured, stated(now)));
    }
    let was_met = |limit: &Limit| before.thresholds.iter().any(|old| old.is(limit) && old.met);
    let head = now.order.first();
    for limit in &now.thresholds {
        match (was_met(limit), limit.met) {
            (false, true) => {
                let next = head.map(|head| format!("; first in order is {}", head.pod)).unwrap_or_default();
                told.push((What::Crossed, format!("{}{next}", against(now, limit))));
            }
            (true, false) => told.push((What::Left, against(now, limit))),
            _ => {}
        }
    }
    let first = |reading: &Reading| -> BTreeSet<String> {
        let first = reading.order.iter().filter(|candidate| candidate.place == 1);
        first.map(|candidate| candidate.uid.clone()).collect()
    };
    if first(before) != first(now) {
        told.push((What::Head, head_of(now)));
    }
    told
}

/// Who is first.
fn head_of(now: &Reading) -> String {
    let first: Vec<&str> =
        now.order.iter().filter(|candidate| candidate.place == 1).map(|own| own.pod.as_str()).collect();
    match (&first[..], now.order.first()) {
        ([one], Some(head)) => format!("{one}: {}", head.why),
        ([one, rest @ ..], Some(head)) => {
            format!("{one} and {} more, equal: {}", rest.len(), head.why)
        }
        _ => "no pod is left that may be evicted".to_owned(),
    }
}

/// The thresholds as they are configured.
fn stated(now: &Reading) -> String {
    let all: Vec<String> =
        now.thresholds.iter().map(|limit| format!("{} {}", limit.kind(), limit.stated)).collect();
    match all.is_empty() {
        true => format!("{}: none", now.signal),
        false => format!("{}: {}", now.signal, all.join(", ")),
    }
}

/// `memory.available 95Mi, hard 100Mi: 5Mi below`.
fn against(now: &Reading, limit: &Limit) -> String {
    let say = |value: i64| amount(value, now.signal.resource());
    let available = now.available.as_ref().map(|available| say(available.value())).unwrap_or_default();
    let (quantity, left) = (say(limit.quantity.value()), say(limit.left.saturating_abs()));
    let side = if limit.met { "below" } else { "above" };
    format!("{} {available}, {left} {side} the {} threshold of {quantity}", now.signal, limit.kind())
}
