//! Consumption of process IDs by child processes.

use std::env::current_exe;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Child processes that exit at the end of their stdin, a pipe of this process. They do not outlive
/// it, even if it is killed.
pub(super) struct Pids {
    program: PathBuf,
    reader: PipeReader,
    writer: PipeWriter,
    children: Vec<Child>,
}

impl Pids {
    pub(super) fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        Ok(Self { program: current_exe()?, reader, writer, children: Vec::new() })
    }

    pub(super) fn consume(&mut self, amount: u64, consumed: &mut u64) -> io::Result<()> {
        for _ in 0..amount {
            let mut child = Command::new(&self.program);
            child.arg("child").stdin(Stdio::from(self.reader.try_clone()?));
            self.children.push(child.spawn()?);
            *consumed += 1;
        }
        Ok(())
    }

    pub(super) fn release(self) -> io::Result<()> {
        let Self { writer, children, .. } = self;
        drop(writer);
        // Zombies count as processes until they are waited for.
        children.into_iter().try_for_each(|mut child| child.wait().map(drop))
    }
}

/// Runs `stress child`: waits for the end of stdin.
pub(crate) fn child() {
    let mut byte = [0];
    while let Err(error) = io::stdin().read(&mut byte) {
        if error.kind() != io::ErrorKind::Interrupted {
            break;
        }
    }
}
