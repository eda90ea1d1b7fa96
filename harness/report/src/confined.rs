//! Files below a directory that may be untrusted, such as a downloaded run.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{Mode, OFlags, open, openat};

/// Opens a regular file below `root` for reading. `root` may be reached through symbolic links, the
/// file may not: a link could lead to a file of the user, whose text would be in reports.
///
/// # Errors
/// The file is not below `root`, cannot be opened, or is not a regular file: a FIFO would block.
pub fn open_below(root: &Path, file: &Path) -> io::Result<File> {
    let opened = open_components(root, file).map_err(|error| link_error(root, file).unwrap_or(error))?;
    if opened.metadata()?.is_file() {
        Ok(opened)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
    }
}

fn open_components(root: &Path, file: &Path) -> io::Result<File> {
    let open_flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let root_name = if root.as_os_str().is_empty() { Path::new(".") } else { root };
    let mut at: OwnedFd = open(root_name, open_flags | OFlags::DIRECTORY, Mode::empty())?;
    let mut names = file.strip_prefix(root).map_err(io::Error::other)?.components().peekable();
    while let Some(Component::Normal(name)) = names.next() {
        let kind = match names.peek() {
            Some(_) => OFlags::DIRECTORY,
            None => OFlags::NONBLOCK,
        };
        at = openat(&at, name, open_flags | OFlags::NOFOLLOW | kind, Mode::empty())?;
    }
    Ok(at.into())
}

/// Returns whether `dir` is a directory below `root` that is not reached through symbolic links.
pub(crate) fn is_dir_below(root: &Path, dir: &Path) -> bool {
    dir.starts_with(root) && link_error(root, dir).is_none() && dir.is_dir()
}

/// Returns the error of the first symbolic link between `root` and `path`.
fn link_error(root: &Path, path: &Path) -> Option<io::Error> {
    let below = path.ancestors().take_while(|part| *part != root && part.starts_with(root));
    let link = below.filter(|part| part.is_symlink()).last()?;
    let message = format!("{} is a symbolic link, which is not followed", link.display());
    Some(io::Error::new(io::ErrorKind::InvalidInput, message))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read as _;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_below_the_directory_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::create_dir_all(path("run/a/b")).unwrap();
        fs::write(path("run/a/b/file"), "inside").unwrap();
        fs::write(path("secret"), "outside").unwrap();
        symlink("../../secret", path("run/a/link")).unwrap();
        symlink("..", path("run/up")).unwrap();
        symlink("a", path("run/same")).unwrap();
        symlink("run", path("latest")).unwrap();
        for (root, file, expected) in [
            ("run", "run/a/b/file", Ok("inside")),
            // The directory itself may be a link.
            ("latest", "latest/a/b/file", Ok("inside")),
            ("run", "run/a/link", Err("run/a/link is a symbolic link, which is not followed")),
            ("run", "run/up/secret", Err("run/up is a symbolic link, which is not followed")),
            ("run", "run/same/b/file", Err("run/same is a symbolic link, which is not followed")),
            ("run", "run/a/b", Err("it is not a regular file")),
            ("run", "run/../secret", Err("it is not a regular file")),
            ("run", "secret", Err("prefix not found")),
        ] {
            let mut text = String::new();
            let read =
                open_below(&path(root), &path(file)).and_then(|mut file| file.read_to_string(&mut text));
            let read = read.map(|_| text.as_str()).map_err(|error| error.to_string());
            let read = read.map_err(|error| error.replace(&format!("{}/", dir.path().display()), ""));
            assert_eq!(read, expected.map_err(str::to_owned), "{root} {file}");
        }
        let gone = open_below(&path("run"), &path("run/a/gone")).unwrap_err();
        assert_eq!(gone.kind(), io::ErrorKind::NotFound);
    }
}
