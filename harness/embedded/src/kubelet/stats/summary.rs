//! Summary from the last measurements.

use std::time::Duration;

use evictlab_rules::summary::{
    ContainerStats, CpuStats, FsStats, MemoryStats, NodeStats, PodRef, PodStats, ProcessStats, Rlimit,
    RuntimeStats, Sample, SystemContainer, VolumeStats,
};
use evictlab_rules::threshold::{FsLayout, Resource};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta;
use rand::seq::SliceRandom;

use super::group::{Group, Measured};
use super::state::VolumeUse;
use crate::context::SimContext;
use crate::defect::Defect;
use crate::kubelet::pods::{ActivePod, RunningContainer};
use crate::kubelet::state::Kubelet;
use crate::machine::{Cgroup, DiskUse, Filesystem, Machine, MemoryUse};
use crate::resource::ObjectExt;
use crate::sim::{Epoch, SimTime};

/// Size of a pod's `/etc/hosts`.
const ETC_HOSTS: DiskUse = DiskUse { bytes: 4096, inodes: 1 };

impl Kubelet {
    /// Returns the Summary (`stats/v1alpha1`). With `fresh`, the node and the cgroup of all pods
    /// are measured first, as for the eviction manager. Fails before cAdvisor's first measurement.
    pub(crate) fn summary(
        &mut self,
        fresh: bool,
        machine: &Machine,
        ctx: &mut SimContext,
    ) -> Result<Sample, String> {
        if fresh && self.stats.begun {
            self.stats_measure(&Cgroup::Root, machine, ctx);
            self.stats_measure(&Cgroup::Pods, machine, ctx);
        }
        let builder = SummaryBuilder::new(self, machine, ctx)?;
        let node = builder.node();
        let mut pods = Vec::new();
        for active in self.pods.active() {
            let metadata = &active.pod.metadata;
            if !ctx.faults.has_stats(ctx.now, &metadata.namespace, &metadata.name) {
                continue;
            }
            let mut listed = self.pods.with_statistics(&metadata.uid, ctx.now);
            if listed.is_empty() {
                continue;
            }
            self.omit_containers(&active, &mut listed);
            listed.shuffle(ctx.rng);
            pods.push(builder.pod(&active, &listed));
        }
        // containerd returns pods from a map.
        pods.shuffle(ctx.rng);
        Ok(Sample { t: 0.0, node, pods })
    }
}

impl Kubelet {
    /// Returns whether cAdvisor has measured the root cgroup.
    pub(in crate::kubelet) fn has_measured_root(&self) -> bool {
        self.stats.groups.get(&Cgroup::Root).is_some_and(|group| group.last.is_some())
    }

    /// Removes the containers that a defect omits from the Summary, and adds those that it lists.
    fn omit_containers(&self, active: &ActivePod, listed: &mut Vec<RunningContainer>) {
        let spec = &active.pod.spec;
        if self.has(Defect::SummaryOmitsSidecars) {
            listed.retain(|one| !spec.init_containers.iter().any(|sidecar| sidecar.name == one.name));
        }
        if self.has(Defect::SummaryOmitsLastContainer) && spec.containers.len() > 1 {
            listed.retain(|one| spec.containers.last().is_none_or(|last| last.name != one.name));
        }
        if self.has(Defect::SummaryListsTerminated) {
            let ended = self.pods.terminated(&active.pod.metadata.uid);
            let is_new = |one: &RunningContainer| listed.iter().all(|listed| listed.id != one.id);
            let ended: Vec<_> = ended.into_iter().filter(is_new).collect();
            listed.extend(ended);
        }
    }
}

/// Sources of a Summary.
struct SummaryBuilder<'a> {
    kubelet: &'a Kubelet,
    machine: &'a Machine,
    now: SimTime,
    /// Calendar time at the start of the cluster.
    epoch: Epoch,
    root: (&'a Group, Measured),
    /// True if statistics of pods and containers are the runtime's (`listPodStatsStrictlyFromCRI`
    /// of `pkg/kubelet/stats/cri_stats_provider.go`) instead of cAdvisor's.
    is_from_runtime: bool,
}

