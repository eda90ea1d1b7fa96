//! The node's own files, as far as containers and the kubelet come by them: `hostPath` volumes, logs, the manifests of static pods.

use super::container::ContainerKey;
use super::disk::{FileKind, NoSpace};
use super::files::Place;
use super::kernel::Kernel;

/// Directories that every node has, without a slash at their beginning.
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

impl Kernel {
    /// Makes the node's directories. What they take is part of what the node uses before any pod.
    pub fn make_host(&mut self) {
        for name in DIRECTORIES {
            self.disk.create_uncounted(self.host, name, FileKind::Directory);
        }
    }

    /// Where a path below a volume's path on the node leads.
    pub fn on_host(&self, base: &str, name: &str) -> Place {
        let base = base.trim_matches('/');
        let whole = match (base, name) {
            ("", name) => name.to_owned(),
            (base, "") => base.to_owned(),
            (base, name) => format!("{base}/{name}"),
        };
        Place::Name(self.host, whole)
    }

    /// The directory that a volume is, which the runtime makes if there is nothing of the name.
    pub fn make_host_path(&mut self, path: &str) {
        let mut whole = String::new();
        for part in path.split('/').filter(|part| !part.is_empty()) {
            if !whole.is_empty() {
                whole.push('/');
            }
            whole.push_str(part);
            if self.disk.named(self.host, &whole).is_none()
                && self.disk.create(self.host, &whole, FileKind::Directory).is_err()
            {
                return;
            }
        }
    }

    /// The file of a container's log appears where the kubelet has it. It takes what the log is counted with already.
    pub fn link_log(&mut self, key: ContainerKey) {
        let Some(path) = self.containers.get(&key).map(|container| container.spec.log_path.clone()) else {
            return;
        };
        let path = path.trim_matches('/');
        let parents = path.match_indices('/').map(|(at, _)| &path[..at]);
        for parent in parents {
            if self.disk.named(self.host, parent).is_none() {
                self.disk.create_uncounted(self.host, parent, FileKind::Directory);
            }
        }
        if !path.is_empty() {
            self.disk.create_uncounted(self.host, path, FileKind::Log(key));
        }
    }

    /// The file of a log goes, and the directories that hold no other.
    pub fn unlink_log(&mut self, path: &str) {
        let mut name = path.trim_matches('/');
        while !name.is_empty() && !DIRECTORIES.contains(&name) {
            let below = format!("{name}/");
            if self.disk.names(self.host, &below).next().is_some() {
                return;
            }
            self.disk.unlink(self.host, name);
            name = name.rsplit_once('/').map_or("", |(parent, _)| parent);
        }
    }

    /// A container's log as its file holds it (CRI's format), as far as it is remembered.
    pub fn log_text(&self, key: ContainerKey) -> String {
        let lines = self.containers.get(&key).map_or(&[][..], |container| container.log.lines());
        let line = |line: &super::LogLine| {
            let at = self.epoch.at(line.at).strftime("%Y-%m-%dT%H:%M:%S%.9fZ");
            let stream = if line.stderr { "stderr" } else { "stdout" };
            let tag = if line.partial { 'P' } else { 'F' };
            format!("{at} {stream} {tag} {}\n", line.text)
        };
        lines.iter().map(line).collect()
    }

    /// Puts a file on the node, or takes it away; as root does it, not as a container.
    pub fn put_host_file(&mut self, path: &str, text: Option<&[u8]>) -> Result<(), NoSpace> {
        let name = path.trim_matches('/');
        let gone = self.disk.unlink(self.host, name);
        self.forget_file(gone);
        let Some(text) = text else { return Ok(()) };
        let id = self.disk.create(self.host, name, FileKind::Regular)?;
        let (done, _) = self.disk.write(id, 0, text.len() as u64, Some(text));
        if done < text.len() as u64 { Err(NoSpace) } else { Ok(()) }
    }

    /// The files right in a directory of the node, by name, with what is in them.
    pub fn host_files(&self, directory: &str) -> Vec<(String, Vec<u8>)> {
        let below = format!("{}/", directory.trim_matches('/'));
        let names = self.disk.names(self.host, &below);
        names
            .filter_map(|name| {
                let own = name.strip_prefix(&below).filter(|own| !own.contains('/'))?;
                let file = self.disk.file(self.disk.named(self.host, name)?)?;
                let text = file.text.clone().filter(|_| file.kind == FileKind::Regular)?;
                Some((own.to_owned(), text))
            })
            .collect()
    }
}
