//! Termination of pods.

use std::time::Duration;

use evictlab_rules::message::EVICTED_REASON;

use super::latency;
use super::status;
use super::worker::{DeferredKill, Reason, Stage, StopCause, StopOrder, Worker};
use crate::Defect;
use crate::apiserver::finish_pod_deletion;
use crate::context::SimContext;
use crate::kubelet::event::{EvictionEvent, KubeletEvent, PodEvent};
use crate::kubelet::recorder::EventObject;
use crate::kubelet::state::Kubelet;
use crate::machine::{Machine, PodUid};
use crate::resource::{EventBody, ObjectExt};

/// Period of the status manager's batches, which also write statuses that the API does not have yet
/// (`syncPeriod` of `pkg/kubelet/status/status_manager.go`).
const STATUS_BATCH: Duration = Duration::from_secs(10);

/// Reason why the kubelet kills a pod.
#[derive(Clone, Debug)]
pub(crate) struct PodEviction {
    /// `status.message`, and the message of the condition `DisruptionTarget`.
    pub message: String,
    /// True if the pod gets the condition `DisruptionTarget`.
    pub disruption: bool,
    /// Grace period that replaces the pod's own, in seconds. A negative one means 1 s.
    pub grace: Option<i64>,
}

impl Kubelet {
    /// Starts to kill a pod. For each call, the eviction manager receives one
    /// `EvictionEvent::Stopped` when the containers have ended or the kubelet has stopped waiting
    /// for them.
    ///
    /// A pod that is already being killed keeps its reason and its grace period.
    pub(in crate::kubelet) fn evict(
        &mut self,
        pod: &str,
        eviction: PodEviction,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) {
        let reason = Reason {
            reason: EVICTED_REASON.into(),
            disruption: eviction.disruption.then(|| eviction.message.clone()),
            message: eviction.message,
        };
        if self.kill_now(pod, reason, eviction.grace, machine, ctx).is_none() {
            self.notify_stopped(pod.to_owned(), ctx);
        }
    }

    /// Schedules the end of a pod that has `activeDeadlineSeconds`, which count from its start
    /// time.
    pub(super) fn schedule_active_deadline(&mut self, worker: &Worker, ctx: &mut SimContext) {
        let Some(seconds) = worker.manifest.spec.active_deadline_seconds else { return };
        let active = self.view(worker, "", ctx).active_time();
        let left = Duration::from_secs(seconds).saturating_sub(active);
        self.schedule_pod(ctx.now + left, PodEvent::ActiveDeadline(worker.manifest.uid.clone()), ctx);
    }

    /// Ends a pod that has been active too long (`activeDeadlineHandler` in
    /// pkg/kubelet/active_deadline.go).
    pub(super) fn end_active(&mut self, pod: &str, machine: &mut Machine, ctx: &mut SimContext) {
        self.with_worker(pod, |kubelet, worker| {
            if worker.stage == Stage::Syncing && !kubelet.has(Defect::ActiveDeadlineIgnored) {
                let reason = Reason::deadline_exceeded(&kubelet.options.defects);
                kubelet.terminate(worker, Some(reason), None, machine, ctx);
            }
        });
    }

    /// Kills a pod for a caller that waits (`killPodNow`). Returns the number of the call; `None`
    /// if there is nothing to wait for.
    pub(super) fn kill_now(
        &mut self,
        pod: &str,
        reason: Reason,
        grace: Option<i64>,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) -> Option<u64> {
        let number = self.pods.next_serial();
        let waits = self.with_worker(pod, |kubelet, worker| {
            if worker.stage == Stage::Terminated {
                return None;
            }
            worker.callers.push(number);
            // The worker of a finished pod does not answer: the caller waits until its timeout
            // (`UpdatePod` in pkg/kubelet/pod_workers.go, kubernetes/kubernetes#118679).
            if worker.could_run() {
                // Not of a pod that terminates already.
                worker.evicted |= worker.stage == Stage::Syncing;
                kubelet.terminate(worker, Some(reason), grace, machine, ctx);
            }
            let own = worker.manifest.spec.termination_grace_period_seconds.unwrap_or(0);
            let own = if kubelet.has(Defect::PreemptionWaitsTenSeconds) { 0 } else { own };
            let seconds = grace.map_or(own, |grace| u64::try_from(grace).unwrap_or(0));
            let extra = if kubelet.has(Defect::KillAwaitedForGrace) { 0 } else { seconds / 2 };
            let wait = (seconds + extra).max(10);
            let is_in_milliseconds = kubelet.has(Defect::KillIsNotAwaited);
            Some(if is_in_milliseconds { Duration::from_millis(wait) } else { Duration::from_secs(wait) })
        });
        let timeout = waits.flatten()?;
        self.schedule_pod(ctx.now + timeout, PodEvent::WaitTimedOut(pod.to_owned(), number), ctx);
        Some(number)
    }

