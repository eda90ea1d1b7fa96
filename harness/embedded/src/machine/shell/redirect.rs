//! Redirections.

use super::error::ShellError;
use super::interpreter::{SavedDescriptors, Shell};
use super::script::{Redirect, RedirectTarget};
use crate::machine::errno::Errno;
use crate::machine::ids::{OpenFileId, Pid};
use crate::machine::kernel::Kernel;
use crate::machine::open_file::{MAX_DESCRIPTORS, STDERR};
use crate::machine::paths::OpenMode;

impl Shell {
    /// Changes descriptors; returns what they were before. If a file cannot be opened, prints why,
    /// leaves the descriptors as they were, sets the status to 1 and returns `None`.
    pub(super) fn redirect(
        &mut self,
        redirects: &[Redirect],
        pid: Pid,
        kernel: &mut Kernel,
    ) -> Result<Option<SavedDescriptors>, ShellError> {
        let mut saved = SavedDescriptors::new();
        for redirect in redirects {
            let opened = match &redirect.target {
                RedirectTarget::File(mode, word) => {
                    let path = self.expand_string(word)?;
                    let opened = kernel.open_path(pid, &path, *mode);
                    opened.map(Some).map_err(|error| open_error(&path, *mode, error))
                }
                RedirectTarget::Descriptor(word) => duplicate(&self.expand_string(word)?, pid, kernel),
            };
            match opened {
                Ok(file) => {
                    saved.push((redirect.descriptor, kernel.swap_descriptor(pid, redirect.descriptor, file)));
                }
                Err(message) => {
                    kernel.print(pid, STDERR, &format!("{}: {message}\n", self.name));
                    self.restore(saved, pid, kernel);
                    self.status = 1;
                    return Ok(None);
                }
            }
        }
        Ok(Some(saved))
    }

    /// Undoes redirections.
    pub(super) fn restore(&mut self, saved: SavedDescriptors, pid: Pid, kernel: &mut Kernel) {
        for (descriptor, file) in saved.into_iter().rev() {
            kernel.set_descriptor(pid, descriptor, file);
        }
    }
}

/// Opens the file of another descriptor once more; `-` closes.
fn duplicate(number: &str, pid: Pid, kernel: &mut Kernel) -> Result<Option<OpenFileId>, String> {
    if number == "-" {
        return Ok(None);
    }
    let descriptor = number.parse().ok().filter(|number| *number < MAX_DESCRIPTORS);
    let file = descriptor.and_then(|descriptor| kernel.descriptor(pid, descriptor));
    let file = file.ok_or_else(|| format!("{number}: Bad file descriptor"))?;
    kernel.retain(file);
    Ok(Some(file))
}

/// Returns ash's message for a file that cannot be opened.
fn open_error(path: &str, mode: OpenMode, error: Errno) -> String {
    match (mode, error) {
        (OpenMode::Read, Errno::NotFound) => format!("can't open {path}: no such file"),
        (OpenMode::Read, error) => format!("can't open {path}: {}", error.text()),
        (_, Errno::NotFound) => format!("can't create {path}: nonexistent directory"),
        (_, error) => format!("can't create {path}: {}", error.text()),
    }
}
