//! The log of a container, as containerd writes it (CRI format).

use evictlab_rules::quantity::{KIB, MIB};

use super::data::Data;
use super::types::LogLine;
use crate::sim::Time;

/// The number of lines and their bytes that trimming leaves; up to twice as many are stored. The size
/// of the log counts all lines.
const MAX_LINES: usize = 10_000;
const MAX_BYTES: usize = 8 * MIB as usize;
/// The number of lines that are stored of a line that is repeated.
const MAX_REPEATED: u64 = 1000;
/// The longest line that containerd does not split (`maxContainerLogLineSize`), in bytes.
const MAX_LINE: usize = 16 * KIB as usize;
/// The length of `2026-11-21T00:42:43.123456789Z stdout F ` with a newline, in bytes.
const PREFIX: u64 = 41;

/// The log of a container.
#[derive(Clone, Debug, Default)]
pub(super) struct ContainerLog {
    lines: Vec<LogLine>,
    /// The bytes of `lines`.
    stored: usize,
    /// Text after the last newline, of stdout and of stderr.
    unfinished: [Vec<u8>; 2],
    /// The size of the file, in bytes.
    pub size: u64,
}

impl ContainerLog {
    /// Returns the last lines.
    pub(super) fn lines(&self) -> &[LogLine] {
        &self.lines
    }

    /// Appends data of one stream.
    pub(super) fn write(&mut self, at: Time, stderr: bool, data: &Data) {
        match data {
            Data::Bytes(bytes) => {
                for part in bytes.split_inclusive(|byte| *byte == b'\n') {
                    self.write_part(at, stderr, part);
                }
            }
            Data::Fill(len) => {
                self.size += len + len.div_ceil(MAX_LINE as u64) * PREFIX;
                self.store(LogLine { at, stderr, text: String::new(), partial: false });
            }
            Data::Lines(line, count) => {
                self.size += (line.len() as u64 + PREFIX) * count;
                for _ in 0..(*count).min(MAX_REPEATED) {
                    self.store(LogLine { at, stderr, text: line.to_string(), partial: false });
                }
            }
        }
    }

    /// Appends text of which only the last byte may be a newline.
    fn write_part(&mut self, at: Time, stderr: bool, part: &[u8]) {
        let text = part.strip_suffix(b"\n");
        let mut line = std::mem::take(&mut self.unfinished[usize::from(stderr)]);
        line.extend_from_slice(text.unwrap_or(part));
        while line.len() > MAX_LINE {
            let rest = line.split_off(MAX_LINE);
            self.write_line(at, stderr, &line, true);
            line = rest;
        }
        match text {
            Some(_) => self.write_line(at, stderr, &line, false),
            None => self.unfinished[usize::from(stderr)] = line,
        }
    }

    /// Writes unfinished lines when the container exits.
    pub(super) fn flush(&mut self, at: Time) {
        for stderr in [false, true] {
            let line = std::mem::take(&mut self.unfinished[usize::from(stderr)]);
            if !line.is_empty() {
                self.write_line(at, stderr, &line, true);
            }
        }
    }

    fn write_line(&mut self, at: Time, stderr: bool, text: &[u8], partial: bool) {
        self.size += text.len() as u64 + PREFIX;
        self.store(LogLine { at, stderr, text: String::from_utf8_lossy(text).into_owned(), partial });
    }

    fn store(&mut self, line: LogLine) {
        self.stored += line.text.len();
        self.lines.push(line);
        if self.lines.len() > 2 * MAX_LINES || self.stored > 2 * MAX_BYTES {
            self.trim();
        }
    }

    fn trim(&mut self) {
        let mut bytes = 0;
        let is_kept = |line: &&LogLine| {
            bytes += line.text.len();
            bytes <= MAX_BYTES
        };
        let kept = self.lines.iter().rev().take(MAX_LINES).take_while(is_kept).count();
        self.lines.drain(..self.lines.len() - kept);
        self.stored = self.lines.iter().map(|line| line.text.len()).sum();
    }
}
