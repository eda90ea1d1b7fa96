//! Order of eviction, with the defects of a kubelet in it.

use std::cmp::{Ordering, Reverse};

use evictlab_rules::KubeletVersion;
use evictlab_rules::pod::{Container, Pod};
use evictlab_rules::ranking::{RankedPod, RequestComparison, compare_with_request, rank_pods};
use evictlab_rules::summary::{FsStats, PodStats};
use evictlab_rules::threshold::{FileSystem, FsLayout, Resource, Signal};

use crate::defect::{Area, Defect, Defects};

/// Key of the order, the first one decides (`orderedBy` of `helpers.go`).
#[derive(Clone, Copy)]
enum Key {
    /// Usage greater than the request first.
    Exceeds,
    /// Lower priority first.
    Priority,
    /// Higher priority first.
    ReversedPriority,
    /// Lower priority first, by a difference of 32 bits.
    OverflowingPriority,
    /// Larger excess over the request first.
    Excess,
    /// Smaller excess over the request first.
    LeastExcess,
    /// Larger usage in proportion to the request first.
    Ratio,
    /// Larger usage first.
    Usage,
    /// More processes first.
    Processes,
    /// Fewer processes first.
    FewestProcesses,
}

/// Amounts of a pod that the keys compare.
struct RankingInputs {
    priority: i64,
    request: Option<RequestComparison>,
    /// `None` for a pod without statistics.
    processes: Option<Option<i64>>,
}

/// Sorts pods into the eviction order of [`rank_pods`], changed by the defects.
pub(super) fn rank(
    version: &KubeletVersion,
    signal: Signal,
    layout: FsLayout,
    pods: &mut Vec<RankedPod<'_>>,
    defects: &Defects,
) {
    if !defects.are_in(Area::Ranking) {
        return rank_pods(version, signal, layout, pods);
    }
    let (signal, layout) = ranked_for(signal, layout, defects);
    let version = if defects.has(Defect::RankOmitsSidecarRequests) {
        KubeletVersion::from_minor(33)
    } else {
        version.clone()
    };
    let of_nodefs = layout == FsLayout::DedicatedImagefs && signal.file_system() == Some(FileSystem::Nodefs);
    let inputs = |pod: &RankedPod<'_>| {
        let mut stats = pod.stats.map(|stats| counted_stats(pod.pod, stats, defects));
        if let Some(stats) = stats.as_mut().filter(|_| of_nodefs) {
            omit_from_nodefs(stats, defects);
        }
        let counted = counted_spec(&version, pod.pod, defects);
        let seen = RankedPod { pod: &counted, stats: stats.as_ref() };
        RankingInputs {
            priority: if defects.has(Defect::RankNegativePriorityIsZero) {
                pod.pod.priority().max(0)
            } else {
                pod.pod.priority()
            },
            request: compare_with_request(&version, signal, layout, &seen).map(|mut compared| {
                if defects.has(Defect::InodeRequestIsStorage) {
                    compared.exceeds = compared.usage > compared.request;
                }
                compared
            }),
            processes: pod.stats.map(|stats| stats.process_stats.as_ref().and_then(|one| one.process_count)),
        }
    };
    let mut keys = keys(signal.resource(), defects);
    if defects.has(Defect::RankPriorityOverflows) {
        let by_priority = keys.iter_mut().filter(|key| matches!(key, Key::Priority));
        by_priority.for_each(|key| *key = Key::OverflowingPriority);
    }
    let mut ranked: Vec<(RankingInputs, RankedPod<'_>)> =
        pods.drain(..).map(|pod| (inputs(&pod), pod)).collect();
    ranked.sort_by(|(left, _), (right, _)| {
        keys.iter().fold(Ordering::Equal, |order, key| order.then_with(|| key.compare(left, right)))
    });
    pods.extend(ranked.into_iter().map(|(_, pod)| pod));
}

