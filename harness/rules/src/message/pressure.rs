//! What a kubelet says of a node-pressure eviction: `evictionMessage` of `pkg/kubelet/eviction/helpers.go`.

use super::{Annotations, NodePressure, Offender, ThresholdClause};
use crate::KubeletVersion;
use crate::pod::{Container, ContainerStats, Pod, PodStats};
use crate::quantity::Quantity;
use crate::threshold::Resource;

/// A message with its annotations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Eviction {
    /// The message.
    pub message: NodePressure,
    /// The annotations; none at all for a pod without stats.
    pub annotations: Option<Annotations>,
}

/// What a kubelet says when it evicts `pod` to reclaim `resource`. `stats` are the pod's in the Summary that the
/// kubelet went by; containers are named in its order.
pub fn pressure_eviction(
    version: &KubeletVersion,
    pod: &Pod,
    stats: Option<&PodStats>,
    resource: Resource,
    threshold: Option<ThresholdClause>,
) -> Eviction {
    let mut message = NodePressure { resource, threshold, pod: None, containers: vec![] };
    let Some(stats) = stats else { return Eviction { message, annotations: None } };
    message.pod = pod_sentence(version, pod, stats, resource);
    for container in &stats.containers {
        let candidate = candidates(version, pod).find(|candidate| candidate.name == container.name);
        let (Some(candidate), Some(usage)) = (candidate, usage(container, resource)) else { continue };
        let usage = Quantity::from_bytes(usage);
        let request = candidate.request(resource.as_str()).cloned().unwrap_or(Quantity::ZERO);
        if usage > request {
            message.containers.push(Offender { name: container.name.clone(), usage, request });
        }
    }
    let annotations = Annotations::of(resource, message.pod.as_ref(), &message.containers);
    Eviction { message, annotations: Some(annotations) }
}

/// The containers that this kubelet may name: the regular ones, from 1.32 the init containers too, sidecars or not.
/// Ephemeral containers never.
pub fn candidates<'a>(version: &KubeletVersion, pod: &'a Pod) -> impl Iterator<Item = &'a Container> {
    let init: &[Container] = if version.at_least(32) { &pod.spec.init_containers } else { &[] };
    pod.spec.containers.iter().chain(init)
}

/// A container's usage as messages give it; inodes and process ids have none.
pub fn usage(container: &ContainerStats, resource: Resource) -> Option<i64> {
    match resource {
        Resource::Memory => container.working_set(),
        Resource::EphemeralStorage => container.disk(),
        Resource::Inodes | Resource::Pids => None,
    }
}

/// The pod-level sentence of 1.34 and newer. Nothing is compared: a pod under its request gets it as well.
fn pod_sentence(
    version: &KubeletVersion,
    pod: &Pod,
    stats: &PodStats,
    resource: Resource,
) -> Option<Offender> {
    if !version.at_least(34) || resource != Resource::Memory || !pod.has_pod_level_resources() {
        return None;
    }
    let request = pod.pod_level_request(resource.as_str())?;
    Some(Offender {
        name: pod.metadata.name.clone(),
        usage: Quantity::from_bytes(stats.working_set()?),
        request,
    })
}