impl<'a> SummaryBuilder<'a> {
    fn new(kubelet: &'a Kubelet, machine: &'a Machine, ctx: &SimContext) -> Result<Self, String> {
        let root = kubelet.stats.groups.get(&Cgroup::Root).and_then(|group| Some((group, group.last?)));
        let root = root.ok_or(
            "failed to get root cgroup stats: failed to get cgroup stats for \"/\": failed to get container info for \"/\": \
             unknown container \"/\"",
        )?;
        let gates = &kubelet.config.settings.gates;
        let is_from_runtime = gates.statistics_from_runtime && !kubelet.has(Defect::SummaryNeverFromRuntime);
        Ok(Self { kubelet, machine, now: ctx.now, epoch: ctx.epoch(), root, is_from_runtime })
    }

    fn date(&self, time: SimTime) -> Timestamp {
        self.epoch.at(time)
    }

    fn node(&self) -> NodeStats {
        let (group, root) = self.root;
        let stats = &self.kubelet.stats;
        let total = self.machine.memory_total();
        let time = self.date(root.at);
        let layers_at = stats.layers_at.map_or(time, |at| self.date(at));
        let images = self.kubelet.status.images.used();
        let image_fs = self.images_fs(layers_at, images);
        // containerd has one file system for images and layers (`ImageFsStats` of
        // `cri_stats_provider.go`); cAdvisor, for CRI-O, measures two.
        let container_fs = match self.machine.fs_layout() {
            FsLayout::SplitImagefs => self.fs(time, stats.filesystem.used),
            FsLayout::Single | FsLayout::DedicatedImagefs => image_fs.clone(),
        };
        let container_fs = self.kubelet.options.version.at_least(29).then_some(container_fs);
        NodeStats {
            node_name: self.kubelet.options.name.clone(),
            system_containers: self.system(),
            start_time: Some(self.date(SimTime::ZERO)),
            cpu: Some(self.cpu(group, root)),
            memory: Some(self.node_memory(total, root)),
            fs: Some(self.fs(time, stats.filesystem.used)),
            runtime: Some(RuntimeStats { image_fs: Some(image_fs), container_fs }),
            rlimit: Some(Rlimit {
                time: Some(self.date(self.now)),
                maxpid: Some(signed(self.max_pids())),
                curproc: Some(signed(self.processes())),
            }),
        }
    }

    /// Returns the number of processes of the node.
    fn processes(&self) -> u64 {
        if self.kubelet.has(Defect::SummaryNodeCountsRunnable) {
            1
        } else {
            self.machine.processes(&Cgroup::Root)
        }
    }

    /// Returns the number of process IDs of the node, the smaller of the kernel's two limits
    /// (`rlimitStats`).
    fn max_pids(&self) -> u64 {
        if self.kubelet.has(Defect::NodePidsOfLargerLimit) {
            self.machine.threads_max()
        } else {
            self.machine.max_pid()
        }
    }

    fn node_memory(&self, total: u64, root: Measured) -> MemoryStats {
        let used = if self.kubelet.has(Defect::SummaryNodeCountsCache) {
            root.memory.usage
        } else {
            root.memory.working_set
        };
        // Since 1.37 (`adjustForHugePages` of `pkg/kubelet/server/stats/summary.go`,
        // kubernetes/kubernetes#138127).
        let version = &self.kubelet.options.version;
        let is_aware = if self.kubelet.config.settings.gates.huge_pages_are_unavailable {
            !self.kubelet.has(Defect::SummaryCountsHugePages)
        } else {
            self.kubelet.has(Defect::SummaryNeverCountsHugePages) && version.at_least(37)
        };
        let huge_pages = if is_aware { self.kubelet.status.huge_pages } else { 0 };
        MemoryStats {
            available_bytes: Some(signed(total.saturating_sub(used).saturating_sub(huge_pages))),
            working_set_bytes: Some(signed(used)),
            ..self.memory(root)
        }
    }