/// Returns the signal and the layout by which pods are ranked (`buildSignalToRankFunc`).
fn ranked_for(signal: Signal, layout: FsLayout, defects: &Defects) -> (Signal, FsLayout) {
    let has = |defect: Defect| defects.has(defect);
    let layout = if has(Defect::DiskRankIgnoresLayout) { FsLayout::Single } else { layout };
    let by_bytes = has(Defect::InodeRankByBytes)
        || layout == FsLayout::DedicatedImagefs
            && match signal {
                Signal::NodefsInodesFree => has(Defect::InodeRankNodefsByBytes),
                _ => has(Defect::InodeRankImagefsByBytes),
            };
    let signal = match signal {
        Signal::AllocatableMemoryAvailable if has(Defect::AllocatableRankIsOfPids) => Signal::PidAvailable,
        Signal::NodefsInodesFree if by_bytes => Signal::NodefsAvailable,
        Signal::ImagefsInodesFree if by_bytes => Signal::ImagefsAvailable,
        Signal::ContainerfsInodesFree if by_bytes => Signal::ContainerfsAvailable,
        signal => signal,
    };
    match (layout, signal) {
        (FsLayout::SplitImagefs, Signal::NodefsAvailable | Signal::ContainerfsAvailable)
            if has(Defect::DiskRankSplitOmitsLayers) =>
        {
            (Signal::NodefsAvailable, FsLayout::DedicatedImagefs)
        }
        (FsLayout::SplitImagefs, Signal::NodefsInodesFree | Signal::ContainerfsInodesFree)
            if has(Defect::DiskRankSplitOmitsLayers) =>
        {
            (Signal::NodefsInodesFree, FsLayout::DedicatedImagefs)
        }
        (FsLayout::Single, Signal::ImagefsAvailable) if has(Defect::DiskRankImagefsIsDedicated) => {
            (signal, FsLayout::DedicatedImagefs)
        }
        _ => (signal, layout),
    }
}

/// Removes the parts of a pod's disk usage that do not count for nodefs beside a dedicated imagefs.
fn omit_from_nodefs(stats: &mut PodStats, defects: &Defects) {
    if defects.has(Defect::DiskRankNodefsOmitsVolumes) {
        stats.volume.clear();
    }
    if defects.has(Defect::DiskRankNodefsOmitsLogs) {
        stats.containers.iter_mut().for_each(|container| container.logs = None);
    }
}

/// Returns the parts of a pod that count in the ranking.
fn counted_spec(version: &KubeletVersion, pod: &Pod, defects: &Defects) -> Pod {
    let mut counted = pod.clone();
    if defects.has(Defect::RankOmitsOverhead) {
        counted.spec.overhead.clear();
    }
    if defects.has(Defect::RankOverheadAlone)
        && let Some(first) = counted.spec.containers.first_mut()
    {
        let is_alone = |name: &str| pod.request(version, name).is_zero();
        first
            .resources
            .requests
            .extend(pod.spec.overhead.clone().into_iter().filter(|(name, _)| is_alone(name)));
        counted.spec.overhead.retain(|name, _| !is_alone(name));
    }
    if defects.has(Defect::RankOmitsPodRequests) {
        counted.spec.resources = None;
    }
    if defects.has(Defect::RankOmitsInitRequests) {
        counted.spec.init_containers.retain(Container::is_sidecar);
    }
    if defects.has(Defect::RankRequestOfFirst) {
        counted.spec.containers.truncate(1);
        counted.spec.init_containers.clear();
    }
    if defects.has(Defect::RankByLimits) {
        for container in &mut counted.spec.containers {
            container.resources.requests = container.resources.limits.clone();
        }
    }
    if defects.has(Defect::DiskRankCountsMemoryVolumes) {
        let sources = counted.spec.volumes.iter_mut().filter_map(|volume| volume.empty_dir.as_mut());
        sources.for_each(|source| source.medium = None);
    }
    counted
}

