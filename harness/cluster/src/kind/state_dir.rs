//! The state directory: records, kubeconfigs and locks.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use evictlab_report::{create_private, create_private_dir};
use serde::Serialize;

use super::record::ClusterRecord;
use crate::error::StateError;
use crate::owner::Owner;

/// Prefix of the file of a record that is being written.
const PARTIAL: &str = ".partial-";

/// Extension of the records of embedded clusters.
const SERVED: &str = "embedded";

/// Name of the lock that is held while the owner of a cluster changes. No cluster has this name.
const OWNERS: &str = ".owners";

/// Age after which a partial file belongs to a process that was killed.
const PARTIAL_FILE_LIFETIME: Duration = Duration::from_secs(60);

/// The state directory: `EVICTLAB_STATE_DIR`, or `evictlab` in the user's state directory. Only the
/// user can read it, because it contains kubeconfigs.
#[derive(Clone, Debug)]
pub struct StateDir {
    path: PathBuf,
}

impl StateDir {
    /// Opens the state directory of the user; creates it if it does not exist.
    pub fn open() -> Result<Self, StateError> {
        Self::at(&user_path(|name| std::env::var_os(name).map(PathBuf::from))?)
    }

    /// Opens or creates a state directory at this path, which may be relative to the current
    /// directory.
    pub fn at(path: &Path) -> Result<Self, StateError> {
        let path = std::path::absolute(path)
            .map_err(|source| StateError::Write { path: path.to_owned(), source })?;
        create_private_dir(&path)
            .and_then(|()| fs::metadata(&path))
            .map_err(|source| StateError::Write { path: path.clone(), source })
            .and_then(|metadata| check_private(&path, &metadata))?;
        Ok(Self { path })
    }

    /// Path of the kubeconfig of a cluster.
    pub fn kubeconfig(&self, cluster: &str) -> PathBuf {
        self.path.join(format!("{cluster}.kubeconfig"))
    }

    /// Path of the kind configuration of a cluster. It is a state file, because nothing would
    /// remove the temporary file of a killed run.
    fn kind_config(&self, cluster: &str) -> PathBuf {
        self.path.join(format!("{cluster}.kind.yaml"))
    }

    /// Writes the kind configuration of a cluster; returns its path.
    pub(super) fn write_kind_config(&self, cluster: &str, text: &str) -> Result<PathBuf, StateError> {
        let path = self.kind_config(cluster);
        fs::write(&path, text).map_err(|source| self.error(&path, source))?;
        Ok(path)
    }

    /// Path of the record of an embedded cluster that a process serves.
    pub(crate) fn served_record(&self, cluster: &str) -> PathBuf {
        self.path.join(format!("{cluster}.{SERVED}"))
    }

    /// Path of the log of such a process.
    pub fn served_log(&self, cluster: &str) -> PathBuf {
        self.path.join(format!("{cluster}.log"))
    }

    /// Paths of all records of embedded clusters.
    pub(crate) fn served_records(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let is_record = |path: &PathBuf| path.extension().is_some_and(|extension| extension == SERVED);
        entries.map(|entry| entry.path()).filter(is_record).collect()
    }

    /// Creates an empty kubeconfig for kind to write, so that only the user can read it at any
    /// time.
    pub fn create_kubeconfig(&self, cluster: &str) -> Result<PathBuf, StateError> {
        let path = self.kubeconfig(cluster);
        create_private(&path).map_err(|source| self.error(&path, source))?;
        Ok(path)
    }

    /// Writes a record atomically.
    pub fn write(&self, record: &ClusterRecord) -> Result<(), StateError> {
        let path = self.file(&record.cluster);
        let write = || self.temporary_file(record)?.persist(&path).map(drop).map_err(|error| error.error);
        write().map_err(|source| self.error(&path, source))
    }

    /// Writes the first record of a cluster. Returns `false` if a record exists, which is kept.
    pub fn claim(&self, record: &ClusterRecord) -> Result<bool, StateError> {
        self.write_new(&self.file(&record.cluster), record)
    }