    fn system(&self) -> Vec<SystemContainer> {
        let mut all = Vec::with_capacity(2);
        let (root_group, root) = self.root;
        // containerd, which is a part of the memory that the node uses without pods.
        let usage = self.kubelet.options.memory_used / 2;
        let runtime = Measured {
            memory: MemoryUse { usage, working_set: usage, rss: usage / 3 },
            cpu: Duration::ZERO,
            ..root
        };
        all.push(SystemContainer {
            name: "runtime".to_owned(),
            start_time: Some(self.date(SimTime::ZERO)),
            cpu: Some(self.cpu(root_group, runtime)),
            memory: Some(self.memory(runtime)),
        });
        let pods = self.kubelet.stats.groups.get(&Cgroup::Pods);
        if let Some((group, last)) = pods.and_then(|group| Some((group, group.last?))) {
            let limit = self.kubelet.config.settings.pods_limit;
            all.push(SystemContainer {
                name: "pods".to_owned(),
                start_time: Some(self.date(group.since)),
                cpu: Some(self.cpu(group, last)),
                memory: Some(self.limited_memory(limit, last)),
            });
        }
        all
    }

    fn pod(&self, active: &ActivePod, running: &[RunningContainer]) -> PodStats {
        let metadata = &active.pod.metadata;
        let containers: Vec<(ContainerStats, Option<u64>)> =
            running.iter().map(|one| self.container(active, one)).collect();
        // Since 1.31 the sum over the containers that cAdvisor knows; before, the processes in the
        // pod's own cgroup, which has none (`addProcessStats`).
        let counts = containers.iter().filter_map(|(_, count)| *count);
        let count = match () {
            () if self.kubelet.has(Defect::SummaryProcessesOfLargest) => counts.max(),
            () if self.kubelet.has(Defect::SummaryCountsDescriptors) => {
                // Each process has stdin, stdout and stderr.
                counts.reduce(|one, other| one + other).map(|count| 3 * count)
            }
            () => counts.reduce(|one, other| one + other),
        };
        let containers: Vec<ContainerStats> =
            containers.into_iter().map(|(container, _)| container).collect();
        let group = Cgroup::Pod(metadata.uid.clone());
        let measured = self.kubelet.stats.groups.get(&group).and_then(|group| Some((group, group.last?)));
        let (cpu, memory) = match measured {
            _ if self.is_from_runtime => {
                let (cpu, memory) = self.runtime_stats(&group, None);
                (Some(cpu), Some(memory))
            }
            Some((group, last)) => (Some(self.cpu(group, last)), Some(self.pod_memory(active, last))),
            // cAdvisor does not know the pod yet.
            None => (None, Self::memory_sum(&containers)),
        };
        let count = match () {
            () if self.is_from_runtime => Some(self.machine.processes(&group)),
            () if self.kubelet.options.version.at_least(31) => count,
            () => measured.map(|_| 0),
        };
        let volume = self.volumes(&metadata.uid);
        let created = active.object.status().read::<Option<meta::v1::Time>>("startTime").map(|time| time.0);
        let since = running.iter().map(|one| one.started).min().unwrap_or(self.now);
        PodStats {
            pod_ref: PodRef {
                name: metadata.name.clone(),
                namespace: metadata.namespace.clone(),
                uid: metadata.uid.clone(),
            },
            start_time: Some(created.unwrap_or_else(|| self.date(since))),
            ephemeral_storage: Some(self.ephemeral_storage(&metadata.uid, &containers)),
            containers,
            cpu,
            memory,
            volume,
            process_stats: count
                .filter(|_| !self.kubelet.has(Defect::SummaryOmitsProcesses))
                .map(|count| ProcessStats { process_count: Some(signed(count)) }),
        }
    }

