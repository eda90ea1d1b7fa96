//! The directory of one run of the program.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// A new directory. Files of earlier runs stay, in a volume that outlives its container.
pub(super) struct RunDirectory(PathBuf);

impl RunDirectory {
    /// Creates the first of `name-0`, `name-1`, … in `path` that does not exist, and `path` itself.
    pub(super) fn create(path: &str, name: &str) -> io::Result<Self> {
        fs::create_dir_all(path).map_err(|error| with_path(Path::new(path), error))?;
        let mut number = 0;
        loop {
            let directory = Path::new(path).join(format!("{name}-{number}"));
            match fs::create_dir(&directory) {
                Ok(()) => return Ok(Self(directory)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(with_path(&directory, error)),
            }
        }
    }

    /// Creates a file in the directory.
    pub(super) fn create_file(&self, name: &str) -> io::Result<File> {
        let path = self.0.join(name);
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path);
        file.map_err(|error| with_path(&path, error))
    }

    /// Removes the directory with its files.
    pub(super) fn remove(self) -> io::Result<()> {
        fs::remove_dir_all(&self.0).map_err(|error| with_path(&self.0, error))
    }
}

fn with_path(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
