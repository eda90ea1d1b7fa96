//! Admission of pods (`pkg/kubelet/lifecycle/predicate.go`, with the scheduler's filters).

use std::collections::{BTreeMap, BTreeSet};

use evictlab_rules::KubeletVersion;
use evictlab_rules::message::EVICTED_REASON;
use evictlab_rules::pod::Pod;
use evictlab_rules::quantity::Quantity;
use k8s_openapi::api::core::v1::Taint;
use serde::Deserialize;
use serde_json::Value;

use super::worker::Worker;
use crate::apiserver::is_extended_resource;
use crate::context::SimContext;
use crate::defect::Defect;
use crate::kubelet::state::Kubelet;
use crate::machine::Machine;
use crate::resource::scheduling::NodeConstraints;
use crate::resource::{Kind, ObjectExt, amount};

/// Reason why a pod is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rejection {
    pub reason: String,
    /// Message of the event; in the status it follows `Pod was rejected: `.
    pub message: String,
}

/// Time at which an admitted pod starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AdmittedStart {
    /// Immediately.
    Now,
    /// When the pods that are killed for it have ended.
    AfterPreemption,
}

/// Resource whose free amount is too small for a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shortage {
    pub resource: String,
    pub requested: i64,
    pub used: i64,
    pub capacity: i64,
}

impl Shortage {
    /// Returns the message of the predicate (`InsufficientResourceError`).
    pub(super) fn message(&self) -> String {
        let Self { resource, requested, used, capacity } = self;
        format!(
            "Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, capacity: {capacity}"
        )
    }
}

/// Resources that are checked, in the order of the scheduler's `fitsRequest`.
const ADMISSION_RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

impl Kubelet {
    /// Admits a pod and returns when it starts, or why it is rejected. After a restart, known pods
    /// are admitted like new ones (`HandlePodAdditions` of `pkg/kubelet/kubelet.go`). Other pods
    /// may be killed for a critical pod.
    pub(super) fn admit(
        &mut self,
        worker: &Worker,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) -> Result<AdmittedStart, Rejection> {
        if let Some(message) = self.rejection_under_pressure(&worker.object) {
            return Err(Rejection { reason: EVICTED_REASON.to_owned(), message });
        }
        let manifest = &worker.manifest;
        // 1.28 knows the field, but its feature gate `SidecarContainers` is off by default.
        if !self.options.version.at_least(29)
            && let Some(container) = manifest.spec.init_containers.iter().find(|c| c.is_sidecar())
        {
            return Err(Rejection {
                reason: "InitContainerRestartPolicyForbidden".to_owned(),
                message: format!(
                    "Init container {:?} may not have a non-default restartPolicy",
                    container.name
                ),
            });
        }
        let Some(node) = ctx.store.get(Kind::Node, "", &self.options.name).cloned() else {
            return Ok(AdmittedStart::Now);
        };
        let shortages = self.shortages(&manifest.pod, &node);
        let constraints = NodeConstraints::of(&worker.object);
        let affine = constraints.matches(&node);
        let is_tolerated = |taint: &Taint| taint.effect != "NoExecute" || constraints.tolerates(taint);
        let tolerates = node.taints().iter().all(is_tolerated);
        let is_preemptor = manifest.pod.is_critical() || self.has(Defect::PreemptionByOrdinary);
        let is_refused = self.has(Defect::PreemptionRefused)
            || !manifest.pod.has_critical_priority() && self.has(Defect::PreemptionRefusedToStatic);
        let preempts = is_preemptor && !is_refused;
        // Preemption helps only a pod that every other predicate admits
        // (`HandleAdmissionFailure` in pkg/kubelet/preemption/preemption.go).
        let is_of_use = affine && tolerates || self.has(Defect::PreemptionInVain);
        if preempts && is_of_use && !shortages.is_empty() {
            return self.preempt(worker, &shortages, machine, ctx);
        }
        if let Some(short) = shortages.first().filter(|_| !preempts) {
            let mut named = short.clone();
            if self.has(Defect::AdmissionSwapsUsedAndCapacity) {
                std::mem::swap(&mut named.used, &mut named.capacity);
            }
            return Err(Rejection {
                reason: self.shortage_reason(&short.resource),
                message: named.message(),
            });
        }
        if !affine && !self.has(Defect::AdmissionIgnoresNodeSelector) {
            return Err(self.failed("NodeAffinity", "node(s) didn't match Pod's node affinity/selector"));
        }
        if !tolerates {
            return Err(self.failed("TaintToleration", "node(s) had taints that the pod didn't tolerate"));
        }
        self.check_pod_level_resources(&worker.object)?;
        Ok(AdmittedStart::Now)
    }