    /// Returns the statistics of a container, and its process count in cAdvisor.
    fn container(&self, active: &ActivePod, running: &RunningContainer) -> (ContainerStats, Option<u64>) {
        let stats = &self.kubelet.stats;
        let group = Cgroup::Container(running.id.clone());
        let known = stats.groups.get(&group).filter(|group| group.is_alive() && !self.is_from_runtime);
        let spec = &active.pod.spec;
        let mut all = spec.containers.iter().chain(&spec.init_containers);
        let stated = all.find(|container| container.name == running.name);
        let limit = stated.and_then(|container| container.resources.limits.get(Resource::Memory.as_str()));
        let limit = limit.map(|limit| u64::try_from(limit.value()).unwrap_or(0));
        let (cpu, memory, count) = match known.and_then(|known| Some((known, known.last?))) {
            Some((known, last)) => {
                let mut memory = self.limited_memory(limit, last);
                if self.kubelet.has(Defect::SummaryCountsCache) {
                    memory.working_set_bytes = memory.usage_bytes;
                }
                if self.kubelet.has(Defect::SummaryUsageIsWorkingSet) {
                    memory.usage_bytes = memory.working_set_bytes;
                }
                (self.cpu(known, last), memory, Some(last.processes))
            }
            None => {
                let (cpu, memory) = self.runtime_stats(&group, limit);
                (cpu, memory, None)
            }
        };
        let layer = stats.layers.get(&running.id).copied();
        // The time is zero (1970) before the snapshotter's first measurement.
        let measured = layer.and(stats.layers_at).map_or(Timestamp::UNIX_EPOCH, |at| self.date(at));
        let logs = self.logs(&active.pod.metadata.uid, &running.name);
        let container = ContainerStats {
            name: running.name.clone(),
            start_time: Some(self.date(running.started)),
            cpu: Some(cpu),
            memory: Some(memory),
            rootfs: Some(self.layers_fs(measured, layer.unwrap_or_default())),
            logs: Some(self.fs(self.date(self.now), logs)),
        };
        (container, count)
    }

    /// Returns the usage of a container's log directory, which also has the logs of earlier
    /// attempts that still exist (`podContainerLogMetrics` of
    /// `pkg/kubelet/stats/host_stats_provider.go`).
    fn logs(&self, uid: &str, name: &str) -> DiskUse {
        let used = |id: &str| {
            if self.kubelet.has(Defect::RotatedLogsIgnored) {
                self.machine.current_log_use(id)
            } else {
                self.machine.log_use(id)
            }
        };
        self.kubelet.pods.attempts(uid, name).map(used).sum()
    }

    /// Returns the runtime's statistics of a pod or container, which are always current; since 1.34
    /// they have more fields (`makeContainerStats`).
    fn runtime_stats(&self, group: &Cgroup, limit: Option<u64>) -> (CpuStats, MemoryStats) {
        let time = Some(self.date(self.now));
        let used = self.machine.memory(group).unwrap_or_default();
        let nanos = u64::try_from(self.machine.cpu(group).as_nanos()).unwrap_or(u64::MAX);
        let cpu = CpuStats { time, usage_nano_cores: Some(0), usage_core_nano_seconds: Some(nanos) };
        let more = self.kubelet.options.version.at_least(34);
        let left = limit.map_or(0, |limit| limit.saturating_sub(used.working_set));
        let memory = MemoryStats {
            time,
            available_bytes: more.then(|| signed(left)),
            usage_bytes: more.then(|| signed(used.usage)),
            working_set_bytes: Some(signed(used.working_set)),
            rss_bytes: more.then(|| signed(used.rss)),
        };
        (cpu, memory)
    }

    /// Returns the memory of a pod's cgroup.
    fn pod_memory(&self, active: &ActivePod, last: Measured) -> MemoryStats {
        let limit = active.pod.memory_limit().and_then(|limit| u64::try_from(limit.value()).ok());
        self.limited_memory(limit, last)
    }

    /// Returns the memory of a cgroup with a limit.
    fn limited_memory(&self, limit: Option<u64>, last: Measured) -> MemoryStats {
        let left = limit.map(|limit| signed(limit.saturating_sub(last.memory.working_set)));
        MemoryStats { available_bytes: left, ..self.memory(last) }
    }

    /// Returns the sum of the containers' memory.
    fn memory_sum(containers: &[ContainerStats]) -> Option<MemoryStats> {
        let parts = || containers.iter().filter_map(|container| container.memory.as_ref());
        let sum = |part: fn(&MemoryStats) -> Option<i64>| Some(parts().filter_map(part).sum());
        Some(MemoryStats {
            time: parts().next()?.time,
            available_bytes: sum(|memory| memory.available_bytes),
            usage_bytes: sum(|memory| memory.usage_bytes),
            working_set_bytes: sum(|memory| memory.working_set_bytes),
            rss_bytes: sum(|memory| memory.rss_bytes),
        })
    }

