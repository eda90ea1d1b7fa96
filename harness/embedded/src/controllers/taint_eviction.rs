//! Taint eviction controller: deletes pods that do not tolerate a `NoExecute` taint, or whose
//! toleration has ended (`pkg/controller/tainteviction`).

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Taint, Toleration};
use serde_json::Value;

use super::context::{ControllerContext, ControllerTask, observed_generation};
use super::recorder;
use crate::apiserver::{self, DeleteOptions};
use crate::resource::pod_status::PodCondition;
use crate::resource::scheduling::NodeConstraints;
use crate::resource::{EventBody, Kind, ObjectExt};
use crate::sim::SimTime;
use crate::storage::{ObjectChange, WatchEventType};

const COMPONENT: &str = "taint-eviction-controller";

#[derive(Clone, Copy, Debug)]
struct PlannedDeletion {
    /// Start of the toleration.
    since: SimTime,
    due: SimTime,
}

/// State of the controller: scheduled deletions by namespace and name.
#[derive(Debug, Default)]
pub(super) struct TaintEviction {
    planned: BTreeMap<(String, String), PlannedDeletion>,
}

impl TaintEviction {
    /// Handles a change of a node.
    pub(super) fn node_changed(&mut self, change: &ObjectChange, ctx: &mut ControllerContext) {
        let node = &change.object;
        if change.event_type == WatchEventType::Deleted
            || change.before.as_ref().is_some_and(|before| no_execute(before) == no_execute(node))
        {
            return;
        }
        let pods: Vec<_> = ctx.store.pods_on(node.name()).cloned().collect();
        for pod in pods {
            self.process_pod(&pod, node, ctx);
        }
    }

    /// Handles a change of a pod.
    pub(super) fn pod_changed(&mut self, change: &ObjectChange, ctx: &mut ControllerContext) {
        let pod = &change.object;
        if change.event_type == WatchEventType::Deleted {
            self.cancel(pod.namespace(), pod.name(), ctx);
            return;
        }
        let same = |before: &std::sync::Arc<Value>| {
            before.node_name() == pod.node_name()
                && before.spec().get("tolerations") == pod.spec().get("tolerations")
        };
        if change.before.as_ref().is_some_and(same) {
            return;
        }
        let Some(node) = ctx.store.get(Kind::Node, "", pod.node_name()).cloned() else { return };
        if !no_execute(&node).is_empty() {
            self.process_pod(pod, &node, ctx);
        }
    }

    /// Deletes a pod whose toleration has ended, unless its deletion was rescheduled.
    pub(super) fn delete_due(&mut self, namespace: &str, name: &str, ctx: &mut ControllerContext) {
        let key = (namespace.to_owned(), name.to_owned());
        if self.planned.get(&key).is_none_or(|planned| ctx.now < planned.due) {
            return;
        }
        self.planned.remove(&key);
        record_event("Marking for", namespace, name, ctx);
        let Some(pod) = ctx.store.get(Kind::Pod, namespace, name) else { return };
        let (now, generation) = (ctx.epoch().meta_time(ctx.now), observed_generation(pod, ctx));
        ctx.store.update(Kind::Pod, namespace, name, |pod| {
            let message = "Taint manager: deleting due to NoExecute taint";
            PodCondition::disruption("DeletionByTaintManager", message).observing(generation).set(pod, now);
        });
        // The pod was read in the same step, so it exists.
        let _ = apiserver::delete(ctx, Kind::Pod, namespace, name, DeleteOptions::default());
    }

    /// Schedules or cancels the deletion of a pod (`processPodOnNode`).
    fn process_pod(&mut self, pod: &Value, node: &Value, ctx: &mut ControllerContext) {
        let (namespace, name) = (pod.namespace(), pod.name());
        let constraints = NodeConstraints::of(pod);
        let taints = no_execute(node);
        let tolerations: Option<Vec<&Toleration>> =
            taints.iter().map(|taint| constraints.toleration(taint)).collect();
        let key = (namespace.to_owned(), name.to_owned());
        let Some(tolerations) = tolerations else {
            self.cancel(namespace, name, ctx);
            self.plan(key, ctx.now, Duration::ZERO, ctx);
            return;
        };
        let seconds = tolerations.iter().filter_map(|toleration| toleration.toleration_seconds).min();
        let Some(seconds) = seconds else {
            // All taints are tolerated without a limit, or there are none.
            self.cancel(namespace, name, ctx);
            return;
        };
        let wait = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        let since = match self.planned.get(&key) {
            // An earlier scheduled deletion is kept.
            Some(planned) if planned.since + wait < ctx.now + wait => return,
            Some(planned) => planned.since,
            None => ctx.now,
        };
        self.cancel(namespace, name, ctx);
        self.plan(key, since, wait, ctx);
    }

    fn plan(&mut self, key: (String, String), since: SimTime, wait: Duration, ctx: &mut ControllerContext) {
        let due = (since + wait).max(ctx.now);
        let (namespace, name) = key.clone();
        self.planned.insert(key, PlannedDeletion { since, due });
        ctx.schedule_at(due, ControllerTask::EvictTainted { namespace, name });
    }

    fn cancel(&mut self, namespace: &str, name: &str, ctx: &mut ControllerContext) {
        if self.planned.remove(&(namespace.to_owned(), name.to_owned())).is_some() {
            record_event("Cancelling", namespace, name, ctx);
        }
    }
}

/// Returns the `NoExecute` taints of a node.
fn no_execute(node: &Value) -> Vec<Taint> {
    node.taints().into_iter().filter(|taint| taint.effect == "NoExecute").collect()
}

fn record_event(what: &str, namespace: &str, name: &str, ctx: &mut ControllerContext) {
    let message = match what {
        "Cancelling" => format!("Cancelling deletion of Pod {namespace}/{name}"),
        _ => format!("Marking for deletion Pod {namespace}/{name}"),
    };
    let event = EventBody::normal("TaintManagerEviction", &message);
    ctx.record(COMPONENT, recorder::pod_reference(namespace, name), event);
}
