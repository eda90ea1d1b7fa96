//! The order of eviction: `rankMemoryPressure`, `rankDiskPressureFunc`, `rankPIDPressure`.

use std::cmp::{Ordering, Reverse};

use crate::KubeletVersion;
use crate::pod::{ContainerStats, FsStats, NodeStats, Pod, PodStats};
use crate::quantity::Quantity;
use crate::threshold::{Resource, Signal};

/// A pod with its stats in the Summary that the kubelet goes by; a pod without running containers has none.
#[derive(Clone, Copy, Debug)]
pub struct Ranked<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// Its figures.
    pub stats: Option<&'a PodStats>,
}

/// How the kubelet's, the images' and the containers' file systems are laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Disks {
    /// All on one, as in kind.
    #[default]
    Single,
    /// Images and writable layers on one of their own.
    DedicatedImages,
    /// Images alone on one of their own (1.29 and newer).
    Split,
}

impl Disks {
    /// The layout that a Summary shows. The kubelet compares devices, which are not told: file systems with the same bytes and the same inodes
    /// in all are taken for one.
    pub fn of(node: &NodeStats) -> Self {
        let size = |fs: &FsStats| (fs.capacity_bytes, fs.inodes);
        let runtime = node.runtime.as_ref();
        let images = runtime.and_then(|runtime| runtime.image_fs.as_ref()).map(size);
        let containers = runtime.and_then(|runtime| runtime.container_fs.as_ref()).map(size);
        match (node.fs.as_ref().map(size), images, containers) {
            (Some(nodefs), Some(images), containers) if images != nodefs => match containers {
                Some(containers) if containers != images => Self::Split,
                _ => Self::DedicatedImages,
            },
            _ => Self::Single,
        }
    }
}

/// What of a pod's disk usage counts.
struct Counted {
    rootfs: bool,
    logs: bool,
    volumes: bool,
}

/// Sorts pods for eviction, the first to go first. Pods without stats come first; equal ones keep their order, which
/// in the kubelet is arbitrary.
pub fn rank(version: &KubeletVersion, signal: Signal, disks: Disks, pods: &mut [Ranked<'_>]) {
    pods.sort_by(|one, other| compare(version, signal, disks, one, other));
}

/// Whether one pod goes before the other (`Less`); which of two equal ones goes first is left to chance.
pub fn compare(
    version: &KubeletVersion,
    signal: Signal,
    disks: Disks,
    one: &Ranked<'_>,
    other: &Ranked<'_>,
) -> Ordering {
    let by_priority = one.pod.priority().cmp(&other.pod.priority());
    if signal.resource() == Resource::Pids {
        let count =
            |pod: &Ranked<'_>| pod.stats.map(|s| s.process_stats.as_ref().and_then(|p| p.process_count));
        return by_priority.then_with(|| missing_first(count(one), count(other), |a, b| b.cmp(&a)));
    }
    let [one, other] = [one, other].map(|pod| measure(version, signal, disks, pod));
    missing_first(one.as_ref(), other.as_ref(), |a, b| Reverse(a.exceeds).cmp(&Reverse(b.exceeds)))
        .then(by_priority)
        .then_with(|| missing_first(one.as_ref(), other.as_ref(), |a, b| b.excess.cmp(&a.excess)))
}

fn missing_first<T>(one: Option<T>, other: Option<T>, both: impl FnOnce(T, T) -> Ordering) -> Ordering {
    match (one, other) {
        (Some(one), Some(other)) => both(one, other),
        (one, other) => one.is_some().cmp(&other.is_some()),
    }
}

/// Usage against request, as ranking for memory and disk compares them.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// What of the signal's resource counts as used.
    pub usage: Quantity,
    /// The request; for inodes that of bytes.
    pub request: Quantity,
    /// Whether the pod counts as one that uses more than it asked for.
    pub exceeds: bool,
    /// Usage less request.
    pub excess: Quantity,
}

/// What a pod is ranked by; none without stats.
pub fn measure(version: &KubeletVersion, signal: Signal, disks: Disks, pod: &Ranked<'_>) -> Option<Measure> {
    let stats = pod.stats?;
    let resource = signal.resource();
    if resource == Resource::Memory {
        let usage = Quantity::from_bytes(stats.working_set()?);
        let request = pod.pod.request(version, "memory");
        let excess = usage.clone() - &request;
        return Some(Measure { exceeds: usage > request, usage, request, excess });
    }
    let inodes = resource == Resource::Inodes;
    let usage = Quantity::from_bytes(disk_usage(pod.pod, stats, &counted(signal, disks), inodes));
    // The bytes asked for are subtracted even from inodes; nobody asks for inodes.
    let request = pod.pod.request(version, "ephemeral-storage");
    let exceeds = usage > if inodes { Quantity::ZERO } else { request.clone() };
    let excess = usage.clone() - &request;
    Some(Measure { usage, request, exceeds, excess })
}

fn counted(signal: Signal, disks: Disks) -> Counted {
    let images = matches!(signal, Signal::ImagefsAvailable | Signal::ImagefsInodesFree);
    let containers = matches!(signal, Signal::ContainerfsAvailable | Signal::ContainerfsInodesFree);
    match disks {
        Disks::Single => Counted { rootfs: true, logs: true, volumes: true },
        Disks::DedicatedImages if images || containers => {
            Counted { rootfs: true, logs: false, volumes: false }
        }
        Disks::DedicatedImages => Counted { rootfs: false, logs: true, volumes: true },
        Disks::Split if images => Counted { rootfs: false, logs: false, volumes: false },
        Disks::Split => Counted { rootfs: true, logs: true, volumes: true },
    }
}

fn disk_usage(pod: &Pod, stats: &PodStats, counted: &Counted, inodes: bool) -> i64 {
    let of = |fs: &FsStats| if inodes { fs.inodes_used } else { fs.used_bytes }.unwrap_or(0);
    let part = |wanted: bool, fs: &Option<FsStats>| fs.as_ref().filter(|_| wanted).map_or(0, of);
    let container = |container: &ContainerStats| {
        part(counted.rootfs, &container.rootfs).saturating_add(part(counted.logs, &container.logs))
    };
    let local = |name: &str| pod.spec.volumes.iter().any(|volume| volume.name == name && volume.is_local());
    let volumes =
        stats.volume.iter().filter(|volume| counted.volumes && local(&volume.name)).map(|v| of(&v.fs));
    stats.containers.iter().map(container).chain(volumes).fold(0, i64::saturating_add)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn file_systems_are_told_apart_by_their_sizes() {
        let fs = |capacity: i64, inodes: i64| json!({"capacityBytes": capacity, "inodes": inodes, "availableBytes": 1});
        let (node, other, third) = (fs(100, 10), fs(100, 20), fs(50, 10));
        let rows = [
            (json!({"fs": node, "runtime": {"imageFs": node, "containerFs": node}}), Disks::Single),
            (
                json!({"fs": node, "runtime": {"imageFs": other, "containerFs": other}}),
                Disks::DedicatedImages,
            ),
            (json!({"fs": node, "runtime": {"imageFs": third}}), Disks::DedicatedImages),
            (json!({"fs": node, "runtime": {"imageFs": third, "containerFs": node}}), Disks::Split),
            (json!({"fs": node}), Disks::Single),
            (json!({}), Disks::Single),
        ];
        for (summary, disks) in rows {
            let node: NodeStats = serde_json::from_value(summary.clone()).unwrap();
            assert_eq!(Disks::of(&node), disks, "{summary}");
        }
    }
}
