//! Input and output of a shell, and its continuation after a wait.

use evictlab_rules::quantity::MIB;

use super::interpreter::{CAPTURE_INPUT, Child, PENDING_OUTPUT, Shell, Wait};
use crate::machine::calibration;
use crate::machine::data::Data;
use crate::machine::descriptors::{STDERR, STDIN};
use crate::machine::errno::Errno;
use crate::machine::ids::Pid;
use crate::machine::kernel::Kernel;
use crate::machine::open_file::{ReadOutcome, Target};
use crate::machine::signal::SIGPIPE;
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
            match &mut self.wait {
                Wait::Foreground(children) => children.iter_mut().for_each(record),
                Wait::Capture { child, .. } => record(child),
                _ => {}
            }
        }
    }

    /// Returns `None` once the shell no longer waits.
    pub(super) fn resume(&mut self, pid: Pid, kernel: &mut Kernel) -> Option<StepOutcome> {
        match std::mem::replace(&mut self.wait, Wait::Nothing) {
            Wait::Nothing => None,
            Wait::Foreground(children) => {
                if children.iter().any(|child| child.status.is_none()) {
                    self.wait = Wait::Foreground(children);
                    return Some(StepOutcome::Wait);
                }
                self.status = children.last().and_then(|child| child.status).unwrap_or_default();
                None
            }
            Wait::Capture { child, slot, mut output, mut at_end } => {
                if !at_end && read_capture(&mut output, &mut at_end, pid, kernel).is_err() {
                    return Some(StepOutcome::Wait);
                }
                let (true, Some(status)) = (at_end, child.status) else {
                    self.wait = Wait::Capture { child, slot, output, at_end };
                    return Some(StepOutcome::Wait);
                };
                kernel.set_descriptor(pid, CAPTURE_INPUT, None);
                self.status = status;
                if let Some(capture) = self.captures.get_mut(slot) {
                    *capture = String::from_utf8_lossy(&output).trim_end_matches('\n').to_owned();
                }
                None
            }
            Wait::Jobs(which) => self.resume_jobs(which),
            Wait::Line(names) => self.resume_line(names, pid, kernel),
            Wait::Output(data) => {
                let outcome = self.write(PENDING_OUTPUT, data, pid, kernel);
                if !matches!(self.wait, Wait::Output(_)) {
                    kernel.set_descriptor(pid, PENDING_OUTPUT, None);
                }
                outcome
            }
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

    fn resume_line(&mut self, names: Vec<String>, pid: Pid, kernel: &mut Kernel) -> Option<StepOutcome> {
        let line = match kernel.descriptor(pid, STDIN) {
            None => Ok(ReadOutcome::End),
            Some(input) => kernel.read_line(pid, input),
        };
        match line {
            Ok(ReadOutcome::Blocked) => {
                self.wait = Wait::Line(names);
                return Some(StepOutcome::Wait);
            }
            Ok(ReadOutcome::Data(Data::Bytes(line))) => {
                let line = String::from_utf8_lossy(&line);
                self.assign_line(&names, line.trim_end_matches('\n'));
                self.status = i32::from(!line.ends_with('\n'));
            }
            _ => {
                self.assign_line(&names, "");
                self.status = 1;
            }
        }
        None
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

    /// Writes to a descriptor. The shell waits while the pipe is full, and exits if it is broken.
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
            Ok(None) => None,
            Ok(Some(rest)) => {
                if let Some(file) = file
                    && descriptor != PENDING_OUTPUT
                {
                    kernel.retain(file);
                    kernel.set_descriptor(pid, PENDING_OUTPUT, Some(file));
                }
                self.wait = Wait::Output(rest);
                Some(StepOutcome::Wait)
            }
            Err(Errno::BrokenPipe) => Some(StepOutcome::Exit(128 + i32::from(SIGPIPE))),
            Err(Errno::Killed) => Some(StepOutcome::Wait),
            Err(error) => {
                self.status = 1;
                kernel.print(pid, STDERR, &format!("{}: write error: {}\n", self.name, error.text()));
                None
            }
        }
    }
}

/// Reads what a command substitution has written so far. Fails if the kernel kills the shell.
fn read_capture(output: &mut Vec<u8>, at_end: &mut bool, pid: Pid, kernel: &mut Kernel) -> Result<(), Errno> {
    while !*at_end {
        let Some(reader) = kernel.descriptor(pid, CAPTURE_INPUT) else { break };
        match kernel.read(pid, reader, MAX_CAPTURE as u64) {
            Ok(ReadOutcome::Data(Data::Bytes(bytes))) => output.extend(bytes),
            // The content of bulk data is unknown, but it takes memory.
            Ok(ReadOutcome::Data(data)) => {
                kernel.allocate_memory(pid, data.len(), data.len() / calibration::PAGE_TABLE_RATIO)?;
            }
            Ok(ReadOutcome::Blocked) => break,
            Ok(ReadOutcome::End) | Err(_) => *at_end = true,
        }
        output.truncate(MAX_CAPTURE);
    }
    Ok(())
}
