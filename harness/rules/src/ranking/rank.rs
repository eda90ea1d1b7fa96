//! The order of eviction: `rankMemoryPressure`, `rankDiskPressureFunc`, `rankPIDPressure`.

use std::cmp::{Ordering, Reverse};

use crate::KubeletVersion;
use crate::pod::{ContainerStats, FsStats, Pod, PodStats};
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

/// What of a pod's disk usage counts.
struct Counted {
    rootfs: bool,
    logs: bool,
    volumes: bool,
}

/// Sorts pods for eviction, the first to go first. Pods without stats come first; equal ones keep their order, which
/// in the kubelet is arbitrary.
pub fn rank(version: &KubeletVersion, signal: Signal, disks: Disks, pods: &mut [Ranked<'_>]) {
    let resource = signal.resource();
    pods.sort_by(|one, other| {
        let by_priority = one.pod.priority().cmp(&other.pod.priority());
        if resource == Resource::Pids {
            let count =
                |pod: &Ranked<'_>| pod.stats.map(|s| s.process_stats.as_ref().and_then(|p| p.process_count));
            return by_priority.then_with(|| missing_first(count(one), count(other), |a, b| b.cmp(&a)));
        }
        let [one, other] = [one, other].map(|pod| measure(version, signal, disks, pod));
        missing_first(one.as_ref(), other.as_ref(), |a, b| Reverse(a.exceeds).cmp(&Reverse(b.exceeds)))
            .then(by_priority)
            .then_with(|| missing_first(one.as_ref(), other.as_ref(), |a, b| b.excess.cmp(&a.excess)))
    });
}

fn missing_first<T>(one: Option<T>, other: Option<T>, both: impl FnOnce(T, T) -> Ordering) -> Ordering {
    match (one, other) {
        (Some(one), Some(other)) => both(one, other),
        (one, other) => one.is_some().cmp(&other.is_some()),
    }
}

/// Usage against request.
struct Measure {
    exceeds: bool,
    excess: Quantity,
}

fn measure(version: &KubeletVersion, signal: Signal, disks: Disks, pod: &Ranked<'_>) -> Option<Measure> {
    let stats = pod.stats?;
    let resource = signal.resource();
    if resource == Resource::Memory {
        let usage = Quantity::from_bytes(stats.working_set()?);
        let request = pod.pod.request(version, "memory");
        return Some(Measure { exceeds: usage > request, excess: usage - &request });
    }
    let inodes = resource == Resource::Inodes;
    let usage = Quantity::from_bytes(disk_usage(pod.pod, stats, &counted(signal, disks), inodes));
    // The bytes asked for are subtracted even from inodes; nobody asks for inodes.
    let request = pod.pod.request(version, "ephemeral-storage");
    let exceeds = usage > if inodes { Quantity::ZERO } else { request.clone() };
    Some(Measure { exceeds, excess: usage - &request })
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
