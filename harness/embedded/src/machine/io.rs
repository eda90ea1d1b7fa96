//! Open descriptors: reading and writing.

use std::sync::Arc;

use super::container::ContainerKey;
use super::cost;
use super::data::Data;
use super::disk::{BLOCK, FileId};
use super::groups::Pages;
use super::kernel::{Errno, Kernel};
use super::pipe::{Pipe, PipeId};
use super::process::Pid;

/// An open descriptor by its place.
pub(super) type OpenId = usize;

/// What a descriptor is open on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// `/dev/null`
    Null,
    /// `/dev/zero`
    Zero,
    /// `/dev/urandom`
    Random,
    /// `/dev/full`
    Full,
    /// A container's log.
    Log { container: ContainerKey, stderr: bool },
    /// A file, at a place in it.
    File { id: FileId, at: u64, append: bool },
    /// What was made when it was opened, at a place in it.
    Text { text: Arc<[u8]>, at: u64 },
    /// A pipe's end to read from.
    Reader(PipeId),
    /// A pipe's end to write to.
    Writer(PipeId),
}

/// An open descriptor, which processes may share.
#[derive(Clone, Debug)]
pub(super) struct Open {
    pub target: Target,
    holders: u32,
}

/// What reading gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Read {
    Data(Data),
    End,
    /// Nothing yet: the reader is woken when there is.
    Blocked,
}

impl Kernel {
    /// Opens something; whoever opened it holds it once.
    pub fn open(&mut self, target: Target) -> OpenId {
        match &target {
            Target::File { id, .. } => self.disk.open(*id),
            Target::Reader(pipe) => {
                let pipe = &mut self.pipes[*pipe];
                pipe.readers += 1;
                pipe.read = true;
            }
            Target::Writer(pipe) => {
                let pipe = &mut self.pipes[*pipe];
                pipe.writers += 1;
                pipe.written = true;
            }
            _ => {}
        }
        let open = Open { target, holders: 1 };
        match self.free.pop() {
            Some(id) => {
                self.open[id] = Some(open);
                id
            }
            None => {
                self.open.push(Some(open));
                self.open.len() - 1
            }
        }
    }

    /// Holds a descriptor once more.
    pub fn hold(&mut self, id: OpenId) {
        if let Some(open) = &mut self.open[id] {
            open.holders += 1;
        }
    }

    /// Lets a descriptor go.
    pub fn close(&mut self, id: OpenId) {
        let Some(open) = &mut self.open[id] else { return };
        open.holders -= 1;
        if open.holders > 0 {
            return;
        }
        let target = open.target.clone();
        self.open[id] = None;
        self.free.push(id);
        match target {
            Target::File { id, .. } => {
                let gone = self.disk.close(id);
                self.forget_file(gone);
            }
            Target::Reader(pipe) => {
                self.pipes[pipe].readers -= 1;
                self.close_pipe(pipe);
            }
            Target::Writer(pipe) => {
                self.pipes[pipe].writers -= 1;
                self.close_pipe(pipe);
            }
            _ => {}
        }
    }

    /// A new pipe: its ends to read from and to write to.
    pub fn pipe(&mut self) -> (OpenId, OpenId) {
        let pipe = self.new_pipe(false);
        (self.open(Target::Reader(pipe)), self.open(Target::Writer(pipe)))
    }

    pub fn new_pipe(&mut self, named: bool) -> PipeId {
        let pipe = Pipe::new(named);
        match self.free_pipes.pop() {
            Some(id) => {
                self.pipes[id] = pipe;
                id
            }
            None => {
                self.pipes.push(pipe);
                self.pipes.len() - 1
            }
        }
    }

    fn close_pipe(&mut self, pipe: PipeId) {
        self.wake_pipe(pipe);
        if self.pipes[pipe].closed() && !self.pipes[pipe].named {
            self.free_pipes.push(pipe);
        }
    }

    /// A process's descriptor.
    pub fn descriptor(&self, me: Pid, at: usize) -> Option<OpenId> {
        self.processes.get(&me)?.descriptors.get(at).copied().flatten()
    }

