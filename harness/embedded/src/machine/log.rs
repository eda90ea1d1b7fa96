//! A container's log, as containerd writes it (CRI format).

use super::LogLine;
use super::data::Data;
use crate::time::Time;

/// How many lines are kept; sizes count all.
const KEPT: usize = 10_000;
/// How many lines of a mass of equal ones are kept.
const MASS: u64 = 1000;
/// containerd parts lines that are longer (`maxContainerLogLineSize`).
const LONGEST: usize = 16 << 10;
/// `2026-11-21T00:42:43.123456789Z stdout F ` and the line's end.
const PREFIX: u64 = 41;

/// A log.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    lines: Vec<LogLine>,
    /// What was written without a line's end, of stdout and stderr.
    begun: [Vec<u8>; 2],
    /// Its size, in bytes.
    pub size: u64,
}

impl Log {
    /// The last lines.
    pub fn lines(&self) -> &[LogLine] {
        &self.lines
    }

    /// Writes to it.
    pub fn write(&mut self, at: Time, stderr: bool, data: &Data) {
        match data {
            Data::Bytes(bytes) => {
                for part in bytes.split_inclusive(|byte| *byte == b'\n') {
                    let begun = &mut self.begun[usize::from(stderr)];
                    let (text, ended) = match part.strip_suffix(b"\n") {
                        Some(text) => (text, true),
                        None => (part, false),
                    };
                    begun.extend_from_slice(text);
                    while self.begun[usize::from(stderr)].len() > LONGEST {
                        let begun = &mut self.begun[usize::from(stderr)];
                        let rest = begun.split_off(LONGEST);
                        let line = std::mem::replace(begun, rest);
                        self.line(at, stderr, &line, true);
                    }
                    if ended {
                        let line = std::mem::take(&mut self.begun[usize::from(stderr)]);
                        self.line(at, stderr, &line, false);
                    }
                }
            }
            Data::Fill(len) => {
                let parts = len.div_ceil(LONGEST as u64);
                self.size += len + parts * PREFIX;
                self.keep(LogLine { at, stderr, text: String::new(), partial: false });
            }
            Data::Lines(line, count) => {
                self.size += (line.len() as u64 + PREFIX) * count;
                for _ in 0..(*count).min(MASS) {
                    self.keep(LogLine { at, stderr, text: line.to_string(), partial: false });
                }
            }
        }
    }

    /// The container has ended: what was begun is written.
    pub fn end(&mut self, at: Time) {
        for stderr in [false, true] {
            let begun = std::mem::take(&mut self.begun[usize::from(stderr)]);
            if !begun.is_empty() {
                self.line(at, stderr, &begun, true);
            }
        }
    }

    fn line(&mut self, at: Time, stderr: bool, text: &[u8], partial: bool) {
        self.size += text.len() as u64 + PREFIX;
        self.keep(LogLine { at, stderr, text: String::from_utf8_lossy(text).into_owned(), partial });
    }

    fn keep(&mut self, line: LogLine) {
        if self.lines.len() >= 2 * KEPT {
            self.lines.drain(..KEPT);
        }
        self.lines.push(line);
    }
}
