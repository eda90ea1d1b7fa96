//! The QoS class, which admission under memory pressure depends on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Container, Pod, ResourceRequirements};

/// QoS class of a pod, `status.qosClass`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum QosClass {
    /// Every container has CPU and memory limits, and requests equal to them.
    Guaranteed,
    /// A container has a CPU or memory request or limit.
    Burstable,
    /// No container has a CPU or memory request or limit.
    BestEffort,
}

/// The resources that the QoS class depends on.
const COMPUTE: [&str; 2] = ["cpu", "memory"];

impl Pod {
    /// Returns the class that the API server computes (`ComputePodQOS` in
    /// `pkg/apis/core/v1/helper/qos/qos.go`). Pod-level resources alone decide, also if they are
    /// empty.
    pub fn qos_class(&self) -> QosClass {
        if let Some(resources) = &self.spec.resources {
            return class_of(&[resources]);
        }
        let containers = self.spec.containers.iter().chain(&self.spec.init_containers);
        class_of(&containers.map(|Container { resources, .. }| resources).collect::<Vec<_>>())
    }
}

fn class_of(all: &[&ResourceRequirements]) -> QosClass {
    let states = |resources: &&ResourceRequirements, name: &str| {
        [&resources.requests, &resources.limits].iter().any(|map| map.get(name).is_some_and(|q| !q.is_zero()))
    };
    if !all.iter().any(|resources| COMPUTE.iter().any(|name| states(resources, name))) {
        return QosClass::BestEffort;
    }
    let equal = |resources: &&ResourceRequirements| {
        COMPUTE.iter().all(|name| {
            let limit = resources.limits.get(*name).filter(|limit| !limit.is_zero());
            limit.is_some() && resources.requests.get(*name).is_none_or(|request| Some(request) == limit)
        })
    };
    if all.iter().all(equal) { QosClass::Guaranteed } else { QosClass::Burstable }
}
