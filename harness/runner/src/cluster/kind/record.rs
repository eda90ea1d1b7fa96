//! What is written down about a cluster from before its first container on: in a state file, and then in its nodes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Owner;

/// How the name of a record begins that is being written.
const PARTIAL: &str = ".partial-";

/// Where a node keeps the record of its cluster.
pub const NODE_FILE: &str = "/kind/evictlab.json";

/// A cluster and who answers for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The cluster's name.
    pub cluster: String,
    /// The run that made it.
    pub run: String,
    /// The process that uses it, or last used it.
    pub owner: Owner,
    /// When it was made.
    pub created: Timestamp,
    /// When it may be removed even though its owner cannot be asked.
    pub deadline: Timestamp,
    /// Whether it is meant to outlive its owner.
    pub kept: bool,
    /// The Docker daemon that runs it.
    pub docker_host: String,
    /// The kubelets of its workers, as labelled.
    pub kubelets: Vec<String>,
}

/// What may be done with a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Its owner runs.
    Live,
    /// Nobody uses it, and it was meant to stay.
    Kept,
    /// Its owner is gone: it was left behind.
    Dead,
}

impl std::fmt::Display for Standing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Live => "live",
            Self::Kept => "kept",
            Self::Dead => "dead",
        })
    }
}

impl Record {
    /// A cluster of this process, that may be removed by anybody after `patience`.
    pub fn new(cluster: &str, run: &str, owner: Owner, kubelets: Vec<String>, patience: Duration) -> Self {
        let created = Timestamp::now();
        let deadline = created.saturating_add(patience).unwrap_or(Timestamp::MAX);
        Self {
            cluster: cluster.to_owned(),
            run: run.to_owned(),
            owner,
            created,
            deadline,
            kept: false,
            docker_host: super::docker::host(),
            kubelets,
        }
    }

    /// What may be done with it.
    pub fn standing(&self) -> Standing {
        let elsewhere = !self.owner.is_here();
        match (self.owner.alive(), self.kept) {
            (true, _) if elsewhere && !self.kept && Timestamp::now() > self.deadline => Standing::Dead,
            (true, true) if elsewhere => Standing::Kept,
            (true, _) => Standing::Live,
            (false, true) => Standing::Kept,
            (false, false) => Standing::Dead,
        }
    }
}

/// The folder of state files: `EVICTLAB_STATE_DIR`, or `evictlab` in the user's state folder. Readable by the user alone, because
/// it holds kubeconfigs.
#[derive(Clone, Debug)]
pub struct StateDir {
    path: PathBuf,
}

/// The state folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(
    "evictlab cannot keep its state in {path}: {source}\nSet EVICTLAB_STATE_DIR to a folder that you may write to and that has room."
)]
pub struct StateError {
    path: PathBuf,
    source: io::Error,
}

impl StateDir {
    /// The user's state folder, made if it is missing.
    pub fn open() -> Result<Self, StateError> {
        let variable =
            |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let path = variable("EVICTLAB_STATE_DIR")
            .or_else(|| Some(variable("XDG_STATE_HOME")?.join("evictlab")))
            .or_else(|| Some(variable("HOME")?.join(".local/state/evictlab")))
            .unwrap_or_else(|| std::env::temp_dir().join("evictlab-state"));
        Self::at(&path)
    }

