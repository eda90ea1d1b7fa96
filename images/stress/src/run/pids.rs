//! Processes.

use std::env::current_exe;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::take::Taker;

/// Children, each of which waits for the end of its input. That comes with the end of this process, however it ends: nobody is left.
pub struct Pids {
    program: PathBuf,
    input: PipeReader,
    end: PipeWriter,
    children: Vec<Child>,
}

impl Pids {
    pub fn new() -> io::Result<Self> {
        let (input, end) = io::pipe()?;
        Ok(Self { program: current_exe()?, input, end, children: Vec::new() })
    }
}

impl Taker for Pids {
    fn take(&mut self, amount: u64, taken: &mut u64) -> io::Result<()> {
        for _ in 0..amount {
            let mut child = Command::new(&self.program);
            child.arg("child").stdin(Stdio::from(self.input.try_clone()?));
            self.children.push(child.spawn()?);
            *taken += 1;
        }
        Ok(())
    }

    fn give_back(self: Box<Self>) -> io::Result<()> {
        let Self { end, children, .. } = *self;
        drop(end);
        // Not waited for, they would stay as zombies, which are processes too.
        children.into_iter().try_for_each(|mut child| child.wait().map(drop))
    }
}

/// Waits for the end of the input.
pub fn child() {
    let mut end = [0];
    while let Err(error) = io::stdin().read(&mut end) {
        if error.kind() != io::ErrorKind::Interrupted {
            break;
        }
    }
}
