//! In-place resizes of pods (`pkg/kubelet/allocation`, KEP-1287).

use std::collections::BTreeMap;

use evictlab_rules::pod::Pod;
use evictlab_rules::quantity::Quantity;
use k8s_openapi::api::core::v1::ResourceRequirements;

use super::admit::request;
use super::spec::{Container, Manifest};
use super::start::bytes;
use super::worker::{PendingResize, Worker};
use crate::context::SimContext;
use crate::defect::Defect;
use crate::kubelet::state::Kubelet;
use crate::machine::{Cgroup, Machine, PodUid};
use crate::resource::{Kind, ObjectExt, amount};

impl Kubelet {
    /// Takes over the new spec of a pod. New resources are allocated if the node has room for them;
    /// otherwise the containers keep those that they have, and eviction, too, reads these
    /// (`getAllocatedPods`). Returns whether the spec is a resize.
    pub(super) fn update_manifest(
        &mut self,
        worker: &mut Worker,
        machine: &mut Machine,
        ctx: &SimContext,
    ) -> bool {
        let mut desired = Manifest::read(&worker.object, self.known_fields());
        let is_resized =
            self.config.settings.gates.resizes_pods && resources(&desired) != resources(&worker.manifest);
        worker.pending_resize = if is_resized { self.refuse_resize(&desired.pod, ctx) } else { None };
        match &worker.pending_resize {
            Some(_) if !self.has(Defect::PendingResizeCounts) => {
                keep_resources(&mut desired, &worker.manifest)
            }
            Some(_) => {}
            None if is_resized && self.has(Defect::ResizeIgnored) => {
                keep_resources(&mut desired, &worker.manifest);
            }
            None if is_resized => self.resize_containers(&desired, machine),
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
        let selected = self.pods.workers.iter().filter(|(uid, worker)| selects(uid, worker));
        let pods: Vec<PodUid> = selected.map(|(uid, _)| uid.clone()).collect();
        for uid in pods {
            self.with_worker(&uid, |kubelet, worker| {
                if kubelet.update_manifest(worker, machine, ctx) {
                    kubelet.request_inspection(worker, ctx);
                }
            });
        }
    }

    /// Returns why the node cannot have a pod with its new resources.
    fn refuse_resize(&self, pod: &Pod, ctx: &SimContext) -> Option<PendingResize> {
        let node = ctx.store.get(Kind::Node, "", &self.identity.node)?;
        // Through 1.35 a request above the node's allocatable is infeasible, not deferred
        // (`canResizePod`).
        if !self.identity.version.at_least(36) {
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
    /// (`doPodResizeAction`).
    fn resize_containers(&self, desired: &Manifest, machine: &mut Machine) {
        if self.has(Defect::ResizeKeepsLimit) {
            return;
        }
        machine.limit_memory(&Cgroup::Pod(desired.uid.clone()), self.pod_memory_max(desired));
        for container in self.pods.running(&desired.uid) {
            let spec = desired.place(&container.name).and_then(|place| desired.spec.container(place));
            if let Some(limit) = spec.and_then(Container::memory_limit).and_then(bytes) {
                machine.limit_memory(&Cgroup::Container(container.id), Some(limit));
            }
        }
    }
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