    /// Gives a process a descriptor that is held for it already; the answer is what it had there.
    pub fn exchange(&mut self, me: Pid, at: usize, open: Option<OpenId>) -> Option<OpenId> {
        let process = self.processes.get_mut(&me)?;
        std::mem::replace(process.descriptors.get_mut(at)?, open)
    }

    /// The same, and what was there is closed.
    pub fn install(&mut self, me: Pid, at: usize, open: Option<OpenId>) {
        if let Some(before) = self.exchange(me, at, open) {
            self.close(before);
        }
    }

    /// Where in its file a descriptor is.
    pub fn position(&self, id: OpenId) -> Option<u64> {
        match self.target(id)? {
            Target::File { at, .. } | Target::Text { at, .. } => Some(*at),
            _ => None,
        }
    }

    /// Goes to a place in a file.
    pub fn seek(&mut self, id: OpenId, to: u64) {
        if let Some(Some(Open { target: Target::File { at, .. } | Target::Text { at, .. }, .. })) =
            self.open.get_mut(id)
        {
            *at = to;
        }
    }

    fn wake_pipe(&mut self, pipe: PipeId) {
        for pid in std::mem::take(&mut self.pipes[pipe].waiting) {
            self.nudge(pid);
        }
    }

    pub fn target(&self, id: OpenId) -> Option<&Target> {
        self.open[id].as_ref().map(|open| &open.target)
    }

    /// How many bytes a second flow through a descriptor at best.
    pub fn rate(&self, id: OpenId) -> u64 {
        match self.target(id) {
            Some(Target::Random) => cost::RANDOM_RATE,
            Some(Target::Log { .. }) => cost::LOG_RATE,
            Some(Target::Null) => cost::COPY_RATE * 8,
            _ => cost::COPY_RATE,
        }
    }

    /// Writes. What a full pipe does not take comes back: the writer is woken when there is room.
    pub fn write(&mut self, me: Pid, id: OpenId, data: Data) -> Result<Option<Data>, Errno> {
        match self.target(id).cloned() {
            None | Some(Target::Reader(_) | Target::Text { .. }) => Err(Errno::BadDescriptor),
            Some(Target::Null | Target::Zero | Target::Random) => Ok(None),
            Some(Target::Full) => Err(Errno::NoSpace),
            Some(Target::Log { container, stderr }) => {
                let now = self.now;
                if let Some(of) = self.containers.get_mut(&container) {
                    of.log.write(now, stderr, &data);
                    self.grow_log(container);
                }
                Ok(None)
            }
            Some(Target::Writer(pipe)) => {
                if self.pipes[pipe].is_broken() {
                    return Err(Errno::BrokenPipe);
                }
                let rest = self.pipes[pipe].put(data);
                self.wake_pipe(pipe);
                if rest.is_some() {
                    self.pipes[pipe].waiting.push(me);
                }
                Ok(rest)
            }
            Some(Target::File { id: file, at, append }) => {
                let at = if append { self.disk.file(file).map_or(at, |file| file.size) } else { at };
                let len = data.len();
                let text = match &data {
                    Data::Bytes(bytes) => Some(bytes.as_slice()),
                    _ => None,
                };
                let done = self.write_file(me, file, at, len, text)?;
                self.seek(id, at + done);
                if done < len { Err(Errno::NoSpace) } else { Ok(None) }
            }
        }
    }

    /// Writes into a file and charges its pages. The answer is how much of it there was room for.
    pub fn write_file(
        &mut self,
        me: Pid,
        file: FileId,
        at: u64,
        len: u64,
        text: Option<&[u8]>,
    ) -> Result<u64, Errno> {
        let (done, _) = self.disk.write(file, at, len, text);
        self.use_pages(me, file, at, done)?;
        Ok(done)
    }

