//! The log of a container, as containerd writes it (CRI format).

use evictlab_rules::quantity::{KIB, MIB};

use super::data::Data;
use super::disk::BLOCK;
use super::types::{DiskUse, LogLine, OutputStream};
use crate::sim::SimTime;

/// The number of lines and their bytes that trimming leaves; up to twice as many are stored. The
/// size of the log counts all lines.
const MAX_LINES: usize = 10_000;
const MAX_BYTES: usize = 8 * MIB as usize;
/// The number of lines that are stored of a line that is repeated.
const MAX_REPEATED: u64 = 1000;
/// The longest line that containerd does not split (`maxContainerLogLineSize`), in bytes.
const MAX_LINE: usize = 16 * KIB as usize;
/// The length of `2026-11-21T00:42:43.123456789Z stdout F ` with a newline, in bytes.
const PREFIX: u64 = 41;
/// Size of text in relation to its compressed form. Bytes of unknown content are not compressible.
const TEXT_COMPRESSION: u64 = 20;

/// The log of a container: the current file, and rotated ones.
#[derive(Clone, Debug, Default)]
pub(super) struct ContainerLog {
    lines: Vec<LogLine>,
    /// The bytes of `lines`.
    stored: usize,
    /// Text of stdout after its last newline.
    unfinished_stdout: Vec<u8>,
    /// Text of stderr after its last newline.
    unfinished_stderr: Vec<u8>,
    /// The size of the current file, in bytes.
    pub size: u64,
    /// The bytes of the current file that cannot be compressed.
    incompressible: u64,
    /// Rotated files, the oldest first.
    rotated: Vec<RotatedFile>,
}

/// A rotated file of a log.
#[derive(Clone, Copy, Debug)]
struct RotatedFile {
    size: u64,
    /// The size with gzip.
    compressed_size: u64,
}

impl ContainerLog {
    /// Returns the disk space of all files.
    pub(super) fn disk_use(&self) -> DiskUse {
        let blocks = |size: u64| size.next_multiple_of(BLOCK);
        let rotated: u64 = self.rotated.iter().map(|file| blocks(file.size)).sum();
        DiskUse { bytes: blocks(self.size) + rotated, inodes: 1 + self.rotated.len() as u64 }
    }

    /// Begins a new file. Keeps at most `max_files` with the new one, if that is not less than two,
    /// and compresses the rotated ones except for the latest (`containerLogManager.rotateLog`).
    pub(super) fn rotate(&mut self, max_files: usize) {
        let excess = self.rotated.len().saturating_sub(max_files.saturating_sub(2));
        self.rotated.drain(..excess);
        for file in &mut self.rotated {
            file.size = file.compressed_size;
        }
        let text = self.size.saturating_sub(self.incompressible);
        let compressed_size = self.incompressible + text / TEXT_COMPRESSION;
        self.rotated.push(RotatedFile { size: self.size, compressed_size });
        (self.size, self.incompressible, self.stored) = (0, 0, 0);
        self.lines.clear();
    }

    /// Returns the last lines of the current file.
    pub(super) fn lines(&self) -> &[LogLine] {
        &self.lines
    }

    /// Appends data of one stream.
    pub(super) fn write(&mut self, at: SimTime, stream: OutputStream, data: &Data) {
        match data {
            Data::Bytes(bytes) => {
                for part in bytes.split_inclusive(|byte| *byte == b'\n') {
                    self.write_part(at, stream, part);
                }
            }
            Data::Fill(len) => {
                self.size += len + len.div_ceil(MAX_LINE as u64) * PREFIX;
                self.incompressible += len;
                self.store(LogLine { at, stream, text: String::new(), partial: false });
            }
            Data::Lines(line, count) => {
                self.size += (line.len() as u64 + PREFIX) * count;
                for _ in 0..(*count).min(MAX_REPEATED) {
                    self.store(LogLine { at, stream, text: line.to_string(), partial: false });
                }
            }
        }
    }

    /// Appends text of which only the last byte may be a newline.
    fn write_part(&mut self, at: SimTime, stream: OutputStream, part: &[u8]) {
        let text = part.strip_suffix(b"\n");
        let mut line = std::mem::take(self.unfinished(stream));
        line.extend_from_slice(text.unwrap_or(part));
        while line.len() > MAX_LINE {
            let rest = line.split_off(MAX_LINE);
            self.write_line(at, stream, &line, true);
            line = rest;
        }
        match text {
            Some(_) => self.write_line(at, stream, &line, false),
            None => *self.unfinished(stream) = line,
        }
    }

    /// Writes unfinished lines when the container exits.
    pub(super) fn flush(&mut self, at: SimTime) {
        for stream in [OutputStream::Stdout, OutputStream::Stderr] {
            let line = std::mem::take(self.unfinished(stream));
            if !line.is_empty() {
                self.write_line(at, stream, &line, true);
            }
        }
    }

    /// Returns the text of a stream after its last newline.
    fn unfinished(&mut self, stream: OutputStream) -> &mut Vec<u8> {
        match stream {
            OutputStream::Stdout => &mut self.unfinished_stdout,
            OutputStream::Stderr => &mut self.unfinished_stderr,
        }
    }

    fn write_line(&mut self, at: SimTime, stream: OutputStream, text: &[u8], partial: bool) {
        self.size += text.len() as u64 + PREFIX;
        self.store(LogLine { at, stream, text: String::from_utf8_lossy(text).into_owned(), partial });
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