/// Returns the statistics of a pod that count in the ranking.
fn counted_stats(pod: &Pod, stats: &PodStats, defects: &Defects) -> PodStats {
    let mut counted = stats.clone();
    if defects.has(Defect::MemoryRankUsageOfFirst) {
        counted.memory = counted.containers.first().and_then(|first| first.memory.clone());
    }
    if let Some(memory) = &mut counted.memory {
        if defects.has(Defect::MemoryRankCountsCache) {
            memory.working_set_bytes = memory.usage_bytes;
        }
        if defects.has(Defect::MemoryRankByRss) {
            memory.working_set_bytes = memory.rss_bytes;
        }
    }
    if defects.has(Defect::DiskRankOmitsVolumes) {
        counted.volume.clear();
    }
    if defects.has(Defect::InodeRankVolumesAreFileSystems) {
        let all = |fs: &FsStats| fs.inodes.zip(fs.inodes_free).map(|(inodes, free)| inodes - free);
        counted.volume.iter_mut().for_each(|volume| volume.fs.inodes_used = all(&volume.fs));
    }
    for container in &mut counted.containers {
        let is_init = || pod.spec.init_containers.iter().any(|init| init.name == container.name);
        if defects.has(Defect::DiskRankOmitsSidecars) && is_init() {
            (container.logs, container.rootfs) = (None, None);
        }
        if defects.has(Defect::DiskRankOmitsLogs) {
            container.logs = None;
        }
        if let Some(layer) = container.rootfs.as_mut().filter(|_| defects.has(Defect::InodeRankOmitsLayers)) {
            layer.inodes_used = None;
        }
        if defects.has(Defect::DiskRankOmitsLayers) {
            container.rootfs = None;
        }
    }
    counted
}

fn keys(resource: Resource, defects: &Defects) -> Vec<Key> {
    let has = |defect: Defect| defects.has(defect);
    match resource {
        Resource::Pids if has(Defect::PidRankIgnoresPriority) => vec![Key::Processes],
        Resource::Pids if has(Defect::PidRankIgnoresProcesses) => vec![Key::Priority],
        Resource::Pids if has(Defect::PidRankFewestFirst) => vec![Key::Priority, Key::FewestProcesses],
        Resource::Pids => vec![Key::Priority, Key::Processes],
        Resource::Memory if has(Defect::MemoryRankIgnoresRequests) => vec![Key::Priority, Key::Excess],
        Resource::Memory if has(Defect::MemoryRankIgnoresPriority) => vec![Key::Exceeds, Key::Excess],
        Resource::Memory if has(Defect::MemoryRankReversesPriority) => {
            vec![Key::Exceeds, Key::ReversedPriority, Key::Excess]
        }
        Resource::Memory if has(Defect::MemoryRankPriorityFirst) => {
            vec![Key::Priority, Key::Exceeds, Key::Excess]
        }
        Resource::Memory if has(Defect::MemoryRankByUsage) => vec![Key::Exceeds, Key::Priority, Key::Usage],
        Resource::Memory if has(Defect::MemoryRankByRatio) => vec![Key::Exceeds, Key::Priority, Key::Ratio],
        Resource::Memory if has(Defect::MemoryRankLeastFirst) => {
            vec![Key::Exceeds, Key::Priority, Key::LeastExcess]
        }
        Resource::Memory => vec![Key::Exceeds, Key::Priority, Key::Excess],
        _ if has(Defect::DiskRankIgnoresRequests) => vec![Key::Priority, Key::Excess],
        _ if has(Defect::DiskRankIgnoresPriority) => vec![Key::Exceeds, Key::Excess],
        _ if has(Defect::DiskRankByUsage) => vec![Key::Exceeds, Key::Priority, Key::Usage],
        _ if has(Defect::DiskRankLeastFirst) => vec![Key::Exceeds, Key::Priority, Key::LeastExcess],
        _ => vec![Key::Exceeds, Key::Priority, Key::Excess],
    }
}

