//! Commands in running containers, as the CRI's `ExecSync` runs them.

use super::calibration;
use super::data::Data;
use super::errno::Errno;
use super::exec_result::{Exec, ExecError, ExecResult};
use super::ids::{ContainerKey, ExecId, Pid};
use super::kernel::Kernel;
use super::lifecycle::KILLED;
use super::open_file::{MAX_DESCRIPTORS, STDERR, STDIN, STDOUT, Target};
use super::program::load_command;
use super::types::{MachineEvent, OutputStream};

impl Kernel {
    /// Starts a command in a container.
    pub(super) fn start_exec(&mut self, key: ContainerKey, line: &[String]) -> Result<ExecId, ExecError> {
        let container = self.containers.get(&key).filter(|container| container.cgroup.is_some());
        let environment = container.ok_or(ExecError::NotRunning)?.spec.env.clone();
        let program = load_command(line, &environment).ok_or(ExecError::UnknownProgram)?;
        let id = ExecId(self.next_exec);
        self.next_exec += 1;
        let stdin = self.open(Target::Null);
        let stdout = self.open(Target::Exec { id, stream: OutputStream::Stdout });
        let stderr = self.open(Target::Exec { id, stream: OutputStream::Stderr });
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
        self.execs.insert(id, Exec::new(pid, code));
        if !is_alive {
            self.events.push(MachineEvent::ExecExited { exec: id });
        }
        Ok(id)
    }

    /// Removes and returns the result of a command; `None` while the command runs.
    pub(super) fn take_exec(&mut self, id: ExecId) -> Option<ExecResult> {
        self.execs.get(&id)?.code?;
        let Exec { code, stdout, stderr, .. } = self.execs.remove(&id)?;
        Some(ExecResult { code: code?, stdout, stderr })
    }

    /// Stores output of a command.
    pub(super) fn write_exec(&mut self, id: ExecId, stream: OutputStream, data: &Data) {
        if let Some(exec) = self.execs.get_mut(&id) {
            exec.write(stream, data);
        }
    }

    /// Records the exit status of a process that a command started.
    pub(super) fn end_exec(&mut self, pid: Pid, code: i32) {
        let exec = self.execs.iter_mut().find(|(_, exec)| exec.pid == pid && exec.code.is_none());
        if let Some((id, exec)) = exec {
            exec.code = Some(code);
            self.events.push(MachineEvent::ExecExited { exec: *id });
        }
    }
}