    /// Starts to terminate a pod, unless it terminates already; after the end of a sync that is in
    /// progress. The deletion and the pod's spec also limit `grace`.
    pub(super) fn terminate(
        &mut self,
        worker: &mut Worker,
        reason: Option<Reason>,
        grace: Option<i64>,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) {
        // The context of the running termination is not that of the pod worker, which a shorter
        // grace period cancels: kubernetes/kubernetes#113606.
        if worker.stage == Stage::Terminating {
            return;
        }
        if worker.is_in_sync() {
            return worker.defer_kill(DeferredKill { reason, grace });
        }
        let seconds = self.effective_grace(worker, grace);
        worker.steps.clear();
        worker.stage = Stage::Terminating;
        let mut status = self.generate_status(worker, false, ctx);
        if let Some(reason) = &reason {
            status::end(&mut status, reason, worker.generation(&self.options.version));
        }
        self.keep_status(worker, status, ctx);
        let order = StopOrder { grace: Duration::from_secs(seconds), cause: StopCause::Pod };
        self.stop_all(worker, order, machine, ctx);
    }

    /// Starts the kill that waited for the end of a sync.
    pub(super) fn begin_deferred_kill(&mut self, pod: &str, machine: &mut Machine, ctx: &mut SimContext) {
        self.with_worker(pod, |kubelet, worker| {
            if let Some(DeferredKill { reason, grace }) = worker.deferred_kill.take() {
                kubelet.terminate(worker, reason, grace, machine, ctx);
            }
        });
    }

    /// Computes `calculateEffectiveGracePeriod` of pod_workers.go: the shorter period counts.
    /// Until 1.30 an override of 0 is ignored and the pod's own period is used; since 1.31 it
    /// results in 1 (kubernetes/kubernetes#124063). A negative override results in 1 in all
    /// versions.
    fn effective_grace(&self, worker: &Worker, grace: Option<i64>) -> u64 {
        let mut seconds = 0;
        let mut is_overridden = false;
        let deletion = worker.object.metadata().read::<Option<i64>>("deletionGracePeriodSeconds");
        for wanted in [deletion, grace].into_iter().flatten() {
            if seconds == 0 || wanted < seconds {
                seconds = wanted;
                is_overridden = true;
            }
        }
        let counts = is_overridden && self.options.version.at_least(31);
        let mut seconds = u64::try_from(seconds).unwrap_or(1);
        if seconds == 0 && !counts {
            seconds = worker.manifest.spec.termination_grace_period_seconds.unwrap_or(0);
        }
        seconds.max(1)
    }

    /// Kills the containers of a pod that was rejected after a restart, as a pod that only the
    /// runtime knows (`HandlePodCleanups` of `pkg/kubelet/kubelet_pods.go`). Its status stays.
    pub(super) fn kill_rejected(&mut self, pod: &str, machine: &mut Machine, ctx: &mut SimContext) {
        self.with_worker(pod, |kubelet, worker| {
            if worker.stage == Stage::Rejected {
                worker.stage = Stage::Terminating;
                let order = StopOrder { grace: Duration::from_secs(1), cause: StopCause::Rejected };
                kubelet.stop_all(worker, order, machine, ctx);
            }
        });
    }

    /// Handles the end of all containers of a pod that was rejected after a restart: the next batch
    /// of the status manager writes its terminal status.
    pub(super) fn rejected_stopped(
        &mut self,
        worker: &mut Worker,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) {
        self.stop_sandbox(worker, machine, ctx);
        worker.stage = Stage::Terminated;
        if !worker.reporting {
            worker.reporting = true;
            let batches = ctx.now.since(self.started).as_secs() / STATUS_BATCH.as_secs() + 1;
            let at = self.started + Duration::from_secs(batches * STATUS_BATCH.as_secs());
            self.schedule_pod(at, PodEvent::Report(worker.manifest.uid.clone()), ctx);
        }
        self.release_waiting(worker, machine, ctx);
    }