impl Key {
    /// Compares two pods: `Less` if `left` is evicted first. Pods without statistics come first at
    /// every key except priority.
    fn compare(self, left: &RankingInputs, right: &RankingInputs) -> Ordering {
        let by_request = |compare: fn(&RequestComparison, &RequestComparison) -> Ordering| match (
            &left.request,
            &right.request,
        ) {
            (Some(left), Some(right)) => compare(left, right),
            (left, right) => left.is_some().cmp(&right.is_some()),
        };
        match self {
            Self::Exceeds => by_request(|one, other| Reverse(one.exceeds).cmp(&Reverse(other.exceeds))),
            Self::Priority => left.priority.cmp(&right.priority),
            Self::ReversedPriority => right.priority.cmp(&left.priority),
            Self::OverflowingPriority => (left.priority as i32).wrapping_sub(right.priority as i32).cmp(&0),
            Self::Excess => by_request(|one, other| other.excess.cmp(&one.excess)),
            Self::LeastExcess => by_request(|one, other| one.excess.cmp(&other.excess)),
            Self::Ratio => by_request(|one, other| ratio(other).total_cmp(&ratio(one))),
            Self::Usage => by_request(|one, other| other.usage.cmp(&one.usage)),
            Self::Processes | Self::FewestProcesses => match (left.processes, right.processes) {
                (Some(left), Some(right)) if matches!(self, Self::Processes) => right.cmp(&left),
                (Some(left), Some(right)) => left.cmp(&right),
                (left, right) => left.is_some().cmp(&right.is_some()),
            },
        }
    }
}

/// Returns the usage in proportion to the request.
fn ratio(compared: &RequestComparison) -> f64 {
    compared.usage.value() as f64 / compared.request.value() as f64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn order(signal: Signal, defects: &[Defect]) -> Vec<String> {
        let pod = |(name, priority, request, usage, processes): (&str, i64, &str, i64, i64)| {
            let pod: Pod = serde_json::from_value(json!({
                "metadata": {"name": name, "uid": name},
                "spec": {"priority": priority, "containers": [
                    {"name": "c", "resources": {"requests": {"memory": request}}},
                ]},
            }))
            .unwrap();
            let stats: PodStats = serde_json::from_value(json!({
                "podRef": {"name": name, "namespace": "n", "uid": name},
                "memory": {"workingSetBytes": usage},
                "process_stats": {"process_count": processes},
            }))
            .unwrap();
            (pod, stats)
        };
        let pods = [
            ("within", 0, "500", 400, 1),
            ("over-high", 9, "100", 390, 9),
            ("over-much", 0, "100", 300, 2),
            ("over-little", 0, "290", 310, 3),
        ]
        .map(pod);
        let mut ranked: Vec<_> =
            pods.iter().map(|(pod, stats)| RankedPod { pod, stats: Some(stats) }).collect();
        let defects = defects.iter().copied().collect();
        rank(&KubeletVersion::from_minor(34), signal, FsLayout::Single, &mut ranked, &defects);
        ranked.iter().map(|ranked| ranked.pod.metadata.name.clone()).collect()
    }

    #[test]
    fn defects_change_the_order() {
        const MEMORY: Signal = Signal::MemoryAvailable;
        let usual = ["over-much", "over-little", "over-high", "within"];
        assert_eq!(order(MEMORY, &[]), usual);
        // A defect of another resource does not change it.
        assert_eq!(order(MEMORY, &[Defect::PidRankIgnoresPriority]), usual);
        for (defect, expected) in [
            (Defect::MemoryRankIgnoresRequests, ["over-much", "over-little", "within", "over-high"]),
            (Defect::MemoryRankIgnoresPriority, ["over-high", "over-much", "over-little", "within"]),
            (Defect::MemoryRankReversesPriority, ["over-high", "over-much", "over-little", "within"]),
            (Defect::MemoryRankPriorityFirst, ["over-much", "over-little", "within", "over-high"]),
            (Defect::MemoryRankByUsage, ["over-little", "over-much", "over-high", "within"]),
            (Defect::MemoryRankLeastFirst, ["over-little", "over-much", "over-high", "within"]),
        ] {
            assert_eq!(order(MEMORY, &[defect]), expected, "{defect}");
        }
        let usual = ["over-little", "over-much", "within", "over-high"];
        assert_eq!(order(Signal::PidAvailable, &[]), usual);
        assert_eq!(order(Signal::PidAvailable, &[Defect::PidRankIgnoresPriority])[0], "over-high");
        assert_eq!(order(Signal::PidAvailable, &[Defect::PidRankFewestFirst])[0], "within");
        // Only priorities that are more than 2^31 apart are ranked wrongly.
        assert_eq!(order(Signal::PidAvailable, &[Defect::RankPriorityOverflows]), usual);
    }
}