    /// A state folder at this path.
    pub fn at(path: &Path) -> Result<Self, StateError> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|source| StateError { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned() })
    }

    /// Where a cluster's kubeconfig lies.
    pub fn kubeconfig(&self, cluster: &str) -> PathBuf {
        self.path.join(format!("{cluster}.kubeconfig"))
    }

    /// Where the configuration lies that kind makes a cluster from: a temporary file would outlive a killed run unseen.
    pub fn config(&self, cluster: &str) -> PathBuf {
        self.path.join(format!("{cluster}.kind.yaml"))
    }

    /// Makes the empty kubeconfig, for kind to fill: so it is the user's alone from its first byte.
    pub fn make_kubeconfig(&self, cluster: &str) -> Result<PathBuf, StateError> {
        let path = self.kubeconfig(cluster);
        private(&path).map_err(|source| self.error(&path, source))?;
        Ok(path)
    }

    /// Writes a record, whole or not at all.
    pub fn write(&self, record: &Record) -> Result<(), StateError> {
        let path = self.file(&record.cluster);
        let write = || self.whole(record)?.persist(&path).map(drop).map_err(|error| error.error);
        write().map_err(|source| self.error(&path, source))
    }

    /// Writes the first record of a cluster. `false`: there is one already, and it stays.
    pub fn claim(&self, record: &Record) -> Result<bool, StateError> {
        let path = self.file(&record.cluster);
        let claim = || match self.whole(record)?.persist_noclobber(&path) {
            Ok(_) => Ok(true),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error.error),
        };
        claim().map_err(|source| self.error(&path, source))
    }

    fn whole(&self, record: &Record) -> io::Result<tempfile::NamedTempFile> {
        let mut file = tempfile::Builder::new().prefix(PARTIAL).tempfile_in(&self.path)?;
        serde_json::to_writer_pretty(&mut file, record)?;
        file.flush()?;
        Ok(file)
    }

    /// Removes half-written records of killed processes: a live one's is seconds old at most.
    pub fn tidy(&self) {
        let old = |path: &Path| {
            let partial = path.file_name()?.to_str()?.starts_with(PARTIAL);
            (partial && fs::metadata(path).ok()?.modified().ok()?.elapsed().ok()? > Duration::from_secs(60))
                .then_some(())
        };
        for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            if old(&entry.path()).is_some() {
                // Another gc may have been quicker.
                let _gone = fs::remove_file(entry.path());
            }
        }
    }

    /// The record of a cluster, if there is one that can be read.
    pub fn read(&self, cluster: &str) -> Option<Record> {
        serde_json::from_slice(&fs::read(self.file(cluster)).ok()?).ok()
    }

    /// All records, by name.
    pub fn list(&self) -> Vec<Record> {
        let Ok(entries) = fs::read_dir(&self.path) else { return Vec::new() };
        let mut records: Vec<Record> = entries
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                path.extension().is_some_and(|extension| extension == "json").then_some(())?;
                serde_json::from_slice(&fs::read(path).ok()?).ok()
            })
            .collect();
        records.sort_by(|a, b| a.cluster.cmp(&b.cluster));
        records
    }

    /// Forgets a cluster: its record and its kubeconfig.
    pub fn forget(&self, cluster: &str) -> Result<(), StateError> {
        let kubeconfig = self.kubeconfig(cluster);
        // kind locks a kubeconfig by a file beside it. Our own locks are empty files, named after the cluster.
        let lock = kubeconfig.with_extension("kubeconfig.lock");
        // The record goes last: whatever cuts this off, the rest is found again.
        let mut paths = vec![kubeconfig, lock, self.config(cluster)];
        let others: Vec<String> = self.list().into_iter().map(|record| record.cluster).collect();
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let locks = entries.map(|entry| entry.path()).filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let of = |cluster: &str| {
                let rest = name.strip_prefix(cluster).and_then(|rest| rest.strip_suffix(".lock"));
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
            };
            of(cluster) && !others.iter().any(|other| other.len() > cluster.len() && of(other))
        });
        paths.extend(locks);
        paths.push(self.file(cluster));
        for path in paths {
            match fs::remove_file(&path) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(self.error(&path, source));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A lock that one process holds at a time, as long as the file is open. Waits for it.
    pub fn lock(&self, name: &str) -> Result<File, StateError> {
        self.locked(name, File::lock)
    }

    /// The same lock held beside others that share it, and by none that does not.
    pub fn lock_shared(&self, name: &str) -> Result<File, StateError> {
        self.locked(name, File::lock_shared)
    }

    fn locked(&self, name: &str, how: fn(&File) -> io::Result<()>) -> Result<File, StateError> {
        let path = self.path.join(format!("{name}.lock"));
        let lock = || -> io::Result<File> {
            let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path)?;
            how(&file)?;
            Ok(file)
        };
        lock().map_err(|source| self.error(&path, source))
    }

    fn file(&self, cluster: &str) -> PathBuf {
        self.path.join(format!("{cluster}.json"))
    }

    fn error(&self, path: &Path, source: io::Error) -> StateError {
        StateError { path: path.to_owned(), source }
    }
}

fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn record(owner: Owner) -> Record {
        Record::new("evictlab-a", "run", owner, vec!["v1.32.13".to_owned()], Duration::from_secs(3600))
    }

    #[test]
    fn a_record_is_found_again_and_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::at(&folder.path().join("state")).unwrap();
        let record = record(Owner::this());
        state.write(&record).unwrap();
        fs::write(folder.path().join("state/torn.json"), "{").unwrap();
        assert_eq!(state.list(), std::slice::from_ref(&record));
        assert_eq!(state.read("evictlab-a").as_ref(), Some(&record));
        let kubeconfig = state.make_kubeconfig("evictlab-a").unwrap();
        assert_eq!(fs::metadata(&kubeconfig).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(folder.path().join("state")).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(!state.claim(&record).unwrap(), "the first one stays");
        let longer = Record { cluster: "evictlab-a-b".to_owned(), ..record.clone() };
        assert!(state.claim(&longer).unwrap());
        for lock in ["evictlab-a", "evictlab-a-host", "evictlab-a-b-host", "evictlab-ab"] {
            drop(state.lock(lock).unwrap());
        }
        state.forget("evictlab-a").unwrap();
        let left = |name: &str| folder.path().join("state").join(name).exists();
        assert!(!left("evictlab-a.lock") && !left("evictlab-a-host.lock"));
        assert!(left("evictlab-a-b-host.lock") && left("evictlab-ab.lock"), "another cluster's");
        state.forget("evictlab-a-b").unwrap();
        assert!(state.list().is_empty() && !kubeconfig.exists());
    }

    #[test]
    fn standing_follows_the_owner() {
        let gone = Owner { started: "earlier".to_owned(), ..Owner::this() };
        let elsewhere = Owner { host: "another".to_owned(), ..Owner::this() };
        let rows = [
            (Owner::this(), false, false, Standing::Live),
            (Owner::this(), true, false, Standing::Live),
            (gone.clone(), false, false, Standing::Dead),
            (gone, true, true, Standing::Kept),
            (elsewhere.clone(), false, false, Standing::Live),
            (elsewhere.clone(), false, true, Standing::Dead),
            (elsewhere, true, true, Standing::Kept),
        ];
        for (owner, kept, overdue, standing) in rows {
            let mut record = Record { kept, ..record(owner) };
            if overdue {
                record.deadline = Timestamp::UNIX_EPOCH;
            }
            assert_eq!(record.standing(), standing, "{record:?}");
        }
    }
}
