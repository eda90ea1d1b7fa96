//! Starts child processes.

use std::sync::Arc;

use super::error::ShellError;
use super::interpreter::Shell;
use super::script::Position;
use crate::machine::calibration;
use crate::machine::errno::Errno;
use crate::machine::ids::Pid;
use crate::machine::kernel::Kernel;
use crate::machine::open_file::Descriptors;
use crate::machine::step::CommandLine;
use crate::sim::SimTime;

impl Shell {
    /// Returns a copy of this shell that continues at an operation.
    fn forked_at(&self, index: usize) -> Self {
        // The parent's trap actions do not apply; ignored signals stay ignored.
        let ignored = self.traps.iter().filter(|(_, action)| action.is_none());
        Self {
            name: self.name.clone(),
            traps: ignored.map(|(signal, _)| (*signal, None)).collect(),
            captures: self.captures.clone(),
            status: self.status,
            shell_pid: self.shell_pid,
            background_pid: self.background_pid,
            forked: true,
            ..Self::new(
                Position { script: Arc::clone(&self.position.script), index },
                Arc::clone(&self.variables),
            )
        }
    }

    /// Returns the descriptors that a child inherits.
    pub(super) fn inherited_descriptors(pid: Pid, kernel: &Kernel) -> Descriptors {
        kernel.processes.get(&pid).map(|process| process.descriptors).unwrap_or_default()
    }

    /// Returns a command line with the variables of this shell as its environment.
    pub(super) fn command_line(&self, words: &[String]) -> CommandLine {
        CommandLine { words: words.to_vec(), environment: Arc::clone(&self.variables) }
    }

    /// Requests the CPU time of a fork; returns when the child starts.
    fn request_fork(&mut self, pid: Pid, kernel: &mut Kernel) -> SimTime {
        let cpu_time = std::mem::take(&mut self.cpu_time) + calibration::EXEC;
        self.busy_until = kernel.run_on_cpu(pid, self.busy_until, cpu_time);
        self.busy_until
    }

    /// Starts a command as a child process; returns its PID in the container.
    pub(super) fn spawn(
        &mut self,
        words: &[String],
        descriptors: Descriptors,
        pid: Pid,
        kernel: &mut Kernel,
    ) -> Result<u64, ShellError> {
        let at = self.request_fork(pid, kernel);
        child_pid(kernel.spawn_command(pid, &self.command_line(words), descriptors, at))
    }

    /// Starts a copy of this shell at an operation; returns its PID in the container.
    pub(super) fn fork(
        &mut self,
        index: usize,
        descriptors: Descriptors,
        pid: Pid,
        kernel: &mut Kernel,
    ) -> Result<u64, ShellError> {
        let at = self.request_fork(pid, kernel);
        child_pid(kernel.spawn(pid, Box::new(self.forked_at(index)), descriptors, at))
    }
}

/// Returns the PID of a new child in the container.
fn child_pid(started: Result<(Pid, u64), Errno>) -> Result<u64, ShellError> {
    match started {
        Ok((_, child)) => Ok(child),
        Err(Errno::Killed) => Err(ShellError::Killed),
        Err(_) => Err(ShellError::CannotFork),
    }
}
