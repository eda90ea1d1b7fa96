//! Sandboxes, containers and volumes, as containerd and the kubelet create and remove them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use evictlab_rules::quantity::MIB;
use rand::RngExt;

use super::calibration;
use super::cgroups::Pages;
use super::container::{Container, Pod};
use super::disk::{BLOCK, Place};
use super::ids::{ContainerKey, PODS_CGROUP, ROOT_CGROUP, TreeId};
use super::kernel::Kernel;
use super::log::ContainerLog;
use super::open_file::{MAX_DESCRIPTORS, Target};
use super::program::load_container;
use super::types::{ContainerSpec, DiskUse, Mount, OutputStream};
use crate::sim::{Rng, SimTime};

/// The size of a pod's `/dev/shm`, containerd's default, in bytes.
const SHM_SIZE: u64 = 64 * MIB;
/// The exit status that containerd reports for a container that it cannot start.
const START_ERROR: i32 = 128;

impl Kernel {
    /// Starts the sandbox of a pod, and creates its cgroup.
    pub(super) fn start_sandbox(&mut self, uid: &str) {
        if !self.pods.contains_key(uid) {
            let pod = Pod {
                cgroup: self.cgroups.create(PODS_CGROUP, None),
                volumes: BTreeMap::new(),
                shm: None,
                pids_limit: None,
                has_sandbox: false,
                removed_cpu: Duration::ZERO,
            };
            self.pods.insert(uid.to_owned(), pod);
        }
        let Some(pod) = self.pods.get_mut(uid) else { return };
        if std::mem::replace(&mut pod.has_sandbox, true) {
            return;
        }
        self.cgroups.charge(pod.cgroup, sandbox_pages());
        self.cgroups.charge(ROOT_CGROUP, Pages::anon(calibration::SHIM));
        self.tasks += 1 + calibration::SHIM_TASKS;
        self.report_crossed_thresholds();
    }

    /// Stops the sandbox of a pod, and removes its `/dev/shm`.
    pub(super) fn stop_sandbox(&mut self, uid: &str) {
        let Some(pod) = self.pods.get_mut(uid) else { return };
        if !std::mem::replace(&mut pod.has_sandbox, false) {
            return;
        }
        self.cgroups.uncharge(pod.cgroup, sandbox_pages());
        self.cgroups.uncharge(ROOT_CGROUP, Pages::anon(calibration::SHIM));
        self.tasks -= 1 + calibration::SHIM_TASKS;
        if let Some(shm) = pod.shm.take() {
            self.remove_tree(shm);
        }
    }

    /// Creates a container and starts its first process.
    pub(super) fn start_container(&mut self, id: String, spec: ContainerSpec, now: SimTime, rng: &mut Rng) {
        self.advance_to(now);
        self.start_sandbox(&spec.pod);
        let program = load_container(&spec);
        let Some(key) = self.create_container(id, spec, rng) else { return };
        self.link_log(key);
        let stdin = self.open(Target::Null);
        let stdout = self.open(Target::Log { container: key, stream: OutputStream::Stdout });
        let stderr = self.open(Target::Log { container: key, stream: OutputStream::Stderr });
        let mut descriptors = [None; MAX_DESCRIPTORS];
        descriptors[..3].copy_from_slice(&[Some(stdin), Some(stdout), Some(stderr)]);
        if self.start_process(key, None, program, descriptors, self.now + calibration::EXEC).is_err() {
            self.end_container(key, START_ERROR);
        }
        for file in [stdin, stdout, stderr] {
            self.close(file);
        }
        self.report_crossed_thresholds();
    }

    fn create_container(&mut self, id: String, spec: ContainerSpec, rng: &mut Rng) -> Option<ContainerKey> {
        let pod = self.pods.get_mut(&spec.pod)?;
        pod.pids_limit = spec.pids_limit;
        let cgroup = self.cgroups.create(pod.cgroup, spec.memory_limit);
        for mount in &spec.mounts {
            match &mount.host {
                Some(path) => self.create_host_path(path),
                None => self.create_volume(&spec.pod, mount),
            }
        }
        // Real containers differ by some pages.
        let kernel = calibration::CONTAINER_KERNEL + rng.random_range(0..8) * BLOCK;
        self.cgroups.charge(cgroup, Pages::kernel(kernel));
        let image_file = self.disk.new_file_id();
        let cache = Pages { inactive: calibration::CONTAINER_CACHE, ..Pages::default() };
        self.cgroups.cache_file(cgroup, image_file, cache);
        let layer = self.disk.create_tree(Place::Layers);
        // A container starts on a full disk too: admission is the kubelet's task.
        let mount_points = mount_points(&spec.mounts);
        let reserved = self.disk.reserve(Place::Layers, mount_points);
        let mount_points = reserved.map_or_else(|_| DiskUse::default(), |()| mount_points);
        let key = self.next_container;
        self.next_container.0 += 1;
        self.container_keys.insert(id.clone(), key);
        let container = Container {
            id,
            spec,
            cgroup: Some(cgroup),
            kernel,
            image_file,
            layer,
            mount_points,
            log: ContainerLog::default(),
            log_space: DiskUse::default(),
            pids: BTreeSet::new(),
            tasks: 0,
            last_ns_pid: 0,
            oom_killed: false,
            cpu: Duration::ZERO,
        };
        self.containers.insert(key, container);
        Some(key)
    }

