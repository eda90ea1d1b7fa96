//! The scheduler: a node for each pod that has none.
//!
//! Of the real one's plugins these are here: unschedulable nodes, taints, node selector and required node affinity, resources, least
//! allocated, default preemption. Not here: pod affinity, topology spread, ports, volumes, extenders.

mod filter;
mod nodes;
mod preemption;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::events::{self, Recorder, Told, Weight};
use super::{ControlEvent, at, has_ended, meta, node_of};
use crate::registry::condition::Condition;
use crate::registry::{self, control_plane};
use crate::store::{Change, ChangeKind, Kind};
use crate::time::Time;
use crate::world::Ctx;
use filter::Misfit;
use nodes::{Nodes, Wanted};

/// Whom it serves.
const NAME: &str = "default-scheduler";

/// How long a cycle takes.
const CYCLE: Duration = Duration::from_millis(2);

/// Backoff of a pod that fits nowhere: the first, and the longest (`podInitialBackoffSeconds`, `podMaxBackoffSeconds`).
const BACKOFF: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(10)];

/// How long a pod waits at most for something to change (`podMaxInUnschedulablePodsDuration`).
const FLUSH: Duration = Duration::from_secs(300);

/// A pod without a node.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// Since when it waits: who came first is served first.
    since: Time,
    attempts: u32,
    /// When it is tried next.
    due: Time,
    /// Until when it is not tried, whatever changes.
    backoff: Time,
}

/// The pods without a node, by namespace and name.
#[derive(Debug, Default)]
pub(super) struct Scheduler {
    waiting: BTreeMap<(String, String), Waiting>,
    /// When the next run is asked for.
    asked: Option<Time>,
}

impl Scheduler {
    /// Objects have changed.
    pub(super) fn changed(&mut self, changes: &[Change], ctx: &mut Ctx) {
        let mut helpful = false;
        for change in changes {
            helpful |= match change.kind {
                Kind::Pod => self.pod_changed(change, ctx),
                Kind::Node => is_news(change),
                _ => false,
            };
        }
        if helpful {
            for waiting in self.waiting.values_mut() {
                waiting.due = waiting.due.min(waiting.backoff.max(ctx.now + CYCLE));
            }
        }
        self.ask(ctx);
    }

    /// Tries the pods that are due, those of the highest priority first.
    pub(super) fn run(&mut self, recorder: &mut Recorder, ctx: &mut Ctx) {
        if self.asked.is_none_or(|asked| ctx.now < asked) {
            return;
        }
        self.asked = None;
        let mut due: Vec<_> = self
            .waiting
            .iter()
            .filter(|(_, waiting)| waiting.due <= ctx.now)
            .filter_map(|(key, waiting)| {
                let pod = ctx.store.get(Kind::Pod, &key.0, &key.1)?;
                Some((std::cmp::Reverse(priority(pod)), waiting.since, key.clone()))
            })
            .collect();
        due.sort();
        for (_, _, key) in due {
            if let Some(pod) = ctx.store.get(Kind::Pod, &key.0, &key.1).filter(|pod| is_ours(pod)).cloned() {
                self.try_one(&key, &pod, recorder, ctx);
            } else {
                self.waiting.remove(&key);
            }
        }
        self.ask(ctx);
    }

    /// Takes note of a pod; tells whether others may profit from what happened to it.
    fn pod_changed(&mut self, change: &Change, ctx: &Ctx) -> bool {
        let pod = &change.object;
        let key = (meta(pod, "namespace").to_owned(), meta(pod, "name").to_owned());
        if change.what == ChangeKind::Deleted || !is_ours(pod) {
            self.waiting.remove(&key);
            let before = change.before.as_ref();
            let ended = change.what == ChangeKind::Deleted
                || has_ended(pod) && !before.is_some_and(|before| has_ended(before));
            return ended && !node_of(pod).is_empty();
        }
        let first = Waiting { since: ctx.now, attempts: 0, due: ctx.now + CYCLE, backoff: Time::ZERO };
        match self.waiting.get_mut(&key) {
            None => {
                self.waiting.insert(key, first);
            }
            // Its tolerations or gates may have changed.
            Some(waiting) if change.before.as_ref().is_some_and(|before| before["spec"] != pod["spec"]) => {
                waiting.due = waiting.due.min(waiting.backoff.max(ctx.now + CYCLE));
            }
            Some(_) => {}
        }
        false
    }

