//! Programs that bring bytes from somewhere to somewhere: `cat`, `head`, `yes`, `cp`, and `dd`.

use std::collections::VecDeque;
use std::sync::Arc;

use super::super::cost;
use super::super::data::Data;
use super::super::files::Mode;
use super::super::io::Read;
use super::super::kernel::{Errno, Kernel};
use super::super::process::{Pid, SIGPIPE};
use super::{Turn, bytes, slice};
use crate::time::Time;

/// The descriptors with which it works on files.
const INPUT: usize = 3;
const OUTPUT: usize = 4;

/// Where bytes come from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Stdin,
    Path(String),
    /// The same line for ever.
    Line(Arc<str>),
}

/// Where they go.
#[derive(Clone, Debug)]
pub(super) enum Sink {
    Stdout,
    Path {
        path: String,
        mode: Mode,
        at: u64,
    },
    /// Nowhere: only their number, or that of lines, is told at the end.
    Count {
        lines: bool,
    },
}

/// What there is to copy at most.
#[derive(Clone, Copy, Debug)]
pub(super) enum Limit {
    None,
    Bytes(u64),
    Lines(u64),
}

/// A copy, and where it stands.
pub(in super::super) struct Copy {
    pub name: &'static str,
    pub(super) sources: VecDeque<Source>,
    pub(super) sink: Sink,
    pub(super) limit: Limit,
    /// What it reads at once, in bytes.
    pub(super) block: u64,
    /// Memory beside the program's own.
    pub(super) buffer: u64,
    /// To be skipped of the source.
    pub(super) skip: u64,
    /// For `dd`: whether it tells at its end what it did.
    pub(super) report: bool,
    /// It would change text: that is not done here.
    pub(super) changes: bool,
    pub(super) state: State,
}

#[derive(Default)]
pub(super) struct State {
    began: Option<Time>,
    current: Option<Source>,
    pending: Option<Data>,
    done: u64,
    lines: u64,
    code: i32,
}

impl Copy {
    pub(super) fn new(name: &'static str, sources: Vec<Source>, sink: Sink) -> Self {
        Self {
            name,
            sources: sources.into(),
            sink,
            limit: Limit::None,
            block: 64 << 10,
            buffer: 0,
            skip: 0,
            report: false,
            changes: false,
            state: State::default(),
        }
    }

    /// The program of a name; none if it is another one's, or has arguments that are not known.
    pub fn of(name: &str, arguments: &[String]) -> Option<Self> {
        let paths = |words: &[String]| -> Vec<Source> {
            if words.is_empty() {
                return vec![Source::Stdin];
            }
            words
                .iter()
                .map(|word| if word == "-" { Source::Stdin } else { Source::Path(word.clone()) })
                .collect()
        };
        let plain = || arguments.iter().all(|word| !word.starts_with('-') || word == "-");
        match name {
            "cat" if plain() => Some(Self::new("cat", paths(arguments), Sink::Stdout)),
            "yes" => {
                let line = if arguments.is_empty() { "y".to_owned() } else { arguments.join(" ") };
                Some(Self::new("yes", vec![Source::Line(line.into())], Sink::Stdout))
            }
            "head" => {
                let mut limit = Limit::Lines(10);
                let mut files = Vec::new();
                let mut rest = arguments.iter();
                while let Some(word) = rest.next() {
                    match word.as_str() {
                        "-c" => limit = Limit::Bytes(bytes(rest.next()?)?),
                        "-n" => limit = Limit::Lines(rest.next()?.parse().ok()?),
                        "-q" => {}
                        word if word.starts_with("-c") => limit = Limit::Bytes(bytes(&word[2..])?),
                        word if word.starts_with("-n") => limit = Limit::Lines(word[2..].parse().ok()?),
                        word if word.starts_with("--bytes=") => limit = Limit::Bytes(bytes(&word[8..])?),
                        word if word.starts_with('-') && word.len() > 1 => {
                            limit = Limit::Lines(word[1..].parse().ok()?)
                        }
                        _ => files.push(word.clone()),
                    }
                }
                Some(Self { limit, ..Self::new("head", paths(&files), Sink::Stdout) })
            }
            "cp" => match arguments {
                [from, to] if plain() => {
                    let sink = Sink::Path { path: to.clone(), mode: Mode::Write, at: 0 };
                    Some(Self::new("cp", paths(std::slice::from_ref(from)), sink))
                }
                _ => None,
            },
            // What they make of masses of bytes does not matter here, only how many there are.
            "tr" => Some(Self { changes: true, ..Self::new("tr", vec![Source::Stdin], Sink::Stdout) }),
            "base64" if plain() => {
                Some(Self { changes: true, ..Self::new("base64", paths(arguments), Sink::Stdout) })
            }
            "wc" => {
                let (flags, files): (Vec<String>, Vec<String>) =
                    arguments.iter().cloned().partition(|word| word.starts_with('-'));
                let lines = match flags.as_slice() {
                    [flag] if flag == "-l" => true,
                    [flag] if flag == "-c" => false,
                    _ => return None,
                };
                Some(Self::new("wc", paths(&files), Sink::Count { lines }))
            }
            _ => None,
        }
    }

