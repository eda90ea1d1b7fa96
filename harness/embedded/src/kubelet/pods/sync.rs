//! Sync of a pod: the steps that its containers need, in order (`computePodActions`,
//! `computeInitContainerActions`).

use std::collections::VecDeque;
use std::time::Duration;

use super::runtime::{Record, State};
use super::spec::{ContainerIndex, Group};
use super::worker::{DEADLINE_EXCEEDED, Stage, Step, Worker};
use super::{latency, status};
use crate::context::SimContext;
use crate::defect::Defect;
use crate::kubelet::event::PodEvent;
use crate::kubelet::recorder::EventObject;
use crate::kubelet::state::Kubelet;
use crate::machine::{Machine, PodUid};
use crate::resource::{EventBody, PodStatus};
use crate::sim::SimTime;

/// Result of a sync.
#[derive(Debug, Default, PartialEq)]
struct Plan {
    steps: VecDeque<Step>,
    /// No regular container will run again: the sidecars are stopped.
    over: bool,
}

impl Kubelet {
    pub(super) fn sync(&mut self, pod: &str, machine: &mut Machine, ctx: &mut SimContext) {
        self.with_worker(pod, |kubelet, worker| kubelet.sync_worker(worker, machine, ctx));
    }

    /// Syncs a pod whose last sync failed, unless it has failed again since.
    pub(super) fn retry(&mut self, pod: &str, machine: &mut Machine, ctx: &mut SimContext) {
        self.with_worker(pod, |kubelet, worker| {
            if worker.retry_due.take_if(|due| *due <= ctx.now).is_some() {
                kubelet.sync_worker(worker, machine, ctx);
            }
        });
    }

    fn sync_worker(&mut self, worker: &mut Worker, machine: &mut Machine, ctx: &mut SimContext) {
        if worker.stage != Stage::Syncing || worker.preempts || !worker.waits_for.is_empty() {
            return;
        }
        if !worker.steps.is_empty() || worker.is_in_sync() {
            return;
        }
        self.mirror(worker, ctx);
        let status = self.generate_status(worker, false, ctx);
        let ended = status.is_terminal();
        self.keep_status(worker, status, ctx);
        if ended {
            self.terminate(worker, None, None, machine, ctx);
            return;
        }
        if self.restart_resized(worker, machine, ctx) {
            return;
        }
        let plan = self.plan(worker);
        if plan.over {
            self.stop_running(worker, machine, ctx);
        } else if !plan.steps.is_empty() {
            worker.steps = plan.steps;
            worker.failed = false;
            self.begin_step(worker, ctx);
        }
    }

    fn plan(&self, worker: &Worker) -> Plan {
        let spec = &worker.manifest.spec;
        let runtime = self.pods.runtime.pods.get(&worker.manifest.uid);
        let start = |group: Group| move |index: usize| Step::Image(ContainerIndex { group, index });
        let Some(runtime) = runtime.filter(|runtime| runtime.is_ready()) else {
            let mut steps = VecDeque::from([Step::Sandbox]);
            if spec.init_containers.is_empty() {
                steps.extend((0..spec.containers.len()).map(start(Group::Regular)));
            } else {
                steps.push_back(start(Group::Init)(0));
            }
            return Plan { steps, over: false };
        };
        let mut plan = Plan::default();
        let missing = spec.ephemeral_containers.iter().enumerate().filter(|(_, container)| {
            // Ephemeral containers are not restarted.
            runtime.latest(&container.name).is_none()
        });
        plan.steps.extend(missing.map(|(index, _)| start(Group::Ephemeral)(index)));
        let init = self.plan_init(worker);
        match init {
            Init::Failed => return Plan { steps: VecDeque::new(), over: true },
            Init::Going(init) => {
                plan.steps.extend(init.into_iter().map(start(Group::Init)));
                return plan;
            }
            Init::Done(init) => plan.steps.extend(init.into_iter().map(start(Group::Init))),
        }
        let all = 0..spec.containers.len();
        let to_start: Vec<usize> = all
            .clone()
            .filter(|index| {
                worker.should_start(Some(runtime), ContainerIndex { group: Group::Regular, index: *index })
            })
            .collect();
        let runs =
            |index: usize| runtime.latest(&spec.containers[index].name).is_some_and(Record::is_running);
        if to_start.is_empty() && !all.clone().any(runs) {
            return Plan { steps: VecDeque::new(), over: true };
        }
        plan.steps.extend(to_start.into_iter().map(start(Group::Regular)));
        plan
    }

