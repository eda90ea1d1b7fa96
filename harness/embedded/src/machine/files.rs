//! Paths, as a container sees them.

use super::disk::{FileId, FileKind, StoreId};
use super::groups::Pages;
use super::io::{OpenId, Target};
use super::kernel::{Errno, Kernel};
use super::process::Pid;

/// Directories that every image has.
const COMMON: [&str; 27] = [
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

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A device.
    Device(Target),
    /// One of the process's own descriptors.
    Descriptor(usize),
    /// A file that the kernel makes when it is read, with what is in it now.
    Fact(String),
    /// A name in a tree of files, without a slash at its beginning; the tree's root has none.
    Name(StoreId, String),
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Read,
    /// Emptied first.
    Write,
    Append,
    /// Neither emptied nor at its end (`conv=notrunc`).
    Keep,
}

impl Kernel {
    /// A path from the process's directory on, without dots, with a slash at its beginning.
    pub fn absolute(&self, me: Pid, path: &str) -> String {
        let from = self.processes.get(&me).map_or("/", |process| process.directory.as_str());
        let whole = if path.starts_with('/') { path.to_owned() } else { format!("{from}/{path}") };
        let mut parts = Vec::new();
        for part in whole.split('/') {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        format!("/{}", parts.join("/"))
    }

    pub fn place(&mut self, me: Pid, path: &str) -> Option<Place> {
        let path = self.absolute(me, path);
        match path.as_str() {
            "/dev/null" => return Some(Place::Device(Target::Null)),
            "/dev/zero" => return Some(Place::Device(Target::Zero)),
            "/dev/urandom" | "/dev/random" => return Some(Place::Device(Target::Random)),
            "/dev/full" => return Some(Place::Device(Target::Full)),
            "/dev/stdin" | "/proc/self/fd/0" => return Some(Place::Descriptor(0)),
            "/dev/stdout" | "/proc/self/fd/1" => return Some(Place::Descriptor(1)),
            "/dev/stderr" | "/proc/self/fd/2" => return Some(Place::Descriptor(2)),
            "/proc/1/fd/1" | "/proc/1/fd/2" => {
                let container = self.processes.get(&me)?.container;
                return Some(Place::Device(Target::Log { container, stderr: path.ends_with('2') }));
            }
            _ => {}
        }
        if let Some(text) = self.fact(me, &path) {
            return Some(Place::Fact(text));
        }
        let container = self.container(me)?;
        let mounts = container.spec.mounts.iter();
        let within = |mount: &str| {
            let rest = path.strip_prefix(mount.trim_end_matches('/'))?;
            (rest.is_empty() || rest.starts_with('/')).then(|| rest.trim_start_matches('/').to_owned())
        };
        let best = mounts
            .filter_map(|mount| Some((mount.path.len(), mount, within(&mount.path)?)))
            .max_by_key(|(len, ..)| *len);
        let pod = &container.spec.pod;
        if let Some((_, mount, name)) = best {
            if let Some(host) = &mount.host {
                return Some(self.on_host(host, &name));
            }
            let volume = mount.volume.as_str();
            return Some(Place::Name(*self.pods.get(pod)?.volumes.get(volume)?, name));
        }
        if let Some(name) = within("/dev/shm") {
            let pod = pod.clone();
            return Some(Place::Name(self.shm(&pod)?, name));
        }
        Some(Place::Name(container.layer, path.trim_start_matches('/').to_owned()))
    }

    /// Whether there is a directory of this name.
    pub fn is_directory(&self, me: Pid, store: StoreId, name: &str) -> bool {
        if name.is_empty() {
            return true;
        }
        if let Some(id) = self.disk.named(store, name) {
            return self.disk.file(id).is_some_and(|file| file.kind == FileKind::Directory);
        }
        let Some(container) = self.container(me) else { return false };
        let way = |mount: &str| {
            let mount = mount.trim_start_matches('/');
            mount == name || mount.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'))
        };
        store == container.layer
            && (self.facts(&format!("/{name}")).is_some()
                || COMMON.contains(&name)
                || way("/dev/shm")
                || container.spec.mounts.iter().any(|mount| way(&mount.path)))
    }

    /// Whether the directory that would hold a name is there.
    pub fn has_parent(&self, me: Pid, store: StoreId, name: &str) -> bool {
        self.is_directory(me, store, name.rsplit_once('/').map_or("", |(parent, _)| parent))
    }

    /// Opens a path.
    pub fn open_path(&mut self, me: Pid, path: &str, mode: Mode) -> Result<OpenId, Errno> {
        match self.place(me, path).ok_or(Errno::Missing)? {
            Place::Device(target) => Ok(self.open(target)),
            Place::Fact(_) if mode != Mode::Read => Err(Errno::ReadOnly),
            Place::Fact(text) => Ok(self.open(Target::Text { text: text.into_bytes().into(), at: 0 })),
            Place::Descriptor(at) => {
                let id = self
                    .processes
                    .get(&me)
                    .and_then(|process| process.descriptors[at])
                    .ok_or(Errno::BadDescriptor)?;
                self.hold(id);
                Ok(id)
            }
            Place::Name(store, name) => {
                if self.is_directory(me, store, &name) {
                    return Err(Errno::IsDirectory);
                }
                let id = match self.disk.named(store, &name) {
                    Some(id) => id,
                    None if mode == Mode::Read || !self.has_parent(me, store, &name) => {
                        return Err(Errno::Missing);
                    }
                    None => self.disk.create(store, &name, FileKind::Regular).map_err(|_| Errno::NoSpace)?,
                };
                let kind = self.disk.file(id).map(|file| file.kind);
                if let Some(FileKind::Fifo(pipe)) = kind {
                    let target = if mode == Mode::Read { Target::Reader(pipe) } else { Target::Writer(pipe) };
                    return Ok(self.open(target));
                }
                if let Some(FileKind::Log(key)) = kind {
                    let text = self.log_text(key).into_bytes().into();
                    return if mode == Mode::Read {
                        Ok(self.open(Target::Text { text, at: 0 }))
                    } else {
                        Err(Errno::ReadOnly)
                    };
                }
                if mode == Mode::Write {
                    self.empty(id);
                }
                Ok(self.open(Target::File { id, at: 0, append: mode == Mode::Append }))
            }
        }
    }

    /// Empties a file.
    fn empty(&mut self, id: FileId) {
        // Making a file smaller takes no space.
        let _ = self.disk.resize(id, 0, false);
        if let Some(file) = self.disk.file_mut(id) {
            file.referenced = false;
        }
        self.groups.drop_file(id);
    }

    /// The paths that match a pattern's expression, in order; `directory` is where its fixed part ends.
    pub fn matching(&mut self, me: Pid, directory: &str, matches: impl Fn(&str) -> bool) -> Vec<String> {
        let Some(Place::Name(store, name)) = self.place(me, directory) else { return Vec::new() };
        let made = self.facts(&self.absolute(me, directory)).unwrap_or_default();
        let below = if name.is_empty() { String::new() } else { format!("{name}/") };
        let base = directory.trim_end_matches('/');
        self.disk
            .names(store, &below)
            .filter_map(|name| name.strip_prefix(&below))
            .chain(made.iter().copied())
            .filter(|rest| !rest.is_empty())
            .map(|rest| if directory.is_empty() { rest.to_owned() } else { format!("{base}/{rest}") })
            .filter(|path| matches(path))
            .collect()
    }
}

impl Kernel {
    /// `cd`
    pub fn change_directory(&mut self, me: Pid, path: &str) -> Result<(), Errno> {
        let Some(Place::Name(store, name)) = self.place(me, path) else { return Err(Errno::NotDirectory) };
        if !self.is_directory(me, store, &name) {
            return Err(Errno::Missing);
        }
        if let Some(process) = self.processes.get_mut(&me) {
            process.directory = path.to_owned();
        }
        Ok(())
    }