    pub fn step(&mut self, me: Pid, kernel: &mut Kernel) -> Turn {
        match self.go_on(me, kernel) {
            Ok(turn) => turn,
            Err(Errno::Killed) => Turn::Wait,
            Err(Errno::BrokenPipe) => Turn::Exit(128 + i32::from(SIGPIPE)),
            Err(error) => {
                let text = match &self.sink {
                    Sink::Path { path, .. } if self.report => {
                        format!("error writing '{path}': {}", error.text())
                    }
                    _ => format!("write error: {}", error.text()),
                };
                kernel.say(me, 2, &format!("{}: {text}\n", self.name));
                self.state.code = 1;
                self.finish(me, kernel)
            }
        }
    }

    fn go_on(&mut self, me: Pid, kernel: &mut Kernel) -> Result<Turn, Errno> {
        if self.state.began.is_none() {
            self.state.began = Some(kernel.now);
            if self.buffer > 0 {
                kernel.allocate(me, self.buffer, self.buffer / cost::PAGE_TABLES)?;
            }
            if let Sink::Path { path, mode, at } = &self.sink {
                match kernel.open_path(me, path, *mode) {
                    Ok(open) => {
                        kernel.seek(open, *at);
                        kernel.install(me, OUTPUT, Some(open));
                    }
                    Err(error) => {
                        kernel.say(me, 2, &format!("{}: can't open '{path}': {}\n", self.name, error.text()));
                        return Ok(Turn::Exit(1));
                    }
                }
            }
        }
        if let Some(data) = self.state.pending.take() {
            return self.put(data, me, kernel);
        }
        if matches!(self.limit, Limit::Bytes(0) | Limit::Lines(0)) {
            return Ok(self.finish(me, kernel));
        }
        if self.state.current.is_none() && !self.open_next(me, kernel) {
            return Ok(self.finish(me, kernel));
        }
        let output = self.output(me, kernel);
        let mut rate = output.map_or(cost::COPY_RATE, |output| kernel.rate(output));
        if let Some(input) = self.input(me, kernel) {
            rate = rate.min(kernel.rate(input));
        }
        // Each block costs two system calls.
        let block = self.block.max(1);
        let each = cost::at_rate(block, rate) + 2 * cost::SYSCALL;
        let rate = u64::try_from(u128::from(block) * 1_000_000 / each.as_micros()).unwrap_or(rate).max(1);
        let wanted = match self.limit {
            Limit::Bytes(bytes) => bytes,
            _ => u64::MAX,
        };
        let (most, _) = slice(wanted, rate);
        let data = match &self.state.current {
            Some(Source::Line(line)) => {
                let each = line.len() as u64 + 1;
                Data::Lines(line.clone(), most.div_ceil(each).max(1))
            }
            _ => {
                let Some(input) = self.input(me, kernel) else { return Ok(self.finish(me, kernel)) };
                // A page that is read in small pieces only, and lines, need no more at once.
                match kernel.read(me, input, most)? {
                    Read::Data(data) => data,
                    Read::Blocked => return Ok(Turn::Wait),
                    Read::End => {
                        self.state.current = None;
                        return Ok(Turn::At(kernel.now + cost::SYSCALL));
                    }
                }
            }
        };
        let data = match self.limit {
            Limit::None => data,
            Limit::Bytes(left) => {
                let (data, _) = data.split(left);
                self.limit = Limit::Bytes(left - data.len());
                data
            }
            Limit::Lines(left) => {
                let (data, _) = data.split_lines(left);
                self.limit = Limit::Lines(left.saturating_sub(data.lines()));
                data
            }
        };
        self.state.lines += data.lines();
        if self.changes && matches!(data, Data::Bytes(_)) {
            self.changes = false;
            let text =
                format!("evictlab: this model does not run \"{}\" on text: it stays as it is\n", self.name);
            kernel.say(me, 2, &text);
        }
        let time = cost::at_rate(data.len(), rate);
        let done = kernel.work(me, kernel.now, time);
        match self.put(data, me, kernel)? {
            Turn::At(_) => Ok(Turn::At(done)),
            turn => Ok(turn),
        }
    }

