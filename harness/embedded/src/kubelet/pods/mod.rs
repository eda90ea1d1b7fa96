//! Pods from their admission to their last status.
//!
//! Each pod has a worker that does one thing at a time: it looks at what runs (`sync`), does what is missing step by step, and stops what is
//! to be stopped. The runtime is looked at once in a second (the PLEG); what has changed there makes the worker look again. All of it holds
//! no more than what a kubelet has in memory, but for `runtime`, which is containerd's and outlives the kubelet.

mod admit;
mod backoff;
mod change;
mod environment;
mod images;
mod kill;
mod latency;
mod logs;
mod mirror;
mod preempt;
mod proxy;
mod qos;
mod runtime;
mod spec;
mod start;
mod statics;
mod status;
mod stop;
mod sync;
mod worker;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use evictlab_rules::pod::Pod;
use serde_json::Value;

pub use self::logs::LogAnswer;
use self::runtime::{Runtime, State};
use self::status::View;
use self::worker::{Stage, Worker};
use super::{Kubelet, KubeletEvent};
use crate::agenda::Due;
use crate::machine::{ContainerId, Happened, Machine, PodUid};
use crate::node::NodeEvent;
use crate::store::Kind;
use crate::time::Time;
use crate::world::Ctx;

/// How often the kubelet looks at all containers (`genericPlegRelistPeriod`).
const RELIST: Duration = Duration::from_secs(1);

/// Something to be done for a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodsEvent {
    /// Its worker looks at it.
    Sync(PodUid),
    /// What the worker does just now is done, unless the number is no longer the worker's.
    Step(PodUid, u64),
    /// The runtime is looked at.
    Relist,
    /// The runtime is looked at for one pod.
    Look(PodUid),
    /// The status is sent.
    Report(PodUid),
    /// A container's time to stop may be over.
    Stop(PodUid),
    /// All that was to stop has stopped, unless the number is no longer the worker's.
    Stopped(PodUid, u64),
    /// Whoever waits with this number for the pod's end waits no longer.
    Overdue(PodUid, u64),
    /// Its volumes and control groups are gone.
    CleanUp(PodUid),
    /// Its object is deleted.
    Delete(PodUid),
    /// The files of static pods are read.
    Manifests,
    /// It is a static one, and its mirror is made if there is none.
    Mirror(PodUid),
}

/// A pod that the kubelet knows and that has not fully ended.
#[derive(Clone, Debug)]
pub struct Active {
    /// As the API has it.
    pub object: Arc<Value>,
    /// The same for the rules, with allocated resources.
    pub pod: Pod,
}

/// A container that runs.
#[derive(Clone, Debug)]
pub struct Running {
    /// Its name in the pod.
    pub name: String,
    /// What the machine calls it.
    pub id: ContainerId,
    /// Since when.
    pub started: Time,
}

/// Why a pod is killed by the kubelet.
#[derive(Clone, Debug)]
pub struct Eviction {
    /// `status.message`, and that of the condition.
    pub message: String,
    /// Whether the pod gets the condition `DisruptionTarget`.
    pub disruption: bool,
    /// Instead of the pod's own grace period.
    pub grace: Option<Duration>,
}

/// The kubelet's pods.
#[derive(Default)]
pub struct Pods {
    runtime: Runtime,
    workers: BTreeMap<PodUid, Worker>,
    /// The store's version up to which changes were looked at.
    seen: u64,
    /// The first look at the runtime; the others follow each second.
    first_look: Time,
    /// A look at the runtime is asked for.
    looking: bool,
    /// The files of static pods are to be read.
    reading: bool,
    /// Numbers for what may become stale; they outlive the process.
    serial: u64,
}

impl Pods {
    /// The pods that the kubelet may evict: known, and neither ended nor only ended by their phase. By uid.
    pub fn active(&self) -> Vec<Active> {
        let active = self.workers.values().filter(|worker| worker.is_active());
        active
            .map(|worker| Active { object: worker.object.clone(), pod: worker.manifest.pod.clone() })
            .collect()
    }

