//! Executes operations.

use std::sync::Arc;

use super::error::ShellError;
use super::interpreter::{Child, Frame, Shell, Wait};
use super::script::{Command, Op};
use super::{applets, builtins};
use crate::machine::calibration;
use crate::machine::ids::Pid;
use crate::machine::kernel::Kernel;
use crate::machine::open_file::{STDERR, STDIN, STDOUT, Target};
use crate::machine::step::StepOutcome;

impl Shell {
    /// Executes the next operation. Returns `None` if the shell can execute another one.
    pub(super) fn execute(&mut self, pid: Pid, kernel: &mut Kernel) -> Option<StepOutcome> {
        match self.try_execute(pid, kernel) {
            Ok(outcome) => outcome,
            Err(ShellError::Killed) => Some(StepOutcome::Wait),
            Err(error) => {
                kernel.print(pid, STDERR, &format!("{}: {error}\n", self.name));
                Some(StepOutcome::Exit(2))
            }
        }
    }

    fn try_execute(&mut self, pid: Pid, kernel: &mut Kernel) -> Result<Option<StepOutcome>, ShellError> {
        let script = Arc::clone(&self.position.script);
        let index = self.position.index;
        self.position.index += 1;
        match &script.ops[index] {
            Op::Command(command) => return self.command(command, pid, kernel),
            Op::Jump(to) => self.position.index = *to,
            Op::JumpIfFailed(to) if self.status != 0 => self.position.index = *to,
            Op::JumpIfSucceeded(to) if self.status == 0 => self.position.index = *to,
            Op::JumpIfFailed(_) | Op::JumpIfSucceeded(_) => {}
            Op::SetStatus(status) => self.status = *status,
            Op::Background { end } => self.start_background(index + 1, *end, pid, kernel)?,
            Op::Subshell { end } => {
                let child = self.fork(index + 1, Self::inherited_descriptors(pid, kernel), pid, kernel)?;
                self.position.index = *end;
                self.wait = Wait::Foreground(Child::running(child));
            }
            Op::Capture { slot, end } => self.start_capture(index + 1, *slot, *end, pid, kernel)?,
            Op::Exit => return Ok(Some(StepOutcome::Exit(self.status))),
            Op::Redirect { redirects, end } => match self.redirect(redirects, pid, kernel)? {
                Some(saved) => self.frames.push(Frame::Redirect(saved)),
                None => self.position.index = *end,
            },
            Op::Restore => {
                if let Some(Frame::Redirect(saved)) = self.frames.pop() {
                    self.restore(saved, pid, kernel);
                }
            }
            Op::BeginFor(words) => {
                let items = self.expand_fields(words)?;
                self.status = 0;
                self.frames.push(Frame::Loop(items.into()));
            }
            Op::NextItem { variable, done } => {
                let item = match self.frames.last_mut() {
                    Some(Frame::Loop(items)) => items.pop_front(),
                    _ => None,
                };
                match item {
                    Some(item) => self.set_variable(variable, item)?,
                    None => self.position.index = *done,
                }
            }
            Op::EndFor => drop(self.frames.pop()),
            Op::Return => self.return_from_trap(),
        }
        Ok(None)
    }

    fn start_background(
        &mut self,
        start: usize,
        end: usize,
        pid: Pid,
        kernel: &mut Kernel,
    ) -> Result<(), ShellError> {
        let mut descriptors = Self::inherited_descriptors(pid, kernel);
        // A background process reads from /dev/null (POSIX, asynchronous lists).
        let null = kernel.open(Target::Null);
        descriptors[STDIN] = Some(null);
        let child = self.fork(start, descriptors, pid, kernel);
        kernel.close(null);
        let child = child?;
        self.background_pid = Some(child);
        self.jobs.push(Child::running(child));
        self.status = 0;
        self.position.index = end;
        Ok(())
    }

