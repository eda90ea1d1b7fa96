//! Pods of nodes that are gone: `pkg/controller/podgc`. (Ended pods beyond the first 12500 are not collected.)

use std::collections::BTreeMap;
use std::time::Duration;

use super::{ControlEvent, at, generation, has_ended, meta, node_of};
use crate::registry::condition::Condition;
use crate::registry::{self, DeleteOptions};
use crate::store::{Change, ChangeKind, Kind};
use crate::time::Time;
use crate::world::Ctx;

/// How often the controller looks.
const PERIOD: Duration = Duration::from_secs(20);

/// How long a node must be missing.
const QUARANTINE: Duration = Duration::from_secs(40);

/// Which nodes are missed, and since when.
#[derive(Debug, Default)]
pub(super) struct Orphans {
    missed: BTreeMap<String, Time>,
    /// Whether a look is asked for.
    asked: bool,
}

impl Orphans {
    /// A node has changed.
    pub(super) fn node_changed(&mut self, change: &Change, ctx: &mut Ctx) {
        if change.what == ChangeKind::Deleted {
            self.ask(ctx);
        }
    }

    /// A pod has changed.
    pub(super) fn pod_changed(&mut self, change: &Change, ctx: &mut Ctx) {
        let node = node_of(&change.object);
        let settled = change.before.as_ref().is_some_and(|before| node_of(before) == node);
        if change.what != ChangeKind::Deleted
            && !settled
            && !node.is_empty()
            && ctx.store.get(Kind::Node, "", node).is_none()
        {
            self.ask(ctx);
        }
    }

    /// Deletes the pods of nodes that are missed for long enough.
    pub(super) fn look(&mut self, ctx: &mut Ctx) {
        self.asked = false;
        let missing = |node: &str| !node.is_empty() && ctx.store.get(Kind::Node, "", node).is_none();
        let orphans: Vec<_> =
            ctx.store.list(Kind::Pod, None).filter(|pod| missing(node_of(pod))).cloned().collect();
        self.missed.retain(|node, _| orphans.iter().any(|pod| node_of(pod) == node));
        for pod in orphans {
            let since = *self.missed.entry(node_of(&pod).to_owned()).or_insert(ctx.now);
            if ctx.now.since(since) < QUARANTINE {
                continue;
            }
            let (namespace, name) = (meta(&pod, "namespace"), meta(&pod, "name"));
            if !has_ended(&pod) {
                let (now, generation) = (ctx.epoch().seconds(ctx.now), generation(&pod, ctx));
                ctx.store.update(Kind::Pod, namespace, name, |pod| {
                    pod["status"]["phase"] = "Failed".into();
                    Condition::disruption("DeletionByPodGC", "PodGC: node no longer exists")
                        .set(pod, &now, generation);
                });
            }
            let at_once = DeleteOptions { grace: Some(0), ..DeleteOptions::default() };
            // It was there a line ago.
            let _ = registry::delete(ctx, Kind::Pod, namespace, name, at_once);
        }
        self.missed.retain(|_, since| ctx.now.since(*since) < QUARANTINE);
        if !self.missed.is_empty() {
            self.ask(ctx);
        }
    }

    /// Asks for the next look, which is at a multiple of the period.
    fn ask(&mut self, ctx: &mut Ctx) {
        if !self.asked {
            self.asked = true;
            let passed = ctx.now.since_start().as_secs() / PERIOD.as_secs();
            at(
                ctx,
                Time::after(PERIOD * (u32::try_from(passed).unwrap_or(u32::MAX - 1) + 1)),
                ControlEvent::Orphans,
            );
        }
    }
}
