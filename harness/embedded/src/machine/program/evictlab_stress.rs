//! `stress` of evictlab's image: consumes a resource step by step, then holds it.

use std::sync::Arc;
use std::time::Duration;

use evictlab_rules::quantity::KIB;
use evictlab_stress::{
    AfterHold, ConsumeOptions, EXIT_REFUSED, Lifetime, OnRefusal, OnTerm, Resource, TERM_IGNORED,
};

use super::idle::Idle;
use crate::machine::calibration;
use crate::machine::data::Data;
use crate::machine::errno::Errno;
use crate::machine::ids::Pid;
use crate::machine::kernel::{Kernel, Program};
use crate::machine::open_file::{STDERR, STDOUT, Target};
use crate::machine::paths::OpenMode;
use crate::machine::step::{Footprint, SIGINT, SIGTERM, SignalAction, SignalNumber, StepOutcome, slice};
use crate::sim::SimTime;

/// The descriptor of the file that the program writes.
const FILE: usize = 3;
/// The shortest interval between two lines about progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// The length of a log line with its newline, in bytes.
const LOG_LINE: u64 = KIB;

/// `stress` and its state.
pub(super) struct EvictlabStress {
    /// `None` for `idle`.
    options: Option<ConsumeOptions>,
    lifetime: Lifetime,
    /// The amount that was consumed, in bytes or pieces.
    consumed: u64,
    /// The rest of the current step.
    step_left: u64,
    directory: String,
    children: Vec<Pid>,
    started_at: SimTime,
    progress_at: SimTime,
    phase: Phase,
    /// When the current phase continues; `None` if it waits for a signal.
    next: Option<SimTime>,
    /// When the program exits after a signal.
    exit_at: Option<SimTime>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    New,
    Delayed,
    Consuming,
    Complete,
    Holding,
    Parked,
}

impl EvictlabStress {
    pub(super) fn new(lifetime: Lifetime, options: Option<ConsumeOptions>) -> Self {
        Self {
            options,
            lifetime,
            consumed: 0,
            step_left: 0,
            directory: String::new(),
            children: Vec::new(),
            started_at: SimTime::ZERO,
            progress_at: SimTime::ZERO,
            phase: Phase::New,
            next: None,
            exit_at: None,
        }
    }

    fn advance(&mut self, pid: Pid, kernel: &mut Kernel) -> StepOutcome {
        let Some(options) = self.options.clone() else { return self.hold(kernel) };
        match self.phase {
            Phase::New => {
                self.phase = Phase::Delayed;
                StepOutcome::RunAt(kernel.now + options.ramp.delay)
            }
            Phase::Delayed => {
                (self.started_at, self.progress_at) = (kernel.now, kernel.now);
                self.phase = Phase::Consuming;
                match self.create_files(&options, pid, kernel) {
                    Ok(()) => StepOutcome::RunAt(kernel.now),
                    Err(error) => {
                        self.print_refusal(&options, error, pid, kernel);
                        StepOutcome::Exit(EXIT_REFUSED)
                    }
                }
            }
            Phase::Consuming => match self.consume(&options, pid, kernel) {
                Ok(outcome) => outcome,
                Err(Errno::Killed) => StepOutcome::Wait,
                Err(error) => {
                    self.print_refusal(&options, error, pid, kernel);
                    match options.on_refusal {
                        OnRefusal::Hold => self.hold(kernel),
                        OnRefusal::Exit => StepOutcome::Exit(EXIT_REFUSED),
                    }
                }
            },
            Phase::Complete => {
                let text = options.done_message(self.consumed, kernel.now.since(self.started_at));
                kernel.print(pid, STDERR, &format!("{text}\n"));
                self.hold(kernel)
            }
            Phase::Holding | Phase::Parked => self.end_hold(&options, pid, kernel),
        }
    }

    fn hold(&mut self, kernel: &Kernel) -> StepOutcome {
        if self.phase == Phase::Holding {
            return StepOutcome::Exit(self.lifetime.exit_code.into());
        }
        match self.lifetime.hold {
            None => {
                self.phase = Phase::Parked;
                StepOutcome::Wait
            }
            Some(hold) => {
                self.phase = Phase::Holding;
                StepOutcome::RunAt(kernel.now + hold)
            }
        }
    }

