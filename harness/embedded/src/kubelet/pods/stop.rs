//! Termination of containers: hooks, SIGTERM, SIGKILL, in order (`killContainersWithSyncResult`).

use std::collections::BTreeMap;
use std::time::Duration;

use super::hooks::has_pre_stop;
use super::latency;
use super::runtime::State;
use super::spec::{ContainerIndex, Group, Spec};
use super::worker::{Stage, Stop, StopCause, StopOrder, Stopping, Worker};
use crate::context::SimContext;
use crate::defect::Defect;
use crate::kubelet::event::PodEvent;
use crate::kubelet::state::Kubelet;
use crate::machine::{ContainerId, Machine, SIGKILL, SIGTERM};
use crate::resource::EventBody;
use crate::sim::SimTime;

/// Minimum grace period of a container (`minimumGracePeriodInSeconds`).
const MIN_GRACE: Duration = Duration::from_secs(2);

/// Exit of a container.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exit {
    pub code: i32,
    /// True if the OOM killer killed the container.
    pub oom: bool,
    pub at: SimTime,
}

impl Kubelet {
    /// Starts to stop all running containers of a pod.
    pub(super) fn stop_all(
        &mut self,
        worker: &mut Worker,
        order: StopOrder,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) {
        let runtime = self.pods.runtime.pods.get(&worker.manifest.uid);
        let running = runtime.into_iter().flat_map(|runtime| runtime.running().rev());
        let mut running: Vec<_> = running.map(|record| (record.id.clone(), record.name.clone())).collect();
        // Each container is stopped in its own goroutine; the last one that was created runs first.
        if let Some(last) = running.pop() {
            running.insert(0, last);
        }
        self.stop_containers(worker, running, order, machine, ctx);
    }

    /// Starts to stop containers, which have IDs and names: their `preStop` hooks first
    /// (`killContainer`).
    pub(super) fn stop_containers(
        &mut self,
        worker: &mut Worker,
        list: Vec<(ContainerId, String)>,
        StopOrder { grace, cause }: StopOrder,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) {
        let longest = match () {
            () if grace.is_zero() || self.has(Defect::PreStopHookSkipped) => Duration::ZERO,
            // `SyncTerminatingRuntimePod` does not know the hooks (`pkg/kubelet/kubelet.go`).
            () if cause == StopCause::Rejected => Duration::ZERO,
            () if self.has(Defect::PreStopHookUnlimited) => Duration::MAX,
            () => grace,
        };
        let mut containers = BTreeMap::new();
        for (id, name) in list {
            let Some(place) = worker.manifest.place(&name) else { continue };
            let is_sidecar = worker.manifest.spec.is_sidecar(place);
            if !(is_sidecar && self.has(Defect::KillingEventMissingForSidecars)) {
                let message = cause.message(&name);
                self.record_container_event(worker, place, EventBody::normal("Killing", &message), ctx);
            }
            let until = self.start_pre_stop(worker, (&id, place), longest, machine, ctx);
            if self.pods.runtime.record_mut(&id).is_some_and(|record| record.is_running()) {
                containers.insert(id, Stop::Hook(until));
            }
        }
        worker.stopping = Some(Stopping { grace, began: ctx.now, containers, cause });
        worker.serial = self.pods.next_serial();
        self.continue_stopping(worker, machine, ctx);
    }

    /// Stops the sidecars after the regular containers have ended.
    pub(super) fn stop_running(&mut self, worker: &mut Worker, machine: &mut Machine, ctx: &mut SimContext) {
        let runtime = self.pods.runtime.pods.get(&worker.manifest.uid);
        if runtime.is_none_or(|runtime| runtime.running().next().is_none()) {
            return;
        }
        let order = StopOrder { grace: worker.manifest.spec.grace(), cause: StopCause::Sidecars };
        self.stop_all(worker, order, machine, ctx);
    }

    /// Handles the grace periods that have ended.
    pub(super) fn advance(&mut self, pod: &str, machine: &mut Machine, ctx: &mut SimContext) {
        self.with_worker(pod, |kubelet, worker| kubelet.continue_stopping(worker, machine, ctx));
    }