    /// The running containers of a pod; of one whose sandbox runs, an empty list while no container does.
    pub fn running(&self, pod: &str) -> Vec<Running> {
        let records = self.runtime.pods.get(pod).into_iter().flat_map(|pod| &pod.containers);
        records
            .filter_map(|record| match record.state {
                State::Running { started } => {
                    Some(Running { name: record.name.clone(), id: record.id.clone(), started })
                }
                _ => None,
            })
            .collect()
    }

    /// Whether a pod's volumes and control groups are gone.
    pub fn is_cleaned_up(&self, pod: &str) -> bool {
        self.workers.get(pod).is_none_or(|worker| worker.stage == Stage::Finished)
    }

    fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// When the runtime is looked at next.
    fn next_look(&self, now: Time) -> Time {
        if now < self.first_look {
            return self.first_look;
        }
        let past = (now - self.first_look).as_micros() as u64 / RELIST.as_micros() as u64;
        self.first_look + Duration::from_micros((past + 1) * RELIST.as_micros() as u64)
    }
}

impl Kubelet {
    pub(super) fn pods_start(&mut self, machine: &mut Machine, ctx: &mut Ctx) {
        let before = std::mem::take(&mut self.pods.workers);
        self.pods.first_look = ctx.now + latency::between(ctx.rng, 20, 1000);
        self.pods.looking = false;
        self.pods.seen = ctx.store.version();
        self.read_manifests(machine, ctx);
        self.delete_orphaned_mirrors(ctx);
        self.ensure_proxy(ctx);
        let own = ctx.store.list(Kind::Pod, None);
        let own: Vec<_> = own.filter(|pod| self.is_own(pod) && mirror::of(pod).is_none()).cloned().collect();
        for pod in own {
            self.add_pod(pod, machine, ctx);
        }
        for (uid, worker) in before {
            if !self.pods.workers.contains_key(&uid) && !self.pods.running(&uid).is_empty() {
                self.end_orphan(worker, machine, ctx);
            }
        }
    }

    /// Kills what runs of a pod that the API does not have any more (`HandlePodCleanups` in pkg/kubelet/kubelet_pods.go).
    fn end_orphan(&mut self, before: Worker, machine: &mut Machine, ctx: &mut Ctx) {
        let mut worker = Worker::new(before.object, before.manifest);
        worker.gone = true;
        self.terminate(&mut worker, None, Some(1), machine, ctx);
        self.pods.workers.insert(worker.manifest.uid.clone(), worker);
    }

    pub(super) fn pods_changed(&mut self, machine: &mut Machine, ctx: &mut Ctx) {
        self.look_at_changes(machine, ctx);
    }

    pub(super) fn pods_happened(&mut self, happened: Happened, machine: &mut Machine, ctx: &mut Ctx) {
        match happened {
            Happened::Exited { container, code, oom, at } => {
                self.exited(&container, code, oom, at, machine, ctx);
            }
            Happened::OomKilled { process, pid, container, .. } => {
                self.oom_killed(&process, pid, &container, ctx);
            }
            Happened::Crossed { .. } => {}
        }
    }

    pub(super) fn pods_on(&mut self, event: PodsEvent, machine: &mut Machine, ctx: &mut Ctx) {
        match event {
            PodsEvent::Relist => self.relist(machine, ctx),
            PodsEvent::Sync(pod) => self.sync(&pod, machine, ctx),
            PodsEvent::Step(pod, serial) => self.step(&pod, serial, machine, ctx),
            PodsEvent::Look(pod) => self.look(&pod, machine, ctx),
            PodsEvent::Report(pod) => self.report(&pod, ctx),
            PodsEvent::Stop(pod) => self.advance(&pod, machine, ctx),
            PodsEvent::Stopped(pod, serial) => self.stopped(&pod, serial, machine, ctx),
            PodsEvent::Overdue(pod, number) => self.overdue(&pod, number, ctx),
            PodsEvent::CleanUp(pod) => self.clean_up(&pod, machine, ctx),
            PodsEvent::Delete(pod) => self.delete(&pod, ctx),
            PodsEvent::Manifests => self.read_manifests(machine, ctx),
            PodsEvent::Mirror(pod) => {
                self.with_worker(&pod, |kubelet, worker| kubelet.mirror(worker, ctx));
            }
        }
    }

