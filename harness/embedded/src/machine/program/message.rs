//! A program that only prints a text.

use crate::machine::ids::Pid;
use crate::machine::kernel::{Kernel, Program};
use crate::machine::open_file::{STDERR, STDOUT};
use crate::machine::step::StepOutcome;
use crate::machine::types::OutputStream;

/// A program that prints a text and exits.
pub(super) struct Message {
    name: &'static str,
    text: String,
    stream: OutputStream,
    code: i32,
}

impl Message {
    /// Returns a program that prints a text to standard output and exits with 0.
    pub(super) fn output(name: &'static str, text: String) -> Self {
        Self { name, text, stream: OutputStream::Stdout, code: 0 }
    }

    /// Returns a program that prints an error and exits.
    pub(super) fn error(name: &'static str, text: String, code: i32) -> Self {
        Self { name, text, stream: OutputStream::Stderr, code }
    }
}

impl Program for Message {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn step(&mut self, pid: Pid, kernel: &mut Kernel) -> StepOutcome {
        let descriptor = match self.stream {
            OutputStream::Stdout => STDOUT,
            OutputStream::Stderr => STDERR,
        };
        kernel.print(pid, descriptor, &self.text);
        StepOutcome::Exit(self.code)
    }
}
