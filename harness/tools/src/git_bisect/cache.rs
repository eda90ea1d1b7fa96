//! The cache of built kubelets.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use evictlab_cluster::sha256_hex;

use super::commit_build::Build;

/// Maximum number of kubelets in the cache, of 50 to 150 MB each.
const MAX_KUBELETS: usize = 32;

/// The cache could not be used.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// The directory for the caches of the user is unknown.
    #[error("failed to find a cache directory: HOME is not set\nhelp: set HOME or EVICTLAB_CACHE_DIR")]
    NoHome,
    /// A kubelet could not be stored.
    #[error(
        "failed to write {path}: {source}\nhelp: set EVICTLAB_CACHE_DIR to a writable directory with free space"
    )]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

/// Kubelets that were built, by commit and build command.
#[derive(Clone, Debug)]
pub struct KubeletCache {
    dir: PathBuf,
}

impl KubeletCache {
    /// Opens the cache of the user: `EVICTLAB_CACHE_DIR`, or `evictlab` in the user's cache
    /// directory.
    ///
    /// # Errors
    /// The directory is unknown.
    pub fn open() -> Result<Self, CacheError> {
        let variable = |name: &str| {
            std::env::var_os(name).map(PathBuf::from).filter(|value| !value.as_os_str().is_empty())
        };
        let dir = variable("EVICTLAB_CACHE_DIR")
            .or_else(|| Some(variable("XDG_CACHE_HOME")?.join("evictlab")))
            .or_else(|| Some(variable("HOME")?.join(".cache/evictlab")))
            .ok_or(CacheError::NoHome)?;
        Ok(Self { dir: dir.join("kubelets") })
    }

    /// Returns the kubelet of a commit that was built before.
    pub fn get(&self, commit: &str, build: &Build) -> Option<PathBuf> {
        let path = self.path(commit, build);
        let file = fs::File::open(&path).ok()?;
        // Kubelets that were not used for the longest time are removed first.
        let _ignored = file.set_modified(SystemTime::now());
        Some(path)
    }

    /// Stores the kubelet of a commit and returns its path. Removes the kubelets that were not used
    /// for the longest time.
    ///
    /// # Errors
    /// The file cannot be copied.
    pub fn put(&self, commit: &str, build: &Build, kubelet: &Path) -> Result<PathBuf, CacheError> {
        let path = self.path(commit, build);
        let store = || {
            fs::create_dir_all(&self.dir)?;
            // Complete or absent, also after a kill.
            let partial = tempfile::NamedTempFile::new_in(&self.dir)?.into_temp_path();
            fs::copy(kubelet, &partial)?;
            partial.persist(&path).map_err(|error| error.error)?;
            self.remove_oldest()
        };
        match store() {
            Ok(()) => Ok(path),
            Err(source) => Err(CacheError::Write { path, source }),
        }
    }

    fn remove_oldest(&self) -> io::Result<()> {
        let mut kubelets = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            kubelets.push((entry.metadata()?.modified()?, entry.path()));
        }
        kubelets.sort();
        let excess = kubelets.len().saturating_sub(MAX_KUBELETS);
        for (_, path) in kubelets.drain(..excess) {
            // Another process may have removed it.
            let _ignored = fs::remove_file(path);
        }
        Ok(())
    }

    fn path(&self, commit: &str, build: &Build) -> PathBuf {
        let key = format!("{commit}\0{}\0{}", build.command, build.kubelet.display());
        self.dir.join(&sha256_hex(key.as_bytes())[..32])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    #[test]
    fn keeps_the_kubelets_that_were_used_last() {
        let folder = tempfile::tempdir().unwrap();
        let cache = KubeletCache { dir: folder.path().join("kubelets") };
        let build = Build { command: "make".to_owned(), kubelet: "kubelet".into() };
        let kubelet = folder.path().join("kubelet");
        fs::write(&kubelet, "a").unwrap();
        fs::set_permissions(&kubelet, fs::Permissions::from_mode(0o755)).unwrap();
        for commit in 0..MAX_KUBELETS {
            let path = cache.put(&commit.to_string(), &build, &kubelet).unwrap();
            let age = Duration::from_secs(1000 - commit as u64);
            fs::File::open(path).unwrap().set_modified(SystemTime::now() - age).unwrap();
        }
        let first = cache.get("0", &build).unwrap();
        assert_eq!(fs::metadata(&first).unwrap().permissions().mode() & 0o777, 0o755);
        cache.put("new", &build, &kubelet).unwrap();
        let kept = |commit: &str| cache.get(commit, &build).is_some();
        assert!(kept("0") && !kept("1") && kept("2") && kept("new"), "the second one was not used");
        let other = Build { command: "make DBG=1".to_owned(), ..build };
        assert_eq!(cache.get("new", &other), None);
    }
}
