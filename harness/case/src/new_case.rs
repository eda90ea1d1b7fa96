//! Creation of a case file from a template.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::values::{Name, ValueError};

/// A complete case; `NAME` is replaced by its name.
const TEMPLATE: &str = r#"name: NAME
about: A pod that grows beyond an eviction threshold is evicted.
when-it-fails: The kubelet does not evict the pod, or its message has other amounts.
labels: [Serial, Disruptive, "NodeFeature:Eviction"]
pressure: {signal: memory.available, pod: {name: hog}}
expect:
  evicted: [hog]
  message: {resource: memory, containers: {el1: {request: "0", usage: ">=100Mi"}}}
"#;

/// Suite and name of a new case, written `suite/name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCase {
    /// Suite: the folder of the file.
    pub suite: Name,
    /// Name of the case.
    pub name: Name,
}

/// A case file could not be created.
#[derive(Debug, thiserror::Error)]
pub enum NewCaseError {
    /// The file exists.
    #[error("failed to create {}: the file exists\nhelp: choose another name, or delete the file", .0.display())]
    Exists(PathBuf),
    /// The file or its folder could not be written.
    #[error("failed to create {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// The name of a new case is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NewCaseNameError {
    /// Not a suite and a name.
    #[error("the name of a new case needs a suite: SUITE/NAME, such as message/my-case")]
    NoSuite,
    /// One of them is not a DNS label.
    #[error(transparent)]
    Name(#[from] ValueError),
}

impl FromStr for NewCase {
    type Err = NewCaseNameError;

    fn from_str(text: &str) -> Result<Self, NewCaseNameError> {
        let (suite, name) = text.split_once('/').ok_or(NewCaseNameError::NoSuite)?;
        Ok(Self { suite: suite.parse()?, name: name.parse()? })
    }
}

impl NewCase {
    /// Writes a case with memory pressure to `dir`, in the folder of its suite, and returns the
    /// path.
    ///
    /// # Errors
    /// The file exists or cannot be written.
    pub fn write(&self, dir: &Path) -> Result<PathBuf, NewCaseError> {
        let folder = dir.join(self.suite.as_str());
        let path = folder.join(format!("{}.yaml", self.name));
        let failed = |source| NewCaseError::Write { path: path.clone(), source };
        fs::create_dir_all(&folder).map_err(failed)?;
        let text = TEMPLATE.replace("NAME", self.name.as_str());
        match create_file(&path, |file| file.write_all(text.as_bytes())) {
            Ok(()) => Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(NewCaseError::Exists(path)),
            Err(error) => Err(failed(error)),
        }
    }
}

/// Creates a file and writes it. A file that cannot be written completely is deleted.
fn create_file(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    write(&mut file).inspect_err(|_| {
        // The error of the write is reported.
        let _ = fs::remove_file(path);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::load_paths;

    #[test]
    fn a_new_case_is_valid_and_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let new: NewCase = "mine/my-case".parse().unwrap();
        let path = new.write(dir.path()).unwrap();
        assert_eq!(path, dir.path().join("mine/my-case.yaml"));
        let cases = load_paths(std::slice::from_ref(&path)).unwrap();
        assert_eq!(cases[0].id(), "mine/my-case");
        fs::write(&path, "mine").unwrap();
        let error = new.write(dir.path()).unwrap_err().to_string();
        assert!(error.starts_with("failed to create") && error.contains("the file exists"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        // A file in the place of the folder.
        let new: NewCase = "file/my-case".parse().unwrap();
        fs::write(dir.path().join("file"), "").unwrap();
        assert!(matches!(new.write(dir.path()), Err(NewCaseError::Write { .. })));
    }

    #[test]
    fn a_file_that_cannot_be_written_is_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.yaml");
        let full = |file: &mut File| {
            file.write_all(b"name")?;
            Err(io::ErrorKind::StorageFull.into())
        };
        assert_eq!(create_file(&path, full).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(!path.exists());
        fs::write(&path, "mine").unwrap();
        assert_eq!(create_file(&path, full).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    }

    #[test]
    fn a_name_has_a_suite_and_is_made_of_labels() {
        for text in ["my-case", ""] {
            assert_eq!(text.parse::<NewCase>(), Err(NewCaseNameError::NoSuite), "{text}");
        }
        for (text, label) in
            [("/a", ""), ("a/", ""), ("a/b/c", "b/c"), ("../a", ".."), ("a/B", "B"), ("a b/c", "a b")]
        {
            let error = NewCaseNameError::Name(ValueError::Name(label.to_owned()));
            assert_eq!(text.parse::<NewCase>(), Err(error), "{text}");
        }
    }
}