    fn end_hold(&mut self, options: &ConsumeOptions, pid: Pid, kernel: &mut Kernel) -> StepOutcome {
        if self.lifetime.after_hold == AfterHold::Exit {
            return StepOutcome::Exit(self.lifetime.exit_code.into());
        }
        self.release(options.resource, pid, kernel);
        let text = options.released_message(self.consumed, kernel.now.since(self.started_at));
        kernel.print(pid, STDERR, &format!("{text}\n"));
        self.phase = Phase::Parked;
        StepOutcome::Wait
    }

    fn print_refusal(&self, options: &ConsumeOptions, error: Errno, pid: Pid, kernel: &mut Kernel) {
        let reason = format!("{} (os error {})", error.text(), error.number());
        let elapsed = kernel.now.since(self.started_at);
        let text = options.refused_message(self.consumed, elapsed, &reason);
        kernel.print(pid, STDERR, &format!("{text}\n"));
    }

    /// Creates the directory of this run, and the file in it.
    fn create_files(&mut self, options: &ConsumeOptions, pid: Pid, kernel: &mut Kernel) -> Result<(), Errno> {
        if !options.resource.has_path() {
            return Ok(());
        }
        kernel.create_directory(pid, &options.path, true)?;
        let mut number = 0;
        self.directory = loop {
            let directory = format!("{}/{}-{number}", options.path, options.resource.command());
            match kernel.create_directory(pid, &directory, false) {
                Ok(()) => break directory,
                Err(Errno::Exists) => number += 1,
                Err(error) => return Err(error),
            }
        };
        if options.resource != Resource::Inodes {
            let file = kernel.open_path(pid, &format!("{}/file", self.directory), OpenMode::Truncate)?;
            kernel.set_descriptor(pid, FILE, Some(file));
        }
        Ok(())
    }

    /// Consumes a slice of the current step.
    fn consume(
        &mut self,
        options: &ConsumeOptions,
        pid: Pid,
        kernel: &mut Kernel,
    ) -> Result<StepOutcome, Errno> {
        if self.step_left == 0 {
            let Some(step) = options.ramp.next_step(self.consumed) else {
                self.phase = Phase::Complete;
                return Ok(StepOutcome::RunAt(kernel.now));
            };
            self.step_left = step;
        }
        let before = self.consumed;
        let cpu_time = self.consume_slice(options.resource, pid, kernel);
        self.step_left -= self.consumed - before;
        let done = kernel.run_on_cpu(pid, kernel.now, cpu_time?);
        if self.step_left > 0 {
            return Ok(StepOutcome::RunAt(done));
        }
        if options.ramp.is_complete(self.consumed) {
            self.phase = Phase::Complete;
            return Ok(StepOutcome::RunAt(done));
        }
        if done.since(self.progress_at) >= PROGRESS_INTERVAL {
            self.progress_at = done;
            let text = options.progress_message(self.consumed, done.since(self.started_at));
            kernel.print(pid, STDERR, &format!("{text}\n"));
        }
        Ok(StepOutcome::RunAt(done + options.ramp.pause))
    }

    /// Consumes what fits into a time slice, adds it to `consumed` and returns the CPU time of it.
    fn consume_slice(
        &mut self,
        resource: Resource,
        pid: Pid,
        kernel: &mut Kernel,
    ) -> Result<Duration, Errno> {
        let left = self.step_left;
        match resource {
            Resource::Memory => {
                let (bytes, time) = slice(left, calibration::FILL_RATE);
                kernel.allocate_memory(pid, bytes, bytes / calibration::PAGE_TABLE_RATIO)?;
                self.consumed += bytes;
                Ok(time)
            }
            Resource::Disk { allocate: true } => {
                if let Some(Target::File { id, .. }) = written_file(pid, kernel) {
                    kernel.allocate_file(pid, id, self.consumed + left)?;
                }
                self.consumed += left;
                Ok(calibration::SYSCALL)
            }
            Resource::Disk { allocate: false } => {
                let (bytes, time) = slice(left, calibration::COPY_RATE);
                self.write(bytes, pid, kernel)?;
                Ok(time)
            }
            Resource::PageCache => {
                // The program writes each byte once and reads it twice.
                let (bytes, time) = slice(left, calibration::COPY_RATE / 3);
                self.write(bytes, pid, kernel)?;
                if let Some(Target::File { id, .. }) = written_file(pid, kernel) {
                    kernel.cgroups.activate(id);
                }
                Ok(time)
            }
            Resource::Inodes => {
                let (files, time) = slice(left, 1_000_000 / calibration::CREATE.as_micros() as u64);
                for _ in 0..files {
                    let path = format!("{}/{}", self.directory, self.consumed);
                    let file = kernel.open_path(pid, &path, OpenMode::Truncate)?;
                    kernel.close(file);
                    self.consumed += 1;
                }
                Ok(time)
            }
            Resource::Logs => self.write_log_lines(pid, kernel),
            Resource::Pids => {
                let descriptors = kernel.processes.get(&pid).map(|process| process.descriptors);
                let start = kernel.now + calibration::EXEC;
                let descriptors = descriptors.unwrap_or_default();
                let (child, _) = kernel.spawn(pid, Box::new(Idle::StressChild), descriptors, start)?;
                self.children.push(child);
                self.consumed += 1;
                Ok(calibration::EXEC)
            }
        }
    }

