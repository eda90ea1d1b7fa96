//! Pipes.

use std::collections::VecDeque;

use evictlab_rules::quantity::MIB;

use super::data::Data;
use super::ids::Pid;

/// The capacity of a pipe, in bytes. Linux has 64 KiB; more saves steps for bulk data.
const CAPACITY: u64 = MIB;
/// Maximum length of a line in bytes. [`Pipe::take_line`] drops the bytes of a longer line.
const MAX_LINE: usize = MIB as usize;

/// A pipe.
#[derive(Clone, Debug, Default)]
pub(super) struct Pipe {
    chunks: VecDeque<Data>,
    len: u64,
    /// Number of open read ends.
    pub readers: u32,
    /// Number of open write ends.
    pub writers: u32,
    /// Processes that wait for data or room.
    pub waiting: Vec<Pid>,
}

impl Pipe {
    /// Adds as much data as fits; returns the rest.
    pub(super) fn put(&mut self, data: Data) -> Option<Data> {
        let room = CAPACITY.saturating_sub(self.len);
        if room == 0 {
            return Some(data);
        }
        let (data, rest) = data.split_near(room);
        self.len += data.len();
        self.chunks.push_back(data);
        rest
    }

    /// Removes about `most` bytes; returns `None` if the pipe is empty.
    pub(super) fn take(&mut self, most: u64) -> Option<Data> {
        let (data, rest) = self.chunks.pop_front()?.split_near(most);
        if let Some(rest) = rest {
            self.chunks.push_front(rest);
        }
        self.len -= data.len();
        Some(data)
    }

    /// Removes a line. Returns `None` unless the line is complete or the last one.
    pub(super) fn take_line(&mut self) -> Option<Vec<u8>> {
        let mut line = Vec::new();
        while let Some(first) = self.chunks.pop_front() {
            let (data, rest) = first.split_line();
            if let Some(rest) = rest {
                self.chunks.push_front(rest);
            }
            self.len -= data.len();
            line.extend(data.bytes(MAX_LINE).unwrap_or_default());
            if line.ends_with(b"\n") {
                return Some(line);
            }
        }
        if line.is_empty() {
            return None;
        }
        if self.writers > 0 {
            self.len += line.len() as u64;
            self.chunks.push_front(Data::Bytes(line));
            return None;
        }
        Some(line)
    }

    /// Returns whether all read ends are closed.
    pub(super) fn is_broken(&self) -> bool {
        self.readers == 0
    }

    /// Returns whether all ends are closed.
    pub(super) fn is_closed(&self) -> bool {
        self.readers == 0 && self.writers == 0
    }

    /// Returns whether the pipe is empty and all write ends are closed.
    pub(super) fn is_at_end(&self) -> bool {
        self.chunks.is_empty() && self.writers == 0
    }
}
