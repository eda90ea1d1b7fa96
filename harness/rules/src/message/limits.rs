//! Evictions for exceeded ephemeral-storage limits, independent of node pressure:
//! `localStorageEviction`.

use super::EvictionMessage;
use crate::KubeletVersion;
use crate::pod::{Container, Pod};
use crate::quantity::Quantity;
use crate::summary::{ContainerStats, FsStats, PodStats};

const EPHEMERAL_STORAGE: &str = "ephemeral-storage";

/// Returns the message of the eviction of `pod` for an exceeded limit, or `None` if no limit is
/// exceeded.
///
/// The first exceeded limit counts: of an emptyDir volume, of the pod, of a container in the order
/// of `stats`. `dedicated_imagefs` excludes writable layers from the containers' usage; it is true
/// for a split layout, too ([`FsLayout::has_dedicated_imagefs`](crate::threshold::FsLayout)).
pub fn local_storage_eviction(
    version: &KubeletVersion,
    pod: &Pod,
    stats: &PodStats,
    dedicated_imagefs: bool,
) -> Option<EvictionMessage> {
    exceeded_storage_limits(version, pod, stats, dedicated_imagefs).next()
}

/// Returns the message of each kind of limit that a pod exceeds, in the order in which the kubelet
/// checks them. The kubelet evicts for the first one; it tries all of them on a critical pod, which
/// it does not evict.
pub fn exceeded_storage_limits(
    version: &KubeletVersion,
    pod: &Pod,
    stats: &PodStats,
    dedicated_imagefs: bool,
) -> impl Iterator<Item = EvictionMessage> {
    let checks = [
        check_empty_dirs(pod, stats),
        check_pod(version, pod, stats),
        check_containers(version, pod, stats, dedicated_imagefs),
    ];
    checks.into_iter().flatten()
}

/// Returns the containers whose limit the kubelet enforces: regular ones, and from 1.37
/// sidecars (kubernetes/kubernetes#138462).
pub(crate) fn containers_with_enforced_limit<'a>(
    version: &KubeletVersion,
    pod: &'a Pod,
) -> impl Iterator<Item = &'a Container> {
    let init: &[Container] = if version.at_least(37) { &pod.spec.init_containers } else { &[] };
    pod.spec.containers.iter().chain(init.iter().filter(|container| container.is_sidecar()))
}

fn check_empty_dirs(pod: &Pod, stats: &PodStats) -> Option<EvictionMessage> {
    pod.spec.volumes.iter().find_map(|volume| {
        let limit = volume.empty_dir.as_ref()?.size_limit.clone().filter(|limit| *limit > Quantity::ZERO)?;
        let used = stats.volume.iter().find(|stats| stats.name == volume.name)?.fs.used_bytes?;
        let over = Quantity::from_bytes(used) > limit;
        over.then(|| EvictionMessage::EmptyDirLimit { volume: volume.name.clone(), limit })
    })
}

fn check_pod(version: &KubeletVersion, pod: &Pod, stats: &PodStats) -> Option<EvictionMessage> {
    let limit = pod.storage_limit(version)?;
    let used = Quantity::from_bytes(stats.ephemeral_storage.as_ref()?.used_bytes?);
    (used > limit).then_some(EvictionMessage::PodLimit { limit })
}

fn check_containers(
    version: &KubeletVersion,
    pod: &Pod,
    stats: &PodStats,
    dedicated_imagefs: bool,
) -> Option<EvictionMessage> {
    stats.containers.iter().find_map(|stats| {
        let container =
            containers_with_enforced_limit(version, pod).find(|container| container.name == stats.name)?;
        let limit = container.resources.limits.get(EPHEMERAL_STORAGE).filter(|limit| !limit.is_zero())?;
        let used = Quantity::from_bytes(counted_usage(stats, dedicated_imagefs));
        let message =
            || EvictionMessage::ContainerLimit { container: stats.name.clone(), limit: limit.clone() };
        (used > *limit).then(message)
    })
}

/// Returns the bytes that count towards a container's limit. Writable layers on a dedicated
/// imagefs do not count.
fn counted_usage(stats: &ContainerStats, dedicated_imagefs: bool) -> i64 {
    let used = |fs: &Option<FsStats>| fs.as_ref().and_then(|fs| fs.used_bytes).unwrap_or(0);
    let writable_layer = if dedicated_imagefs { 0 } else { used(&stats.rootfs) };
    used(&stats.logs).saturating_add(writable_layer)
}
