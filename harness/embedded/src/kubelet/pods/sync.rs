//! What a worker sees to: what is missing, in what order (`computePodActions`, `computeInitContainerActions`).

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::Value;

use super::runtime::{Record, State};
use super::spec::{Group, Place, RestartPolicy};
use super::status::{self, Phase};
use super::worker::{Stage, Step, Worker};
use super::{Kubelet, PodsEvent, latency};
use crate::kubelet::recorder::About;
use crate::machine::{Machine, PodUid};
use crate::time::Time;
use crate::world::Ctx;

/// What is to be done.
#[derive(Debug, Default, PartialEq)]
struct Plan {
    steps: VecDeque<Step>,
    /// No regular container is left to run: what runs beside them is stopped.
    over: bool,
}

impl Kubelet {
    pub(super) fn sync(&mut self, pod: &str, machine: &mut Machine, ctx: &mut Ctx) {
        self.with_worker(pod, |kubelet, worker| kubelet.sync_worker(worker, machine, ctx));
    }

    fn sync_worker(&mut self, worker: &mut Worker, machine: &mut Machine, ctx: &mut Ctx) {
        if worker.stage != Stage::Syncing || !worker.after.is_empty() {
            return;
        }
        if !worker.steps.is_empty() || worker.stopping.is_some() {
            worker.dirty = true;
            return;
        }
        worker.dirty = false;
        self.mirror(worker, ctx);
        let host = self.host(ctx);
        let status = self.view(worker, &host, ctx).status(false);
        let ended = Phase::read(&status).is_some_and(Phase::is_terminal);
        if status["reason"] == "DeadlineExceeded" && worker.known_status()["reason"] != "DeadlineExceeded" {
            let message = status["message"].as_str().unwrap_or_default().to_owned();
            self.tell(About::Pod(&worker.object, None), "Normal", "DeadlineExceeded", &message, None, ctx);
        }
        self.keep_status(worker, status, ctx);
        if ended {
            self.terminate(worker, None, None, machine, ctx);
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
        let start = |group: Group| move |index: usize| Step::Image(Place { group, index });
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
            // They are never started again.
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
                worker.should_start(Some(runtime), Place { group: Group::Regular, index: *index })
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

    /// Goes through the init containers from the last to the first: the last one that is there tells how far the pod is.
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
                State::Exited { .. } if sidecar => start.push(index),
                State::Exited { code: 0, .. } => passed = true,
                State::Exited { .. } if spec.restart_policy == RestartPolicy::Never => return Init::Failed,
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

    /// Has the runtime looked at for a pod, in its turn.
    pub(super) fn ask_for_look(&mut self, worker: &mut Worker, ctx: &mut Ctx) {
        worker.news = true;
        if !self.pods.looking {
            self.pods.looking = true;
            let at = self.pods.next_look(ctx.now);
            ctx.agenda.at(at, self.due(PodsEvent::Relist));
        }
    }

    pub(super) fn relist(&mut self, machine: &mut Machine, ctx: &mut Ctx) {
        self.pods.looking = false;
        let news = self.pods.workers.iter().filter(|(_, worker)| worker.news);
        let pods: Vec<PodUid> = news.map(|(uid, _)| uid.clone()).collect();
        for pod in pods {
            self.look(&pod, machine, ctx);
        }
    }

    /// Looks at a pod's containers, then clears away those that are dead: all of them once it is evicted, or deleted and over.
    pub(super) fn look(&mut self, pod: &str, machine: &mut Machine, ctx: &mut Ctx) {
        let keep = self.with_worker(pod, |kubelet, worker| {
            worker.news = false;
            kubelet.sync_worker(worker, machine, ctx);
            let over = matches!(worker.stage, Stage::Terminated | Stage::Finished);
            usize::from(!(worker.evicted || over && worker.is_deleted()))
        });
        if let Some(keep) = keep {
            self.forget_dead(pod, keep, machine);
        }
    }

    /// The steps are done.
    pub(super) fn steps_done(&mut self, worker: &mut Worker, ctx: &mut Ctx) {
        let uid = &worker.manifest.uid;
        // From 1.36 the runtime is looked at at once when all went well (RequestPodRelist).
        if self.identity.version.at_least(36) && !worker.failed {
            let at = ctx.now + latency::between(ctx.rng, 3, 12);
            ctx.agenda.at(at, self.due(PodsEvent::Look(uid.clone())));
            return;
        }
        if worker.failed {
            let wait = self.retry_after(worker, ctx.now);
            let at = ctx.now + latency::jitter(ctx.rng, wait, 50);
            ctx.agenda.at(at, self.due(PodsEvent::Sync(uid.clone())));
        }
        self.ask_for_look(worker, ctx);
    }

    /// When a worker that failed tries again: after 10 s; from 1.35 when the first back-off ends (`MinBackoffExpiration`).
    fn retry_after(&self, worker: &Worker, now: Time) -> Duration {
        const USUAL: Duration = Duration::from_secs(10);
        if !self.identity.version.at_least(35) {
            return USUAL;
        }
        let runtime = self.pods.runtime.pods.get(&worker.manifest.uid);
        let ends = worker.restarts.iter().filter_map(|(name, backoff)| match runtime?.latest(name)?.state {
            State::Exited { finished, .. } => backoff.until(finished, now),
            _ => None,
        });
        let pulls = worker.pulls.values().filter_map(|backoff| backoff.until_since_update(now));
        ends.chain(pulls).min().map_or(USUAL, |end| end.since(now).min(Duration::from_secs(60)))
    }

    /// Keeps a status and has it sent if it says something new.
    pub(super) fn keep_status(&mut self, worker: &mut Worker, mut status: Value, ctx: &mut Ctx) {
        let host = String::new();
        if !self.view(worker, &host, ctx).keep(&mut status) {
            return;
        }
        worker.status = Some(status);
        self.send_status(worker, ctx);
    }

    /// Has the status sent.
    pub(super) fn send_status(&self, worker: &mut Worker, ctx: &mut Ctx) {
        if !worker.reporting {
            worker.reporting = true;
            let at = ctx.now + latency::between(ctx.rng, 3, 30);
            ctx.agenda.at(at, self.due(PodsEvent::Report(worker.manifest.uid.clone())));
        }
    }

    pub(super) fn report(&mut self, pod: &str, ctx: &mut Ctx) {
        let Some(worker) = self.pods.workers.get_mut(pod) else { return };
        worker.reporting = false;
        let there = status::report(worker, ctx);
        if there && worker.stage == Stage::Finished && worker.is_deleted() {
            let at = ctx.now + latency::between(ctx.rng, 5, 40);
            ctx.agenda.at(at, self.due(PodsEvent::Delete(pod.to_owned())));
        }
    }
}

/// How far the init containers are, and which of them are to start.
enum Init {
    Failed,
    Going(Vec<usize>),
    Done(Vec<usize>),
}
