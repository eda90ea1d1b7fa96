//! The quality of service class, which decides who is admitted under memory pressure.

use serde::{Deserialize, Serialize};

use super::{Container, Pod, Resources};

/// `status.qosClass`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Qos {
    /// Every container has requests equal to its limits, of cpu and of memory.
    Guaranteed,
    /// Something is asked for.
    Burstable,
    /// Nothing is asked for.
    BestEffort,
}

const COMPUTE: [&str; 2] = ["cpu", "memory"];

impl Pod {
    /// The class that the API computes for this pod.
    pub fn qos(&self) -> Qos {
        if let Some(resources) = self.spec.resources.as_ref().filter(|_| self.has_pod_level_resources()) {
            return class(&[resources]);
        }
        let containers = self.spec.containers.iter().chain(&self.spec.init_containers);
        class(&containers.map(|Container { resources, .. }| resources).collect::<Vec<_>>())
    }
}

fn class(all: &[&Resources]) -> Qos {
    let states = |resources: &&Resources, name: &str| {
        [&resources.requests, &resources.limits].iter().any(|map| map.get(name).is_some_and(|q| !q.is_zero()))
    };
    if !all.iter().any(|resources| COMPUTE.iter().any(|name| states(resources, name))) {
        return Qos::BestEffort;
    }
    let equal = |resources: &&Resources| {
        COMPUTE.iter().all(|name| {
            let limit = resources.limits.get(*name).filter(|limit| !limit.is_zero());
            limit.is_some() && resources.requests.get(*name).is_none_or(|request| Some(request) == limit)
        })
    };
    if all.iter().all(equal) { Qos::Guaranteed } else { Qos::Burstable }
}
