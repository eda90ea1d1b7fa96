//! What the kubelet does when a pod's object appears, changes or goes.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::admit::Rejection;
use super::mirror;
use super::spec::Manifest;
use super::statics::is_static;
use super::status::Phase;
use super::worker::{Stage, Worker};
use super::{Kubelet, PodsEvent, latency};
use crate::kubelet::recorder::About;
use crate::machine::Machine;
use crate::store::{ChangeKind, Kind};
use crate::world::Ctx;

impl Kubelet {
    /// Goes through what has changed since the last time.
    pub(super) fn look_at_changes(&mut self, machine: &mut Machine, ctx: &mut Ctx) {
        let seen = std::mem::replace(&mut self.pods.seen, ctx.store.version());
        let changes: Option<Vec<_>> = ctx.store.since(seen).ok().map(|changes| {
            let pods = changes.filter(|change| change.kind == Kind::Pod && self.is_own(&change.object));
            pods.cloned().collect()
        });
        let changes: Vec<_> = match changes {
            Some(changes) => {
                let pods = changes.into_iter().filter(|change| !self.mirror_changed(change, ctx));
                pods.map(|change| (change.what == ChangeKind::Deleted, change.object)).collect()
            }
            None => self.all_that_may_have_changed(ctx),
        };
        for (gone, object) in changes {
            let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
            if !self.pods.workers.contains_key(&uid) {
                if !gone {
                    self.add_pod(object, machine, ctx);
                }
                continue;
            }
            self.with_worker(&uid, |kubelet, worker| kubelet.changed_pod(worker, object, gone, machine, ctx));
            self.drop_if_over(&uid, machine);
        }
    }

    /// Too much has happened to go through it: everything is looked at.
    fn all_that_may_have_changed(&self, ctx: &Ctx) -> Vec<(bool, Arc<Value>)> {
        let there = ctx.store.list(Kind::Pod, None);
        let there: Vec<_> =
            there.filter(|pod| self.is_own(pod) && mirror::of(pod).is_none()).cloned().collect();
        let is_there = |worker: &Worker| {
            is_static(&worker.object)
                || there.iter().any(|pod| pod["metadata"]["uid"] == *worker.manifest.uid)
        };
        let gone = self.pods.workers.values().filter(|worker| !is_there(worker));
        let gone: Vec<_> = gone.map(|worker| (true, worker.object.clone())).collect();
        gone.into_iter().chain(there.into_iter().map(|pod| (false, pod))).collect()
    }

    /// A pod is new to this kubelet.
    pub(super) fn add_pod(&mut self, object: Arc<Value>, machine: &mut Machine, ctx: &mut Ctx) {
        let manifest = Manifest::read(&object, self.identity.version.at_least(28));
        let uid = manifest.uid.clone();
        let ended = Phase::read(&object["status"]).is_some_and(Phase::is_terminal);
        let deleted = !object["metadata"]["deletionTimestamp"].is_null();
        let is_known = self.pods.runtime.pods.get(&uid).is_some_and(|pod| pod.sandbox.is_some());
        let mut worker = Worker::new(object, manifest);
        if ended && self.pods.running(&uid).is_empty() {
            worker.stage = Stage::Finished;
        } else if !is_known && !deleted {
            match self.admit(&worker, machine, ctx) {
                Ok(after) => worker.after = after,
                Err(rejection) => self.reject(&mut worker, rejection, ctx),
            }
        }
        if let Some(seconds) = worker.manifest.spec.active_deadline_seconds {
            // A second look at the status shows that the time is over.
            let at = ctx.now + Duration::from_secs(seconds) + latency::between(ctx.rng, 1_000, 2_000);
            ctx.agenda.at(at, self.due(PodsEvent::Sync(uid.clone())));
        }
        if worker.stage == Stage::Finished && deleted {
            self.send_status(&mut worker, ctx);
        }
        if worker.stage == Stage::Syncing {
            if deleted || ended {
                self.terminate(&mut worker, None, None, machine, ctx);
            } else {
                let at = ctx.now + latency::between(ctx.rng, 2, 15);
                ctx.agenda.at(at, self.due(PodsEvent::Sync(uid.clone())));
            }
        }
        self.pods.workers.insert(uid, worker);
    }

    fn reject(&mut self, worker: &mut Worker, rejection: Rejection, ctx: &mut Ctx) {
        let Rejection { reason, message } = rejection;
        self.tell(About::Pod(&worker.object, None), "Warning", &reason, &message, None, ctx);
        let mut status = json!({
            "phase": Phase::Failed.name(),
            "reason": reason,
            "message": format!("Pod was rejected: {message}"),
        });
        // From 1.32 the class is kept (rejectPod in pkg/kubelet/kubelet.go).
        if self.identity.version.at_least(32) {
            status["qosClass"] = json!(worker.manifest.pod.qos());
        }
        worker.stage = Stage::Finished;
        self.keep_status(worker, status, ctx);
    }

    fn changed_pod(
        &mut self,
        worker: &mut Worker,
        object: Arc<Value>,
        gone: bool,
        machine: &mut Machine,
        ctx: &mut Ctx,
    ) {
        let spec_changed = worker.object["spec"] != object["spec"];
        let old = std::mem::replace(&mut worker.object, object);
        if spec_changed {
            worker.manifest = Manifest::read(&worker.object, self.identity.version.at_least(28));
        }
        worker.gone |= gone;
        let grace = |object: &Value| object["metadata"]["deletionGracePeriodSeconds"].as_u64();
        let news = gone || grace(&worker.object) != grace(&old);
        match worker.stage {
            Stage::Syncing if worker.is_deleted() => self.terminate(worker, None, None, machine, ctx),
            Stage::Syncing if spec_changed => self.ask_for_look(worker, ctx),
            Stage::Terminating if news && worker.is_deleted() => {
                self.terminate(worker, None, None, machine, ctx)
            }
            // The API server did not know yet that it was over, and waits.
            Stage::Finished if news && worker.is_deleted() && !gone => self.send_status(worker, ctx),
            _ => {}
        }
        // The kubelet's own words come back: what an evicted pod left behind can go (HandlePodReconcile).
        let told = &worker.object["status"];
        if Phase::read(told) == Some(Phase::Failed) && told["reason"] == "Evicted" {
            let uid = worker.manifest.uid.clone();
            self.forget_dead(&uid, 0, machine);
        }
    }

    /// Forgets a pod of which nothing is left, neither here nor in the API.
    pub(super) fn drop_if_over(&mut self, uid: &str, machine: &mut Machine) {
        if self.pods.workers.get(uid).is_some_and(|worker| worker.gone && worker.stage == Stage::Finished) {
            self.pods.workers.remove(uid);
            for container in self.pods.runtime.forget(uid) {
                machine.remove(&container);
            }
            machine.remove_volumes(uid);
        }
    }
}
