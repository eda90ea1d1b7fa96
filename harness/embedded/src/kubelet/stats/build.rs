//! Summary from the last measurements.

use std::time::Duration;

use evictlab_rules::threshold::{FsLayout, Resource};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta;
use rand::seq::SliceRandom;

use super::group::{Group, Measured};
use super::state::VolumeUse;
use super::summary::{
    Container, Cpu, Fs, Memory, MetaTime, Node, Pod, PodRef, Processes, Rlimit, Runtime, Summary, System,
    Volume,
};
use crate::context::SimContext;
use crate::defect::Defect;
use crate::kubelet::pods::{ActivePod, RunningContainer};
use crate::kubelet::state::Kubelet;
use crate::machine::{Cgroup, DiskUse, Filesystem, Machine, MemoryUse};
use crate::resource::ObjectExt;
use crate::sim::{Epoch, Time};

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
    ) -> Result<Summary, String> {
        if fresh && self.stats.begun {
            self.stats_measure(&Cgroup::Root, machine, ctx);
            self.stats_measure(&Cgroup::Pods, machine, ctx);
        }
        let builder = SummaryBuilder::of(self, machine, ctx)?;
        let node = builder.node();
        let mut pods = Vec::new();
        for active in self.pods.active() {
            let metadata = &active.pod.metadata;
            if !ctx.faults.has_stats(ctx.now, &metadata.namespace, &metadata.name) {
                continue;
            }
            let mut running = self.pods.running(&metadata.uid);
            if running.is_empty() {
                continue;
            }
            self.omit_containers(&active, &mut running);
            running.shuffle(ctx.rng);
            pods.push(builder.pod(&active, &running));
        }
        // containerd returns pods from a map.
        pods.shuffle(ctx.rng);
        Ok(Summary { node, pods })
    }
}

impl Kubelet {
    /// Returns whether cAdvisor has measured the root cgroup.
    pub(in crate::kubelet) fn has_measured_root(&self) -> bool {
        self.stats.groups.get(&Cgroup::Root).is_some_and(|group| group.last.is_some())
    }

    /// Removes the containers that a defect omits from the Summary, and adds those that it lists.
    fn omit_containers(&self, active: &ActivePod, running: &mut Vec<RunningContainer>) {
        let spec = &active.pod.spec;
        if self.has(Defect::SummaryOmitsSidecars) {
            running.retain(|one| !spec.init_containers.iter().any(|sidecar| sidecar.name == one.name));
        }
        if self.has(Defect::SummaryOmitsLastContainer) && spec.containers.len() > 1 {
            running.retain(|one| spec.containers.last().is_none_or(|last| last.name != one.name));
        }
        if self.has(Defect::SummaryListsTerminated) {
            running.extend(self.pods.terminated(&active.pod.metadata.uid));
        }
    }
}

/// Sources of a Summary.
struct SummaryBuilder<'a> {
    kubelet: &'a Kubelet,
    machine: &'a Machine,
    now: Time,
    /// Calendar time at the start of the cluster.
    epoch: Epoch,
    root: (&'a Group, Measured),
}

impl<'a> SummaryBuilder<'a> {
    fn of(kubelet: &'a Kubelet, machine: &'a Machine, ctx: &SimContext) -> Result<Self, String> {
        let root = kubelet.stats.groups.get(&Cgroup::Root).and_then(|group| Some((group, group.last?)));
        let root = root.ok_or(
            "failed to get root cgroup stats: failed to get cgroup stats for \"/\": failed to get container info for \"/\": \
             unknown container \"/\"",
        )?;
        Ok(Self { kubelet, machine, now: ctx.now, epoch: ctx.epoch(), root })
    }

    fn meta_time(&self, time: Time) -> MetaTime {
        MetaTime(self.epoch.at(time))
    }

