//! A folder for what one run of the program writes.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// A folder of its own: what an earlier run left there, in a volume that outlives a container, stays.
pub struct Folder(PathBuf);

impl Folder {
    /// Makes `path` where it is missing, and in it the first of `name-0`, `name-1`, … that is not there.
    pub fn make(path: &str, name: &str) -> io::Result<Self> {
        fs::create_dir_all(path).map_err(|error| at(Path::new(path), error))?;
        let mut number = 0;
        loop {
            let own = Path::new(path).join(format!("{name}-{number}"));
            match fs::create_dir(&own) {
                Ok(()) => return Ok(Self(own)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(at(&own, error)),
            }
        }
    }

    /// A new file.
    pub fn file(&self, name: &str) -> io::Result<File> {
        let path = self.0.join(name);
        let made = OpenOptions::new().read(true).write(true).create_new(true).open(&path);
        made.map_err(|error| at(&path, error))
    }

    /// Removes it, with all that is in it.
    pub fn remove(self) -> io::Result<()> {
        fs::remove_dir_all(&self.0).map_err(|error| at(&self.0, error))
    }
}

fn at(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
