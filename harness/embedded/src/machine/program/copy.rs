//! Programs that copy bytes: `cat` and `dd`.

use std::collections::VecDeque;

use evictlab_rules::quantity::KIB;

use crate::machine::calibration;
use crate::machine::data::Data;
use crate::machine::errno::Errno;
use crate::machine::ids::{OpenFileId, Pid};
use crate::machine::kernel::{Kernel, Program};
use crate::machine::open_file::{STDERR, STDIN, STDOUT};
use crate::machine::paths::OpenMode;
use crate::machine::step::{StepOutcome, slice};
use crate::sim::SimTime;

/// The descriptors of files that the program opens.
const INPUT: usize = 3;
const OUTPUT: usize = 4;

/// The origin of bytes.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Stdin,
    Path(String),
}

/// The destination of bytes.
#[derive(Clone, Debug)]
pub(super) enum Sink {
    Stdout,
    Path { path: String, mode: OpenMode },
}

/// A program that copies bytes from its sources to its sink.
pub(super) struct CopyProgram {
    name: &'static str,
    sources: VecDeque<Source>,
    sink: Sink,
    /// The number of bytes that are left to copy.
    pub(super) limit: Option<u64>,
    /// Bytes that one system call copies.
    pub(super) block: u64,
    /// Memory beside the program's footprint, in bytes.
    pub(super) buffer: u64,
    /// Prints at its end what was copied, as `dd` does.
    pub(super) prints_report: bool,
    started_at: Option<SimTime>,
    current: Option<Source>,
    copied: u64,
    code: i32,
}

impl CopyProgram {
    pub(super) fn new(name: &'static str, sources: Vec<Source>, sink: Sink) -> Self {
        Self {
            name,
            sources: sources.into(),
            sink,
            limit: None,
            block: 64 * KIB,
            buffer: 0,
            prints_report: false,
            started_at: None,
            current: None,
            copied: 0,
            code: 0,
        }
    }

    /// Returns the program of `cat ARGUMENTS`; `None` if there are flags.
    pub(super) fn cat(arguments: &[String]) -> Option<Self> {
        let source = |word: &String| match word.as_str() {
            "-" => Some(Source::Stdin),
            word if word.starts_with('-') => None,
            word => Some(Source::Path(word.to_owned())),
        };
        let mut sources = arguments.iter().map(source).collect::<Option<Vec<_>>>()?;
        if sources.is_empty() {
            sources.push(Source::Stdin);
        }
        Some(Self::new("cat", sources, Sink::Stdout))
    }

    fn try_step(&mut self, pid: Pid, kernel: &mut Kernel) -> Result<StepOutcome, Errno> {
        if self.started_at.is_none() {
            self.started_at = Some(kernel.now);
            if !self.start(pid, kernel)? {
                return Ok(StepOutcome::Exit(1));
            }
        }
        if self.limit == Some(0) || (self.current.is_none() && !self.open_next(pid, kernel)) {
            return Ok(self.finish(pid, kernel));
        }
        let Some(input) = self.input(pid, kernel) else { return Ok(self.finish(pid, kernel)) };
        let rate = self.rate(input, pid, kernel);
        let (most, _) = slice(self.limit.unwrap_or(u64::MAX), rate);
        let Some(data) = kernel.read(pid, input, most)? else {
            self.current = None;
            return Ok(StepOutcome::RunAt(kernel.now + calibration::SYSCALL));
        };
        if let Some(left) = &mut self.limit {
            *left -= data.len();
        }
        let done = kernel.run_on_cpu(pid, kernel.now, calibration::at_rate(data.len(), rate));
        self.write(data, pid, kernel)?;
        Ok(StepOutcome::RunAt(done))
    }

    /// Allocates the buffer and opens the sink; prints why and returns `false` if that fails.
    fn start(&mut self, pid: Pid, kernel: &mut Kernel) -> Result<bool, Errno> {
        if self.buffer > 0 {
            kernel.allocate_memory(pid, self.buffer, self.buffer / calibration::PAGE_TABLE_RATIO)?;
        }
        let Sink::Path { path, mode } = &self.sink else { return Ok(true) };
        match kernel.open_path(pid, path, *mode) {
            Ok(file) => {
                kernel.set_descriptor(pid, OUTPUT, Some(file));
                Ok(true)
            }
            Err(error) => {
                kernel.print(pid, STDERR, &format!("{}: can't open '{path}': {}\n", self.name, error.text()));
                Ok(false)
            }
        }
    }

