//! Containers and pods: groups with files.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rand::RngExt;

use super::cost;
use super::disk::{BLOCK, FileId, StoreId};
use super::groups::{GroupId, PODS, Pages, ROOT};
use super::io::Target;
use super::kernel::Kernel;
use super::log::Log;
use super::process::Pid;
use super::program::Program;
use super::{ContainerSpec, DiskUse, Mount};
use crate::time::Time;
use crate::world::Rng;

/// A container by its place among all that there ever were.
pub(super) type ContainerKey = usize;

/// `/dev/shm` of a pod's containers, which they share: containerd's default size.
const SHM: u64 = 64 << 20;

/// A container, running or ended.
pub(super) struct Container {
    pub id: String,
    pub spec: ContainerSpec,
    /// Its memory while it runs.
    pub group: Option<GroupId>,
    /// What the kernel has charged to it for the group itself.
    pub kernel: u64,
    /// What it has read of its image.
    pub image: FileId,
    pub layer: StoreId,
    /// What the runtime made in the layer.
    pub made: DiskUse,
    pub log: Log,
    /// What the log takes of the disk.
    log_blocks: u64,
    pub members: BTreeSet<Pid>,
    /// Processes and their threads.
    pub tasks: u64,
    pub next_inner: u64,
    pub oom_killed: bool,
    pub cpu: Duration,
}

/// A pod.
pub(super) struct Pod {
    pub group: GroupId,
    pub volumes: BTreeMap<String, StoreId>,
    pub shm: Option<StoreId>,
    /// The most tasks that it may have.
    pub pids_limit: Option<u64>,
    /// Whether its pause process runs.
    pub sandbox: bool,
    /// CPU time of containers that were removed.
    pub cpu: Duration,
}

impl Kernel {
    /// A pod's group exists from its sandbox's start on.
    pub fn start_sandbox(&mut self, uid: &str) {
        if !self.pods.contains_key(uid) {
            let group = self.groups.create(PODS, None);
            let pod = Pod {
                group,
                volumes: BTreeMap::new(),
                shm: None,
                pids_limit: None,
                sandbox: false,
                cpu: Duration::ZERO,
            };
            self.pods.insert(uid.to_owned(), pod);
        }
        let Some(pod) = self.pods.get_mut(uid) else { return };
        if std::mem::replace(&mut pod.sandbox, true) {
            return;
        }
        self.groups.charge(pod.group, sandbox());
        self.groups.charge(ROOT, Pages::anon(cost::SHIM));
        self.tasks += 1 + cost::SHIM_TASKS;
        self.tell_passed();
    }

    pub fn stop_sandbox(&mut self, uid: &str) {
        let Some(pod) = self.pods.get_mut(uid) else { return };
        if !std::mem::replace(&mut pod.sandbox, false) {
            return;
        }
        self.groups.uncharge(pod.group, sandbox());
        self.groups.uncharge(ROOT, Pages::anon(cost::SHIM));
        self.tasks -= 1 + cost::SHIM_TASKS;
        if let Some(shm) = pod.shm.take() {
            self.remove_store(shm);
        }
    }

    pub fn start_container(&mut self, id: String, spec: ContainerSpec, now: Time, rng: &mut Rng) {
        self.now = self.now.max(now);
        self.start_sandbox(&spec.pod);
        let Some(pod) = self.pods.get_mut(&spec.pod) else { return };
        pod.pids_limit = spec.pids_limit;
        let group = self.groups.create(pod.group, spec.memory_limit);
        for mount in &spec.mounts {
            match &mount.host {
                Some(path) => self.make_host_path(path),
                None => self.volume(&spec.pod, mount),
            }
        }
        // No two containers have quite the same.
        let kernel = cost::CONTAINER_KERNEL + rng.random_range(0..8) * BLOCK;
        self.groups.charge(group, Pages::kernel(kernel));
        let image = self.disk.foreign();
        self.groups.cache(group, image, Pages { inactive: cost::CONTAINER_CACHE, ..Pages::default() });
        let made = made(&spec.mounts);
        let layer = self.disk.create_store(None);
        let key = self.next_container;
        self.next_container += 1;
        // A full disk stops nobody from starting here: the kubelet decides that.
        let made = if self.disk.take(made.bytes, made.inodes).is_ok() { made } else { DiskUse::default() };
        let program = Program::of_container(&spec);
        let directory = "/".to_owned();
        self.names.insert(id.clone(), key);
        self.containers.insert(
            key,
            Container {
                id,
                spec,
                group: Some(group),
                kernel,
                image,
                layer,
                made,
                log: Log::default(),
                log_blocks: 0,
                members: BTreeSet::new(),
                tasks: 0,
                next_inner: 0,
                oom_killed: false,
                cpu: Duration::ZERO,
            },
        );
        self.link_log(key);
        let input = self.open(Target::Null);
        let output = self.open(Target::Log { container: key, stderr: false });
        let error = self.open(Target::Log { container: key, stderr: true });
        let mut descriptors = [None; 10];
        descriptors[..3].copy_from_slice(&[Some(input), Some(output), Some(error)]);
        let at = self.now + cost::EXEC;
        if self.begin(key, None, program, descriptors, directory, at).is_err() {
            // No process number is left: the runtime cannot start it (containerd says StartError and 128).
            self.end_container(key, 128);
        }
        for descriptor in [input, output, error] {
            self.close(descriptor);
        }
        self.tell_passed();
    }

