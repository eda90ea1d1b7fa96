//! The directory of a run. `results/README.md` describes the layout.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use evictlab_rules::quantity::MIB;
use jiff::Timestamp;
use rustix::fs::OFlags;

use crate::redact::redacted_text;
use crate::run_event::CaseId;
use crate::sink::ReportError;

/// Default directory of the runs, relative to the working directory.
pub const RESULTS_DIR: &str = "results";

/// The symbolic link to the newest run in the default directory.
pub const LATEST_RUN: &str = "results/latest";

/// The directory of one run.
#[derive(Clone, Debug)]
pub struct RunDir {
    root: PathBuf,
    /// The `latest` that does not point to this run, because it is not a symbolic link.
    foreign_latest: Option<PathBuf>,
}

impl RunDir {
    /// Creates `results/<UTC time>`, such as `results/2026-11-21T09-30-12Z`, with the suffix `-2`,
    /// `-3`, … if it exists, and updates the symbolic link `results/latest`. A `latest` that is not
    /// a symbolic link stays unchanged.
    ///
    /// # Errors
    /// The directory cannot be created or written.
    pub fn create(results: &Path, at: Timestamp) -> Result<Self, ReportError> {
        make_dir(results)?;
        let time = at.strftime("%Y-%m-%dT%H-%M-%SZ").to_string();
        let mut name = time.clone();
        let mut next = 2;
        loop {
            let root = results.join(&name);
            match DirBuilder::new().mode(0o700).create(&root) {
                Ok(()) => {
                    let foreign_latest = link_latest(results, &name);
                    return Ok(Self { foreign_latest, ..Self::in_empty(root)? });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    name = format!("{time}-{next}");
                    next += 1;
                }
                Err(source) => return Err(ReportError::Write { path: root, source }),
            }
        }
    }

    /// Returns the directory that `--output-dir` names, or creates one in [`RESULTS_DIR`].
    ///
    /// # Errors
    /// The directory already contains a run, or cannot be created or written.
    pub fn resolve(dir: Option<&Path>) -> Result<Self, ReportError> {
        match dir {
            Some(dir) => Self::at(dir),
            None => Self::create(RESULTS_DIR.as_ref(), Timestamp::now()),
        }
    }

    /// Uses `dir`, which is created if it does not exist.
    ///
    /// # Errors
    /// The directory already contains a run, or cannot be created or written.
    pub fn at(dir: &Path) -> Result<Self, ReportError> {
        for found in ["started.json", "finished.json", "artifacts/events.jsonl"] {
            if dir.join(found).exists() {
                return Err(ReportError::Taken { dir: dir.to_owned(), found });
            }
        }
        Self::in_empty(dir.to_owned())
    }

    /// The directory of an earlier run.
    pub(crate) fn existing(dir: &Path) -> Self {
        Self { root: dir.to_owned(), foreign_latest: None }
    }

    fn in_empty(root: PathBuf) -> Result<Self, ReportError> {
        let artifacts = root.join("artifacts");
        if artifacts.is_symlink() {
            let source = io::Error::new(io::ErrorKind::InvalidInput, "it is a symbolic link");
            return Err(ReportError::Write { path: artifacts, source });
        }
        make_dir(&artifacts)?;
        ensure_writable(&artifacts)?;
        Ok(Self { root, foreign_latest: None })
    }

    /// The run directory relative to itself, for paths in files at its top.
    pub(super) fn relative() -> Self {
        Self { root: PathBuf::new(), foreign_latest: None }
    }

    /// Returns whether this is [`RunDir::relative`].
    pub(super) fn is_relative(&self) -> bool {
        self.root.as_os_str().is_empty()
    }

    /// A warning for the user: `latest` does not point to this run.
    pub fn warning(&self) -> Option<String> {
        let latest = self.foreign_latest.as_ref()?.display();
        Some(format!("{latest} is not a symbolic link, and does not point to this run\nhelp: move it away"))
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// `artifacts`, which contains everything except the files that Prow expects at the top.
    pub fn artifacts(&self) -> PathBuf {
        self.root.join("artifacts")
    }

    /// Writes a file at the top of the directory.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, name: &str, text: &str) -> Result<(), ReportError> {
        write_file(&self.root.join(name), redacted_text(text).as_bytes())
    }

    /// Directory of a case's evidence: `artifacts/<suite>/<case>/<kubelet>`, with the suffix `-N`
    /// from the second attempt on.
    pub fn case_dir(&self, id: &CaseId) -> PathBuf {
        let mut kubelet = file_name(&id.kubelet);
        if id.attempt > 1 {
            kubelet.push_str(&format!("-{}", id.attempt));
        }
        self.artifacts().join(file_name(&id.suite)).join(file_name(&id.case)).join(kubelet)
    }

    /// Directory of an inconclusive try's evidence: `try-N` in that of the case.
    pub(crate) fn try_dir(&self, id: &CaseId, try_number: u32) -> PathBuf {
        self.case_dir(id).join(format!("try-{try_number}"))
    }
}

/// Converts `name` to a file name: the label of a kubelet can be the path of a binary.
pub(super) fn file_name(name: &str) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() || "._+-".contains(c) { c } else { '-' };
    let name: String = name.chars().map(kept).collect();
    let name = name.trim_start_matches(['.', '-']);
    if name.is_empty() { "unnamed".to_owned() } else { name.to_owned() }
}

