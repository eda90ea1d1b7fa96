//! The end of a pod: why, how fast, and what is told to whom.

use std::time::Duration;

use super::status::{self, Reason};
use super::worker::{Stage, Worker};
use super::{Eviction, Kubelet, PodsEvent, latency};
use crate::agenda::Due;
use crate::kubelet::KubeletEvent;
use crate::kubelet::eviction::EvictionEvent;
use crate::kubelet::recorder::About;
use crate::machine::{Machine, PodUid};
use crate::node::NodeEvent;
use crate::registry::finish_pod;
use crate::world::Ctx;

impl Kubelet {
    /// Begins to kill a pod. When its containers have ended, the eviction manager gets `EvictionEvent::Stopped`, once for each call; it gets it
    /// too when the kubelet has waited for too long.
    ///
    /// A pod that is killed already keeps the reason that it has: only its grace period can become shorter.
    pub(in crate::kubelet) fn evict(
        &mut self,
        pod: &str,
        why: Eviction,
        machine: &mut Machine,
        ctx: &mut Ctx,
    ) {
        let reason = Reason {
            reason: "Evicted",
            disruption: why.disruption.then(|| why.message.clone()),
            message: why.message,
        };
        if !self.kill_now(pod, reason, why.grace, machine, ctx) {
            self.tell_stopped(pod.to_owned(), ctx);
        }
    }

    /// Kills a pod and has somebody wait for it (`killPodNow`). Answers whether there is anything to wait for.
    pub(super) fn kill_now(
        &mut self,
        pod: &str,
        why: Reason,
        grace: Option<Duration>,
        machine: &mut Machine,
        ctx: &mut Ctx,
    ) -> bool {
        let number = self.pods.next_serial();
        let seconds = grace.map(|grace| grace.as_secs());
        let waits = self.with_worker(pod, |kubelet, worker| {
            if !worker.could_run() {
                return None;
            }
            worker.evicted = true;
            worker.callers.push(number);
            kubelet.terminate(worker, Some(why), seconds, machine, ctx);
            let own = worker.manifest.spec.termination_grace_period_seconds.unwrap_or(0);
            let seconds = seconds.unwrap_or(own);
            Some(Duration::from_secs((seconds + seconds / 2).max(10)))
        });
        let Some(patience) = waits.flatten() else { return false };
        ctx.agenda.at(ctx.now + patience, self.due(PodsEvent::Overdue(pod.to_owned(), number)));
        true
    }

    /// Begins to end a pod, or to end it faster. `grace` comes from whoever ends it; what the API says, and what the pod says, counts too.
    pub(super) fn terminate(
        &mut self,
        worker: &mut Worker,
        why: Option<Reason>,
        grace: Option<u64>,
        machine: &mut Machine,
        ctx: &mut Ctx,
    ) {
        let before = worker.stopping.as_ref().filter(|stopping| stopping.pod);
        let before = before.map(|stopping| stopping.grace.as_secs());
        let seconds = self.effective_grace(worker, before.unwrap_or(0), grace);
        if worker.stage == Stage::Terminating {
            // What stops already is stopped anew only if it must be faster.
            let stops = worker.stopping.as_ref().is_some_and(|stopping| !stopping.containers.is_empty());
            if stops && before.is_some_and(|before| seconds < before) {
                // Only then is the newest reason looked at.
                if let (Some(why), Some(mut status)) = (&why, worker.status.clone()) {
                    status::end(&mut status, why, &worker.object, &self.identity.version);
                    self.keep_status(worker, status, ctx);
                }
                self.stop_all(worker, Duration::from_secs(seconds), true, machine, ctx);
            }
            return;
        }
        worker.steps.clear();
        worker.stage = Stage::Terminating;
        let host = self.host(ctx);
        let mut status = self.view(worker, &host, ctx).status(false);
        if let Some(why) = &why {
            status::end(&mut status, why, &worker.object, &self.identity.version);
        }
        self.keep_status(worker, status, ctx);
        self.stop_all(worker, Duration::from_secs(seconds), true, machine, ctx);
    }

