//! Input and output of a shell, and its continuation after a wait.

use evictlab_rules::quantity::MIB;

use super::interpreter::{Child, Shell, Wait};
use crate::machine::calibration;
use crate::machine::data::Data;
use crate::machine::errno::Errno;
use crate::machine::ids::{Pid, PipeId};
use crate::machine::kernel::Kernel;
use crate::machine::open_file::{STDERR, STDIN, STDOUT, Target};
use crate::machine::step::StepOutcome;

/// The longest output of a command substitution, in bytes.
const MAX_CAPTURE: usize = MIB as usize;

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
            if let Wait::Foreground(child) | Wait::Capture { child, .. } = &mut self.wait {
                record(child);
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
            Wait::Capture { child, pipe, slot, mut output, mut at_end } => {
                if !at_end {
                    match read_capture(pipe, &mut output, pid, kernel) {
                        Ok(is_closed) => at_end = is_closed,
                        Err(_) => return Some(StepOutcome::Wait),
                    }
                }
                let (true, Some(status)) = (at_end, child.status) else {
                    self.wait = Wait::Capture { child, pipe, slot, output, at_end };
                    return Some(StepOutcome::Wait);
                };
                self.status = status;
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

    /// `read`: assigns the next line of standard input to variables.
    pub(super) fn read_line(&mut self, names: Vec<String>, pid: Pid, kernel: &mut Kernel) {
        let line = kernel.descriptor(pid, STDIN).and_then(|input| kernel.read_line(input));
        let line = String::from_utf8_lossy(line.as_deref().unwrap_or_default()).into_owned();
        self.assign_line(&names, line.trim_end_matches('\n'));
        self.status = i32::from(!line.ends_with('\n'));
    }

    /// Splits a line into variables; the last one takes the rest.
    fn assign_line(&mut self, names: &[String], line: &str) {
        let mut rest = line.trim();
        for (at, name) in names.iter().enumerate() {
            let (value, after) = if at + 1 == names.len() {
                (rest, "")
            } else {
                rest.split_once([' ', '\t']).map_or((rest, ""), |(value, after)| (value, after.trim_start()))
            };
            rest = after;
            // A line is never longer than a variable may be.
            let _ = self.set_variable(name, value.to_owned());
        }
    }

    /// Writes to standard output. Returns an outcome if the kernel kills the shell.
    pub(super) fn write(&mut self, text: String, pid: Pid, kernel: &mut Kernel) -> Option<StepOutcome> {
        let file = kernel.descriptor(pid, STDOUT);
        if let Some(Target::Log { .. }) = file.and_then(|file| kernel.target(file)) {
            self.cpu_time += calibration::LOG_WRITE;
        }
        match file.map_or(Err(Errno::BadDescriptor), |file| kernel.write(pid, file, Data::text(text))) {
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

/// Reads what a command substitution has written so far; returns whether that is all. Fails if the
/// kernel kills the shell.
fn read_capture(pipe: PipeId, output: &mut Vec<u8>, pid: Pid, kernel: &mut Kernel) -> Result<bool, Errno> {
    let (unread, is_closed) = kernel.read_pipe(pipe);
    for data in unread {
        match data {
            Data::Bytes(bytes) => output.extend(bytes),
            // The content of bulk data is unknown, but it takes memory.
            data => {
                kernel.allocate_memory(pid, data.len(), data.len() / calibration::PAGE_TABLE_RATIO)?;
            }
        }
        output.truncate(MAX_CAPTURE);
    }
    Ok(is_closed)
}
