//! Commands in running containers, as the CRI's `ExecSync` runs them.

use super::calibration;
use super::data::Data;
use super::errno::Errno;
use super::ids::{ContainerKey, MAX_DESCRIPTORS, Pid, STDERR, STDIN, STDOUT};
use super::kernel::Kernel;
use super::lifecycle::KILLED;
use super::open_file::Target;
use super::program::Program;

/// The bytes that are stored of a stream; the rest is dropped.
const MAX_OUTPUT: usize = 64 << 10;

/// The number of a command in a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExecId(u64);

/// The result of a command in a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecResult {
    /// The exit status; 128 plus the signal for a process that was killed.
    pub code: i32,
    /// Standard output, at most 64 KiB.
    pub stdout: Vec<u8>,
    /// Standard error, at most 64 KiB.
    pub stderr: Vec<u8>,
}

/// A command that cannot be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExecError {
    /// The container does not exist, or has exited.
    #[error("the container does not run")]
    NotRunning,
    /// The model does not have the program.
    #[error("this model does not run the program")]
    UnknownProgram,
    /// The container has as many processes as it may have.
    #[error("the container cannot have another process")]
    CannotFork,
}

/// A command in a container.
#[derive(Clone, Debug)]
pub(super) struct Exec {
    pid: Pid,
    /// `None` while the command runs.
    code: Option<i32>,
    /// Standard output and standard error.
    output: [Vec<u8>; 2],
}

impl Kernel {
    /// Starts a command in a container.
    pub fn start_exec(&mut self, key: ContainerKey, line: &[String]) -> Result<ExecId, ExecError> {
        let container = self.containers.get(&key).filter(|container| container.cgroup.is_some());
        let environment = container.ok_or(ExecError::NotRunning)?.spec.env.clone();
        let program = Program::of_command(line, &environment).ok_or(ExecError::UnknownProgram)?;
        let id = ExecId(self.next_exec);
        self.next_exec += 1;
        let stdin = self.open(Target::Null);
        let stdout = self.open(Target::Exec { id, stderr: false });
        let stderr = self.open(Target::Exec { id, stderr: true });
        let mut descriptors = [None; MAX_DESCRIPTORS];
        (descriptors[STDIN], descriptors[STDOUT], descriptors[STDERR]) =
            (Some(stdin), Some(stdout), Some(stderr));
        let started = self.start_process(key, None, program, descriptors, self.now + calibration::EXEC);
        for file in [stdin, stdout, stderr] {
            self.close(file);
        }
        let (pid, _) = started.map_err(|error| match error {
            Errno::CannotFork => ExecError::CannotFork,
            _ => ExecError::NotRunning,
        })?;
        // The OOM killer may have killed the process while it started.
        let is_alive = self.processes.contains_key(&pid);
        let code = (!is_alive).then_some(KILLED);
        self.execs.insert(id, Exec { pid, code, output: Default::default() });
        Ok(id)
    }

    /// Removes and returns the result of a command; `None` while the command runs.
    pub fn take_exec(&mut self, id: ExecId) -> Option<ExecResult> {
        self.execs.get(&id)?.code?;
        let Exec { code, output: [stdout, stderr], .. } = self.execs.remove(&id)?;
        Some(ExecResult { code: code?, stdout, stderr })
    }

    /// Stores output of a command.
    pub fn write_exec(&mut self, id: ExecId, stderr: bool, data: &Data) {
        let Some(exec) = self.execs.get_mut(&id) else { return };
        let output = &mut exec.output[usize::from(stderr)];
        let room = MAX_OUTPUT.saturating_sub(output.len());
        let (first, _) = data.clone().split(room as u64);
        output.extend(first.bytes(room).unwrap_or_default());
    }

    /// Records the exit status of a process that a command started.
    pub fn end_exec(&mut self, pid: Pid, code: i32) {
        let exec = self.execs.values_mut().find(|exec| exec.pid == pid && exec.code.is_none());
        if let Some(exec) = exec {
            exec.code = Some(code);
        }
    }
}