    fn start_capture(
        &mut self,
        start: usize,
        slot: usize,
        end: usize,
        pid: Pid,
        kernel: &mut Kernel,
    ) -> Result<(), ShellError> {
        let mut descriptors = Self::inherited_descriptors(pid, kernel);
        let (pipe, writer) = kernel.create_pipe(pid);
        descriptors[STDOUT] = Some(writer);
        let child = self.fork(start, descriptors, pid, kernel);
        kernel.close(writer);
        let child = Child::running(child?);
        self.wait = Wait::Capture { child, pipe, slot, output: Vec::new(), at_end: false };
        self.position.index = end;
        Ok(())
    }

    /// Returns whether the shell exits after the current operation, so that a command can replace
    /// it.
    fn is_last_command(&self) -> bool {
        self.forked
            && self.frames.is_empty()
            && self.traps.is_empty()
            && matches!(self.position.script.ops.get(self.position.index), Some(Op::Exit))
    }

    fn command(
        &mut self,
        command: &Command,
        pid: Pid,
        kernel: &mut Kernel,
    ) -> Result<Option<StepOutcome>, ShellError> {
        let words = self.expand_fields(&command.words)?;
        let Some(name) = words.first().map(String::as_str) else {
            return self.assignments_only(command, pid, kernel).map(|()| None);
        };
        self.assign(command)?;
        if name == "exec" {
            return self.exec(&words[1..], command, pid, kernel);
        }
        let Some(saved) = self.redirect(&command.redirects, pid, kernel)? else { return Ok(None) };
        if builtins::is_builtin(name) {
            let outcome = self.builtin(&words, pid, kernel)?;
            self.restore(saved, pid, kernel);
            return Ok(outcome);
        }
        if applets::is_program(name) {
            if !kernel.can_fork(pid) {
                return Err(ShellError::CannotFork);
            }
            self.cpu_time += calibration::EXEC;
        }
        if let Some(result) = applets::run(&words, &self.name, pid, kernel) {
            self.status = result.status;
            let outcome =
                if result.output.is_empty() { None } else { self.write(result.output, pid, kernel) };
            self.restore(saved, pid, kernel);
            return Ok(outcome);
        }
        if self.is_last_command() {
            // The redirections stay in force: close the files that they replaced.
            saved.into_iter().filter_map(|(_, file)| file).for_each(|file| kernel.close(file));
            return Ok(Some(StepOutcome::Exec(self.command_line(&words))));
        }
        let child = self.spawn(&words, Self::inherited_descriptors(pid, kernel), pid, kernel);
        self.restore(saved, pid, kernel);
        self.wait = Wait::Foreground(Child::running(child?));
        Ok(None)
    }

    /// Executes a command without words. Its status is that of its last command substitution.
    fn assignments_only(
        &mut self,
        command: &Command,
        pid: Pid,
        kernel: &mut Kernel,
    ) -> Result<(), ShellError> {
        let values = command.assignments.iter().map(|assignment| &assignment.value);
        if !values.chain(&command.words).any(|word| word.has_capture()) {
            self.status = 0;
        }
        self.assign(command)?;
        if let Some(saved) = self.redirect(&command.redirects, pid, kernel)? {
            self.restore(saved, pid, kernel);
        }
        Ok(())
    }

    /// `exec`: replaces the shell by another program, or redirects its own descriptors.
    fn exec(
        &mut self,
        words: &[String],
        command: &Command,
        pid: Pid,
        kernel: &mut Kernel,
    ) -> Result<Option<StepOutcome>, ShellError> {
        let Some(saved) = self.redirect(&command.redirects, pid, kernel)? else {
            return Ok(Some(StepOutcome::Exit(1)));
        };
        saved.into_iter().filter_map(|(_, file)| file).for_each(|file| kernel.close(file));
        if words.is_empty() {
            self.status = 0;
            return Ok(None);
        }
        Ok(Some(StepOutcome::Exec(self.command_line(words))))
    }

    fn assign(&mut self, command: &Command) -> Result<(), ShellError> {
        for assignment in &command.assignments {
            let value = self.expand_string(&assignment.value)?;
            self.set_variable(&assignment.name, value)?;
        }
        Ok(())
    }
}
