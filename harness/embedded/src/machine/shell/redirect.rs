//! Redirections.

use super::super::data::Data;
use super::super::files::Mode;
use super::super::kernel::{Errno, Kernel};
use super::super::process::Pid;
use super::Shell;
use super::code::{Redirect, To};
use super::expand::Bad;

/// Descriptors as they were.
pub(super) type Saved = Vec<(usize, Option<usize>)>;

impl Shell {
    /// Changes the process's descriptors. On failure it says why and leaves them as they were.
    pub(super) fn redirect(
        &mut self,
        all: &[Redirect],
        me: Pid,
        kernel: &mut Kernel,
    ) -> Result<Option<Saved>, Bad> {
        let mut saved = Saved::new();
        for redirect in all {
            let opened = match &redirect.to {
                To::File(mode, word) | To::Both(mode, word) => {
                    let path = self.single(word)?;
                    kernel.open_path(me, &path, *mode).map(Some).map_err(|error| {
                        let verb = if *mode == Mode::Read { "open" } else { "create" };
                        let why = match (error, mode) {
                            (Errno::Missing, Mode::Read) => "no such file",
                            (Errno::Missing, _) => "nonexistent directory",
                            _ => error.text(),
                        };
                        format!("can't {verb} {path}: {why}")
                    })
                }
                To::Descriptor(word) => {
                    let number = self.single(word)?;
                    if number == "-" {
                        Ok(None)
                    } else {
                        let open = number
                            .parse()
                            .ok()
                            .filter(|number| *number < 10)
                            .and_then(|number| kernel.descriptor(me, number));
                        if let Some(open) = open {
                            kernel.hold(open);
                        }
                        open.map(Some).ok_or_else(|| format!("{number}: Bad file descriptor"))
                    }
                }
                To::Text(word) => {
                    let text = self.single(word)?;
                    let (reader, writer) = kernel.pipe();
                    // A text that a pipe does not take at once is longer than any script.
                    let _ = kernel.write(me, writer, Data::text(text));
                    kernel.close(writer);
                    Ok(Some(reader))
                }
            };
            match opened {
                Ok(open) => {
                    saved.push((redirect.descriptor, kernel.exchange(me, redirect.descriptor, open)));
                    if matches!(redirect.to, To::Both(..)) {
                        if let Some(open) = open {
                            kernel.hold(open);
                        }
                        saved.push((2, kernel.exchange(me, 2, open)));
                    }
                }
                Err(why) => {
                    kernel.say(me, 2, &format!("{}: {why}\n", self.name));
                    self.restore(saved, me, kernel);
                    self.status = 1;
                    return Ok(None);
                }
            }
        }
        Ok(Some(saved))
    }

    /// Puts descriptors back as they were.
    pub(super) fn restore(&mut self, saved: Saved, me: Pid, kernel: &mut Kernel) {
        for (descriptor, open) in saved.into_iter().rev() {
            kernel.install(me, descriptor, open);
        }
    }
}
