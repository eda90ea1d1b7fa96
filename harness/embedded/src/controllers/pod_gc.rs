//! Pod garbage collector: deletes pods of missing nodes (`pkg/controller/podgc`). Terminated pods
//! beyond 12,500 are not collected.

use std::collections::BTreeMap;
use std::time::Duration;

use super::context::{ControllerContext, ControllerEvent, observed_generation};
use crate::apiserver::{self, DeleteOptions};
use crate::resource::condition::Condition;
use crate::resource::{Kind, ObjectExt};
use crate::sim::Time;
use crate::storage::{Change, ChangeKind};

/// Period of checks.
const PERIOD: Duration = Duration::from_secs(20);

/// Time for which a node must be missing.
const QUARANTINE: Duration = Duration::from_secs(40);

/// State of the pod garbage collector: missing nodes, and since when.
#[derive(Debug, Default)]
pub(super) struct PodGc {
    missed: BTreeMap<String, Time>,
    /// True if a check is scheduled.
    scheduled: bool,
}

impl PodGc {
    /// Handles a change of a node.
    pub(super) fn node_changed(&mut self, change: &Change, ctx: &mut ControllerContext) {
        if change.what == ChangeKind::Deleted {
            self.schedule(ctx);
        }
    }

    /// Handles a change of a pod.
    pub(super) fn pod_changed(&mut self, change: &Change, ctx: &mut ControllerContext) {
        let node = change.object.node_name();
        let settled = change.before.as_ref().is_some_and(|before| before.node_name() == node);
        if change.what != ChangeKind::Deleted
            && !settled
            && !node.is_empty()
            && ctx.store.get(Kind::Node, "", node).is_none()
        {
            self.schedule(ctx);
        }
    }

    /// Deletes the pods of nodes that have been missing for long enough.
    pub(super) fn check(&mut self, ctx: &mut ControllerContext) {
        self.scheduled = false;
        let missing = |node: &str| !node.is_empty() && ctx.store.get(Kind::Node, "", node).is_none();
        let orphans: Vec<_> =
            ctx.store.list(Kind::Pod, None).filter(|pod| missing(pod.node_name())).cloned().collect();
        self.missed.retain(|node, _| orphans.iter().any(|pod| pod.node_name() == node));
        for pod in orphans {
            let since = *self.missed.entry(pod.node_name().to_owned()).or_insert(ctx.now);
            if ctx.now.since(since) < QUARANTINE {
                continue;
            }
            let (namespace, name) = (pod.namespace(), pod.name());
            if !pod.is_terminal() {
                let (now, generation) = (ctx.epoch().seconds(ctx.now), observed_generation(&pod, ctx));
                ctx.store.update(Kind::Pod, namespace, name, |pod| {
                    pod["status"]["phase"] = "Failed".into();
                    Condition::disruption("DeletionByPodGC", "PodGC: node no longer exists")
                        .set(pod, &now, generation);
                });
            }
            let at_once = DeleteOptions { grace: Some(0), ..DeleteOptions::default() };
            // The pod was read in the same step, so it exists.
            let _ = apiserver::delete(ctx, Kind::Pod, namespace, name, at_once);
        }
        self.missed.retain(|_, since| ctx.now.since(*since) < QUARANTINE);
        if !self.missed.is_empty() {
            self.schedule(ctx);
        }
    }

    /// Schedules the next check, at a multiple of the period.
    fn schedule(&mut self, ctx: &mut ControllerContext) {
        if !self.scheduled {
            self.scheduled = true;
            let passed = ctx.now.since_start().as_secs() / PERIOD.as_secs();
            ctx.schedule_at(
                Time::after(PERIOD * (u32::try_from(passed).unwrap_or(u32::MAX - 1) + 1)),
                ControllerEvent::PodGc,
            );
        }
    }
}