    fn node(&self) -> Node {
        let (group, root) = self.root;
        let stats = &self.kubelet.stats;
        let total = self.machine.memory_total();
        let time = self.meta_time(root.at);
        let layers_at = stats.layers_at.map_or(time, |at| self.meta_time(at));
        let images = self.kubelet.status.images.used();
        let image_fs = self.images_fs(layers_at, images);
        // containerd has one file system for images and layers (`ImageFsStats` of
        // `cri_stats_provider.go`); cAdvisor, for CRI-O, tells them apart.
        let container_fs = match self.machine.fs_layout() {
            FsLayout::SplitImagefs => self.fs(time, stats.filesystem.used),
            FsLayout::Single | FsLayout::DedicatedImagefs => image_fs,
        };
        let container_fs = self.kubelet.identity.version.at_least(29).then_some(container_fs);
        Node {
            node_name: self.kubelet.identity.node.clone(),
            system_containers: self.system(),
            start_time: self.meta_time(Time::ZERO),
            cpu: self.cpu(group, root),
            memory: self.node_memory(total, root),
            fs: self.fs(time, stats.filesystem.used),
            runtime: Runtime { image_fs, container_fs },
            rlimit: Rlimit {
                time: self.meta_time(self.now),
                maxpid: self.machine.max_pid(),
                curproc: self.machine.processes(&Cgroup::Root),
            },
        }
    }

    fn node_memory(&self, total: u64, root: Measured) -> Memory {
        let used = match self.kubelet.has(Defect::SummaryNodeCountsCache) {
            true => root.memory.usage,
            false => root.memory.working_set,
        };
        Memory {
            available_bytes: Some(total.saturating_sub(used)),
            working_set_bytes: used,
            ..self.memory(root)
        }
    }

    fn system(&self) -> Vec<System> {
        let mut all = Vec::with_capacity(2);
        let (root_group, root) = self.root;
        // containerd, which is a part of the memory that the node uses without pods.
        let usage = self.kubelet.identity.options.memory_used / 2;
        let runtime = Measured {
            memory: MemoryUse { usage, working_set: usage, rss: usage / 3 },
            cpu: Duration::ZERO,
            ..root
        };
        all.push(System {
            name: "runtime",
            start_time: self.meta_time(Time::ZERO),
            cpu: self.cpu(root_group, runtime),
            memory: self.memory(runtime),
        });
        let pods = self.kubelet.stats.groups.get(&Cgroup::Pods);
        if let Some((group, last)) = pods.and_then(|group| Some((group, group.last?))) {
            let limit = self.kubelet.config.settings.pods_limit;
            let left = |limit: u64| limit.saturating_sub(last.memory.working_set);
            all.push(System {
                name: "pods",
                start_time: self.meta_time(group.since),
                cpu: self.cpu(group, last),
                memory: Memory { available_bytes: limit.map(left), ..self.memory(last) },
            });
        }
        all
    }

    fn pod(&self, active: &ActivePod, running: &[RunningContainer]) -> Pod {
        let metadata = &active.pod.metadata;
        let containers: Vec<(Container, Option<u64>)> =
            running.iter().map(|one| self.container(active, one)).collect();
        // Since 1.31 the sum over the containers that cAdvisor knows; before, the processes in the
        // pod's own cgroup, which has none (`addProcessStats`).
        let counts = containers.iter().filter_map(|(_, count)| *count);
        let count = counts.reduce(|one, other| one + other);
        let containers: Vec<Container> = containers.into_iter().map(|(container, _)| container).collect();
        let group = self.kubelet.stats.groups.get(&Cgroup::Pod(metadata.uid.clone()));
        let measured = group.and_then(|group| Some((group, group.last?)));
        let (cpu, memory) = match measured {
            Some((group, last)) => (Some(self.cpu(group, last)), Some(self.pod_memory(active, last))),
            // cAdvisor does not know the pod yet.
            None => (None, self.sum(&containers)),
        };
        let count = match self.kubelet.identity.version.at_least(31) {
            true => count,
            false => measured.map(|_| 0),
        };
        let volume = self.volumes(&metadata.uid);
        let created = active.object.status().read::<Option<meta::v1::Time>>("startTime").map(|time| time.0);
        let since = running.iter().map(|one| one.started).min().unwrap_or(self.now);
        Pod {
            pod_ref: PodRef {
                name: metadata.name.clone(),
                namespace: metadata.namespace.clone(),
                uid: metadata.uid.clone(),
            },
            start_time: created.map_or_else(|| self.meta_time(since), MetaTime),
            ephemeral_storage: self.ephemeral_storage(&metadata.uid, &containers),
            containers,
            cpu,
            memory,
            volume,
            process_stats: count
                .filter(|_| !self.kubelet.has(Defect::SummaryOmitsProcesses))
                .map(|process_count| Processes { process_count }),
        }
    }

