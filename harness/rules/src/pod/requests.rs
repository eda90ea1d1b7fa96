//! Requests and limits of a whole pod: `GetResourceRequestQuantity`, `PodLimits` and pod-level
//! resources, by kubelet version.

use super::{Container, Pod, QosClass, ResourceRequirements};
use crate::KubeletVersion;
use crate::quantity::Quantity;

impl Pod {
    /// Returns the request that ranking compares the pod's usage with. The overhead of a runtime
    /// class is added to a request that is not 0.
    ///
    /// Through 1.33, the request is the maximum of the regular containers' sum and of each init
    /// container's request; sidecars are not added. From 1.34, the request is the pod-level
    /// request if the pod has pod-level resources; otherwise each sidecar's request is added to
    /// every container that starts after the sidecar.
    pub fn request(&self, version: &KubeletVersion, resource: &str) -> Quantity {
        let amount = |container: &Container| container.request(resource).cloned();
        let total = if !version.at_least(34) {
            let regular = sum(self.spec.containers.iter().filter_map(amount));
            self.spec.init_containers.iter().filter_map(amount).fold(regular, Ord::max)
        } else if self.has_pod_level_resources() {
            self.pod_level_request(resource).unwrap_or(Quantity::ZERO)
        } else {
            self.with_sidecars(amount)
        };
        self.with_overhead(total, resource)
    }

    /// Returns the request that scheduler and kubelet compare with what is free on a node: the
    /// pod-level request of CPU, memory or huge pages, otherwise that of the containers with
    /// sidecars. The overhead of a runtime class is always added (`PodRequests` in
    /// `component-helpers/resource/helpers.go`).
    pub fn scheduling_request(&self, resource: &str) -> Quantity {
        let stated = self.pod_level_request(resource).filter(|_| is_pod_level_resource(resource));
        let total = stated.unwrap_or_else(|| self.container_requests(resource));
        match self.spec.overhead.get(resource) {
            Some(overhead) => total + overhead,
            None => total,
        }
    }

    /// Returns the pod's ephemeral-storage limit; `None` if no container has one. The overhead of a
    /// runtime class is added to a limit that is not 0.
    ///
    /// Containers without a limit count as 0. Sidecars are added from 1.28.
    pub fn storage_limit(&self, version: &KubeletVersion) -> Option<Quantity> {
        const RESOURCE: &str = "ephemeral-storage";
        let amount = |container: &Container| container.resources.limits.get(RESOURCE).cloned();
        let spec = &self.spec;
        spec.containers.iter().chain(&spec.init_containers).find_map(amount)?;
        let total = if version.at_least(28) {
            self.with_sidecars(amount)
        } else {
            spec.init_containers
                .iter()
                .filter_map(amount)
                .fold(sum(spec.containers.iter().filter_map(amount)), Ord::max)
        };
        Some(self.with_overhead(total, RESOURCE))
    }

    /// Returns the memory limit of the pod's cgroup: the pod-level limit, or the largest sum of
    /// limits of containers that run at the same time, if each container has one. The overhead of
    /// a runtime class is added. `None` if the cgroup is not limited, as for BestEffort pods
    /// (`ResourceConfigForPod` in `pkg/kubelet/cm/helpers_linux.go`).
    pub fn memory_limit(&self) -> Option<Quantity> {
        const RESOURCE: &str = "memory";
        if self.qos_class() == QosClass::BestEffort {
            return None;
        }
        let stated = |resources: &ResourceRequirements| {
            resources.limits.get(RESOURCE).filter(|limit| !limit.is_zero()).cloned()
        };
        let amount = |container: &Container| stated(&container.resources);
        if let Some(limit) = self.spec.resources.as_ref().and_then(stated) {
            return Some(self.with_overhead(limit, RESOURCE));
        }
        // The limits of earlier sidecars count for an init container.
        let mut has_limit = false;
        let mut is_limited = |container: &Container| {
            let own = amount(container).is_some();
            has_limit |= own && container.is_sidecar();
            own || has_limit
        };
        let spec = &self.spec;
        let are_limited = spec.containers.iter().all(|container| amount(container).is_some())
            && spec.init_containers.iter().all(&mut is_limited);
        are_limited.then(|| self.with_overhead(self.with_sidecars(amount), RESOURCE))
    }

    /// Adds the overhead to a total that is not 0: `GetResourceRequestQuantity`, `PodLimits`.
    fn with_overhead(&self, total: Quantity, resource: &str) -> Quantity {
        match self.spec.overhead.get(resource) {
            Some(overhead) if !total.is_zero() => total + overhead,
            _ => total,
        }
    }

    /// Returns whether the pod has a pod-level request or limit for CPU, memory or huge pages
    /// (`IsPodLevelResourcesSet`).
    pub fn has_pod_level_resources(&self) -> bool {
        self.spec.resources.as_ref().is_some_and(|resources| {
            let mut names = resources.requests.keys().chain(resources.limits.keys());
            names.any(|name| is_pod_level_resource(name))
        })
    }

    /// Returns the pod-level request as the API server defaults it; `None` without pod-level
    /// resources.
    ///
    /// A pod-level limit without a request defaults to the sum of the containers' requests if any
    /// container requests the resource, otherwise to the limit.
    pub fn pod_level_request(&self, resource: &str) -> Option<Quantity> {
        let resources = self.spec.resources.as_ref()?;
        if let Some(request) = resources.requests.get(resource) {
            return Some(request.clone());
        }
        let limit = resources.limits.get(resource)?;
        let spec = &self.spec;
        let requests = |container: &Container| container.request(resource).is_some();
        let requested = spec.containers.iter().chain(&spec.init_containers).any(requests);
        Some(if requested { self.container_requests(resource) } else { limit.clone() })
    }

    /// Returns the sum of the requests of the containers that run at the same time, without the
    /// pod-level request and the overhead.
    pub fn container_requests(&self, resource: &str) -> Quantity {
        self.with_sidecars(|container| container.request(resource).cloned())
    }

    /// Returns the maximum sum of `amount` over containers that run at the same time (KEP-753).
    fn with_sidecars(&self, amount: impl Fn(&Container) -> Option<Quantity>) -> Quantity {
        let (mut sidecars, mut peak) = (Quantity::ZERO, Quantity::ZERO);
        for container in &self.spec.init_containers {
            let value = amount(container).unwrap_or(Quantity::ZERO);
            if container.is_sidecar() {
                sidecars = plus(sidecars, value);
                peak = peak.max(sidecars.clone());
            } else {
                peak = peak.max(plus(value, sidecars.clone()));
            }
        }
        peak.max(plus(sum(self.spec.containers.iter().filter_map(amount)), sidecars))
    }
}

/// Returns whether a pod can state a resource for all its containers
/// (`IsSupportedPodLevelResource`).
fn is_pod_level_resource(name: &str) -> bool {
    name == "cpu" || name == "memory" || name.starts_with("hugepages-")
}

fn sum(parts: impl Iterator<Item = Quantity>) -> Quantity {
    parts.reduce(plus).unwrap_or(Quantity::ZERO)
}

/// Adds as Go's resource lists do: a zero operand leaves the other unchanged, its text included.
fn plus(left: Quantity, right: Quantity) -> Quantity {
    match (left.is_zero(), right.is_zero()) {
        (_, true) => left,
        (true, _) => right,
        _ => left + &right,
    }
}
