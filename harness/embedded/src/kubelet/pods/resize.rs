//! In-place resizes of pods (`pkg/kubelet/allocation`, KEP-1287).

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use evictlab_rules::pod::Pod;
use evictlab_rules::quantity::Quantity;
use k8s_openapi::api::core::v1::ResourceRequirements;
use serde_json::Value;

use super::admit::request;
use super::spec::{Container, Manifest};
use super::start::bytes;
use super::worker::{PendingResize, Step, StopCause, StopOrder, Worker};
use crate::context::SimContext;
use crate::defect::Defect;
use crate::kubelet::event::PodEvent;
use crate::kubelet::state::Kubelet;
use crate::machine::{Cgroup, Machine, PodUid};
use crate::resource::{Kind, ObjectExt, amount};

/// Delay of a retry after the last refusal (`retryDelay` of
/// `pkg/kubelet/allocation/allocation_manager.go`).
const RETRY_DELAY: Duration = Duration::from_secs(180);

impl Kubelet {
    /// Takes over the new spec of a pod. New resources are allocated if the node has room for them;
    /// otherwise the containers keep those that they have, and eviction, too, reads these
    /// (`getAllocatedPods`). Returns whether the spec is a resize.
    pub(super) fn update_manifest(
        &mut self,
        worker: &mut Worker,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) -> bool {
        let mut desired = Manifest::read(&worker.object, self.known_fields());
        let is_resized =
            self.config.settings.gates.resizes_pods && resources(&desired) != resources(&worker.manifest);
        worker.pending_resize =
            if is_resized { self.refuse_resize(&worker.object, &desired.pod, ctx) } else { None };
        if worker.pending_resize.is_some() {
            self.schedule_resize_retry(ctx);
        }
        match &worker.pending_resize {
            Some(_) if !self.has(Defect::PendingResizeCounts) => {
                keep_resources(&mut desired, &worker.manifest)
            }
            Some(_) => {}
            None if is_resized && self.has(Defect::ResizeIgnored) => {
                keep_resources(&mut desired, &worker.manifest);
            }
            None if is_resized => self.resize_containers(worker, &desired, machine),
            None => {}
        }
        worker.manifest = desired;
        is_resized
    }

    /// Tries the resizes of the selected pods again: of those that the node had no room for when a
    /// pod has gone, and of all after a restart (`retryPendingResizes`).
    pub(super) fn retry_resizes(
        &mut self,
        selects: impl Fn(&str, &Worker) -> bool,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) {
        let mut selected: Vec<(&PodUid, &Worker)> =
            self.pods.workers.iter().filter(|(uid, worker)| selects(uid, worker)).collect();
        // Since 1.34 (`sortPendingResizes`).
        if self.options.version.at_least(34) {
            selected.sort_by_key(|(_, worker)| Reverse(worker.manifest.pod.priority()));
        }
        if self.has(Defect::DeferredResizesByLowPriority) {
            selected.reverse();
        }
        let pods: Vec<PodUid> = selected.into_iter().map(|(uid, _)| uid.clone()).collect();
        for uid in pods {
            self.with_worker(&uid, |kubelet, worker| {
                if kubelet.update_manifest(worker, machine, ctx) {
                    kubelet.request_inspection(worker, ctx);
                }
            });
        }
    }

    /// Tries all pending resizes again, [`RETRY_DELAY`] after the last one was refused.
    pub(super) fn retry_pending_resizes(&mut self, machine: &mut Machine, ctx: &mut SimContext) {
        if self.pods.resize_retry == Some(ctx.now) {
            self.retry_resizes(|_, worker| worker.pending_resize.is_some(), machine, ctx);
        }
    }

    fn schedule_resize_retry(&mut self, ctx: &mut SimContext) {
        let at = ctx.now + RETRY_DELAY;
        if self.pods.resize_retry.replace(at) != Some(at) {
            self.schedule_pod(at, PodEvent::RetryResizes, ctx);
        }
    }

    /// Kills the containers that a resize restarts, with the pod's own grace period, and starts
    /// them again whatever their exit code is. Returns whether any is running.
    pub(super) fn restart_resized(
        &mut self,
        worker: &mut Worker,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) -> bool {
        let places = std::mem::take(&mut worker.resize_restarts);
        let Some(runtime) = self.pods.runtime.pods.get(&worker.manifest.uid) else { return false };
        let running = places.into_iter().filter_map(|place| {
            let name = &worker.manifest.spec.container(place)?.name;
            let latest = runtime.latest(name).filter(|latest| latest.is_running())?;
            Some((place, (latest.id.clone(), name.clone())))
        });
        let (places, containers): (Vec<_>, Vec<_>) = running.unzip();
        if places.is_empty() {
            return false;
        }
        worker.steps = places.into_iter().map(Step::Restart).collect();
        worker.failed = false;
        let order = StopOrder { grace: worker.manifest.spec.grace(), cause: StopCause::Resize };
        self.stop_containers(worker, containers, order, machine, ctx);
        true
    }