    /// Creates the files of a volume, unless another container of the pod has done so.
    fn create_volume(&mut self, uid: &str, mount: &Mount) {
        let Some(pod) = self.pods.get_mut(uid) else { return };
        if pod.volumes.contains_key(&mount.volume) {
            return;
        }
        // The default size of a tmpfs is half of the memory (mm/shmem.c).
        let half = self.cgroups.total() / 2;
        let place = if mount.memory { Place::Memory(mount.size_limit.unwrap_or(half)) } else { Place::Node };
        let tree = self.disk.create_tree(place);
        pod.volumes.insert(mount.volume.clone(), tree);
    }

    /// Returns `/dev/shm` of a pod. Creates it at the first call.
    pub(super) fn shm(&mut self, uid: &str) -> Option<TreeId> {
        let pod = self.pods.get_mut(uid)?;
        if pod.shm.is_none() {
            pod.shm = Some(self.disk.create_tree(Place::Memory(SHM_SIZE)));
        }
        pod.shm
    }

    fn remove_tree(&mut self, tree: TreeId) {
        for file in self.disk.remove_tree(tree) {
            self.cgroups.drop_file(file);
        }
    }

    /// Removes an exited container with its layer and its log.
    pub(super) fn remove_container(&mut self, id: &str) {
        let Some(key) = self.container_keys.remove(id) else { return };
        let Some(container) = self.containers.remove(&key) else { return };
        self.remove_tree(container.layer);
        self.disk.unreserve(Place::Layers, container.mount_points);
        self.disk.unreserve(Place::Node, container.log_space);
        self.unlink_log(&container.spec.log_path);
        match self.pods.get_mut(&container.spec.pod) {
            Some(pod) => pod.removed_cpu += container.cpu,
            None => self.removed_cpu += container.cpu,
        }
    }

    /// Removes a pod with its sandbox, its volumes and its cgroup.
    pub(super) fn remove_pod(&mut self, uid: &str) {
        self.stop_sandbox(uid);
        let Some(pod) = self.pods.remove(uid) else { return };
        for tree in pod.volumes.into_values() {
            self.remove_tree(tree);
        }
        self.removed_cpu += pod.removed_cpu;
        self.cgroups.remove(pod.cgroup);
    }

    /// Reserves disk space for a log that has grown, and frees that of a log that has shrunk. A
    /// full disk truncates nothing.
    pub(super) fn resize_log(&mut self, key: ContainerKey) {
        let Some(container) = self.containers.get_mut(&key) else { return };
        let (before, now) = (container.log_space, container.log.disk_use());
        if now == before {
            return;
        }
        self.disk.unreserve(Place::Node, before);
        container.log_space = match self.disk.reserve(Place::Node, now) {
            Ok(()) => now,
            Err(_) => {
                let _fitted_before = self.disk.reserve(Place::Node, before);
                before
            }
        };
    }

    /// Returns the disk space of a container's log.
    pub(super) fn log_usage(&self, key: ContainerKey) -> DiskUse {
        let space = self.containers.get(&key).map_or_else(DiskUse::default, |container| container.log_space);
        // The file exists before anything is written.
        DiskUse { inodes: space.inodes.max(1), ..space }
    }
}

fn sandbox_pages() -> Pages {
    let (anon, kernel) = calibration::SANDBOX;
    Pages { anon, kernel, ..Pages::default() }
}

/// Returns the directories that the runtime creates in a layer: a fixed number, which includes the
/// service account's, and one for each part of a mount path.
fn mount_points(mounts: &[Mount]) -> DiskUse {
    let parts = |mount: &Mount| mount.path.split('/').filter(|part| !part.is_empty()).count() as u64;
    let mounts = mounts.iter().filter(|mount| !mount.path.starts_with("/var/run/secrets/"));
    let inodes = calibration::LAYER_INODES + mounts.map(parts).sum::<u64>();
    DiskUse { bytes: inodes * BLOCK, inodes }
}