    /// Handles the exit of a container.
    pub(super) fn exited(
        &mut self,
        container: &str,
        exit: Exit,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) {
        let Some(owner) = self.pods.runtime.owner(container).cloned() else { return };
        let Some(record) = self.pods.runtime.record_mut(container) else { return };
        let State::Running { started } = record.state else { return };
        let message = machine.termination_message(container);
        record.state = State::Exited { started, finished: exit.at, code: exit.code, oom: exit.oom, message };
        if !self.running {
            return;
        }
        self.with_worker(&owner, |kubelet, worker| {
            kubelet.request_inspection(worker, ctx);
            // A hook that does not run in the container goes on (`executePreStopHook`).
            let has_command = worker.pre_stops.values().any(|(id, _)| id == container);
            if let Some(stopping) = &mut worker.stopping
                && let Some(stop) = stopping.containers.get(container)
                && (has_command || !matches!(stop, Stop::Hook(until) if *until > ctx.now))
            {
                stopping.containers.remove(container);
                kubelet.continue_stopping(worker, machine, ctx);
            }
        });
    }

    pub(super) fn continue_stopping(
        &mut self,
        worker: &mut Worker,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) {
        let Some(mut stopping) = worker.stopping.take() else { return };
        self.remove_ended(&mut stopping, ctx.now);
        let end = stopping.began + stopping.grace;
        let places = self.stopping_places(&stopping, worker);
        for (id, place) in &places {
            let waits = place.is_some_and(|own| self.waits_for_others(&stopping, worker, own, &places));
            let grace = self.grace_left(&stopping, worker, *place, ctx.now);
            let Some(stop) = stopping.containers.get_mut(id) else { continue };
            if matches!(stop, Stop::Hook(until) if *until <= ctx.now) {
                *stop = Stop::Turn(end);
            }
            if matches!(stop, Stop::Turn(until) if !waits || *until <= ctx.now) {
                machine.signal(id, SIGTERM, ctx.now);
                *stop = Stop::Signalled(ctx.now + grace);
            }
            if matches!(stop, Stop::Signalled(until) if *until <= ctx.now) {
                machine.signal(id, SIGKILL, ctx.now);
                // Nothing is due any more: the machine reports the exit.
                *stop = Stop::Signalled(SimTime::from_start(Duration::MAX));
            }
        }
        self.schedule_next_stop(&stopping, worker, ctx);
        worker.stopping = Some(stopping);
    }

    /// Returns the containers that are being stopped, with their places in the spec.
    fn stopping_places(&self, stopping: &Stopping, worker: &Worker) -> Vec<(String, Option<ContainerIndex>)> {
        let runtime = self.pods.runtime.pods.get(&worker.manifest.uid);
        let place_of = |id: &String| {
            let record = runtime.and_then(|pod| pod.containers.iter().find(|record| record.id == *id));
            record.and_then(|record| worker.manifest.place(&record.name))
        };
        stopping.containers.keys().map(|id| (id.clone(), place_of(id))).collect()
    }

    /// Returns whether a container is a sidecar that others still need: since 1.29 sidecars are
    /// stopped after them (`SidecarContainers`).
    fn waits_for_others(
        &self,
        stopping: &Stopping,
        worker: &Worker,
        own: ContainerIndex,
        places: &[(String, Option<ContainerIndex>)],
    ) -> bool {
        let is_ordered = stopping.cause.is_ordered()
            && self.options.version.at_least(29)
            && !stopping.grace.is_zero()
            && !self.has(Defect::SidecarsStopAtOnce);
        let spec = &worker.manifest.spec;
        if !is_ordered || !spec.is_sidecar(own) {
            return false;
        }
        if self.has(Defect::SidecarsWaitForEnded) {
            let running = self.pods.running(&worker.manifest.uid);
            let has_ended = |name: &str| running.iter().all(|container| container.name != name);
            if spec.containers.iter().any(|container| has_ended(&container.name)) {
                return true;
            }
        }
        let in_start_order = self.has(Defect::SidecarsStopInOrder);
        let mut others = places.iter().filter_map(|(_, place)| *place);
        others.any(|other| comes_before(spec, other, own, in_start_order))
    }