    /// The files of a volume; they are made when they are asked for first.
    fn volume(&mut self, uid: &str, mount: &Mount) {
        let Some(pod) = self.pods.get_mut(uid) else { return };
        if pod.volumes.contains_key(&mount.volume) {
            return;
        }
        // Without a limit the kernel gives a tmpfs half of all memory (mm/shmem.c).
        let half = self.groups.total() / 2;
        let size = mount.memory.then(|| mount.size_limit.unwrap_or(half));
        let store = self.disk.create_store(size);
        pod.volumes.insert(mount.volume.clone(), store);
    }

    /// `/dev/shm` of a pod.
    pub fn shm(&mut self, uid: &str) -> Option<StoreId> {
        let pod = self.pods.get_mut(uid)?;
        if pod.shm.is_none() {
            pod.shm = Some(self.disk.create_store(Some(SHM)));
        }
        pod.shm
    }

    /// Takes a tree of files away.
    pub fn remove_store(&mut self, store: StoreId) {
        for file in self.disk.remove_store(store) {
            self.groups.drop_file(file);
        }
    }

    pub fn remove_container(&mut self, id: &str) {
        let Some(key) = self.names.remove(id) else { return };
        let Some(container) = self.containers.remove(&key) else { return };
        self.remove_store(container.layer);
        self.disk.give(container.made.bytes, container.made.inodes);
        self.disk.give(container.log_blocks, u64::from(container.log_blocks > 0));
        self.unlink_log(&container.spec.log_path);
        match self.pods.get_mut(&container.spec.pod) {
            Some(pod) => pod.cpu += container.cpu,
            None => self.cpu += container.cpu,
        }
    }

    pub fn remove_pod(&mut self, uid: &str) {
        self.stop_sandbox(uid);
        let Some(pod) = self.pods.remove(uid) else { return };
        for store in pod.volumes.into_values() {
            self.remove_store(store);
        }
        self.cpu += pod.cpu;
        self.groups.remove(pod.group);
    }

    /// Has the disk hold what the log has grown to.
    pub fn grow_log(&mut self, key: ContainerKey) {
        let Some(container) = self.containers.get_mut(&key) else { return };
        let wanted = container.log.size.next_multiple_of(BLOCK);
        let more = wanted.saturating_sub(container.log_blocks);
        if more > 0 && self.disk.take(more, u64::from(container.log_blocks == 0)).is_ok() {
            container.log_blocks = wanted;
        }
    }

    /// What a container's log takes of the disk.
    pub fn log_blocks(&self, key: ContainerKey) -> DiskUse {
        let bytes = self.containers.get(&key).map_or(0, |container| container.log_blocks);
        DiskUse { bytes, inodes: 1 }
    }
}

fn sandbox() -> Pages {
    let (anon, kernel) = cost::SANDBOX;
    Pages { anon, kernel, ..Pages::default() }
}

/// The directories that a runtime makes in a layer: some always, and one for each part of a mount's path. The service account's are among the
/// first.
fn made(mounts: &[Mount]) -> DiskUse {
    let parts = |mount: &Mount| mount.path.split('/').filter(|part| !part.is_empty()).count() as u64;
    let own = mounts.iter().filter(|mount| !mount.path.starts_with("/var/run/secrets/"));
    let inodes = cost::LAYER_INODES + own.map(parts).sum::<u64>();
    DiskUse { bytes: inodes * BLOCK, inodes }
}