    /// Deletes the dead containers (container GC), those of ended pods too.
    pub(super) fn collect_containers(&mut self, machine: &mut Machine, _ctx: &mut Ctx) {
        let pods: Vec<(PodUid, usize)> = self
            .pods
            .runtime
            .pods
            .keys()
            .map(|pod| {
                // One dead container of each name is kept while its pod goes on (`MaxPerPodContainerCount`).
                let goes_on = self.pods.workers.get(pod).is_some_and(|worker| worker.stage == Stage::Syncing);
                (pod.clone(), usize::from(goes_on))
            })
            .collect();
        for (pod, keep) in pods {
            self.forget_dead(&pod, keep, machine);
        }
    }

    /// Whether a pod is bound to this node.
    fn is_own(&self, pod: &Value) -> bool {
        pod["spec"]["nodeName"] == *self.identity.node
    }

    fn due(&self, event: PodsEvent) -> Due {
        Due::Node(self.identity.node.clone(), NodeEvent::Kubelet(KubeletEvent::Pods(event)))
    }

    /// Takes a worker out to work with it.
    fn with_worker<T>(&mut self, pod: &str, work: impl FnOnce(&mut Self, &mut Worker) -> T) -> Option<T> {
        let mut worker = self.pods.workers.remove(pod)?;
        let done = work(self, &mut worker);
        self.pods.workers.insert(pod.to_owned(), worker);
        Some(done)
    }

    fn view<'a>(&'a self, worker: &'a Worker, host: &'a str, ctx: &Ctx) -> View<'a> {
        View {
            worker,
            runtime: self.pods.runtime.pods.get(&worker.manifest.uid),
            version: &self.identity.version,
            host,
            now: ctx.now,
            epoch: ctx.epoch(),
        }
    }

    /// The node's address.
    fn host(&self, ctx: &Ctx) -> String {
        let node = ctx.store.get(Kind::Node, "", &self.identity.node);
        let addresses = node.and_then(|node| node["status"]["addresses"].as_array());
        let internal = addresses.into_iter().flatten().find(|address| address["type"] == "InternalIP");
        internal.and_then(|address| address["address"].as_str()).unwrap_or("172.18.0.2").to_owned()
    }

    fn forget_dead(&mut self, pod: &str, keep: usize, machine: &mut Machine) {
        for container in self.pods.runtime.forget_dead(pod, keep) {
            machine.remove(&container);
        }
    }

    /// The kernel killed a process. The kubelet tells it of its node when the whole node was out of memory.
    fn oom_killed(&mut self, process: &str, pid: u64, container: &str, ctx: &mut Ctx) {
        let limited = self.pods.runtime.owner(container).and_then(|owner| {
            let worker = self.pods.workers.get(owner)?;
            let record = self.pods.runtime.pods.get(owner)?.containers.iter().find(|r| r.id == container)?;
            let place = worker.manifest.place(&record.name)?;
            let container = worker.manifest.spec.container(place)?;
            Some(!container.resources["limits"]["memory"].is_null())
        });
        if self.running && limited == Some(false) {
            let message = format!("System OOM encountered, victim process: {process}, pid: {pid}");
            self.tell(super::recorder::About::Node, "Warning", "SystemOOM", &message, None, ctx);
        }
    }
}

#[cfg(test)]
mod tests;
