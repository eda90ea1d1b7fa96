//! The scheduling queue and the scheduling of one pod.

use std::collections::BTreeMap;
use std::time::Duration;

use evictlab_rules::KubeletVersion;
use serde_json::Value;

use super::filter::{self, FilterFailure, unavailable};
use super::nodes::{NAME, PendingPod, read_nodes};
use super::preemption;
use crate::apiserver::control_plane_version;
use crate::context::SimContext;
use crate::controllers::context::{ControllerContext, ControllerTask, observed_generation};
use crate::controllers::recorder::{self, EventObjects};
use crate::resource::pod_status::{ConditionStatus, PodCondition};
use crate::resource::{EventBody, Kind, ObjectExt};
use crate::sim::SimTime;
use crate::storage::{ObjectChange, WatchEventType};

/// Duration of a scheduling cycle.
const CYCLE: Duration = Duration::from_millis(2);

/// Initial and maximum backoff of an unschedulable pod (`podInitialBackoffSeconds`,
/// `podMaxBackoffSeconds`).
const BACKOFF: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(10)];

/// Maximum wait of a pod for a change in the cluster (`podMaxInUnschedulablePodsDuration`).
const FLUSH: Duration = Duration::from_secs(300);

/// Pod without a node.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// Time at which the pod was added, which orders pods of equal priority.
    since: SimTime,
    attempts: u32,
    /// Time of the next attempt.
    due: SimTime,
    /// End of the backoff.
    backoff: SimTime,
}

/// Scheduling queue: pods without a node, by namespace and name.
#[derive(Debug, Default)]
pub(in crate::controllers) struct Scheduler {
    waiting: BTreeMap<(String, String), Waiting>,
    /// Time of the next scheduled run.
    scheduled: Option<SimTime>,
}

impl Scheduler {
    /// Handles changes of objects.
    pub(in crate::controllers) fn handle_changes(
        &mut self,
        changes: &[ObjectChange],
        ctx: &mut ControllerContext,
    ) {
        let mut helpful = false;
        for change in changes {
            helpful |= match change.kind {
                Kind::Pod => self.pod_changed(change, ctx),
                Kind::Node => may_help(change),
                _ => false,
            };
        }
        if helpful {
            for waiting in self.waiting.values_mut() {
                waiting.due = waiting.due.min(waiting.backoff.max(ctx.now + CYCLE));
            }
        }
        self.schedule(ctx);
    }

    /// Schedules the pods that are due, highest priority first.
    pub(in crate::controllers) fn run(&mut self, ctx: &mut ControllerContext) {
        if self.scheduled.is_none_or(|scheduled| ctx.now < scheduled) {
            return;
        }
        self.scheduled = None;
        // The deletion of a pod is unknown if the history of changes was too short.
        self.waiting.retain(|(namespace, name), _| ctx.store.get(Kind::Pod, namespace, name).is_some());
        let mut due: Vec<_> = self
            .waiting
            .iter()
            .filter(|(_, waiting)| waiting.due <= ctx.now)
            .filter_map(|(key, waiting)| {
                let pod = ctx.store.get(Kind::Pod, &key.0, &key.1)?;
                Some((std::cmp::Reverse(pod.priority()), waiting.since, key.clone()))
            })
            .collect();
        due.sort();
        for (_, _, key) in due {
            if let Some(pod) = ctx.store.get(Kind::Pod, &key.0, &key.1).filter(|pod| is_pending(pod)).cloned()
            {
                self.schedule_one(&key, &pod, ctx);
            } else {
                self.waiting.remove(&key);
            }
        }
        self.schedule(ctx);
    }

    /// Handles a change of a pod. Returns whether other pods may become schedulable.
    fn pod_changed(&mut self, change: &ObjectChange, ctx: &SimContext) -> bool {
        let pod = &change.object;
        let key = (pod.namespace().to_owned(), pod.name().to_owned());
        if change.event_type == WatchEventType::Deleted || !is_pending(pod) {
            self.waiting.remove(&key);
            let before = change.before.as_ref();
            let ended = change.event_type == WatchEventType::Deleted
                || pod.is_terminal() && !before.is_some_and(|before| before.is_terminal());
            return ended && !pod.node_name().is_empty();
        }
        let first = Waiting { since: ctx.now, attempts: 0, due: ctx.now + CYCLE, backoff: SimTime::ZERO };
        match self.waiting.get_mut(&key) {
            None => {
                self.waiting.insert(key, first);
            }
            // Tolerations may have changed.
            Some(waiting) if change.before.as_ref().is_some_and(|before| before.spec() != pod.spec()) => {
                waiting.due = waiting.due.min(waiting.backoff.max(ctx.now + CYCLE));
            }
            Some(_) => {}
        }
        false
    }