    /// Returns why the node cannot have a pod with its new resources. Since 1.36 all admission
    /// handlers decide, that of the eviction manager first, and their reasons are reported as
    /// `Deferred` (`canAdmitPod` of `pkg/kubelet/allocation/allocation_manager.go`,
    /// `SetPodResizePendingCondition` of `pkg/kubelet/status/status_manager.go`).
    fn refuse_resize(&self, object: &Value, pod: &Pod, ctx: &SimContext) -> Option<PendingResize> {
        let is_admitted_as_new = self.options.version.at_least(36);
        if let Some(message) = self.rejection_under_pressure(object).filter(|_| is_admitted_as_new) {
            return Some(PendingResize { reason: "Deferred", message });
        }
        let node = ctx.store.get(Kind::Node, "", &self.options.name)?;
        // Through 1.35 a request above the node's allocatable is infeasible, not deferred
        // (`canResizePod`).
        if !is_admitted_as_new {
            let allocatable: BTreeMap<String, Quantity> = node.status().read("allocatable");
            for resource in ["memory", "cpu"] {
                let requested = request(pod, resource);
                let capacity = allocatable.get(resource).map_or(0, |quantity| amount(resource, quantity));
                if requested > capacity {
                    let message = format!(
                        "Node didn't have enough capacity: {resource}, requested: {requested}, capacity: {capacity}"
                    );
                    return Some(PendingResize { reason: "Infeasible", message });
                }
            }
        }
        let shortages = self.shortages(pod, node);
        let message = shortages.first()?.message();
        Some(PendingResize { reason: "Deferred", message })
    }

    /// Sets the memory limits of a pod's cgroup and of its running containers
    /// (`doPodResizeAction`), except of containers that the next sync restarts.
    fn resize_containers(&self, worker: &mut Worker, desired: &Manifest, machine: &mut Machine) {
        if !self.has(Defect::ResizeKeepsLimit) {
            machine.limit_memory(&Cgroup::Pod(desired.uid.clone()), self.pod_memory_max(desired));
        }
        for container in self.pods.running(&desired.uid) {
            let Some(place) = desired.place(&container.name) else { continue };
            let spec = desired.spec.container(place);
            if let Some((before, after)) = worker.manifest.spec.container(place).zip(spec)
                && requires_restart(before, after, self.has(Defect::ResizePolicyOfAnyResource))
            {
                if !worker.resize_restarts.contains(&place) {
                    worker.resize_restarts.push(place);
                }
                continue;
            }
            let limit = spec.and_then(Container::memory_limit).and_then(bytes);
            if let Some(limit) = limit.filter(|_| !self.has(Defect::ResizeKeepsLimit)) {
                machine.limit_memory(&Cgroup::Container(container.id), Some(limit));
            }
        }
    }
}

/// Returns whether a container restarts to get new resources: its `resizePolicy` for one that
/// changes is `RestartContainer` (`computePodResizeAction` of
/// `pkg/kubelet/kuberuntime/kuberuntime_manager.go`).
fn requires_restart(before: &Container, after: &Container, is_of_any: bool) -> bool {
    let amounts = |container: &Container, resource: &str| {
        let ResourceRequirements { requests, limits, .. } = &container.resources;
        [requests, limits].map(|list| {
            let quantity = list.as_ref()?.get(resource)?.0.parse::<Quantity>().ok()?;
            Some(amount(resource, &quantity))
        })
    };
    let restarts = |resource: &str| {
        let policy = after.resize_policy.iter().find(|policy| policy.resource_name == resource);
        policy.is_some_and(|policy| policy.restart_policy == "RestartContainer")
    };
    let mut resources = ["cpu", "memory"].into_iter();
    resources.any(|resource| {
        restarts(resource) && (is_of_any || amounts(before, resource) != amounts(after, resource))
    })
}

/// Returns the requests and limits of the whole pod and of all containers.
fn resources(manifest: &Manifest) -> Vec<Option<&ResourceRequirements>> {
    let spec = &manifest.spec;
    let containers = spec.init_containers.iter().chain(&spec.containers);
    let of_pod = std::iter::once(spec.resources.as_ref());
    of_pod.chain(containers.map(|container| Some(&container.resources))).collect()
}

/// Replaces the resources of the pod and of all containers by those in `allocated`: a resize does
/// not change the order of containers (`updatePodFromAllocation`).
pub(super) fn keep_resources(desired: &mut Manifest, allocated: &Manifest) {
    // A kubelet without the gate `PodLevelResources` does not know those of the pod.
    if desired.spec.resources.is_some() {
        desired.spec.resources.clone_from(&allocated.spec.resources);
        desired.pod.spec.resources.clone_from(&allocated.pod.spec.resources);
    }
    let containers = desired.spec.init_containers.iter_mut().chain(&mut desired.spec.containers);
    let before = allocated.spec.init_containers.iter().chain(&allocated.spec.containers);
    containers.zip(before).for_each(|(container, before)| container.resources = before.resources.clone());
    let containers = desired.pod.spec.init_containers.iter_mut().chain(&mut desired.pod.spec.containers);
    let before = allocated.pod.spec.init_containers.iter().chain(&allocated.pod.spec.containers);
    containers.zip(before).for_each(|(container, before)| container.resources = before.resources.clone());
}
