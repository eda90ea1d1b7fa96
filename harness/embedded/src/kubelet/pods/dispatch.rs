//! Start, changes and events of the pods.

use serde_json::Value;

use super::status::StatusBuilder;
use super::stop::Exit;
use super::worker::Worker;
use super::{latency, mirror};
use crate::context::SimContext;
use crate::defect::Defect;
use crate::kubelet::event::PodEvent;
use crate::kubelet::recorder::EventObject;
use crate::kubelet::state::Kubelet;
use crate::machine::{Machine, MachineEvent, PodUid};
use crate::resource::{EventBody, Kind, ObjectExt};

impl Kubelet {
    pub(in crate::kubelet) fn pods_start(&mut self, machine: &mut Machine, ctx: &mut SimContext) {
        let before = std::mem::take(&mut self.pods.workers);
        self.pods.preemptions.clear();
        self.pods.first_relist = ctx.now + latency::between(ctx.rng, 20, 1000);
        self.pods.relist_scheduled = false;
        self.pods.seen = ctx.store.version();
        self.read_manifests(machine, ctx);
        self.delete_orphaned_mirrors(ctx);
        self.ensure_proxy(ctx);
        let own = ctx.store.pods_on(&self.options.name);
        let own: Vec<_> = own.filter(|pod| mirror::hash_of(pod).is_none()).cloned().collect();
        for pod in own {
            // The checkpoint `allocated_pods_state` keeps what was allocated.
            let allocated = before.get(pod.uid()).map(|worker| &worker.manifest);
            self.add_pod(mirror::from_api(pod), allocated, machine, ctx);
        }
        self.retry_resizes(|uid, _| before.contains_key(uid), machine, ctx);
        let is_known =
            |uid: &PodUid| self.pods.runtime.pods.get(uid).is_some_and(|pod| pod.sandbox.is_some());
        let known = self.pods.workers.iter().filter(|(uid, _)| is_known(uid));
        let created = |worker: &Worker| worker.object.metadata().text("creationTimestamp").to_owned();
        let mut known: Vec<_> = known.map(|(uid, worker)| (created(worker), uid.clone())).collect();
        known.sort();
        self.pods.readmission = known.into_iter().map(|(_, uid)| uid).collect();
        for (uid, worker) in before {
            if !self.pods.workers.contains_key(&uid) && !self.pods.running(&uid).is_empty() {
                self.end_orphan(worker, machine, ctx);
            }
        }
        self.start_log_rotation(machine, ctx);
    }

    /// Kills a running pod whose object was deleted (`HandlePodCleanups` in
    /// pkg/kubelet/kubelet_pods.go).
    fn end_orphan(&mut self, before: Worker, machine: &mut Machine, ctx: &mut SimContext) {
        let mut worker = Worker::new(before.object, before.manifest);
        worker.removed = true;
        self.terminate(&mut worker, None, Some(1), machine, ctx);
        self.pods.workers.insert(worker.manifest.uid.clone(), worker);
    }

    pub(in crate::kubelet) fn pods_machine_event(
        &mut self,
        event: MachineEvent,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) {
        match event {
            MachineEvent::ContainerExited { container, code, oom, at } => {
                self.exited(&container, Exit { code, oom, at }, machine, ctx);
            }
            MachineEvent::OomKilled { process, pid, is_of_root, .. } => {
                self.oom_killed(&process, pid, is_of_root, ctx);
            }
            MachineEvent::ExecExited { exec } => self.exec_exited(exec, machine, ctx),
            MachineEvent::ThresholdCrossed { .. } => {}
        }
    }