    /// Returns the reason of a rejection for the lack of a resource.
    fn shortage_reason(&self, resource: &str) -> String {
        let named = match resource {
            "cpu" if self.has(Defect::AdmissionSwapsCpuAndMemory) => "memory",
            "memory" if self.has(Defect::AdmissionSwapsCpuAndMemory) => "cpu",
            resource => resource,
        };
        format!("OutOf{named}")
    }

    /// Rejects pod-level resources if their feature gate is off, since 1.34
    /// (`isPodLevelResourcesSupported` of `pkg/kubelet/lifecycle/features_linux.go`).
    fn check_pod_level_resources(&self, object: &Value) -> Result<(), Rejection> {
        let is_supported =
            self.config.settings.gates.pod_level_resources || !self.options.version.at_least(34);
        if is_supported || !Pod::deserialize(object).is_ok_and(|pod| pod.has_pod_level_resources()) {
            return Ok(());
        }
        Err(Rejection {
            reason: "PodLevelResourcesNotSupported".to_owned(),
            message: "PodLevelResources feature gate is disabled".to_owned(),
        })
    }

    /// Creates a rejection by a predicate. The message of the filter is included since 1.31.
    fn failed(&self, predicate: &str, reason: &str) -> Rejection {
        let reason = if self.options.version.at_least(31) { format!(": {reason}") } else { String::new() };
        Rejection { reason: predicate.to_owned(), message: format!("Predicate {predicate} failed{reason}") }
    }

    /// Returns the resources that the node has too little of for a pod, beside the other active
    /// pods.
    pub(super) fn shortages(&self, pod: &Pod, node: &Value) -> Vec<Shortage> {
        let allocatable: BTreeMap<String, Quantity> = node.status().read("allocatable");
        let holds_nothing = |worker: &Worker| worker.evicted && self.has(Defect::TerminatingPodsHoldNothing);
        let holders = self.pods.admitted().filter(|(_, worker)| !holds_nothing(worker));
        let mut others: Vec<&Pod> = holders.map(|(_, worker)| &worker.manifest.pod).collect();
        if self.has(Defect::AdmissionCountsEnded) {
            let ended = self.pods.workers.values().filter(|worker| !worker.is_active() && !worker.removed);
            others.extend(ended.map(|worker| &worker.manifest.pod));
        }
        let mut shortages = Vec::new();
        let active = i64::try_from(others.len()).unwrap_or(i64::MAX);
        let places = allocatable.get("pods").map_or(110, Quantity::value);
        if active + 1 > places {
            let resource = "pods".to_owned();
            shortages.push(Shortage { resource, requested: 1, used: active, capacity: places });
        }
        // Extended resources that the node does not have are ignored
        // (`removeMissingExtendedResources`).
        let spec = &pod.spec;
        let requested_names =
            spec.containers.iter().chain(&spec.init_containers).flat_map(|one| one.resources.requests.keys());
        let extended: BTreeSet<&str> =
            requested_names.map(String::as_str).filter(|name| is_extended_resource(name)).collect();
        for resource in ADMISSION_RESOURCES.into_iter().chain(extended) {
            let requested = request(pod, resource);
            let Some(capacity) = allocatable.get(resource).filter(|_| requested > 0) else { continue };
            let capacity = amount(resource, capacity);
            let used = others.iter().map(|pod| request(pod, resource)).sum();
            if requested > capacity - used {
                let resource = resource.to_owned();
                shortages.push(Shortage { resource, requested, used, capacity });
            }
        }
        shortages
    }
}

/// Returns the request of a pod as admission counts it; CPU in millicores.
pub(super) fn request(pod: &Pod, resource: &str) -> i64 {
    amount(resource, &pod.scheduling_request(resource))
}

/// Returns the request of a pod as a kubelet version ranks it; CPU in millicores.
pub(super) fn request_of(pod: &Pod, version: &KubeletVersion, resource: &str) -> i64 {
    amount(resource, &pod.request(version, resource))
}
