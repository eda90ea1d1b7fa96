//! The files of the node: `hostPath` volumes, container logs and static pod manifests.

use super::disk::{FileKind, NoSpace};
use super::ids::ContainerKey;
use super::kernel::Kernel;
use super::paths::Location;
use super::types::{LogLine, OutputStream};

/// Directories that every node has, relative to its root.
const DIRECTORIES: [&str; 10] = [
    "etc",
    "etc/kubernetes",
    "etc/kubernetes/manifests",
    "tmp",
    "var",
    "var/lib",
    "var/lib/kubelet",
    "var/log",
    "var/log/containers",
    "var/log/pods",
];

/// Returns a path relative to the root of the node, without empty parts and `.`.
fn node_path(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    parts.join("/")
}

impl Kernel {
    /// Creates the node's directories. Their space is part of the node's initial usage.
    pub(super) fn create_node_directories(&mut self) {
        for name in DIRECTORIES {
            self.disk.create_unaccounted(self.node_files, name, FileKind::Directory);
        }
    }

    /// Returns the location of `name` in the `hostPath` volume at `path`.
    pub(super) fn host_path_location(&self, path: &str, name: &str) -> Location {
        Location::Entry(self.node_files, node_path(&format!("{path}/{name}")))
    }

    /// Creates the missing directories of a `hostPath` volume, as the runtime does.
    pub(super) fn create_host_path(&mut self, path: &str) {
        let path = node_path(path);
        let parents = path.match_indices('/').map(|(at, _)| &path[..at]);
        for name in parents.chain([path.as_str()]).filter(|name| !name.is_empty()) {
            if self.disk.lookup(self.node_files, name).is_none()
                && self.disk.create(self.node_files, name, FileKind::Directory).is_err()
            {
                return;
            }
        }
    }

    /// Creates the file of a container's log. The log accounts for its space.
    pub(super) fn link_log(&mut self, key: ContainerKey) {
        let Some(path) = self.containers.get(&key).map(|container| container.spec.log_path.clone()) else {
            return;
        };
        let path = path.trim_matches('/');
        for (at, _) in path.match_indices('/') {
            self.disk.create_unaccounted(self.node_files, &path[..at], FileKind::Directory);
        }
        if !path.is_empty() {
            self.disk.create_unaccounted(self.node_files, path, FileKind::Log(key));
        }
    }

    /// Removes the file of a log, and its parent directories that are empty then.
    pub(super) fn unlink_log(&mut self, path: &str) {
        let mut name = path.trim_matches('/');
        while !name.is_empty() && !DIRECTORIES.contains(&name) {
            let content = format!("{name}/");
            if self.disk.names(self.node_files, &content).next().is_some() {
                return;
            }
            self.disk.unlink(self.node_files, name);
            name = name.rsplit_once('/').map_or("", |(parent, _)| parent);
        }
    }

    /// Returns the content of a container's log file, as far as its lines are stored.
    pub(super) fn log_text(&self, key: ContainerKey) -> String {
        let lines = self.containers.get(&key).map_or(&[][..], |container| container.log.lines());
        let line = |line: &LogLine| {
            let at = self.epoch.at(line.at).strftime("%Y-%m-%dT%H:%M:%S%.9fZ");
            let stream = match line.stream {
                OutputStream::Stdout => "stdout",
                OutputStream::Stderr => "stderr",
            };
            let tag = if line.partial { 'P' } else { 'F' };
            format!("{at} {stream} {tag} {}\n", line.text)
        };
        lines.iter().map(line).collect()
    }

    /// Writes a file of the node, or removes it if `text` is `None`.
    pub(super) fn put_node_file(&mut self, path: &str, text: Option<&[u8]>) -> Result<(), NoSpace> {
        let name = node_path(path);
        let removed = self.disk.unlink(self.node_files, &name);
        self.drop_pages(removed);
        let Some(text) = text else { return Ok(()) };
        let id = self.disk.create(self.node_files, &name, FileKind::Regular)?;
        let written = self.disk.write(id, 0, text.len() as u64, Some(text));
        if written < text.len() as u64 { Err(NoSpace) } else { Ok(()) }
    }

    /// Returns the files in a directory of the node with their content, by name.
    pub(super) fn node_files_in(&self, directory: &str) -> Vec<(String, Vec<u8>)> {
        let prefix = format!("{}/", node_path(directory));
        let names = self.disk.names(self.node_files, &prefix);
        names
            .filter_map(|path| {
                let name = path.strip_prefix(&prefix).filter(|name| !name.contains('/'))?;
                let file = self.disk.file(self.disk.lookup(self.node_files, path)?)?;
                let text = file.text.clone().filter(|_| file.kind == FileKind::Regular)?;
                Some((name.to_owned(), text))
            })
            .collect()
    }
}
