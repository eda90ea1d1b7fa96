//! Paths as a container sees them.

use super::cgroups::Pages;
use super::disk::FileKind;
use super::errno::Errno;
use super::ids::{FileId, OpenFileId, Pid, TreeId};
use super::kernel::Kernel;
use super::open_file::Target;
use super::types::OutputStream;

/// Directories that every image has, relative to its root.
const IMAGE_DIRECTORIES: [&str; 27] = [
    "",
    "bin",
    "dev",
    "etc",
    "home",
    "lib",
    "media",
    "mnt",
    "opt",
    "proc",
    "root",
    "run",
    "sbin",
    "srv",
    "sys",
    "sys/fs",
    "tmp",
    "usr",
    "usr/bin",
    "usr/lib",
    "usr/local",
    "usr/share",
    "var",
    "var/cache",
    "var/lib",
    "var/log",
    "var/tmp",
];

/// The object that a path refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Location {
    /// A device.
    Device(Target),
    /// A descriptor of the process itself.
    Descriptor(usize),
    /// A file of `/proc` or `/sys`, with its content.
    Procfs(String),
    /// A name in a file tree without a leading slash; empty for the root of the tree. The file may
    /// not exist.
    Entry(TreeId, String),
}

/// The mode of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpenMode {
    Read,
    /// For writing, with O_TRUNC.
    Truncate,
    /// For writing, with O_APPEND.
    Append,
    /// For writing from the start of the existing content.
    Update,
}

/// Returns a path as an absolute one without `.` and `..`. The working directory is `/`.
fn absolute(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Returns the rest of an absolute path below a directory, without a leading slash.
fn below<'a>(path: &'a str, directory: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(directory.trim_end_matches('/'))?;
    (rest.is_empty() || rest.starts_with('/')).then(|| rest.trim_start_matches('/'))
}

impl Kernel {
    /// Resolves a path of a process; returns `None` if the process does not exist.
    pub(super) fn resolve(&mut self, pid: Pid, path: &str) -> Option<Location> {
        let path = absolute(path);
        match path.as_str() {
            "/dev/null" => return Some(Location::Device(Target::Null)),
            "/dev/zero" => return Some(Location::Device(Target::Zero)),
            "/dev/urandom" | "/dev/random" => return Some(Location::Device(Target::Random)),
            "/dev/stdin" | "/proc/self/fd/0" => return Some(Location::Descriptor(0)),
            "/dev/stdout" | "/proc/self/fd/1" => return Some(Location::Descriptor(1)),
            "/dev/stderr" | "/proc/self/fd/2" => return Some(Location::Descriptor(2)),
            "/proc/1/fd/1" | "/proc/1/fd/2" => {
                let container = self.processes.get(&pid)?.container;
                let stream = if path.ends_with('1') { OutputStream::Stdout } else { OutputStream::Stderr };
                return Some(Location::Device(Target::Log { container, stream }));
            }
            _ => {}
        }
        if let Some(text) = self.procfs_file(pid, &path) {
            return Some(Location::Procfs(text));
        }
        let container = self.container_of(pid)?;
        let pod = &container.spec.pod;
        // The mount with the longest path hides the others.
        let mounts = container.spec.mounts.iter();
        let mount = mounts
            .filter_map(|mount| Some((mount, below(&path, &mount.path)?)))
            .max_by_key(|(mount, _)| mount.path.len());
        if let Some((mount, name)) = mount {
            if let Some(host_path) = &mount.host {
                return Some(self.host_path_location(host_path, name));
            }
            let tree = *self.pods.get(pod)?.volumes.get(&mount.volume)?;
            return Some(Location::Entry(tree, name.to_owned()));
        }
        if let Some(name) = below(&path, "/dev/shm") {
            let pod = pod.clone();
            return Some(Location::Entry(self.shm(&pod)?, name.to_owned()));
        }
        Some(Location::Entry(container.layer, path.trim_start_matches('/').to_owned()))
    }

    /// Returns whether a name in a tree is a directory: of the disk, the image or a mount path.
    pub(super) fn is_directory(&self, pid: Pid, tree: TreeId, name: &str) -> bool {
        if name.is_empty() {
            return true;
        }
        if let Some(id) = self.disk.lookup(tree, name) {
            return self.disk.file(id).is_some_and(|file| file.kind == FileKind::Directory);
        }
        let Some(container) = self.container_of(pid) else { return false };
        let is_on_mount_path = |mount: &str| below(mount.trim_start_matches('/'), name).is_some();
        tree == container.layer
            && (self.procfs_directory(&format!("/{name}")).is_some()
                || IMAGE_DIRECTORIES.contains(&name)
                || is_on_mount_path("/dev/shm")
                || container.spec.mounts.iter().any(|mount| is_on_mount_path(&mount.path)))
    }

    /// Returns whether the parent directory of a name exists.
    pub(super) fn parent_exists(&self, pid: Pid, tree: TreeId, name: &str) -> bool {
        self.is_directory(pid, tree, name.rsplit_once('/').map_or("", |(parent, _)| parent))
    }

