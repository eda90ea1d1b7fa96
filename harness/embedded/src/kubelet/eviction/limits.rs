//! Limits of local storage, with the defects of a kubelet in their enforcement.

use evictlab_rules::KubeletVersion;
use evictlab_rules::message::{EvictionMessage, exceeded_storage_limits};
use evictlab_rules::pod::{Container, Pod};
use evictlab_rules::quantity::Quantity;
use evictlab_rules::summary::{ContainerStats, FsStats, PodStats};

use crate::defect::{Area, Defect, Defects};

/// Returns the message of each kind of limit that a pod exceeds, as [`exceeded_storage_limits`],
/// changed by the defects.
pub(super) fn exceeded_limits(
    version: &KubeletVersion,
    pod: &Pod,
    stats: &PodStats,
    dedicated_imagefs: bool,
    defects: &Defects,
) -> Vec<EvictionMessage> {
    if !defects.are_in(Area::Limits) {
        return exceeded_storage_limits(version, pod, stats, dedicated_imagefs).collect();
    }
    if defects.has(Defect::LimitsIgnored) {
        return Vec::new();
    }
    let limited = limited(pod, defects);
    let counted = counted_stats(pod, stats, defects);
    let is_unlimited = |container: &Container| !container.resources.limits.contains_key("ephemeral-storage");
    let ignores_pod_limit =
        defects.has(Defect::PodLimitNeedsAllLimits) && pod.spec.containers.iter().any(is_unlimited);
    let messages = exceeded_storage_limits(version, &limited, &counted, dedicated_imagefs)
        .filter(|message| !(ignores_pod_limit && matches!(message, EvictionMessage::PodLimit { .. })));
    let named = |message| match message {
        EvictionMessage::ContainerLimit { limit, .. } if defects.has(Defect::ContainerLimitNamesFirst) => {
            let container = pod.spec.containers.first().map_or_else(String::new, |first| first.name.clone());
            EvictionMessage::ContainerLimit { container, limit }
        }
        message => message,
    };
    let mut messages: Vec<EvictionMessage> = messages.map(named).collect();
    if defects.has(Defect::ContainerLimitIsRequest) {
        let is_of_container =
            |message: &EvictionMessage| matches!(message, EvictionMessage::ContainerLimit { .. });
        let by_requests = with_requests_as_limits(&limited);
        messages.retain(|message| !is_of_container(message));
        let exceeded = exceeded_storage_limits(version, &by_requests, &counted, dedicated_imagefs);
        messages.extend(exceeded.filter(is_of_container));
    }
    if defects.has(Defect::PodLimitCheckedFirst) {
        messages.sort_by_key(|message| !matches!(message, EvictionMessage::PodLimit { .. }));
    }
    messages
}

fn with_requests_as_limits(pod: &Pod) -> Pod {
    let mut pod = pod.clone();
    for container in &mut pod.spec.containers {
        container.resources.limits = container.resources.requests.clone();
    }
    pod
}

/// Returns a pod with the limits that are enforced.
fn limited(pod: &Pod, defects: &Defects) -> Pod {
    const RESOURCE: &str = "ephemeral-storage";
    let mut pod = pod.clone();
    if defects.has(Defect::PodLimitOfFirst) {
        let limited =
            pod.spec.containers.iter_mut().filter(|one| one.resources.limits.contains_key(RESOURCE));
        for container in limited.skip(1) {
            container.resources.limits.remove(RESOURCE);
        }
    }
    if defects.has(Defect::PodLimitOmitsSidecars) {
        let sidecars = pod.spec.init_containers.iter_mut().filter(|container| container.is_sidecar());
        for sidecar in sidecars {
            sidecar.resources.limits.remove(RESOURCE);
        }
    }
    if defects.has(Defect::PodLimitOmitsInit) {
        let plain = pod.spec.init_containers.iter_mut().filter(|container| !container.is_sidecar());
        plain.for_each(|container| drop(container.resources.limits.remove(RESOURCE)));
    }
    if defects.has(Defect::VolumeLimitOfFirst) {
        let sources = pod.spec.volumes.iter_mut().filter_map(|volume| volume.empty_dir.as_mut());
        sources.skip(1).for_each(|source| source.size_limit = None);
    }
    // Nothing is below one byte, and everything that is used is above it.
    let one_byte = Quantity::from_bytes(1);
    if defects.has(Defect::ContainerLimitZeroEnforced) {
        let limits = pod.spec.containers.iter_mut().filter_map(|one| one.resources.limits.get_mut(RESOURCE));
        limits.filter(|limit| limit.is_zero()).for_each(|limit| *limit = one_byte.clone());
    }
    if defects.has(Defect::VolumeLimitZeroEnforced) {
        let sources = pod.spec.volumes.iter_mut().filter_map(|volume| volume.empty_dir.as_mut());
        let limits = sources.filter_map(|source| source.size_limit.as_mut());
        limits.filter(|limit| limit.is_zero()).for_each(|limit| *limit = one_byte.clone());
    }
    pod
}