    fn try_one(&mut self, key: &(String, String), pod: &Value, recorder: &mut Recorder, ctx: &mut Ctx) {
        let control_plane = control_plane(ctx);
        let nodes = Nodes::read(ctx, pod);
        let wanted = Wanted::of(pod);
        let misfits: Vec<_> =
            nodes.all.iter().map(|node| filter::misfit(pod, &wanted, node, &control_plane)).collect();
        let fitting = nodes.all.iter().zip(&misfits).filter(|(_, misfit)| misfit.is_none());
        let best = fitting.map(|(node, _)| node).min_by_key(|node| filter::score(pod, &wanted, node));
        if let Some(node) = best {
            self.waiting.remove(key);
            if registry::bind(ctx, &key.0, &key.1, &node.name).is_ok() {
                let message = format!("Successfully assigned {}/{} to {}", key.0, key.1, node.name);
                let told = Told { weight: Weight::Normal, reason: "Scheduled", message: &message };
                recorder.tell_series(ctx, events::pod(pod), None, "Binding", told);
            }
            return;
        }
        let misfits: Vec<Misfit> = misfits.into_iter().flatten().collect();
        let preemption = preemption::find(pod, &wanted, &nodes, &misfits, &control_plane, ctx);
        let message = message(&misfits, preemption.as_ref().err().map(String::as_str));
        let told = Told { weight: Weight::Warning, reason: "FailedScheduling", message: &message };
        recorder.tell_series(ctx, events::pod(pod), None, "Scheduling", told);
        let (now, generation) = (ctx.epoch().seconds(ctx.now), super::generation(pod, ctx));
        let nominated = preemption.as_ref().ok().map(|found| found.node.clone());
        ctx.store.update(Kind::Pod, &key.0, &key.1, |pod| {
            Condition { kind: "PodScheduled", status: "False", reason: "Unschedulable", message: &message }
                .set(pod, &now, generation);
            if let Some(node) = nominated {
                pod["status"]["nominatedNodeName"] = json!(node);
            }
        });
        if let Ok(found) = preemption {
            preemption::carry_out(pod, &found, recorder, ctx);
        }
        if let Some(waiting) = self.waiting.get_mut(key) {
            let [first, most] = BACKOFF;
            waiting.backoff = ctx.now + first.saturating_mul(1 << waiting.attempts.min(16)).min(most);
            waiting.attempts += 1;
            waiting.due = ctx.now + FLUSH;
        }
    }

    /// Asks for the next run, if it is sooner than what was asked for.
    fn ask(&mut self, ctx: &mut Ctx) {
        let Some(next) = self.waiting.values().map(|waiting| waiting.due).min() else { return };
        let next = next.max(ctx.now);
        if self.asked.is_none_or(|asked| next < asked) {
            self.asked = Some(next);
            at(ctx, next, ControlEvent::Schedule);
        }
    }
}

/// Why a pod fits nowhere (`FitError`).
fn message(misfits: &[Misfit], preemption: Option<&str>) -> String {
    if misfits.is_empty() {
        return "no nodes available to schedule pods".to_owned();
    }
    let reasons = misfits.iter().flat_map(|misfit| &misfit.reasons).map(String::as_str);
    let mut message = unfit(misfits.len(), reasons);
    if let Some(preemption) = preemption {
        message.push_str(" preemption: ");
        message.push_str(preemption);
    }
    message
}

/// `0/2 nodes are available: 1 Insufficient memory, 1 Too many pods.`
fn unfit<'a>(nodes: usize, reasons: impl Iterator<Item = &'a str>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in reasons {
        *counts.entry(reason).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    counts.sort();
    format!("0/{nodes} nodes are available: {}.", counts.join(", "))
}

/// Whether a pod waits for this scheduler.
fn is_ours(pod: &Value) -> bool {
    pod["spec"]["schedulerName"] == NAME
        && node_of(pod).is_empty()
        && !has_ended(pod)
        && pod["metadata"]["deletionTimestamp"].is_null()
        && pod["spec"]["schedulingGates"].as_array().is_none_or(Vec::is_empty)
}

/// Whether a change of a node may make room for pods; heartbeats do not.
fn is_news(change: &Change) -> bool {
    let Some(before) = &change.before else { return true };
    let node = &change.object;
    change.what != ChangeKind::Deleted
        && (before["spec"] != node["spec"]
            || before["metadata"]["labels"] != node["metadata"]["labels"]
            || before["status"]["allocatable"] != node["status"]["allocatable"])
}

/// A pod's priority.
fn priority(pod: &Value) -> i64 {
    pod["spec"]["priority"].as_i64().unwrap_or(0)
}