/// Creates a directory and its parents.
pub(super) fn make_dir(dir: &Path) -> Result<(), ReportError> {
    create_private_dir(dir).map_err(|source| ReportError::Write { path: dir.to_owned(), source })
}

/// Checks that a file of 1 MiB can be written, before a cluster is created.
pub(super) fn ensure_writable(dir: &Path) -> Result<(), ReportError> {
    let probe = dir.join(".room");
    write_file(&probe, &vec![0; MIB as usize])?;
    fs::remove_file(&probe).map_err(|source| ReportError::Write { path: probe, source })
}

/// Writes a file atomically, in place of what is there: a link is replaced, not followed.
pub(super) fn write_file(path: &Path, content: &[u8]) -> Result<(), ReportError> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    // A killed process may have left it, and an untrusted run may have a link with this name.
    let _ = fs::remove_file(&partial);
    let create = || OpenOptions::new().create_new(true).write(true).mode(0o600).open(&partial);
    // No fsync: a killed process loses nothing, and cases put this disk under pressure.
    let write = || create()?.write_all(content).and_then(|()| fs::rename(&partial, path));
    write().map_err(|source| {
        let _ = fs::remove_file(&partial);
        ReportError::Write { path: path.to_owned(), source }
    })
}

/// Writes a report that contains evidence to a run directory, in place of what is there: a link is
/// replaced, not followed. Only the user can read the file.
///
/// # Errors
/// The file cannot be written.
pub fn replace_private(path: &Path, text: &str) -> Result<(), ReportError> {
    write_file(path, text.as_bytes())
}

/// Writes a report that contains evidence to a file of the user's choice, which only the user can
/// read if it is new.
///
/// # Errors
/// The file cannot be written.
pub fn write_private(path: &Path, text: &str) -> Result<(), ReportError> {
    let open = || OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(path);
    let written = open().and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|source| ReportError::Write { path: path.to_owned(), source })
}

/// Creates a directory and its parents, which only the user can read.
///
/// # Errors
/// A directory cannot be created.
pub fn create_private_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Creates a file, or empties it, which only the user can read if it is new: evidence contains logs
/// and objects of a cluster.
///
/// # Errors
/// The file cannot be opened for writing, or is a symbolic link.
pub fn create_private(path: &Path) -> io::Result<File> {
    let no_link = OFlags::NOFOLLOW.bits() as i32;
    OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).custom_flags(no_link).open(path)
}

/// Points the symbolic link `latest` to the run; returns what is there instead of a link. Errors
/// are ignored.
fn link_latest(results: &Path, name: &str) -> Option<PathBuf> {
    let latest = results.join("latest");
    if latest.symlink_metadata().is_ok_and(|there| !there.is_symlink()) {
        return Some(latest);
    }
    #[cfg(unix)]
    {
        let fresh = results.join(format!(".latest-{}", std::process::id()));
        if std::os::unix::fs::symlink(name, &fresh).is_ok() && fs::rename(&fresh, &latest).is_err() {
            let _ = fs::remove_file(&fresh);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_in_the_same_second_get_distinct_directories() {
        let results = tempfile::tempdir().unwrap();
        let at = "2026-11-21T09:30:12.5Z".parse().unwrap();
        let names = [(); 3].map(|()| {
            let run = RunDir::create(results.path(), at).unwrap();
            run.path().file_name().unwrap().to_string_lossy().into_owned()
        });
        assert_eq!(names, ["2026-11-21T09-30-12Z", "2026-11-21T09-30-12Z-2", "2026-11-21T09-30-12Z-3"]);
        assert_eq!(fs::read_link(results.path().join("latest")).unwrap(), Path::new(&names[2]));
    }

    #[test]
    fn keeps_a_latest_that_is_not_a_link() {
        let results = tempfile::tempdir().unwrap();
        let latest = results.path().join("latest");
        fs::write(&latest, "mine").unwrap();
        let run = RunDir::create(results.path(), Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(fs::read_to_string(&latest).unwrap(), "mine");
        assert!(run.warning().unwrap().starts_with(&format!("{} is not a symbolic link", latest.display())));
        fs::remove_file(&latest).unwrap();
        assert_eq!(RunDir::create(results.path(), Timestamp::UNIX_EPOCH).unwrap().warning(), None);
    }

    #[test]
    fn rejects_a_directory_with_a_run() {
        let dir = tempfile::tempdir().unwrap();
        RunDir::at(dir.path()).unwrap();
        RunDir::at(dir.path()).unwrap();
        write_file(&dir.path().join("started.json"), b"{}").unwrap();
        let error = RunDir::at(dir.path()).unwrap_err().to_string();
        assert!(error.contains("already contains a run (found started.json)"), "{error}");
    }

    #[test]
    fn failed_write_leaves_no_partial_file() {
        let dir = tempfile::tempdir().unwrap();
        let taken = dir.path().join("taken");
        fs::create_dir(&taken).unwrap();
        assert!(write_file(&taken, b"text").is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn file_names_stay_in_the_directory() {
        for (label, name) in [
            ("v1.32.13", "v1.32.13"),
            ("v1.37.0-rc.1+k3s1", "v1.37.0-rc.1+k3s1"),
            ("../../bin/kubelet", "bin-kubelet"),
            ("..", "unnamed"),
            ("", "unnamed"),
        ] {
            assert!(file_name(label).ends_with(name), "{label}: {}", file_name(label));
            assert!(!file_name(label).contains('/') && !file_name(label).starts_with('.'));
        }
    }
}