    /// Returns the statistics of a container, and its process count in cAdvisor.
    fn container(&self, active: &ActivePod, running: &RunningContainer) -> (Container, Option<u64>) {
        let stats = &self.kubelet.stats;
        let group = Cgroup::Container(running.id.clone());
        let known = stats.groups.get(&group).filter(|group| group.is_alive());
        let spec = &active.pod.spec;
        let mut all = spec.containers.iter().chain(&spec.init_containers);
        let stated = all.find(|container| container.name == running.name);
        let limit = stated.and_then(|container| container.resources.limits.get(Resource::Memory.as_str()));
        let limit = limit.map(|limit| u64::try_from(limit.value()).unwrap_or(0));
        let (cpu, memory, count) = match known.and_then(|known| Some((known, known.last?))) {
            Some((known, last)) => {
                let left = limit.map(|limit| limit.saturating_sub(last.memory.working_set));
                let mut memory = Memory { available_bytes: left, ..self.memory(last) };
                if self.kubelet.has(Defect::SummaryCountsCache) {
                    memory.working_set_bytes = last.memory.usage;
                }
                (self.cpu(known, last), memory, Some(last.processes))
            }
            None => self.by_runtime(&group, limit),
        };
        let layer = stats.layers.get(&running.id).copied();
        // The time is zero (1970) before the snapshotter's first measurement.
        let measured =
            layer.and(stats.layers_at).map_or(MetaTime(Timestamp::UNIX_EPOCH), |at| self.meta_time(at));
        let logs = self.machine.log_use(&running.id);
        let container = Container {
            name: running.name.clone(),
            start_time: self.meta_time(running.started),
            cpu,
            memory,
            rootfs: self.layers_fs(measured, layer.unwrap_or_default()),
            logs: self.fs(self.meta_time(self.now), logs),
        };
        (container, count)
    }

    /// Returns the runtime's statistics, which are always current; since 1.34 they have more fields
    /// (`makeContainerStats`).
    fn by_runtime(&self, group: &Cgroup, limit: Option<u64>) -> (Cpu, Memory, Option<u64>) {
        let time = self.meta_time(self.now);
        let used = self.machine.memory(group).unwrap_or_default();
        let nanos = u64::try_from(self.machine.cpu(group).as_nanos()).unwrap_or(u64::MAX);
        let cpu = Cpu { time, usage_nano_cores: Some(0), usage_core_nano_seconds: nanos };
        let more = self.kubelet.identity.version.at_least(34);
        let memory = Memory {
            time,
            available_bytes: more.then(|| limit.map_or(0, |limit| limit.saturating_sub(used.working_set))),
            usage_bytes: more.then_some(used.usage),
            working_set_bytes: used.working_set,
            rss_bytes: more.then_some(used.rss),
        };
        (cpu, memory, None)
    }

    /// Returns the memory of a pod's cgroup, which has a limit if all containers have one.
    fn pod_memory(&self, active: &ActivePod, last: Measured) -> Memory {
        let limits = active.pod.spec.containers.iter();
        let limit: Option<i64> = limits
            .map(|container| Some(container.resources.limits.get("memory")?.value()))
            .try_fold(0_i64, |sum, limit| Some(sum.saturating_add(limit?)));
        let limit = limit.and_then(|limit| u64::try_from(limit).ok()).filter(|limit| *limit > 0);
        let left = limit.map(|limit| limit.saturating_sub(last.memory.working_set));
        Memory { available_bytes: left, ..self.memory(last) }
    }

    fn sum(&self, containers: &[Container]) -> Option<Memory> {
        let of = |part: fn(&Memory) -> Option<u64>| -> Option<u64> {
            Some(containers.iter().filter_map(|container| part(&container.memory)).sum())
        };
        Some(Memory {
            time: containers.first()?.memory.time,
            available_bytes: of(|memory| memory.available_bytes),
            usage_bytes: of(|memory| memory.usage_bytes),
            working_set_bytes: containers.iter().map(|container| container.memory.working_set_bytes).sum(),
            rss_bytes: of(|memory| memory.rss_bytes),
        })
    }