    /// Writes; what a pipe does not take is kept for later.
    fn put(&mut self, data: Data, me: Pid, kernel: &mut Kernel) -> Result<Turn, Errno> {
        let len = data.len();
        let rest = match self.output(me, kernel) {
            Some(output) => {
                let before = kernel.position(output);
                let written = kernel.write(me, output, data);
                if written == Err(Errno::NoSpace)
                    && let (Some(before), Some(after)) = (before, kernel.position(output))
                {
                    self.state.done += after.saturating_sub(before);
                }
                written?
            }
            None => None,
        };
        self.state.done += len - rest.as_ref().map_or(0, Data::len);
        self.state.pending = rest;
        Ok(if self.state.pending.is_some() { Turn::Wait } else { Turn::At(kernel.now) })
    }

    fn input(&self, me: Pid, kernel: &Kernel) -> Option<usize> {
        let at = match self.state.current.as_ref()? {
            Source::Stdin => 0,
            Source::Path(_) => INPUT,
            Source::Line(_) => return None,
        };
        kernel.processes.get(&me)?.descriptors[at]
    }

    fn output(&self, me: Pid, kernel: &Kernel) -> Option<usize> {
        let at = match self.sink {
            Sink::Stdout => 1,
            Sink::Path { .. } => OUTPUT,
            Sink::Count { .. } => return None,
        };
        kernel.processes.get(&me)?.descriptors[at]
    }

    /// Opens the next source that can be opened; whether there is one.
    fn open_next(&mut self, me: Pid, kernel: &mut Kernel) -> bool {
        while let Some(source) = self.sources.pop_front() {
            if let Source::Path(path) = &source {
                match kernel.open_path(me, path, Mode::Read) {
                    Ok(open) => {
                        kernel.seek(open, std::mem::take(&mut self.skip));
                        kernel.install(me, INPUT, Some(open));
                    }
                    Err(error) => {
                        kernel.say(me, 2, &format!("{}: can't open '{path}': {}\n", self.name, error.text()));
                        self.state.code = 1;
                        continue;
                    }
                }
            }
            self.state.current = Some(source);
            return true;
        }
        false
    }

    fn finish(&mut self, me: Pid, kernel: &mut Kernel) -> Turn {
        let done = self.state.done;
        if let Sink::Count { lines } = self.sink {
            let count = if lines { self.state.lines } else { done };
            kernel.say(me, 1, &format!("{count}\n"));
        }
        if self.report && !(self.state.code != 0 && self.state.current.is_none() && done == 0) {
            let took = self.state.began.map(|began| kernel.now.since(began)).unwrap_or_default();
            let block = self.block.max(1);
            let records = format!("{}+{}", done / block, u64::from(!done.is_multiple_of(block)));
            let seconds = took.as_secs_f64().max(0.000_001);
            let text = format!(
                "{records} records in\n{records} records out\n{done} bytes ({}B) copied, {seconds:.6} seconds, {}B/s\n",
                human(done as f64),
                human(done as f64 / seconds)
            );
            kernel.say(me, 2, &text);
        }
        Turn::Exit(self.state.code)
    }
}

/// As busybox prints an amount (`make_human_readable_str`).
fn human(mut amount: f64) -> String {
    if amount < 1024.0 {
        return format!("{amount:.0} ").trim_end().to_owned();
    }
    let mut unit = 0;
    while amount >= 1024.0 && unit < 5 {
        amount /= 1024.0;
        unit += 1;
    }
    format!("{amount:.1}{}", ["", "K", "M", "G", "T", "P"][unit])
}
