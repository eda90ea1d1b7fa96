//! `tail`: it keeps in memory what might be the end.

use super::super::cost;
use super::super::data::Data;
use super::super::files::Mode;
use super::super::io::Read;
use super::super::kernel::{Errno, Kernel};
use super::super::process::Pid;
use super::{Turn, bytes, slice};

const INPUT: usize = 3;

/// The last of a file or of its input.
pub(in super::super) struct Tail {
    path: Option<String>,
    follow: bool,
    /// How many lines; else how many bytes.
    lines: Option<u64>,
    bytes: u64,
    opened: bool,
    kept: Vec<u8>,
    /// Bytes without a line's end, which it must keep all.
    held: u64,
}

impl Tail {
    /// None if its arguments are not known.
    pub fn of(arguments: &[String]) -> Option<Self> {
        let mut tail = Self {
            path: None,
            follow: false,
            lines: Some(10),
            bytes: 0,
            opened: false,
            kept: Vec::new(),
            held: 0,
        };
        let mut rest = arguments.iter();
        while let Some(word) = rest.next() {
            match word.as_str() {
                "-f" | "-F" | "--follow" => tail.follow = true,
                "-n" => tail.lines = Some(rest.next()?.trim_start_matches('+').parse().ok()?),
                "-c" => (tail.lines, tail.bytes) = (None, bytes(rest.next()?)?),
                "-s" => drop(rest.next()?),
                "-q" | "-" => {}
                word if word.starts_with("-n") => tail.lines = Some(word[2..].parse().ok()?),
                word if word.starts_with("-c") => (tail.lines, tail.bytes) = (None, bytes(&word[2..])?),
                word if word.starts_with('-') => tail.lines = Some(word[1..].parse().ok()?),
                word if tail.path.is_none() => tail.path = Some(word.to_owned()),
                _ => return None,
            }
        }
        Some(tail)
    }

    pub fn step(&mut self, me: Pid, kernel: &mut Kernel) -> Turn {
        if !std::mem::replace(&mut self.opened, true)
            && let Some(path) = &self.path
        {
            match kernel.open_path(me, path, Mode::Read) {
                Ok(open) => kernel.install(me, INPUT, Some(open)),
                Err(error) => {
                    kernel.say(
                        me,
                        2,
                        &format!("tail: can't open '{path}': {}\ntail: no files\n", error.text()),
                    );
                    return Turn::Exit(1);
                }
            }
        }
        let at = if self.path.is_some() { INPUT } else { 0 };
        let Some(input) = kernel.processes.get(&me).and_then(|process| process.descriptors[at]) else {
            return Turn::Exit(1);
        };
        let rate = cost::COPY_RATE;
        let (most, _) = slice(u64::MAX, rate);
        match kernel.read(me, input, most) {
            Ok(Read::Data(data)) => {
                let time = cost::at_rate(data.len(), rate);
                let done = kernel.work(me, kernel.now, time);
                if self.keep(data, me, kernel).is_err() { Turn::Wait } else { Turn::At(done) }
            }
            Ok(Read::Blocked) => Turn::Wait,
            Ok(Read::End) => {
                let kept = std::mem::take(&mut self.kept);
                if !kept.is_empty() {
                    let text = String::from_utf8_lossy(&kept).into_owned();
                    kernel.say(me, 1, &text);
                }
                // What is added later is not told: nothing that the model runs appends to a file that another one follows.
                if self.follow && self.path.is_some() { Turn::Wait } else { Turn::Exit(0) }
            }
            Err(_) => Turn::Exit(1),
        }
    }

    fn keep(&mut self, data: Data, me: Pid, kernel: &mut Kernel) -> Result<(), Errno> {
        match data {
            Data::Fill(len) => {
                let held = match self.lines {
                    Some(_) => self.held + len,
                    None => (self.held + len).min(self.bytes),
                };
                let more = held - self.held;
                self.held = held;
                kernel.allocate(me, more, more / cost::PAGE_TABLES)
            }
            data => {
                kernel.release(me, std::mem::take(&mut self.held));
                let lines = match &data {
                    Data::Lines(line, count) => {
                        let count = (*count).min(self.lines.unwrap_or(10)) as usize;
                        format!("{line}\n").repeat(count).into_bytes()
                    }
                    Data::Bytes(bytes) => bytes.clone(),
                    Data::Fill(_) => Vec::new(),
                };
                self.kept.extend(lines);
                let most = self.lines.unwrap_or(u64::MAX) as usize;
                let ends: Vec<usize> = self
                    .kept
                    .iter()
                    .enumerate()
                    .filter(|(_, byte)| **byte == b'\n')
                    .map(|(at, _)| at + 1)
                    .collect();
                if ends.len() > most {
                    self.kept.drain(..ends[ends.len() - most - 1]);
                }
                if self.lines.is_none() && self.kept.len() as u64 > self.bytes {
                    let cut = self.kept.len() - self.bytes as usize;
                    self.kept.drain(..cut);
                }
                Ok(())
            }
        }
    }
}