    pub(in crate::kubelet) fn handle_pod_event(
        &mut self,
        event: PodEvent,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) {
        match event {
            PodEvent::Relist => self.relist(machine, ctx),
            PodEvent::Sync(pod) => self.sync(&pod, machine, ctx),
            PodEvent::Retry(pod) => self.retry(&pod, machine, ctx),
            PodEvent::Step(pod, serial) => self.step(&pod, serial, machine, ctx),
            PodEvent::Inspect(pod) => self.inspect(&pod, machine, ctx),
            PodEvent::Report(pod) => self.report(&pod, ctx),
            PodEvent::Stop(pod) => self.advance(&pod, machine, ctx),
            PodEvent::Stopped(pod, serial) => self.stopped(&pod, serial, machine, ctx),
            PodEvent::WaitTimedOut(pod, number) => self.wait_timed_out(&pod, number, machine, ctx),
            PodEvent::ActiveDeadline(pod) => self.end_active(&pod, machine, ctx),
            PodEvent::DeferredKill(pod) => self.begin_deferred_kill(&pod, machine, ctx),
            PodEvent::KillRejected(pod) => self.kill_rejected(&pod, machine, ctx),
            PodEvent::CleanUp(pod) => self.clean_up(&pod, machine, ctx),
            PodEvent::Delete(pod) => self.delete(&pod, ctx),
            PodEvent::Manifests => self.read_manifests(machine, ctx),
            PodEvent::RetryResizes => self.retry_pending_resizes(machine, ctx),
            PodEvent::RotateLogs => self.rotate_logs(machine, ctx),
            PodEvent::Mirror(pod) => {
                self.with_worker(&pod, |kubelet, worker| kubelet.mirror(worker, ctx));
            }
        }
    }

    /// Deletes dead containers (`evictContainers` of kuberuntime_gc.go): all of pods that were
    /// evicted, have terminated or are unknown (`ShouldPodContentBeRemoved`,
    /// `ShouldPodRuntimeBeRemoved`). Of other pods, also of terminating ones, one per name is kept
    /// (`MaxPerPodContainerCount`).
    pub(crate) fn collect_containers(&mut self, machine: &mut Machine) {
        let keeps = |worker: &Worker| {
            if worker.could_run() && !worker.evicted {
                !self.has(Defect::ReclaimDeletesLastContainers)
            } else {
                self.has(Defect::ReclaimKeepsLastContainers)
            }
        };
        let kept = |pod: &PodUid| usize::from(self.pods.workers.get(pod).is_some_and(keeps));
        let pods: Vec<(PodUid, usize)> =
            self.pods.runtime.pods.keys().map(|pod| (pod.clone(), kept(pod))).collect();
        for (pod, keep) in pods {
            self.forget_dead(&pod, keep, machine);
        }
    }

    /// Returns whether a pod is bound to this node.
    pub(super) fn is_own(&self, pod: &Value) -> bool {
        pod.node_name() == self.options.name
    }

    /// Runs `work` with a worker, which is removed from the map meanwhile.
    pub(super) fn with_worker<T>(
        &mut self,
        pod: &str,
        work: impl FnOnce(&mut Self, &mut Worker) -> T,
    ) -> Option<T> {
        let mut worker = self.pods.workers.remove(pod)?;
        let done = work(self, &mut worker);
        self.pods.workers.insert(pod.to_owned(), worker);
        Some(done)
    }

    pub(super) fn view<'a>(
        &'a self,
        worker: &'a Worker,
        host: &'a str,
        ctx: &SimContext,
    ) -> StatusBuilder<'a> {
        StatusBuilder {
            worker,
            runtime: self.pods.runtime.pods.get(&worker.manifest.uid),
            version: &self.options.version,
            defects: &self.options.defects,
            host,
            now: ctx.now,
            epoch: ctx.epoch(),
        }
    }

    /// Returns the address of the node.
    pub(super) fn host(&self, ctx: &SimContext) -> String {
        let node = ctx.store.get(Kind::Node, "", &self.options.name);
        node.and_then(|node| node.internal_ip()).unwrap_or("172.18.0.2").to_owned()
    }

    pub(super) fn forget_dead(&mut self, pod: &str, keep: usize, machine: &mut Machine) {
        for container in self.pods.runtime.forget_dead(pod, keep) {
            machine.remove(&container);
        }
    }

    /// Handles a kill by the OOM killer. Only kills for the lack of memory of the whole node are
    /// recorded as an event, not those by the limit of a container, a pod or all pods (`Start` in
    /// `pkg/kubelet/oom/oom_watcher_linux.go`).
    fn oom_killed(&mut self, process: &str, pid: u64, is_of_root: bool, ctx: &mut SimContext) {
        if self.running && (is_of_root || self.has(Defect::OomOfLimitIsSystemOom)) {
            let message = format!("System OOM encountered, victim process: {process}, pid: {pid}");
            self.record_event(EventObject::Node, EventBody::warning("SystemOOM", &message), ctx);
        }
    }
}