    /// `calculateEffectiveGracePeriod`: it can only become shorter. Through 1.30 a 0 asked for counts as nothing asked for, and the pod's own
    /// period is used; from 1.31 it makes 1 (kubernetes/kubernetes#124063).
    fn effective_grace(&self, worker: &Worker, before: u64, grace: Option<u64>) -> u64 {
        let mut seconds = before;
        let mut asked = false;
        let deletion = worker.object["metadata"]["deletionGracePeriodSeconds"].as_u64();
        for wanted in [deletion, grace].into_iter().flatten() {
            if seconds == 0 || wanted < seconds {
                seconds = wanted;
                asked = true;
            }
        }
        let counts = asked && self.identity.version.at_least(31);
        if seconds == 0 && !counts {
            seconds = worker.manifest.spec.termination_grace_period_seconds.unwrap_or(0);
        }
        seconds.max(1)
    }

    /// Nothing of the pod runs any more.
    pub(super) fn terminated(&mut self, worker: &mut Worker, machine: &mut Machine, ctx: &mut Ctx) {
        let uid = worker.manifest.uid.clone();
        machine.stop_sandbox(&uid, ctx.now);
        if let Some(sandbox) = self.pods.runtime.pods.get_mut(&uid).and_then(|pod| pod.sandbox.as_mut()) {
            sandbox.ready = false;
        }
        let host = self.host(ctx);
        let status = self.view(worker, &host, ctx).status(true);
        worker.stage = Stage::Terminated;
        self.keep_status(worker, status, ctx);
        // What was held back may go out now, even if nothing else is new.
        self.send_status(worker, ctx);
        for _ in std::mem::take(&mut worker.callers) {
            self.tell_stopped(uid.clone(), ctx);
        }
        for (next, other) in &mut self.pods.workers {
            if other.after.remove(&uid) && other.after.is_empty() {
                let event = KubeletEvent::Pods(PodsEvent::Sync(next.clone()));
                ctx.agenda.at(ctx.now, Due::Node(self.identity.node.clone(), NodeEvent::Kubelet(event)));
            }
        }
        let at = self.pods.next_look(ctx.now) + latency::between(ctx.rng, 100, 900);
        ctx.agenda.at(at, self.due(PodsEvent::CleanUp(uid)));
    }

    /// Volumes and control groups are gone: the status gets its last touch.
    pub(super) fn clean_up(&mut self, pod: &str, machine: &mut Machine, ctx: &mut Ctx) {
        self.with_worker(pod, |kubelet, worker| {
            if worker.stage != Stage::Terminated {
                return;
            }
            let host = kubelet.host(ctx);
            let status = kubelet.view(worker, &host, ctx).finish();
            kubelet.keep_status(worker, status, ctx);
            worker.stage = Stage::Finished;
            machine.remove_volumes(&worker.manifest.uid);
            if worker.is_deleted() && !worker.reporting {
                let at = ctx.now + latency::between(ctx.rng, 5, 40);
                ctx.agenda.at(at, kubelet.due(PodsEvent::Delete(worker.manifest.uid.clone())));
            }
        });
        self.drop_static_if_over(pod, machine, ctx);
    }

    /// The object's deletion is complete as far as this node goes.
    pub(super) fn delete(&mut self, pod: &str, ctx: &mut Ctx) {
        let Some(worker) = self.pods.workers.get(pod) else { return };
        finish_pod(ctx, &worker.manifest.namespace, &worker.manifest.name, pod);
    }

    /// Somebody has waited for too long.
    pub(super) fn overdue(&mut self, pod: &str, number: u64, ctx: &mut Ctx) {
        let Some(worker) = self.pods.workers.get_mut(pod) else { return };
        let Some(place) = worker.callers.iter().position(|caller| *caller == number) else { return };
        worker.callers.remove(place);
        let object = worker.object.clone();
        let message = "Container runtime did not kill the pod within specified grace period.";
        self.tell(About::Pod(&object, None), "Warning", "ExceededGracePeriod", message, None, ctx);
        self.tell_stopped(pod.to_owned(), ctx);
    }

    fn tell_stopped(&self, pod: PodUid, ctx: &mut Ctx) {
        let event = KubeletEvent::Eviction(EvictionEvent::Stopped(pod));
        ctx.agenda.at(ctx.now, Due::Node(self.identity.node.clone(), NodeEvent::Kubelet(event)));
    }
}
