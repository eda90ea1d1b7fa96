//! The eviction of pods that do not tolerate a `NoExecute` taint, or not for ever: `pkg/controller/tainteviction`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::events::{self, Recorder, Told, Weight};
use super::{ControlEvent, at, generation, meta, node_of, taints};
use crate::registry::condition::Condition;
use crate::registry::{self, DeleteOptions};
use crate::store::{Change, ChangeKind, Kind};
use crate::time::Time;
use crate::world::Ctx;

const COMPONENT: &str = "taint-eviction-controller";

#[derive(Clone, Copy, Debug)]
struct Planned {
    /// When it was first planned: a longer toleration counts from there.
    since: Time,
    due: Time,
}

/// Whose eviction is planned, by namespace and name.
#[derive(Debug, Default)]
pub(super) struct TaintEviction {
    planned: BTreeMap<(String, String), Planned>,
}

impl TaintEviction {
    /// A node has changed.
    pub(super) fn node_changed(&mut self, change: &Change, recorder: &mut Recorder, ctx: &mut Ctx) {
        let node = &change.object;
        if change.what == ChangeKind::Deleted
            || change.before.as_ref().is_some_and(|before| no_execute(before).eq(no_execute(node)))
        {
            return;
        }
        let here = |pod: &&std::sync::Arc<Value>| node_of(pod) == meta(node, "name");
        let pods: Vec<_> = ctx.store.list(Kind::Pod, None).filter(here).cloned().collect();
        for pod in pods {
            self.judge(&pod, node, recorder, ctx);
        }
    }

    /// A pod has changed.
    pub(super) fn pod_changed(&mut self, change: &Change, recorder: &mut Recorder, ctx: &mut Ctx) {
        let pod = &change.object;
        if change.what == ChangeKind::Deleted {
            self.cancel(meta(pod, "namespace"), meta(pod, "name"), recorder, ctx);
            return;
        }
        let same = |before: &std::sync::Arc<Value>| {
            node_of(before) == node_of(pod) && before["spec"]["tolerations"] == pod["spec"]["tolerations"]
        };
        if change.before.as_ref().is_some_and(same) {
            return;
        }
        let Some(node) = ctx.store.get(Kind::Node, "", node_of(pod)).cloned() else { return };
        if no_execute(&node).next().is_some() {
            self.judge(pod, &node, recorder, ctx);
        }
    }

    /// A pod's toleration has come to its end, unless it was planned anew.
    pub(super) fn due(&mut self, namespace: &str, name: &str, recorder: &mut Recorder, ctx: &mut Ctx) {
        let key = (namespace.to_owned(), name.to_owned());
        if self.planned.get(&key).is_none_or(|planned| ctx.now < planned.due) {
            return;
        }
        self.planned.remove(&key);
        tell("Marking for", namespace, name, recorder, ctx);
        let Some(pod) = ctx.store.get(Kind::Pod, namespace, name) else { return };
        let (now, generation) = (ctx.epoch().seconds(ctx.now), generation(pod, ctx));
        ctx.store.update(Kind::Pod, namespace, name, |pod| {
            let message = "Taint manager: deleting due to NoExecute taint";
            Condition::disruption("DeletionByTaintManager", message).set(pod, &now, generation);
        });
        // It was there a line ago.
        let _ = registry::delete(ctx, Kind::Pod, namespace, name, DeleteOptions::default());
    }

    /// Plans a pod's eviction, or its stay (`processPodOnNode`).
    fn judge(&mut self, pod: &Value, node: &Value, recorder: &mut Recorder, ctx: &mut Ctx) {
        let (namespace, name) = (meta(pod, "namespace"), meta(pod, "name"));
        let tolerations: Option<Vec<&Value>> =
            no_execute(node).map(|taint| taints::toleration(pod, taint)).collect();
        let key = (namespace.to_owned(), name.to_owned());
        let Some(tolerations) = tolerations else {
            self.cancel(namespace, name, recorder, ctx);
            self.plan(key, ctx.now, Duration::ZERO, ctx);
            return;
        };
        let seconds =
            tolerations.iter().filter_map(|toleration| toleration["tolerationSeconds"].as_i64()).min();
        let Some(seconds) = seconds else {
            // For ever, or there is nothing to tolerate.
            self.cancel(namespace, name, recorder, ctx);
            return;
        };
        let wait = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        let since = match self.planned.get(&key) {
            // It stays planned as it is, if that is sooner.
            Some(planned) if planned.since + wait < ctx.now + wait => return,
            Some(planned) => planned.since,
            None => ctx.now,
        };
        self.cancel(namespace, name, recorder, ctx);
        self.plan(key, since, wait, ctx);
    }

    fn plan(&mut self, key: (String, String), since: Time, wait: Duration, ctx: &mut Ctx) {
        let due = (since + wait).max(ctx.now);
        let (namespace, name) = key.clone();
        self.planned.insert(key, Planned { since, due });
        at(ctx, due, ControlEvent::Evict { namespace, name });
    }

    fn cancel(&mut self, namespace: &str, name: &str, recorder: &mut Recorder, ctx: &mut Ctx) {
        if self.planned.remove(&(namespace.to_owned(), name.to_owned())).is_some() {
            tell("Cancelling", namespace, name, recorder, ctx);
        }
    }
}

/// The taints of a node that pods may not stay with.
fn no_execute(node: &Value) -> impl Iterator<Item = &Value> {
    taints::of(node).filter(|taint| taint["effect"] == "NoExecute")
}

fn tell(what: &str, namespace: &str, name: &str, recorder: &mut Recorder, ctx: &mut Ctx) {
    let message = match what {
        "Cancelling" => format!("Cancelling deletion of Pod {namespace}/{name}"),
        _ => format!("Marking for deletion Pod {namespace}/{name}"),
    };
    let told = Told { weight: Weight::Normal, reason: "TaintManagerEviction", message: &message };
    recorder.tell(ctx, COMPONENT, events::pod_named(namespace, name), told);
}