    /// Opens a path; creates a missing file unless it is opened for reading.
    pub(super) fn open_path(&mut self, pid: Pid, path: &str, mode: OpenMode) -> Result<OpenFileId, Errno> {
        match self.resolve(pid, path).ok_or(Errno::NotFound)? {
            Location::Device(target) => Ok(self.open(target)),
            Location::Procfs(text) => self.open_text(text, mode),
            Location::Descriptor(descriptor) => {
                let id = self.descriptor(pid, descriptor).ok_or(Errno::BadDescriptor)?;
                self.retain(id);
                Ok(id)
            }
            Location::Entry(tree, name) => self.open_entry(pid, tree, &name, mode),
        }
    }

    fn open_text(&mut self, text: String, mode: OpenMode) -> Result<OpenFileId, Errno> {
        if mode != OpenMode::Read {
            return Err(Errno::ReadOnly);
        }
        Ok(self.open(Target::Text { text: text.into_bytes().into(), offset: 0 }))
    }

    fn open_entry(
        &mut self,
        pid: Pid,
        tree: TreeId,
        name: &str,
        mode: OpenMode,
    ) -> Result<OpenFileId, Errno> {
        if self.is_directory(pid, tree, name) {
            return Err(Errno::IsDirectory);
        }
        let id = match self.disk.lookup(tree, name) {
            Some(id) => id,
            None if mode == OpenMode::Read || !self.parent_exists(pid, tree, name) => {
                return Err(Errno::NotFound);
            }
            None => self.disk.create(tree, name, FileKind::Regular).map_err(|_| Errno::NoSpace)?,
        };
        if let Some(FileKind::Log(key)) = self.disk.file(id).map(|file| file.kind) {
            return self.open_text(self.log_text(key), mode);
        }
        if mode == OpenMode::Truncate {
            self.truncate(id);
        }
        Ok(self.open(Target::File { id, offset: 0, append: mode == OpenMode::Append }))
    }

    fn truncate(&mut self, id: FileId) {
        // Shrinking a file needs no space.
        let _ = self.disk.resize(id, 0, false);
        if let Some(file) = self.disk.file_mut(id) {
            file.referenced = false;
        }
        self.cgroups.drop_file(id);
    }

    /// Returns the names in a directory.
    pub(super) fn list_directory(&mut self, pid: Pid, path: &str) -> Vec<String> {
        let Some(Location::Entry(tree, name)) = self.resolve(pid, path) else { return Vec::new() };
        let virtual_names = self.procfs_directory(&absolute(path)).unwrap_or_default();
        let prefix = if name.is_empty() { String::new() } else { format!("{name}/") };
        let names = self.disk.names(tree, &prefix).filter_map(|name| name.strip_prefix(&prefix));
        let names = names.chain(virtual_names.iter().copied());
        names.filter(|name| !name.is_empty() && !name.contains('/')).map(str::to_owned).collect()
    }

    /// Creates a directory. With `parents`, creates missing parents and accepts an existing
    /// directory.
    pub(super) fn create_directory(&mut self, pid: Pid, path: &str, parents: bool) -> Result<(), Errno> {
        let Some(Location::Entry(tree, name)) = self.resolve(pid, path) else { return Err(Errno::Exists) };
        if self.is_directory(pid, tree, &name) || self.disk.lookup(tree, &name).is_some() {
            return if parents { Ok(()) } else { Err(Errno::Exists) };
        }
        if !self.parent_exists(pid, tree, &name) {
            if !parents {
                return Err(Errno::NotFound);
            }
            if let Some((parent, _)) = path.trim_end_matches('/').rsplit_once('/') {
                self.create_directory(pid, parent, true)?;
            }
        }
        self.disk.create(tree, &name, FileKind::Directory).map_err(|_| Errno::NoSpace)?;
        Ok(())
    }

    /// Removes a file, or a directory with its content.
    pub(super) fn remove_path(&mut self, pid: Pid, path: &str) -> Result<(), Errno> {
        let Some(Location::Entry(tree, name)) = self.resolve(pid, path) else { return Ok(()) };
        let id = self.disk.lookup(tree, &name).ok_or(Errno::NotFound)?;
        if self.disk.file(id).is_some_and(|file| file.kind == FileKind::Directory) {
            let content = format!("{name}/");
            let content: Vec<String> = self.disk.names(tree, &content).map(str::to_owned).collect();
            for name in content {
                let removed = self.disk.unlink(tree, &name);
                self.drop_pages(removed);
            }
        }
        let removed = self.disk.unlink(tree, &name);
        self.drop_pages(removed);
        Ok(())
    }

    /// Allocates blocks for a file of a size (`fallocate`).
    pub(super) fn allocate_file(&mut self, pid: Pid, id: FileId, size: u64) -> Result<(), Errno> {
        let before = self.disk.file(id).map_or(0, |file| file.blocks);
        self.disk.resize(id, size, true).map_err(|_| Errno::NoSpace)?;
        let Some(file) = self.disk.file(id) else { return Ok(()) };
        if self.disk.is_tmpfs(file.tree) {
            // The blocks of a tmpfs are memory.
            let pages = Pages { shmem: file.blocks - before, ..Pages::default() };
            return self.cache_file(pid, id, pages);
        }
        Ok(())
    }
}