    fn volumes(&self, uid: &str) -> Vec<Volume> {
        let measured = self.kubelet.stats.volumes.get(uid);
        let measured = measured.filter(|_| !self.kubelet.has(Defect::SummaryOmitsVolumes));
        let Some(measured) = measured else { return Vec::new() };
        let time = self.meta_time(measured.at);
        let volume = |volume: &VolumeUse| {
            let fs = match volume.memory {
                true => self.memory_fs(time, volume.used),
                false => self.fs(time, volume.used),
            };
            Volume { fs, name: volume.name.clone() }
        };
        measured.all.iter().map(volume).collect()
    }

    fn ephemeral_storage(&self, uid: &str, containers: &[Container]) -> Fs {
        let parts = containers.iter().flat_map(|container| [&container.rootfs, &container.logs]);
        let parts = parts.map(|fs| DiskUse { bytes: fs.used_bytes, inodes: fs.inodes_used });
        let measured = self.kubelet.stats.volumes.get(uid);
        let volumes = measured.iter().flat_map(|measured| &measured.all).filter(|volume| volume.ephemeral);
        let used = parts.chain(volumes.map(|volume| volume.used)).fold(ETC_HOSTS, |sum, part| DiskUse {
            bytes: sum.bytes + part.bytes,
            inodes: sum.inodes + part.inodes,
        });
        self.fs(self.meta_time(self.now), used)
    }

    fn cpu(&self, group: &Group, last: Measured) -> Cpu {
        Cpu {
            time: self.meta_time(last.at),
            usage_nano_cores: Some(group.nano_cores().unwrap_or(0)),
            usage_core_nano_seconds: u64::try_from(last.cpu.as_nanos()).unwrap_or(u64::MAX),
        }
    }

    fn memory(&self, last: Measured) -> Memory {
        Memory {
            time: self.meta_time(last.at),
            available_bytes: None,
            usage_bytes: Some(last.memory.usage),
            working_set_bytes: last.memory.working_set,
            rss_bytes: (!self.kubelet.has(Defect::SummaryOmitsRss)).then_some(last.memory.rss),
        }
    }

    /// Returns statistics of a part of nodefs.
    fn fs(&self, time: MetaTime, used: DiskUse) -> Fs {
        Self::part_of(self.kubelet.stats.filesystem, time, used)
    }

    /// Returns statistics of a part of the file system of images.
    fn images_fs(&self, time: MetaTime, used: DiskUse) -> Fs {
        let stats = &self.kubelet.stats;
        Self::part_of(stats.images_filesystem.unwrap_or(stats.filesystem), time, used)
    }

    /// Returns statistics of a part of the file system of writable layers.
    fn layers_fs(&self, time: MetaTime, used: DiskUse) -> Fs {
        match self.machine.fs_layout() {
            FsLayout::SplitImagefs => self.fs(time, used),
            FsLayout::Single | FsLayout::DedicatedImagefs => self.images_fs(time, used),
        }
    }

    /// Returns statistics of a part of a file system. Capacity and free space are from the node's
    /// last measurement.
    fn part_of(whole: Filesystem, time: MetaTime, used: DiskUse) -> Fs {
        let Filesystem { capacity, used: all } = whole;
        Fs {
            time,
            available_bytes: capacity.bytes.saturating_sub(all.bytes),
            capacity_bytes: capacity.bytes,
            used_bytes: used.bytes,
            inodes_free: capacity.inodes.saturating_sub(all.inodes),
            inodes: capacity.inodes,
            inodes_used: used.inodes,
        }
    }

    /// Returns statistics of a part of a tmpfs, whose capacity is the node's memory.
    fn memory_fs(&self, time: MetaTime, used: DiskUse) -> Fs {
        let capacity = self.machine.memory_total();
        let inodes = capacity / 4096;
        Fs {
            time,
            available_bytes: capacity.saturating_sub(used.bytes),
            capacity_bytes: capacity,
            used_bytes: used.bytes,
            inodes_free: inodes.saturating_sub(used.inodes),
            inodes,
            inodes_used: used.inodes,
        }
    }
}
