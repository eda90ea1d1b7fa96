//! The eviction order: `rankMemoryPressure`, `rankDiskPressureFunc`, `rankPIDPressure`.

use std::cmp::{Ordering, Reverse};

use crate::KubeletVersion;
use crate::pod::Pod;
use crate::quantity::Quantity;
use crate::summary::{ContainerStats, FsStats, PodStats};
use crate::threshold::{FileSystem, FsLayout, Resource, Signal};

/// A pod with its statistics in the Summary that an eviction is based on.
#[derive(Clone, Copy, Debug)]
pub struct RankedPod<'a> {
    /// Pod to rank.
    pub pod: &'a Pod,
    /// Statistics; `None` for a pod without running containers.
    pub stats: Option<&'a PodStats>,
}

/// Parts of a pod's disk usage that count for a signal.
struct DiskUsageParts {
    rootfs: bool,
    logs: bool,
    volumes: bool,
}

/// Sorts pods into the eviction order, the first to be evicted first.
///
/// Equal pods keep their order, which is arbitrary in the kubelet. See [`compare_pods`].
pub fn rank_pods(version: &KubeletVersion, signal: Signal, layout: FsLayout, pods: &mut [RankedPod<'_>]) {
    pods.sort_by(|left, right| compare_pods(version, signal, layout, left, right));
}

/// Compares two pods: `Less` if `left` is evicted first, `Equal` if the kubelet's order is
/// arbitrary.
///
/// For memory and disk, pods over their request come first, then pods of lower priority, then pods
/// with the larger excess. For process IDs, pods of lower priority come first, then pods with more
/// processes. Pods that the Summary does not contain come before pods with statistics at each of
/// these steps except priority.
pub fn compare_pods(
    version: &KubeletVersion,
    signal: Signal,
    layout: FsLayout,
    left: &RankedPod<'_>,
    right: &RankedPod<'_>,
) -> Ordering {
    let by_priority = left.pod.priority().cmp(&right.pod.priority());
    if signal.resource() == Resource::Pids {
        let counts = (process_count(left), process_count(right));
        return by_priority.then_with(|| missing_first(counts.0, counts.1, |a, b| b.cmp(&a)));
    }
    let [left, right] = [left, right].map(|pod| compare_with_request(version, signal, layout, pod));
    missing_first(left.as_ref(), right.as_ref(), |a, b| Reverse(a.exceeds).cmp(&Reverse(b.exceeds)))
        .then(by_priority)
        .then_with(|| missing_first(left.as_ref(), right.as_ref(), |a, b| b.excess.cmp(&a.excess)))
}

/// Returns the number of processes by which a pod is ranked; `None` for a pod that the Summary does
/// not contain. A number that its statistics lack counts as 0 (`processUsage` in `helpers.go`).
pub fn process_count(pod: &RankedPod<'_>) -> Option<i64> {
    let stats = pod.stats?;
    Some(stats.process_stats.as_ref().and_then(|stats| stats.process_count).unwrap_or(0))
}

/// Orders `None` before `Some`, and two `Some` by `compare`.
fn missing_first<T>(left: Option<T>, right: Option<T>, compare: impl FnOnce(T, T) -> Ordering) -> Ordering {
    match (left, right) {
        (Some(left), Some(right)) => compare(left, right),
        (left, right) => left.is_some().cmp(&right.is_some()),
    }
}

/// Usage and request of a pod, as ranking for memory and disk compares them.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestComparison {
    /// Usage of the signal's resource.
    pub usage: Quantity,
    /// Request of the resource; for inodes the request of bytes.
    pub request: Quantity,
    /// True if the usage is greater than the request; for inodes, if any inode is used.
    pub exceeds: bool,
    /// Usage minus request.
    pub excess: Quantity,
}

/// Compares a pod's usage with its request; `None` for a pod that the Summary does not contain. A
/// figure that its statistics lack counts as 0 (`memoryUsage`, `diskUsage` in `helpers.go`).
pub fn compare_with_request(
    version: &KubeletVersion,
    signal: Signal,
    layout: FsLayout,
    pod: &RankedPod<'_>,
) -> Option<RequestComparison> {
    let stats = pod.stats?;
    let resource = signal.resource();
    if resource == Resource::Memory {
        let usage = Quantity::from_bytes(stats.working_set().unwrap_or(0));
        let request = pod.pod.request(version, "memory");
        let excess = usage.clone() - &request;
        return Some(RequestComparison { exceeds: usage > request, usage, request, excess });
    }
    let inodes = resource == Resource::Inodes;
    let usage = Quantity::from_bytes(disk_usage(pod.pod, stats, &counted_parts(signal, layout), inodes));
    // The kubelet subtracts the request of bytes even from inodes: inodes cannot be requested.
    let request = pod.pod.request(version, "ephemeral-storage");
    let exceeds = usage > if inodes { Quantity::ZERO } else { request.clone() };
    let excess = usage.clone() - &request;
    Some(RequestComparison { usage, request, exceeds, excess })
}

/// Returns the parts that are on the signal's file system.
fn counted_parts(signal: Signal, layout: FsLayout) -> DiskUsageParts {
    let has = |rootfs, others| DiskUsageParts { rootfs, logs: others, volumes: others };
    let Some(file_system) = signal.file_system() else { return has(false, false) };
    match (layout, file_system) {
        (FsLayout::Single, _) => has(true, true),
        (FsLayout::DedicatedImagefs, FileSystem::Nodefs) => has(false, true),
        (FsLayout::DedicatedImagefs, FileSystem::Imagefs | FileSystem::Containerfs) => has(true, false),
        (FsLayout::SplitImagefs, FileSystem::Imagefs) => has(false, false),
        (FsLayout::SplitImagefs, FileSystem::Nodefs | FileSystem::Containerfs) => has(true, true),
    }
}

/// Returns the pod's disk usage in bytes or in inodes. Missing statistics count as 0.
fn disk_usage(pod: &Pod, stats: &PodStats, counted: &DiskUsageParts, inodes: bool) -> i64 {
    let used = |fs: &FsStats| if inodes { fs.inodes_used } else { fs.used_bytes }.unwrap_or(0);
    let part = |wanted: bool, fs: &Option<FsStats>| fs.as_ref().filter(|_| wanted).map_or(0, used);
    let container = |container: &ContainerStats| {
        part(counted.rootfs, &container.rootfs).saturating_add(part(counted.logs, &container.logs))
    };
    let local = |name: &str| pod.spec.volumes.iter().any(|volume| volume.name == name && volume.is_local());
    let volumes =
        stats.volume.iter().filter(|volume| counted.volumes && local(&volume.name)).map(|v| used(&v.fs));
    stats.containers.iter().map(container).chain(volumes).fold(0, i64::saturating_add)
}