/// Ratio of a usage that is compared to the actual one, which is as its inverse for the limit. The
/// message keeps the limit.
#[derive(Clone, Copy)]
struct Scale {
    times: i64,
    over: i64,
}

impl Scale {
    /// Returns the scale for defects that ignore, halve and double a limit.
    fn new(defects: &Defects, [ignored, halved, doubled]: [Defect; 3]) -> Self {
        let (times, over) = match () {
            () if defects.has(ignored) => (0, 1),
            () if defects.has(halved) || defects.has(Defect::LimitsHalved) => (2, 1),
            () if defects.has(doubled) || defects.has(Defect::LimitsDoubled) => (1, 2),
            () if defects.has(Defect::LimitsAtFourFifths) => (5, 4),
            () if defects.has(Defect::LimitsAtSixFifths) => (5, 6),
            () => (1, 1),
        };
        Self { times, over }
    }

    fn apply(self, fs: &mut FsStats) {
        fs.used_bytes = fs.used_bytes.map(|used| used.saturating_mul(self.times) / self.over);
    }
}

/// Returns the usages that are compared with the limits.
fn counted_stats(pod: &Pod, stats: &PodStats, defects: &Defects) -> PodStats {
    use Defect::*;
    let mut counted = stats.clone();
    let is_local =
        |name: &str| pod.spec.volumes.iter().any(|volume| volume.name == name && volume.is_local());
    let volumes = |local: bool| -> i64 {
        let chosen = stats.volume.iter().filter(|volume| {
            is_local(&volume.name) == local && pod.spec.volumes.iter().any(|one| one.name == volume.name)
        });
        chosen.filter_map(|volume| volume.fs.used_bytes).sum()
    };
    if let Some(pod) = &mut counted.ephemeral_storage {
        if defects.has(PodLimitOmitsVolumes) {
            pod.used_bytes = pod.used_bytes.map(|used| used - volumes(true));
        }
        if defects.has(PodLimitCountsMemoryVolumes) {
            pod.used_bytes = pod.used_bytes.map(|used| used + volumes(false));
        }
        let of_containers = |part: fn(&ContainerStats) -> Option<&FsStats>| -> i64 {
            let parts = stats.containers.iter().filter_map(part);
            parts.filter_map(|fs| fs.used_bytes).sum()
        };
        if defects.has(PodLimitOmitsLogs) {
            pod.used_bytes = pod.used_bytes.map(|used| used - of_containers(|one| one.logs.as_ref()));
        }
        if defects.has(PodLimitCountsLogsTwice) {
            pod.used_bytes = pod.used_bytes.map(|used| used + of_containers(|one| one.logs.as_ref()));
        }
        if defects.has(PodLimitOmitsLayers) {
            pod.used_bytes = pod.used_bytes.map(|used| used - of_containers(|one| one.rootfs.as_ref()));
        }
        Scale::new(defects, [PodLimitIgnored, PodLimitHalved, PodLimitDoubled]).apply(pod);
    }
    let container_scale =
        Scale::new(defects, [ContainerLimitIgnored, ContainerLimitHalved, ContainerLimitDoubled]);
    for container in &mut counted.containers {
        if defects.has(ContainerLimitOmitsLogs) {
            container.logs = None;
        }
        if defects.has(ContainerLimitOmitsLayers) {
            container.rootfs = None;
        }
        for part in [&mut container.rootfs, &mut container.logs].into_iter().flatten() {
            container_scale.apply(part);
        }
    }
    let volume_scale = Scale::new(defects, [VolumeLimitIgnored, VolumeLimitHalved, VolumeLimitDoubled]);
    for volume in &mut counted.volume {
        volume_scale.apply(&mut volume.fs);
    }
    counted
}