    /// Handles the end of all containers.
    pub(super) fn terminated(&mut self, worker: &mut Worker, machine: &mut Machine, ctx: &mut SimContext) {
        self.stop_sandbox(worker, machine, ctx);
        // `determinePodResizeStatus` of `pkg/kubelet/kubelet_pods.go`.
        worker.pending_resize = None;
        let status = self.generate_status(worker, true, ctx);
        worker.stage = Stage::Terminated;
        self.keep_status(worker, status, ctx);
        // The terminal status was held back until now.
        self.send_status(worker, ctx);
        self.release_waiting(worker, machine, ctx);
    }

    fn stop_sandbox(&mut self, worker: &Worker, machine: &mut Machine, ctx: &SimContext) {
        let uid = &worker.manifest.uid;
        machine.stop_sandbox(uid, ctx.now);
        if let Some(sandbox) = self.pods.runtime.pods.get_mut(uid).and_then(|pod| pod.sandbox.as_mut()) {
            sandbox.ready = false;
        }
    }

    /// Continues what waits for the end of a pod, and schedules its cleanup.
    fn release_waiting(&mut self, worker: &mut Worker, machine: &mut Machine, ctx: &mut SimContext) {
        let uid = worker.manifest.uid.clone();
        for number in std::mem::take(&mut worker.callers) {
            self.release_caller(&uid, number, true, machine, ctx);
        }
        let mut unblocked = Vec::new();
        for (next, other) in &mut self.pods.workers {
            if other.waits_for.remove(&uid) && other.waits_for.is_empty() {
                unblocked.push(next.clone());
            }
        }
        for next in unblocked {
            self.schedule_pod(ctx.now, PodEvent::Sync(next), ctx);
        }
        let at = self.pods.next_relist(ctx.now) + latency::between(ctx.rng, 100, 900);
        self.schedule_pod(at, PodEvent::CleanUp(uid), ctx);
    }

    /// Removes volumes and control groups, and completes the status.
    pub(super) fn clean_up(&mut self, pod: &str, machine: &mut Machine, ctx: &mut SimContext) {
        self.with_worker(pod, |kubelet, worker| {
            if worker.stage != Stage::Terminated {
                return;
            }
            let host = kubelet.host(ctx);
            let status = kubelet.view(worker, &host, ctx).finish(&kubelet.options.defects);
            kubelet.keep_status(worker, status, ctx);
            worker.stage = Stage::Finished;
            machine.remove_volumes(&worker.manifest.uid);
            let deletes = worker.ends_with_deletion(&kubelet.options.defects);
            if deletes && !worker.reporting {
                let at = ctx.now + latency::between(ctx.rng, 5, 40);
                kubelet.schedule_pod(at, PodEvent::Delete(worker.manifest.uid.clone()), ctx);
            }
        });
        self.forget_static_if_finished(pod, machine, ctx);
    }

    /// Completes the deletion of the API object.
    pub(super) fn delete(&mut self, pod: &str, ctx: &mut SimContext) {
        let Some(worker) = self.pods.workers.get(pod) else { return };
        finish_pod_deletion(ctx, &worker.manifest.namespace, &worker.manifest.name, pod);
    }

    /// Ends the wait of a caller for the end of a pod.
    pub(super) fn wait_timed_out(
        &mut self,
        pod: &str,
        number: u64,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) {
        let Some(worker) = self.pods.workers.get_mut(pod) else { return };
        let Some(place) = worker.callers.iter().position(|caller| *caller == number) else { return };
        worker.callers.remove(place);
        let object = worker.object.clone();
        if !self.has(Defect::ExceededGraceWithoutEvent) {
            let message = "Container runtime did not kill the pod within specified grace period.";
            self.record_event(
                EventObject::Pod(&object, None),
                EventBody::warning("ExceededGracePeriod", message),
                ctx,
            );
        }
        self.release_caller(pod, number, false, machine, ctx);
        self.forget_if_finished(pod, machine, ctx);
    }

    /// Notifies the caller that waits for the end of a pod: a preemption, or the eviction manager.
    fn release_caller(
        &mut self,
        pod: &str,
        number: u64,
        in_time: bool,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) {
        if !self.preemption_continues(number, in_time, machine, ctx) {
            self.notify_stopped(pod.to_owned(), ctx);
        }
    }

    fn notify_stopped(&mut self, pod: PodUid, ctx: &mut SimContext) {
        self.schedule(ctx.now, KubeletEvent::Eviction(EvictionEvent::Stopped(pod)), ctx);
    }
}