    /// Writes a file atomically. Returns `false` if it exists, and keeps it.
    pub(crate) fn write_new(&self, path: &Path, record: &impl Serialize) -> Result<bool, StateError> {
        let write = || match self.temporary_file(record)?.persist_noclobber(path) {
            Ok(_) => Ok(true),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error.error),
        };
        write().map_err(|source| self.error(path, source))
    }

    fn temporary_file(&self, record: &impl Serialize) -> io::Result<tempfile::NamedTempFile> {
        let mut file = tempfile::Builder::new().prefix(PARTIAL).tempfile_in(&self.path)?;
        serde_json::to_writer_pretty(&mut file, record)?;
        file.flush()?;
        Ok(file)
    }

    /// Removes the partial files of processes that were killed.
    pub fn remove_partial_files(&self) {
        let old = |path: &Path| {
            let is_partial = path.file_name()?.to_str()?.starts_with(PARTIAL);
            (is_partial && fs::metadata(path).ok()?.modified().ok()?.elapsed().ok()? > PARTIAL_FILE_LIFETIME)
                .then_some(())
        };
        for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            if old(&entry.path()).is_some() {
                // Another process may have removed it.
                let _ignored = fs::remove_file(entry.path());
            }
        }
    }

    /// Reads the record of a cluster; `None` if it does not exist or is invalid.
    pub fn read(&self, cluster: &str) -> Option<ClusterRecord> {
        serde_json::from_slice(&fs::read(self.file(cluster)).ok()?).ok()
    }

    /// All valid records, sorted by name.
    pub fn list(&self) -> Vec<ClusterRecord> {
        let Ok(entries) = fs::read_dir(&self.path) else { return Vec::new() };
        let mut records: Vec<ClusterRecord> = entries
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                path.extension().is_some_and(|extension| extension == "json").then_some(())?;
                serde_json::from_slice(&fs::read(path).ok()?).ok()
            })
            .collect();
        records.sort_by(|a, b| a.cluster.cmp(&b.cluster));
        records
    }

    /// Makes a process the owner of a cluster in one step, so that of two processes only one takes
    /// it: `may_take` receives the record as it is now. Returns the new record, and `None` if
    /// the cluster has none.
    ///
    /// # Errors
    /// `may_take` refuses, or the record could not be written.
    pub(super) fn change_owner<E: From<StateError>>(
        &self,
        cluster: &str,
        owner: &Owner,
        may_take: impl FnOnce(&ClusterRecord) -> Result<(), E>,
    ) -> Result<Option<ClusterRecord>, E> {
        let _lock = self.lock(OWNERS)?;
        let Some(mut record) = self.read(cluster) else { return Ok(None) };
        may_take(&record)?;
        if record.owner != *owner {
            record.owner = owner.clone();
            self.write(&record)?;
        }
        Ok(Some(record))
    }

    /// Removes the record, the kubeconfig and the locks of a cluster.
    pub fn forget(&self, cluster: &str) -> Result<(), StateError> {
        let kubeconfig = self.kubeconfig(cluster);
        // kind locks a kubeconfig by a second file. Other locks are empty files named after the
        // cluster.
        let lock = kubeconfig.with_extension("kubeconfig.lock");
        // The record is last, so that an interrupted removal can be repeated.
        let mut paths = vec![kubeconfig, lock, self.kind_config(cluster)];
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
        // Another process would not exclude the holder of a lock whose file is gone.
        paths.extend(locks.filter(|path| !is_locked(path)));
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

    /// Waits for an exclusive lock, which is held as long as the file is open.
    pub fn lock(&self, name: &str) -> Result<File, StateError> {
        self.lock_file(name, File::lock)
    }

    /// Waits for a shared lock, which excludes exclusive locks of the same name.
    pub fn lock_shared(&self, name: &str) -> Result<File, StateError> {
        self.lock_file(name, File::lock_shared)
    }

    fn lock_file(&self, name: &str, acquire: fn(&File) -> io::Result<()>) -> Result<File, StateError> {
        let path = self.path.join(format!("{name}.lock"));
        let lock = || -> io::Result<File> {
            let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path)?;
            acquire(&file)?;
            Ok(file)
        };
        lock().map_err(|source| self.error(&path, source))
    }

    fn file(&self, cluster: &str) -> PathBuf {
        self.path.join(format!("{cluster}.json"))
    }

    fn error(&self, path: &Path, source: io::Error) -> StateError {
        StateError::Write { path: path.to_owned(), source }
    }
}

/// Returns the path of the state directory of the user, by environment variables. A directory below
/// the temporary one would have a path that others can create first.
fn user_path(variable: impl Fn(&str) -> Option<PathBuf>) -> Result<PathBuf, StateError> {
    let variable = |name: &str| variable(name).filter(|value| !value.as_os_str().is_empty());
    variable("EVICTLAB_STATE_DIR")
        .or_else(|| Some(variable("XDG_STATE_HOME")?.join("evictlab")))
        .or_else(|| Some(variable("HOME")?.join(".local/state/evictlab")))
        .ok_or(StateError::NoHome)
}

fn is_locked(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| file.try_lock().is_err())
}