    /// Returns the grace period of a container that receives its signal now. The time that it
    /// waited is subtracted, in whole seconds.
    fn grace_left(
        &self,
        stopping: &Stopping,
        worker: &Worker,
        place: Option<ContainerIndex>,
        now: SimTime,
    ) -> Duration {
        let waited = Duration::from_secs(now.since(stopping.began).as_secs());
        let waited = if self.keeps_grace(worker, place) { Duration::ZERO } else { waited };
        let minimum = if self.has(Defect::MinimumGraceMissing) { Duration::ZERO } else { MIN_GRACE };
        stopping.grace.saturating_sub(waited).max(minimum)
    }

    /// Schedules the next signal, or the end of the pod if no container is left.
    fn schedule_next_stop(&mut self, stopping: &Stopping, worker: &Worker, ctx: &mut SimContext) {
        let uid = &worker.manifest.uid;
        let next = stopping.containers.values().map(|stop| match stop {
            Stop::Hook(until) | Stop::Turn(until) | Stop::Signalled(until) => *until,
        });
        if let Some(next) = next.filter(|next| *next < SimTime::from_start(Duration::MAX)).min() {
            self.schedule_pod(next, PodEvent::Stop(uid.clone()), ctx);
        }
        if stopping.containers.is_empty() {
            // The sandbox is removed.
            let at = ctx.now + latency::between(ctx.rng, 30, 110);
            self.schedule_pod(at, PodEvent::Stopped(uid.clone(), worker.serial), ctx);
        }
    }

    /// Removes the containers that exited during their hooks, which have ended.
    fn remove_ended(&mut self, stopping: &mut Stopping, now: SimTime) {
        stopping.containers.retain(|id, stop| {
            let has_hook_ended = matches!(stop, Stop::Hook(until) if *until <= now);
            let mut is_running =
                || self.pods.runtime.record_mut(id).is_some_and(|record| record.is_running());
            !has_hook_ended || is_running()
        });
    }

    /// Returns whether a defect lets a container keep its grace period after a hook or a wait.
    fn keeps_grace(&self, worker: &Worker, place: Option<ContainerIndex>) -> bool {
        let Some(place) = place else { return false };
        let spec = &worker.manifest.spec;
        let has_hook = spec.container(place).is_some_and(has_pre_stop);
        (has_hook && self.has(Defect::HookTimeNotSubtracted))
            || (spec.is_sidecar(place) && self.has(Defect::SidecarWaitNotSubtracted))
    }

    /// Handles the end of all containers that were to be stopped.
    pub(super) fn stopped(&mut self, pod: &str, serial: u64, machine: &mut Machine, ctx: &mut SimContext) {
        self.with_worker(pod, |kubelet, worker| {
            if worker.serial != serial {
                return;
            }
            let Some(stopping) = worker.stopping.take_if(|stopping| stopping.containers.is_empty()) else {
                return;
            };
            match stopping.cause {
                StopCause::Pod if worker.stage == Stage::Terminating => {
                    kubelet.terminated(worker, machine, ctx);
                }
                StopCause::Rejected => kubelet.rejected_stopped(worker, machine, ctx),
                StopCause::Sidecars if worker.deferred_kill.is_some() => {
                    kubelet.schedule_deferred_kill(worker, ctx);
                }
                StopCause::Pod | StopCause::Sidecars => kubelet.request_inspection(worker, ctx),
                // The sync goes on.
                StopCause::Resize => kubelet.begin_step(worker, ctx),
            }
        });
    }
}

/// Returns whether a sidecar waits for the end of another container: of a regular container, or of
/// the next sidecar, but not of plain init containers (`newTerminationOrdering` in
/// `pkg/kubelet/kuberuntime/kuberuntime_termination_order.go`). With a defect, a sidecar waits for
/// the earlier ones.
fn comes_before(spec: &Spec, other: ContainerIndex, sidecar: ContainerIndex, in_start_order: bool) -> bool {
    match other.group {
        Group::Regular => true,
        Group::Init if in_start_order => spec.is_sidecar(other) && other.index < sidecar.index,
        Group::Init => {
            let mut later = spec.init_containers.iter().enumerate().skip(sidecar.index + 1);
            let next = later.find(|(_, container)| container.is_sidecar());
            next.is_some_and(|(index, _)| index == other.index)
        }
        Group::Ephemeral => false,
    }
}