    /// Gives a file a size; `taken` says whether its blocks are taken too.
    pub fn resize_file(&mut self, me: Pid, id: FileId, size: u64, taken: bool) -> Result<(), Errno> {
        let before = self.disk.file(id).map_or(0, |file| file.blocks);
        self.disk.resize(id, size, taken).map_err(|_| Errno::NoSpace)?;
        let Some(file) = self.disk.file(id) else { return Ok(()) };
        if file.blocks < before {
            self.groups.drop_file(id);
        } else if self.disk.is_memory(file.store) {
            // Blocks of a file in memory are memory.
            return self.cache(me, id, Pages { shmem: file.blocks - before, ..Pages::default() });
        }
        Ok(())
    }

    /// Gives a file another name; into another tree it is copied.
    pub fn move_file(
        &mut self,
        me: Pid,
        from: StoreId,
        name: &str,
        to: StoreId,
        new: &str,
    ) -> Result<(), Errno> {
        if from == to {
            self.disk.rename(from, name, new);
            return Ok(());
        }
        let Some(old) = self.disk.named(from, name) else { return Err(Errno::Missing) };
        let (size, text) = self.disk.file(old).map(|file| (file.size, file.text.clone())).unwrap_or_default();
        let id = self.disk.create(to, new, FileKind::Regular).map_err(|_| Errno::NoSpace)?;
        let done = self.write_file(me, id, 0, size, text.as_deref())?;
        if done < size {
            return Err(Errno::NoSpace);
        }
        let gone = self.disk.unlink(from, name);
        self.forget_file(gone);
        Ok(())
    }
}