    fn volumes(&self, uid: &str) -> Vec<VolumeStats> {
        let measured = self.kubelet.stats.volumes.get(uid);
        let measured = measured.filter(|_| !self.kubelet.has(Defect::SummaryOmitsVolumes));
        let Some(measured) = measured else { return Vec::new() };
        let time = self.date(measured.at);
        let volume = |volume: &VolumeUse| {
            let fs = match volume.memory {
                Some(size) => {
                    let capacity = DiskUse { bytes: size, inodes: size / 4096 };
                    fs_stats(Filesystem { capacity, used: volume.used }, time, volume.used)
                }
                None => self.fs(time, volume.used),
            };
            VolumeStats { fs, name: volume.name.clone() }
        };
        measured.all.iter().map(volume).collect()
    }

    fn ephemeral_storage(&self, uid: &str, containers: &[ContainerStats]) -> FsStats {
        let parts = containers.iter().flat_map(|container| [&container.rootfs, &container.logs]);
        let amount = |part: Option<i64>| part.unwrap_or(0).unsigned_abs();
        let parts = parts.flatten();
        let parts = parts.map(|fs| DiskUse { bytes: amount(fs.used_bytes), inodes: amount(fs.inodes_used) });
        let measured = self.kubelet.stats.volumes.get(uid);
        let volumes = measured.iter().flat_map(|measured| &measured.all).filter(|volume| volume.ephemeral);
        let used: DiskUse = parts.chain(volumes.map(|volume| volume.used)).sum();
        self.fs(self.date(self.now), used + ETC_HOSTS)
    }

    fn cpu(&self, group: &Group, last: Measured) -> CpuStats {
        CpuStats {
            time: Some(self.date(last.at)),
            usage_nano_cores: Some(group.nano_cores().unwrap_or(0)),
            usage_core_nano_seconds: Some(u64::try_from(last.cpu.as_nanos()).unwrap_or(u64::MAX)),
        }
    }

    fn memory(&self, last: Measured) -> MemoryStats {
        let is_working_set = self.kubelet.has(Defect::SummaryRssIsWorkingSet);
        let rss = if is_working_set { last.memory.working_set } else { last.memory.rss };
        MemoryStats {
            time: Some(self.date(last.at)),
            available_bytes: None,
            usage_bytes: Some(signed(last.memory.usage)),
            working_set_bytes: Some(signed(last.memory.working_set)),
            rss_bytes: (!self.kubelet.has(Defect::SummaryOmitsRss)).then(|| signed(rss)),
        }
    }

    /// Returns statistics of a part of nodefs.
    fn fs(&self, time: Timestamp, used: DiskUse) -> FsStats {
        fs_stats(self.kubelet.stats.filesystem, time, used)
    }

    /// Returns statistics of a part of the file system of images.
    fn images_fs(&self, time: Timestamp, used: DiskUse) -> FsStats {
        let stats = &self.kubelet.stats;
        fs_stats(stats.images_filesystem.unwrap_or(stats.filesystem), time, used)
    }

    /// Returns statistics of a part of the file system of writable layers.
    fn layers_fs(&self, time: Timestamp, used: DiskUse) -> FsStats {
        match self.machine.fs_layout() {
            FsLayout::SplitImagefs => self.fs(time, used),
            FsLayout::Single | FsLayout::DedicatedImagefs => self.images_fs(time, used),
        }
    }
}

/// Returns statistics of a part of a file system. Capacity and free space are those of the whole
/// file system.
fn fs_stats(whole: Filesystem, time: Timestamp, used: DiskUse) -> FsStats {
    let free = whole.capacity.saturating_sub(whole.used);
    FsStats {
        time: Some(time),
        available_bytes: Some(signed(free.bytes)),
        capacity_bytes: Some(signed(whole.capacity.bytes)),
        used_bytes: Some(signed(used.bytes)),
        inodes_free: Some(signed(free.inodes)),
        inodes: Some(signed(whole.capacity.inodes)),
        inodes_used: Some(signed(used.inodes)),
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