    /// A part of a file is used: its pages come into memory, or become active if they were there.
    fn use_pages(&mut self, me: Pid, id: FileId, at: u64, len: u64) -> Result<(), Errno> {
        let Some(file) = self.disk.file_mut(id) else { return Ok(()) };
        if len == 0 {
            return Ok(());
        }
        let (store, blocks) = (file.store, file.blocks);
        if self.disk.is_memory(store) {
            let more = blocks.saturating_sub(self.groups.cached(id).shmem);
            return self.cache(me, id, Pages { shmem: more, ..Pages::default() });
        }
        let cached = self.groups.cached(id);
        let present = cached.inactive + cached.active;
        let reached = (at + len).next_multiple_of(BLOCK).min(blocks.max(present));
        // From the beginning on for a second time, or a page in small pieces: a page that is used twice becomes active (mm/swap.c).
        let again = at == 0 && present > 0 && self.disk.file(id).is_some_and(|file| file.referenced);
        if again {
            self.groups.activate(id);
        }
        // What was dropped meanwhile comes back as far as it is used.
        let more = reached.saturating_sub(present).min(len.next_multiple_of(BLOCK));
        if let Some(file) = self.disk.file_mut(id) {
            file.referenced |= at == 0;
        }
        if more == 0 {
            return Ok(());
        }
        let slab = cost::slab(more);
        self.cache(me, id, Pages { inactive: more, kernel: slab, ..Pages::default() })
    }

    /// Reads no more than `most` bytes.
    pub fn read(&mut self, me: Pid, id: OpenId, most: u64) -> Result<Read, Errno> {
        match self.target(id).cloned() {
            None | Some(Target::Writer(_) | Target::Log { .. }) => Err(Errno::BadDescriptor),
            Some(Target::Null) => Ok(Read::End),
            Some(Target::Zero | Target::Random | Target::Full) => Ok(Read::Data(Data::Fill(most))),
            Some(Target::Reader(pipe)) => {
                if let Some(data) = self.pipes[pipe].take(most) {
                    self.wake_pipe(pipe);
                    return Ok(Read::Data(data));
                }
                Ok(self.wait_for_pipe(me, pipe))
            }
            Some(Target::Text { text, at }) => {
                let rest = &text[(at as usize).min(text.len())..];
                let data = rest[..rest.len().min(most as usize)].to_vec();
                self.seek(id, at + data.len() as u64);
                Ok(if data.is_empty() { Read::End } else { Read::Data(Data::Bytes(data)) })
            }
            Some(Target::File { id: file, at, .. }) => {
                let Some(of) = self.disk.file(file) else { return Ok(Read::End) };
                let len = most.min(of.size.saturating_sub(at));
                if len == 0 {
                    return Ok(Read::End);
                }
                let data = match &of.text {
                    Some(text) => Data::Bytes(text[at as usize..(at + len) as usize].to_vec()),
                    None => Data::Fill(len),
                };
                self.use_pages(me, file, at, len)?;
                self.seek(id, at + len);
                Ok(Read::Data(data))
            }
        }
    }

    /// Reads a line.
    pub fn read_line(&mut self, me: Pid, id: OpenId) -> Result<Read, Errno> {
        match self.target(id).cloned() {
            Some(Target::Reader(pipe)) => {
                if let Some(line) = self.pipes[pipe].take_line() {
                    self.wake_pipe(pipe);
                    return Ok(Read::Data(Data::Bytes(line)));
                }
                Ok(self.wait_for_pipe(me, pipe))
            }
            Some(Target::File { id: file, at, .. }) => {
                let Some(of) = self.disk.file(file) else { return Ok(Read::End) };
                let Some(text) = &of.text else { return Ok(Read::End) };
                let Some(line) = line_at(text, at) else { return Ok(Read::End) };
                self.seek(id, at + line.len() as u64);
                Ok(Read::Data(Data::Bytes(line)))
            }
            Some(Target::Text { text, at }) => {
                let Some(line) = line_at(&text, at) else { return Ok(Read::End) };
                self.seek(id, at + line.len() as u64);
                Ok(Read::Data(Data::Bytes(line)))
            }
            _ => Ok(Read::End),
        }
    }

    fn wait_for_pipe(&mut self, me: Pid, pipe: PipeId) -> Read {
        let pipe = &mut self.pipes[pipe];
        if pipe.is_ended() {
            return Read::End;
        }
        pipe.waiting.push(me);
        Read::Blocked
    }
}

/// The line of a text from a place on, its end included; none at the end of the text.
fn line_at(text: &[u8], at: u64) -> Option<Vec<u8>> {
    let rest = &text[(at as usize).min(text.len())..];
    let len = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |end| end + 1);
    (len > 0).then(|| rest[..len].to_vec())
}
