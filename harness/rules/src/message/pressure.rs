//! Messages of node-pressure evictions: `evictionMessage` in `pkg/kubelet/eviction/helpers.go`.

use super::{Annotations, NodePressure, Offender, ThresholdClause};
use crate::KubeletVersion;
use crate::pod::{Container, Pod};
use crate::quantity::Quantity;
use crate::summary::{ContainerStats, PodStats};
use crate::threshold::Resource;

/// Message and annotations of a node-pressure eviction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PressureEviction {
    /// Message of the event and of the pod's status.
    pub message: NodePressure,
    /// Annotations of the event; `None` for a pod without statistics.
    pub annotations: Option<Annotations>,
}

/// Returns the message and the annotations of the eviction of `pod` to reclaim `resource`.
///
/// `stats` are the pod's statistics in the Summary that the eviction is based on. The message names
/// containers in their order.
pub fn pressure_eviction(
    version: &KubeletVersion,
    pod: &Pod,
    stats: Option<&PodStats>,
    resource: Resource,
    threshold: Option<ThresholdClause>,
) -> PressureEviction {
    let mut message = NodePressure { resource, threshold, pod: None, containers: vec![] };
    let Some(stats) = stats else { return PressureEviction { message, annotations: None } };
    message.pod = pod_offender(version, pod, stats, resource);
    for container in &stats.containers {
        let spec = reportable_containers(version, pod).find(|spec| spec.name == container.name);
        let (Some(spec), Some(usage)) = (spec, container_usage(container, resource)) else { continue };
        let usage = Quantity::from_bytes(usage);
        let request = spec.request_or_zero(resource.as_str());
        if usage > request {
            message.containers.push(Offender { name: container.name.clone(), usage, request });
        }
    }
    let annotations = Annotations::new(resource, message.pod.as_ref(), &message.containers);
    PressureEviction { message, annotations: Some(annotations) }
}

/// Returns the containers that a message may name: regular ones, and from 1.32 all init containers.
/// Ephemeral containers are never named.
pub fn reportable_containers<'a>(
    version: &KubeletVersion,
    pod: &'a Pod,
) -> impl Iterator<Item = &'a Container> {
    let init: &[Container] = if version.at_least(32) { &pod.spec.init_containers } else { &[] };
    pod.spec.containers.iter().chain(init)
}

/// Returns a container's usage in bytes as messages print it.
///
/// Returns `None` if the statistics are missing, and for inodes and process IDs, which messages do
/// not attribute to containers.
pub fn container_usage(container: &ContainerStats, resource: Resource) -> Option<i64> {
    match resource {
        Resource::Memory => container.working_set(),
        Resource::EphemeralStorage => container.disk_usage(),
        Resource::Inodes | Resource::Pids => None,
    }
}

/// Returns the pod that the message of 1.34 and newer names. The kubelet does not compare usage and
/// request: a pod within its request is named as well.
fn pod_offender(
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
