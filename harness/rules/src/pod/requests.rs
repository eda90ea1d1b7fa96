//! What a pod asks for as a whole: `GetResourceRequestQuantity`, `PodLimits` and pod-level resources, by version.

use super::{Container, Pod};
use crate::KubeletVersion;
use crate::quantity::Quantity;

impl Pod {
    /// The pod's request of a resource, as ranking compares usage with it.
    ///
    /// Through 1.33: the greater of the sum of the regular containers and of each init container alone; sidecars
    /// are not summed. From 1.34: the pod-level request if the pod has pod-level resources, else sidecars run
    /// beside everything that starts after them. Overhead is added.
    pub fn request(&self, version: &KubeletVersion, resource: &str) -> Quantity {
        let of = |container: &Container| container.request(resource).cloned();
        let total = if !version.at_least(34) {
            let regular = sum(self.spec.containers.iter().filter_map(of));
            self.spec.init_containers.iter().filter_map(of).fold(regular, Ord::max)
        } else if self.has_pod_level_resources() {
            self.pod_level_request(resource).unwrap_or(Quantity::ZERO)
        } else {
            self.with_sidecars(of)
        };
        match self.spec.overhead.get(resource) {
            Some(overhead) => total + overhead,
            None => total,
        }
    }

    /// The pod's limit of ephemeral storage; none unless a container has one. Containers without count nothing.
    /// Sidecars are summed from 1.28.
    pub fn storage_limit(&self, version: &KubeletVersion) -> Option<Quantity> {
        const RESOURCE: &str = "ephemeral-storage";
        let of = |container: &Container| container.resources.limits.get(RESOURCE).cloned();
        let spec = &self.spec;
        spec.containers.iter().chain(&spec.init_containers).find_map(of)?;
        let total = if version.at_least(28) {
            self.with_sidecars(of)
        } else {
            spec.init_containers
                .iter()
                .filter_map(of)
                .fold(sum(spec.containers.iter().filter_map(of)), Ord::max)
        };
        Some(match spec.overhead.get(RESOURCE) {
            Some(overhead) => total + overhead,
            None => total,
        })
    }

    /// Whether the pod itself states cpu, memory or huge pages (`IsPodLevelResourcesSet`).
    pub fn has_pod_level_resources(&self) -> bool {
        self.spec.resources.as_ref().is_some_and(|resources| {
            let mut names = resources.requests.keys().chain(resources.limits.keys());
            names.any(|name| name == "cpu" || name == "memory" || name.starts_with("hugepages-"))
        })
    }

    /// The pod-level request as the API defaults it: its own; with a limit only, the containers' sum if any
    /// container asks for the resource, else the limit.
    pub fn pod_level_request(&self, resource: &str) -> Option<Quantity> {
        let resources = self.spec.resources.as_ref()?;
        if let Some(request) = resources.requests.get(resource) {
            return Some(request.clone());
        }
        let limit = resources.limits.get(resource)?;
        let spec = &self.spec;
        let asks = |container: &Container| container.request(resource).is_some();
        let asked = spec.containers.iter().chain(&spec.init_containers).any(asks);
        Some(if asked {
            self.with_sidecars(|container| container.request(resource).cloned())
        } else {
            limit.clone()
        })
    }

    /// The most that is ever asked for at once (KEP-753).
    fn with_sidecars(&self, of: impl Fn(&Container) -> Option<Quantity>) -> Quantity {
        let (mut sidecars, mut peak) = (Quantity::ZERO, Quantity::ZERO);
        for container in &self.spec.init_containers {
            let own = of(container).unwrap_or(Quantity::ZERO);
            if container.is_sidecar() {
                sidecars = plus(sidecars, own);
                peak = peak.max(sidecars.clone());
            } else {
                peak = peak.max(plus(own, sidecars.clone()));
            }
        }
        peak.max(plus(sum(self.spec.containers.iter().filter_map(of)), sidecars))
    }
}

fn sum(parts: impl Iterator<Item = Quantity>) -> Quantity {
    parts.reduce(plus).unwrap_or(Quantity::ZERO)
}

/// A sum as Go's resource lists build it: what stands alone is copied, its text included.
fn plus(one: Quantity, other: Quantity) -> Quantity {
    match (one.is_zero(), other.is_zero()) {
        (_, true) => one,
        (true, _) => other,
        _ => one + &other,
    }
}
