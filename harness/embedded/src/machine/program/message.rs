//! A program that only prints a text.

use super::super::ids::{Pid, STDERR, STDOUT};
use super::super::kernel::{Kernel, Program};
use super::super::step::StepOutcome;

/// A program that prints a text and exits.
pub(super) struct Message {
    pub name: &'static str,
    pub text: String,
    pub stderr: bool,
    pub code: i32,
}

impl Message {
    /// Returns a program that prints an error and exits.
    pub(super) fn error(name: &'static str, text: String, code: i32) -> Self {
        Self { name, text, stderr: true, code }
    }
}

impl Program for Message {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn step(&mut self, pid: Pid, kernel: &mut Kernel) -> StepOutcome {
        kernel.print(pid, if self.stderr { STDERR } else { STDOUT }, &self.text);
        StepOutcome::Exit(self.code)
    }
}