/// Rejects a directory that belongs to another user, or that others can write to.
fn check_private(path: &Path, metadata: &fs::Metadata) -> Result<(), StateError> {
    let (owner, mode) = (metadata.uid(), metadata.mode() & 0o777);
    let problem = if owner != rustix::process::getuid().as_raw() {
        format!("it belongs to user {owner}")
    } else if mode & 0o022 != 0 {
        format!("its mode {mode:o} lets others write")
    } else {
        return Ok(());
    };
    Err(StateError::NotPrivate { path: path.to_owned(), problem })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::record::{ClusterState, LastHeartbeat};
    use std::os::unix::fs::PermissionsExt;

    fn record(owner: Owner) -> ClusterRecord {
        ClusterRecord::new("daemon", "evictlab-a", "run", owner, vec!["v1.32.13".to_owned()])
    }

    #[test]
    fn rejects_a_directory_that_others_can_write_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        StateDir::at(&path).unwrap();
        for (mode, expected) in [(0o755, None), (0o777, Some("its mode 777 lets others write"))] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let error = StateDir::at(&path).err().map(|error| error.to_string());
            assert_eq!(error.is_some(), expected.is_some(), "{mode:o}");
            assert!(error.unwrap_or_default().contains(expected.unwrap_or_default()));
        }
        // Only root can give a directory away, and all others have none in the root directory.
        let foreign = if rustix::process::getuid().is_root() {
            std::os::unix::fs::chown(&path, Some(12345), None).unwrap();
            path.as_path()
        } else {
            Path::new("/")
        };
        let error = check_private(foreign, &fs::metadata(foreign).unwrap()).unwrap_err().to_string();
        assert!(error.contains("it belongs to user"), "{error}");
    }

    #[test]
    fn the_state_directory_is_below_the_home_of_the_user() {
        type Environment<'a> = &'a [(&'a str, &'a str)];
        let rows: [(Environment<'_>, Option<&str>); 5] = [
            (&[("HOME", "/h")], Some("/h/.local/state/evictlab")),
            (&[("HOME", "/h"), ("XDG_STATE_HOME", "/x")], Some("/x/evictlab")),
            (&[("HOME", "/h"), ("EVICTLAB_STATE_DIR", "/e")], Some("/e")),
            (&[("TMPDIR", "/t")], None),
            (&[("HOME", ""), ("TMPDIR", "/t")], None),
        ];
        for (environment, expected) in rows {
            let variable = |name: &str| environment.iter().find(|(own, _)| *own == name);
            let path = user_path(|name| variable(name).map(|(_, value)| PathBuf::from(value)));
            assert_eq!(path.ok(), expected.map(PathBuf::from), "{environment:?}");
        }
    }

    #[test]
    fn writes_reads_and_forgets_records() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::at(&folder.path().join("state")).unwrap();
        let record = record(Owner::current());
        state.write(&record).unwrap();
        fs::write(folder.path().join("state/torn.json"), "{").unwrap();
        assert_eq!(state.list(), std::slice::from_ref(&record));
        assert_eq!(state.read("evictlab-a").as_ref(), Some(&record));
        let kubeconfig = state.create_kubeconfig("evictlab-a").unwrap();
        assert_eq!(fs::metadata(&kubeconfig).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(folder.path().join("state")).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(!state.claim(&record).unwrap(), "the first record is kept");
        let longer = ClusterRecord { cluster: "evictlab-a-b".to_owned(), ..record.clone() };
        assert!(state.claim(&longer).unwrap());
        for lock in ["evictlab-a", "evictlab-a-host", "evictlab-a-b-host", "evictlab-ab"] {
            drop(state.lock(lock).unwrap());
        }
        let held = state.lock_shared("evictlab-a-held").unwrap();
        state.forget("evictlab-a").unwrap();
        assert!(folder.path().join("state/evictlab-a-held.lock").exists(), "another process holds it");
        drop(held);
        let exists = |name: &str| folder.path().join("state").join(name).exists();
        assert!(!exists("evictlab-a.lock") && !exists("evictlab-a-host.lock"));
        assert!(
            exists("evictlab-a-b-host.lock") && exists("evictlab-ab.lock"),
            "locks of other clusters are kept"
        );
        state.forget("evictlab-a-b").unwrap();
        assert!(state.list().is_empty() && !kubeconfig.exists());
    }

    /// Processes that take a cluster at the same time see each other's record.
    #[test]
    fn one_of_many_takes_a_dead_cluster() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::at(&folder.path().join("state")).unwrap();
        let gone = Owner { started: Some("earlier".to_owned()), ..Owner::current() };
        state.write(&record(gone)).unwrap();
        let take = || {
            let is_dead = |record: &ClusterRecord| match record.state(LastHeartbeat::None) {
                ClusterState::Dead => Ok(()),
                _ => Err(StateError::NoHome),
            };
            state.change_owner("evictlab-a", &Owner::current(), is_dead)
        };
        let taken = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(take)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).filter(Result::is_ok).count()
        });
        assert_eq!(taken, 1);
        assert!(
            state
                .change_owner("evictlab-b", &Owner::current(), |_| Ok::<_, StateError>(()))
                .unwrap()
                .is_none()
        );
    }
}