    /// Returns the rate of the copy in bytes a second. Each block costs two system calls.
    fn rate(&self, input: OpenFileId, pid: Pid, kernel: &Kernel) -> u64 {
        let output = self.output(pid, kernel).map_or(calibration::COPY_RATE, |file| kernel.throughput(file));
        let rate = output.min(kernel.throughput(input));
        let block = self.block.max(1);
        let time = calibration::at_rate(block, rate) + 2 * calibration::SYSCALL;
        u64::try_from(u128::from(block) * 1_000_000 / time.as_micros()).unwrap_or(rate).max(1)
    }

    /// Writes data and counts the written bytes, including those that still fit on a full disk.
    fn write(&mut self, data: Data, pid: Pid, kernel: &mut Kernel) -> Result<(), Errno> {
        let len = data.len();
        if let Some(output) = self.output(pid, kernel) {
            let before = kernel.position(output);
            let written = kernel.write(pid, output, data);
            if written == Err(Errno::NoSpace)
                && let (Some(before), Some(after)) = (before, kernel.position(output))
            {
                self.copied += after.saturating_sub(before);
            }
            written?;
        }
        self.copied += len;
        Ok(())
    }

    fn input(&self, pid: Pid, kernel: &Kernel) -> Option<OpenFileId> {
        match self.current.as_ref()? {
            Source::Stdin => kernel.descriptor(pid, STDIN),
            Source::Path(_) => kernel.descriptor(pid, INPUT),
        }
    }

    fn output(&self, pid: Pid, kernel: &Kernel) -> Option<OpenFileId> {
        match self.sink {
            Sink::Stdout => kernel.descriptor(pid, STDOUT),
            Sink::Path { .. } => kernel.descriptor(pid, OUTPUT),
        }
    }

    /// Opens the next source that exists; returns `false` after the last one.
    fn open_next(&mut self, pid: Pid, kernel: &mut Kernel) -> bool {
        while let Some(source) = self.sources.pop_front() {
            if let Source::Path(path) = &source {
                match kernel.open_path(pid, path, OpenMode::Read) {
                    Ok(file) => {
                        kernel.set_descriptor(pid, INPUT, Some(file));
                    }
                    Err(error) => {
                        let text = format!("{}: can't open '{path}': {}\n", self.name, error.text());
                        kernel.print(pid, STDERR, &text);
                        self.code = 1;
                        continue;
                    }
                }
            }
            self.current = Some(source);
            return true;
        }
        false
    }

    fn finish(&mut self, pid: Pid, kernel: &mut Kernel) -> StepOutcome {
        let has_copied = self.code == 0 || self.current.is_some() || self.copied > 0;
        if self.prints_report && has_copied {
            let elapsed = self.started_at.map(|start| kernel.now.since(start)).unwrap_or_default();
            let block = self.block.max(1);
            let records =
                format!("{}+{}", self.copied / block, u64::from(!self.copied.is_multiple_of(block)));
            let seconds = elapsed.as_secs_f64().max(0.000_001);
            let text = format!(
                "{records} records in\n{records} records out\n{} bytes ({}B) copied, {seconds:.6} seconds, {}B/s\n",
                self.copied,
                human_readable(self.copied as f64),
                human_readable(self.copied as f64 / seconds)
            );
            kernel.print(pid, STDERR, &text);
        }
        StepOutcome::Exit(self.code)
    }
}

impl Program for CopyProgram {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn step(&mut self, pid: Pid, kernel: &mut Kernel) -> StepOutcome {
        match self.try_step(pid, kernel) {
            Ok(outcome) => outcome,
            Err(Errno::Killed) => StepOutcome::Wait,
            Err(error) => {
                let error = error.text();
                let text = match &self.sink {
                    Sink::Path { path, .. } => format!("error writing '{path}': {error}"),
                    Sink::Stdout => format!("write error: {error}"),
                };
                kernel.print(pid, STDERR, &format!("{}: {text}\n", self.name));
                self.code = 1;
                self.finish(pid, kernel)
            }
        }
    }
}

/// Formats an amount as busybox does (`make_human_readable_str`).
fn human_readable(mut amount: f64) -> String {
    if amount < 1024.0 {
        return format!("{amount:.0}");
    }
    let mut unit = 0;
    while amount >= 1024.0 && unit < 5 {
        amount /= 1024.0;
        unit += 1;
    }
    format!("{amount:.1}{}", ["", "K", "M", "G", "T", "P"][unit])
}