    /// Writes whole log lines, or what is left if that is less than a line.
    fn write_log_lines(&mut self, pid: Pid, kernel: &mut Kernel) -> Result<Duration, Errno> {
        let (bytes, time) = slice(self.step_left, calibration::LOG_RATE);
        let lines = (bytes / LOG_LINE).max(u64::from(self.step_left >= LOG_LINE));
        let (len, lines) = if lines > 0 { (LOG_LINE, lines) } else { (self.step_left, 1) };
        let line: Arc<str> = "x".repeat(len as usize - 1).into();
        if let Some(stdout) = kernel.descriptor(pid, STDOUT) {
            kernel.write(pid, stdout, Data::Lines(line, lines))?;
        }
        self.consumed += len * lines;
        Ok(time)
    }

    /// Appends to the file.
    fn write(&mut self, bytes: u64, pid: Pid, kernel: &mut Kernel) -> Result<(), Errno> {
        let Some(file) = kernel.descriptor(pid, FILE) else { return Err(Errno::BadDescriptor) };
        let written = kernel.write(pid, file, Data::Fill(bytes));
        // A full disk takes a part.
        self.consumed = kernel.position(file).unwrap_or(self.consumed + bytes);
        written.map(drop)
    }

    fn release(&mut self, resource: Resource, pid: Pid, kernel: &mut Kernel) {
        match resource {
            Resource::Memory => kernel.free_memory(pid, self.consumed),
            Resource::Disk { .. } | Resource::PageCache | Resource::Inodes => {
                kernel.set_descriptor(pid, FILE, None);
                // The directory exists: removing it cannot fail.
                let _ = kernel.remove_path(pid, &self.directory);
            }
            Resource::Pids => {
                for child in std::mem::take(&mut self.children) {
                    kernel.exit(child, 0);
                }
            }
            Resource::Logs => {}
        }
    }
}

impl Program for EvictlabStress {
    fn name(&self) -> String {
        "stress".to_owned()
    }

    fn footprint(&self) -> Footprint {
        Footprint::EVICTLAB_STRESS
    }

    fn signal_action(&self, signal: SignalNumber, is_init: bool) -> SignalAction {
        if !matches!(signal, SIGINT | SIGTERM) {
            return SignalAction::default_for(signal, is_init);
        }
        match self.lifetime.on_term {
            OnTerm::Exit { code, delay } if delay.is_zero() => SignalAction::Exit(code.into()),
            _ => SignalAction::Deliver,
        }
    }

    fn step(&mut self, pid: Pid, kernel: &mut Kernel) -> StepOutcome {
        for _ in kernel.take_signals(pid) {
            match self.lifetime.on_term {
                OnTerm::Ignore => kernel.print(pid, STDERR, &format!("{TERM_IGNORED}\n")),
                OnTerm::Exit { delay, .. } => self.exit_at = self.exit_at.or(Some(kernel.now + delay)),
            }
        }
        if let (Some(exit_at), OnTerm::Exit { code, .. }) = (self.exit_at, self.lifetime.on_term)
            && kernel.now >= exit_at
        {
            return StepOutcome::Exit(code.into());
        }
        if self.phase == Phase::New || self.next.is_some_and(|next| kernel.now >= next) {
            match self.advance(pid, kernel) {
                StepOutcome::RunAt(at) => self.next = Some(at),
                StepOutcome::Wait => self.next = None,
                outcome => return outcome,
            }
        }
        self.next.into_iter().chain(self.exit_at).min().map_or(StepOutcome::Wait, StepOutcome::RunAt)
    }
}

fn written_file(pid: Pid, kernel: &Kernel) -> Option<Target> {
    kernel.target(kernel.descriptor(pid, FILE)?).cloned()
}
