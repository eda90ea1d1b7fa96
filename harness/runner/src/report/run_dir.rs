//! Where a run keeps its files. `results/README.md` describes the layout.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::redact::redacted_text;
use super::{CaseId, ReportError};

/// The directory of one run.
#[derive(Clone, Debug)]
pub struct RunDir {
    root: PathBuf,
}

impl RunDir {
    /// Makes `results/<UTC time>`, such as `results/2026-11-21T09-30-12Z`, with `-2`, `-3`, … behind it if that is
    /// taken, and points the symbolic link `results/latest` to it. A `latest` that is no link is left alone.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create(results: &Path, at: Timestamp) -> Result<Self, ReportError> {
        make_dir(results)?;
        let time = at.strftime("%Y-%m-%dT%H-%M-%SZ").to_string();
        let mut name = time.clone();
        let mut next = 2;
        loop {
            let root = results.join(&name);
            match fs::create_dir(&root) {
                Ok(()) => {
                    point_latest(results, &name);
                    return Self::in_empty(root);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    name = format!("{time}-{next}");
                    next += 1;
                }
                Err(source) => return Err(ReportError::Write { path: root, source }),
            }
        }
    }

    /// The one that `--output-dir` names, else a new one under `results`.
    ///
    /// # Errors
    /// It holds a run already, or cannot be made.
    pub fn wanted(dir: Option<&Path>) -> Result<Self, ReportError> {
        match dir {
            Some(dir) => Self::at(dir),
            None => Self::create("results".as_ref(), Timestamp::now()),
        }
    }

    /// Takes `dir`, as `--output-dir` names it, made if it is not there.
    ///
    /// # Errors
    /// It holds a run already, or cannot be made.
    pub fn at(dir: &Path) -> Result<Self, ReportError> {
        for found in ["started.json", "finished.json", "artifacts/events.jsonl"] {
            if dir.join(found).exists() {
                return Err(ReportError::Taken { dir: dir.to_owned(), found });
            }
        }
        Self::in_empty(dir.to_owned())
    }

    /// That of a run that was.
    pub(super) fn of(dir: &Path) -> Self {
        Self { root: dir.to_owned() }
    }

    fn in_empty(root: PathBuf) -> Result<Self, ReportError> {
        let artifacts = root.join("artifacts");
        make_dir(&artifacts)?;
        need_room(&artifacts)?;
        Ok(Self { root })
    }

    /// The same for whoever reads a file at its top: paths begin there, wherever it is.
    pub(super) fn here() -> Self {
        Self { root: PathBuf::new() }
    }

    /// Whether it is the reader's own.
    pub(super) fn is_here(&self) -> bool {
        self.root.as_os_str().is_empty()
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// `artifacts`, where everything lies but what Prow wants at the top.
    pub fn artifacts(&self) -> PathBuf {
        self.root.join("artifacts")
    }

    /// Writes a file at the top.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, name: &str, text: &str) -> Result<(), ReportError> {
        write_file(&self.root.join(name), redacted_text(text).as_bytes())
    }

    /// Where a case's evidence lies: `artifacts/<suite>/<case>/<kubelet>`, with `-N` behind it from the second
    /// attempt on.
    pub fn case_dir(&self, id: &CaseId) -> PathBuf {
        let mut kubelet = file_name(&id.kubelet);
        if id.attempt > 1 {
            kubelet.push_str(&format!("-{}", id.attempt));
        }
        self.artifacts().join(file_name(&id.suite)).join(file_name(&id.case)).join(kubelet)
    }
}

/// `name` as one part of a path: a kubelet's label can be the path of a binary.
pub(super) fn file_name(name: &str) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() || "._+-".contains(c) { c } else { '-' };
    let name: String = name.chars().map(kept).collect();
    let name = name.trim_start_matches(['.', '-']);
    if name.is_empty() { "unnamed".to_owned() } else { name.to_owned() }
}

/// Makes a directory and those above it.
pub(super) fn make_dir(dir: &Path) -> Result<(), ReportError> {
    fs::create_dir_all(dir).map_err(|source| ReportError::Write { path: dir.to_owned(), source })
}

/// Refuses a directory that takes no file, or not a megabyte: better before a cluster is made than after.
pub(super) fn need_room(dir: &Path) -> Result<(), ReportError> {
    let probe = dir.join(".room");
    write_file(&probe, &[0; 1 << 20])?;
    fs::remove_file(&probe).map_err(|source| ReportError::Write { path: probe, source })
}

/// Writes a whole file, so that a reader sees all of it or none.
pub(super) fn write_file(path: &Path, content: &[u8]) -> Result<(), ReportError> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    // No fsync: a killed process loses nothing by that, and cases put this very disk under pressure.
    let write = || fs::write(&partial, content).and_then(|()| fs::rename(&partial, path));
    write().map_err(|source| {
        let _ = fs::remove_file(&partial);
        ReportError::Write { path: path.to_owned(), source }
    })
}

/// A convenience only: where there can be no link, there is none.
fn point_latest(results: &Path, name: &str) {
    let latest = results.join("latest");
    if latest.symlink_metadata().is_ok_and(|there| !there.is_symlink()) {
        return;
    }
    #[cfg(unix)]
    {
        let fresh = results.join(format!(".latest-{}", std::process::id()));
        if std::os::unix::fs::symlink(name, &fresh).is_ok() && fs::rename(&fresh, &latest).is_err() {
            let _ = fs::remove_file(&fresh);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_one_second_do_not_share_a_directory() {
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
    fn a_latest_that_is_no_link_stays() {
        let results = tempfile::tempdir().unwrap();
        fs::write(results.path().join("latest"), "mine").unwrap();
        RunDir::create(results.path(), Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(fs::read_to_string(results.path().join("latest")).unwrap(), "mine");
    }

    #[test]
    fn a_directory_with_a_run_in_it_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        RunDir::at(dir.path()).unwrap();
        RunDir::at(dir.path()).unwrap();
        write_file(&dir.path().join("started.json"), b"{}").unwrap();
        let error = RunDir::at(dir.path()).unwrap_err().to_string();
        assert!(error.contains("holds a run already (started.json is there)"), "{error}");
    }

    #[test]
    fn a_file_that_cannot_be_written_leaves_nothing_half() {
        let dir = tempfile::tempdir().unwrap();
        let taken = dir.path().join("taken");
        fs::create_dir(&taken).unwrap();
        assert!(write_file(&taken, b"text").is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn no_label_leaves_the_directory() {
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