    /// Examines the init containers from the last to the first: the last one that was created shows
    /// the progress.
    fn plan_init(&self, worker: &Worker) -> Init {
        let spec = &worker.manifest.spec;
        let init = &spec.init_containers;
        if init.is_empty() {
            return Init::Done(Vec::new());
        }
        let runtime = self.pods.runtime.pods.get(&worker.manifest.uid);
        let latest = |name: &str| runtime.and_then(|runtime| runtime.latest(name));
        let mut done = spec
            .containers
            .iter()
            .any(|container| latest(&container.name).is_some_and(|latest| latest.exit_code().is_none()));
        let mut later_began = done;
        let mut start = Vec::new();
        for (index, container) in init.iter().enumerate().rev() {
            let sidecar = container.is_sidecar();
            let Some(record) = latest(&container.name) else {
                if later_began && sidecar {
                    start.push(index);
                }
                continue;
            };
            if later_began && !sidecar {
                continue;
            }
            let last = index + 1 == init.len();
            let mut passed = false;
            match &record.state {
                State::Created => start.push(index),
                State::Running { .. } => passed = sidecar,
                State::Exited { code: 0, .. } if sidecar && self.has(Defect::SidecarsEndAfterSuccess) => {}
                State::Exited { .. } if sidecar => start.push(index),
                State::Exited { code: 0, .. } => passed = true,
                State::Exited { code, .. } if !spec.restarts(container, *code) => return Init::Failed,
                State::Exited { .. } => start.push(index),
            }
            if passed && last {
                done = true;
            } else if passed && !later_began {
                start.push(index + 1);
            }
            later_began = true;
        }
        if !later_began {
            start.push(0);
        }
        start.reverse();
        if done { Init::Done(start) } else { Init::Going(start) }
    }

    /// Schedules a sync at the pod's next relist.
    pub(super) fn request_inspection(&mut self, worker: &mut Worker, ctx: &mut SimContext) {
        worker.runtime_changed = true;
        if !self.pods.relist_scheduled {
            self.pods.relist_scheduled = true;
            let at = self.pods.next_relist(ctx.now);
            self.schedule_pod(at, PodEvent::Relist, ctx);
        }
    }

    pub(super) fn relist(&mut self, machine: &mut Machine, ctx: &mut SimContext) {
        self.pods.relist_scheduled = false;
        let changed = self.pods.workers.iter().filter(|(_, worker)| worker.runtime_changed);
        let pods: Vec<PodUid> = changed.map(|(uid, _)| uid.clone()).collect();
        for pod in pods {
            self.inspect(&pod, machine, ctx);
        }
    }

    /// Inspects the containers of a pod, then removes dead ones: all of them if the pod was
    /// evicted, or deleted and finished.
    pub(super) fn inspect(&mut self, pod: &str, machine: &mut Machine, ctx: &mut SimContext) {
        let keep = self.with_worker(pod, |kubelet, worker| {
            worker.runtime_changed = false;
            // Changes while the worker is busy are synced afterwards.
            if worker.steps.is_empty() {
                worker.inspected = kubelet.pods.runtime.snapshot(&worker.manifest.uid);
            }
            kubelet.sync_worker(worker, machine, ctx);
            let over = matches!(worker.stage, Stage::Terminated | Stage::Finished);
            let is_evicted = worker.evicted && !kubelet.has(Defect::EvictedContainersStay);
            usize::from(!(is_evicted || over && worker.is_deleted()))
        });
        if let Some(keep) = keep {
            self.forget_dead(pod, keep, machine);
        }
    }

    /// Handles the end of the queue of steps.
    pub(super) fn steps_done(&mut self, worker: &mut Worker, ctx: &mut SimContext) {
        let uid = &worker.manifest.uid;
        if worker.deferred_kill.is_some() {
            return self.schedule_deferred_kill(worker, ctx);
        }
        // Since 1.36 the runtime is relisted at once after a successful sync (`RequestPodRelist`).
        if self.options.version.at_least(36) && !worker.failed {
            let at = ctx.now + latency::between(ctx.rng, 3, 12);
            self.schedule_pod(at, PodEvent::Inspect(uid.clone()), ctx);
            return;
        }
        if worker.failed {
            let wait = self.retry_after(worker, ctx.now);
            let at = ctx.now + latency::jitter(ctx.rng, wait, 50);
            // The work queue has one entry for each pod: a later failure replaces it.
            worker.retry_due = Some(at);
            self.schedule_pod(at, PodEvent::Retry(uid.clone()), ctx);
        }
        if self.pods.runtime.snapshot(uid) != worker.inspected {
            self.request_inspection(worker, ctx);
        }
    }

