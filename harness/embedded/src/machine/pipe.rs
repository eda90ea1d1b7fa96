//! Pipes.

use std::collections::VecDeque;

use super::data::Data;
use super::process::Pid;

/// A pipe by its place among all.
pub(super) type PipeId = usize;

/// What a pipe holds before writers wait. A kernel's holds 64 KiB; this one is larger, so that masses of bytes need fewer turns.
const CAPACITY: u64 = 1 << 20;

/// A pipe.
#[derive(Clone, Debug, Default)]
pub(super) struct Pipe {
    chunks: VecDeque<Data>,
    len: u64,
    pub readers: u32,
    pub writers: u32,
    /// It has a name: it stays when nobody has it open.
    pub named: bool,
    /// It was opened for writing: a named pipe has no end before that.
    pub written: bool,
    /// It was opened for reading: a named pipe is not broken before that.
    pub read: bool,
    /// Who waits for something to be read or written.
    pub waiting: Vec<Pid>,
}

impl Pipe {
    pub fn new(named: bool) -> Self {
        Self { named, ..Self::default() }
    }

    /// Puts in what fits; the rest comes back.
    pub fn put(&mut self, data: Data) -> Option<Data> {
        let room = CAPACITY.saturating_sub(self.len);
        if room == 0 {
            return Some(data);
        }
        let (now, rest) = data.split_near(room);
        self.len += now.len();
        self.chunks.push_back(now);
        rest
    }

    /// Takes out about `most` bytes; nothing if it is empty.
    pub fn take(&mut self, most: u64) -> Option<Data> {
        let first = self.chunks.pop_front()?;
        let (now, rest) = first.split_near(most);
        if let Some(rest) = rest {
            self.chunks.push_front(rest);
        }
        self.len -= now.len();
        Some(now)
    }

    /// Takes out a line, if there is a whole one or the end is reached.
    pub fn take_line(&mut self) -> Option<Vec<u8>> {
        let mut line = Vec::new();
        while let Some(first) = self.chunks.pop_front() {
            let (now, rest) = first.split_lines(1);
            if let Some(rest) = rest {
                self.chunks.push_front(rest);
            }
            self.len -= now.len();
            let ended = now.lines() > 0;
            line.extend(now.bytes(1 << 20).unwrap_or_default());
            if ended {
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

    /// Nobody will take anything any more.
    pub fn is_broken(&self) -> bool {
        self.readers == 0 && self.read
    }

    /// An end was closed. A pipe that nobody has open any more is as new; whether it is one is the answer.
    pub fn closed(&mut self) -> bool {
        let unused = self.readers == 0 && self.writers == 0 && (self.read || !self.named);
        if unused {
            (self.written, self.read, self.len) = (false, false, 0);
            self.chunks.clear();
        }
        unused
    }

    /// Nothing will come any more.
    pub fn is_ended(&self) -> bool {
        self.chunks.is_empty() && self.writers == 0 && self.written
    }
}
