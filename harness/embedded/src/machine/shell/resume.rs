//! Input and output of a shell, and its continuation after a wait.

use super::interpreter::{CAPTURE, Child, Shell, Wait};
use crate::machine::calibration;
use crate::machine::data::Data;
use crate::machine::descriptors::STDERR;
use crate::machine::errno::Errno;
use crate::machine::ids::Pid;
use crate::machine::kernel::Kernel;
use crate::machine::open_file::Target;
use crate::machine::step::StepOutcome;

impl Shell {
    /// Takes exited children and delivered signals from the kernel.
    pub(super) fn receive(&mut self, pid: Pid, kernel: &mut Kernel) {
        let Some(process) = kernel.processes.get_mut(&pid) else { return };
        if process.exited_children.is_empty() && process.signals.is_empty() {
            return;
        }
        let exited = std::mem::take(&mut process.exited_children);
        self.pending_signals.extend(std::mem::take(&mut process.signals));
        for (pid, status) in exited {
            let record = |child: &mut Child| {
                if child.pid == pid {
                    child.status = Some(status);
                }
            };
            self.jobs.iter_mut().for_each(record);
            match &mut self.wait {
                Wait::Foreground(child) | Wait::Capture { child, .. } => record(child),
                _ => {}
            }
        }
    }

    /// Returns `None` once the shell no longer waits.
    pub(super) fn resume(&mut self, pid: Pid, kernel: &mut Kernel) -> Option<StepOutcome> {
        match std::mem::replace(&mut self.wait, Wait::Nothing) {
            Wait::Nothing => None,
            Wait::Foreground(child) => {
                let Some(status) = child.status else {
                    self.wait = Wait::Foreground(child);
                    return Some(StepOutcome::Wait);
                };
                self.status = status;
                None
            }
            Wait::Capture { child, slot } => {
                let Some(status) = child.status else {
                    self.wait = Wait::Capture { child, slot };
                    return Some(StepOutcome::Wait);
                };
                self.status = status;
                let file = kernel.descriptor(pid, CAPTURE);
                let output = file.map(|file| kernel.take_captured(file)).unwrap_or_default();
                kernel.set_descriptor(pid, CAPTURE, None);
                if let Some(capture) = self.captures.get_mut(slot) {
                    *capture = String::from_utf8_lossy(&output).trim_end_matches('\n').to_owned();
                }
                None
            }
            Wait::Jobs(which) => self.resume_jobs(which),
        }
    }

    fn resume_jobs(&mut self, which: Option<Vec<u64>>) -> Option<StepOutcome> {
        if let Some(signal) = self.pending_signals.first() {
            self.status = 128 + i32::from(*signal);
            return None;
        }
        let is_awaited = |job: &Child| which.as_ref().is_none_or(|which| which.contains(&job.pid));
        if self.jobs.iter().any(|job| is_awaited(job) && job.status.is_none()) {
            self.wait = Wait::Jobs(which);
            return Some(StepOutcome::Wait);
        }
        self.status = match which.as_ref().and_then(|which| which.last()) {
            None => 0,
            Some(last) => {
                self.jobs.iter().find(|job| job.pid == *last).and_then(|job| job.status).unwrap_or(127)
            }
        };
        self.jobs.retain(|job| !is_awaited(job));
        None
    }

    /// Writes to a descriptor; prints an error and sets the status to 1 if that fails.
    pub(super) fn write(
        &mut self,
        descriptor: usize,
        data: Data,
        pid: Pid,
        kernel: &mut Kernel,
    ) -> Option<StepOutcome> {
        let file = kernel.descriptor(pid, descriptor);
        if let Some(Target::Log { .. }) = file.and_then(|file| kernel.target(file)) {
            self.cpu_time += calibration::LOG_WRITE;
        }
        match file.map_or(Err(Errno::BadDescriptor), |file| kernel.write(pid, file, data)) {
            Ok(()) => None,
            Err(Errno::Killed) => Some(StepOutcome::Wait),
            Err(error) => {
                self.status = 1;
                kernel.print(pid, STDERR, &format!("{}: write error: {}\n", self.name, error.text()));
                None
            }
        }
    }
}