    /// Schedules the kill that waited for the end of a sync: the worker waits for the next relist
    /// of the runtime (`GetNewerThan` of the pod cache).
    pub(super) fn schedule_deferred_kill(&mut self, worker: &Worker, ctx: &mut SimContext) {
        let at = if self.options.version.at_least(36) && !worker.failed {
            ctx.now + latency::between(ctx.rng, 3, 12)
        } else {
            self.pods.next_relist(ctx.now)
        };
        self.schedule_pod(at, PodEvent::DeferredKill(worker.manifest.uid.clone()), ctx);
    }

    /// Returns the delay of a retry after a failure: 10 s; since 1.35 the end of the first backoff
    /// (`MinBackoffExpiration`).
    fn retry_after(&self, worker: &Worker, now: SimTime) -> Duration {
        const USUAL: Duration = Duration::from_secs(10);
        if !self.options.version.at_least(35) {
            return USUAL;
        }
        let runtime = self.pods.runtime.pods.get(&worker.manifest.uid);
        let ends = worker.restarts.iter().filter_map(|(name, backoff)| match runtime?.latest(name)?.state {
            State::Exited { finished, .. } => backoff.end_after(finished, now),
            _ => None,
        });
        let pulls = worker.pulls.values().filter_map(|backoff| backoff.end_after_update(now));
        ends.chain(pulls).min().map_or(USUAL, |end| end.since(now).min(Duration::from_secs(60)))
    }

    /// Computes the status of a pod (`generateAPIPodStatus`). Each time, records an event if the
    /// pod was active for longer than `activeDeadlineSeconds` (`ShouldEvict` of
    /// `active_deadline.go`). `ended` means that no container runs or will run.
    pub(super) fn generate_status(
        &mut self,
        worker: &Worker,
        ended: bool,
        ctx: &mut SimContext,
    ) -> PodStatus {
        let host = self.host(ctx);
        let view = self.view(worker, &host, ctx);
        let (status, is_late) = (view.status(ended), view.exceeds_deadline());
        if is_late && !self.has(Defect::ActiveDeadlineWithoutEvent) {
            let event = EventBody::normal("DeadlineExceeded", DEADLINE_EXCEEDED);
            self.record_event(EventObject::Pod(&worker.object, None), event, ctx);
        }
        status
    }

    /// Caches a status, and sends it if it has changed.
    pub(super) fn keep_status(&mut self, worker: &mut Worker, mut status: PodStatus, ctx: &mut SimContext) {
        let host = String::new();
        status::defective::apply(&self.options.defects, worker, &mut status);
        if !self.view(worker, &host, ctx).keep(&mut status) {
            return;
        }
        if worker.status.is_none() && self.has(Defect::StatusStartTimeOfRestart) {
            status.start_time = Some(ctx.epoch().meta_time(ctx.now));
        }
        worker.status = Some(status);
        self.send_status(worker, ctx);
    }

    /// Schedules the write of the status to the API.
    pub(super) fn send_status(&mut self, worker: &mut Worker, ctx: &mut SimContext) {
        if !worker.reporting {
            worker.reporting = true;
            let at = ctx.now + latency::between(ctx.rng, 3, 30);
            self.schedule_pod(at, PodEvent::Report(worker.manifest.uid.clone()), ctx);
        }
    }

    pub(super) fn report(&mut self, pod: &str, ctx: &mut SimContext) {
        let Some(worker) = self.pods.workers.get_mut(pod) else { return };
        worker.reporting = false;
        let defects = &self.options.defects;
        let exists = status::report(worker, defects, ctx);
        let deletes = worker.ends_with_deletion(defects);
        if exists && worker.stage == Stage::Finished && deletes {
            let at = ctx.now + latency::between(ctx.rng, 5, 40);
            self.schedule_pod(at, PodEvent::Delete(pod.to_owned()), ctx);
        }
    }
}

/// Progress of the init containers, with those to start.
enum Init {
    Failed,
    Going(Vec<usize>),
    Done(Vec<usize>),
}
