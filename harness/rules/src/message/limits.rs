//! Local-storage limits, checked on every loop and without any pressure: `localStorageEviction`.

use super::EvictionMessage;
use crate::KubeletVersion;
use crate::pod::{Container, ContainerStats, Pod, PodStats};
use crate::quantity::Quantity;

const RESOURCE: &str = "ephemeral-storage";

/// What a kubelet says when it evicts `pod` for its own limits; none if it is within them. The first check that
/// fails decides: emptyDir volumes, then the pod, then each container in the order of `stats`.
pub fn local_storage_eviction(
    version: &KubeletVersion,
    pod: &Pod,
    stats: &PodStats,
    dedicated_imagefs: bool,
) -> Option<EvictionMessage> {
    empty_dir(pod, stats)
        .or_else(|| whole_pod(version, pod, stats))
        .or_else(|| container(version, pod, stats, dedicated_imagefs))
}

/// The containers whose own limit is enforced: regular ones; sidecars only with kubernetes/kubernetes#138462, which
/// came after 1.36.
pub(crate) fn enforced<'a>(version: &KubeletVersion, pod: &'a Pod) -> impl Iterator<Item = &'a Container> {
    let init: &[Container] = if version.at_least(37) { &pod.spec.init_containers } else { &[] };
    pod.spec.containers.iter().chain(init.iter().filter(|container| container.is_sidecar()))
}

fn empty_dir(pod: &Pod, stats: &PodStats) -> Option<EvictionMessage> {
    pod.spec.volumes.iter().find_map(|volume| {
        let limit = volume.empty_dir.as_ref()?.size_limit.clone().filter(|limit| *limit > Quantity::ZERO)?;
        let used = stats.volume.iter().find(|stats| stats.name == volume.name)?.fs.used_bytes?;
        let over = Quantity::from_bytes(used) > limit;
        over.then(|| EvictionMessage::EmptyDirLimit { volume: volume.name.clone(), limit })
    })
}

fn whole_pod(version: &KubeletVersion, pod: &Pod, stats: &PodStats) -> Option<EvictionMessage> {
    let limit = pod.storage_limit(version)?;
    let used = Quantity::from_bytes(stats.ephemeral_storage.as_ref()?.used_bytes?);
    (used > limit).then_some(EvictionMessage::PodLimit { limit })
}

fn container(
    version: &KubeletVersion,
    pod: &Pod,
    stats: &PodStats,
    dedicated_imagefs: bool,
) -> Option<EvictionMessage> {
    stats.containers.iter().find_map(|stats| {
        let container = enforced(version, pod).find(|container| container.name == stats.name)?;
        let limit = container.resources.limits.get(RESOURCE).filter(|limit| !limit.is_zero())?;
        let used = Quantity::from_bytes(counted(stats, dedicated_imagefs));
        let message =
            || EvictionMessage::ContainerLimit { container: stats.name.clone(), limit: limit.clone() };
        (used > *limit).then(message)
    })
}

/// Logs, and what was written unless that lies on a file system of its own.
fn counted(stats: &ContainerStats, dedicated_imagefs: bool) -> i64 {
    let used = |fs: &Option<crate::pod::FsStats>| fs.as_ref().and_then(|fs| fs.used_bytes).unwrap_or(0);
    let written = if dedicated_imagefs { 0 } else { used(&stats.rootfs) };
    used(&stats.logs).saturating_add(written)
}