    fn schedule_one(&mut self, key: &(String, String), pod: &Value, ctx: &mut ControllerContext) {
        let control_plane = control_plane_version(ctx);
        let nodes = read_nodes(ctx, pod);
        let pending = PendingPod::read(pod);
        let failures: Vec<_> =
            nodes.iter().map(|node| filter::filter(&pending, node, &control_plane)).collect();
        let fitting = nodes.iter().zip(&failures).filter(|(_, failure)| failure.is_none());
        let best = fitting.map(|(node, _)| node).min_by_key(|node| filter::score(&pending, node));
        if let Some(node) = best {
            self.waiting.remove(key);
            bind(key, &node.name, ctx);
            let message = format!("Successfully assigned {}/{} to {}", key.0, key.1, node.name);
            let object = recorder::object_reference(Kind::Pod, pod);
            let event = EventBody::normal("Scheduled", &message);
            ctx.record_series(EventObjects { object, cause: None }, "Binding", event);
            return;
        }
        let failures: Vec<FilterFailure> = failures.into_iter().flatten().collect();
        let preemption = preemption::find(&pending, &nodes, &failures, ctx);
        let message = message(&failures, preemption.as_ref().err().map(String::as_str), &control_plane);
        let event = EventBody::warning("FailedScheduling", &message);
        ctx.record_series(
            EventObjects { object: recorder::object_reference(Kind::Pod, pod), cause: None },
            "Scheduling",
            event,
        );
        let (now, generation) = (ctx.epoch().meta_time(ctx.now), observed_generation(pod, ctx));
        let nominated = preemption.as_ref().ok().map(|found| found.node.clone());
        ctx.store.update(Kind::Pod, &key.0, &key.1, |pod| {
            PodCondition::new("PodScheduled", ConditionStatus::False, "Unschedulable", &message)
                .observing(generation)
                .set(pod, now);
            if let Some(node) = nominated {
                pod.status_mut().write("nominatedNodeName", node);
            }
        });
        if let Ok(found) = preemption {
            preemption::preempt(pod, &found, ctx);
        }
        if let Some(waiting) = self.waiting.get_mut(key) {
            let [first, most] = BACKOFF;
            waiting.backoff = ctx.now + first.saturating_mul(1 << waiting.attempts.min(16)).min(most);
            waiting.attempts += 1;
            waiting.due = ctx.now + FLUSH;
        }
    }

    /// Schedules the next run, unless an earlier one is scheduled.
    fn schedule(&mut self, ctx: &mut ControllerContext) {
        let Some(next) = self.waiting.values().map(|waiting| waiting.due).min() else { return };
        let next = next.max(ctx.now);
        if self.scheduled.is_none_or(|scheduled| next < scheduled) {
            self.scheduled = Some(next);
            ctx.schedule_at(next, ControllerTask::Schedule);
        }
    }
}

/// Returns the message for an unschedulable pod (`FitError`). Since 1.34 the plugin
/// `DynamicResources` is enabled and adds its reason before that of a failed preemption
/// (`RunPostFilterPlugins`).
fn message(failures: &[FilterFailure], preemption: Option<&str>, control_plane: &KubeletVersion) -> String {
    if failures.is_empty() {
        return "no nodes available to schedule pods".to_owned();
    }
    let reasons = failures.iter().flat_map(|failure| &failure.reasons).map(String::as_str);
    let mut message = unavailable(failures.len(), reasons);
    if let Some(preemption) = preemption {
        if control_plane.at_least(34) {
            message.push_str(" no new claims to deallocate,");
        }
        message.push_str(" preemption: ");
        message.push_str(preemption);
    }
    message
}

/// Assigns a pod to a node (`BindingREST.assignPod`).
fn bind((namespace, name): &(String, String), node: &str, ctx: &mut ControllerContext) {
    let now = ctx.epoch().meta_time(ctx.now);
    ctx.store.update(Kind::Pod, namespace, name, |pod| {
        pod.spec_mut().write("nodeName", node);
        // `ClearingNominatedNodeNameAfterBinding` (KEP-5278) since 1.34. Before, the name stayed,
        // but nothing reads it after the binding.
        pod.status_mut().remove("nominatedNodeName");
        PodCondition::new("PodScheduled", ConditionStatus::True, "", "").set(pod, now);
    });
}

/// Returns whether a pod waits for this scheduler.
fn is_pending(pod: &Value) -> bool {
    pod.spec().text("schedulerName") == NAME
        && pod.node_name().is_empty()
        && !pod.is_terminal()
        && !pod.is_deleting()
}

/// Returns whether the change of a node may make pods schedulable; heartbeats do not.
fn may_help(change: &ObjectChange) -> bool {
    let Some(before) = &change.before else { return true };
    let node = &change.object;
    change.event_type != WatchEventType::Deleted
        && (before.spec() != node.spec()
            || before.labels() != node.labels()
            || before.status().get("allocatable") != node.status().get("allocatable"))
}
