//! Reading and writing.

use super::calibration;
use super::cgroups::Pages;
use super::data::Data;
use super::disk::BLOCK;
use super::errno::Errno;
use super::ids::{FileId, OpenFileId, Pid, PipeId};
use super::kernel::Kernel;
use super::open_file::{OpenFile, Pipe, Target};

impl Kernel {
    /// Opens a target, with one reference.
    pub(super) fn open(&mut self, target: Target) -> OpenFileId {
        if let Target::Pipe(pipe) = &target
            && let Some(pipe) = self.pipes.get_mut(pipe)
        {
            pipe.writers += 1;
        }
        let file = OpenFile { target, references: 1 };
        match self.free_files.pop() {
            Some(id) => {
                self.open_files[id.0] = Some(file);
                id
            }
            None => {
                self.open_files.push(Some(file));
                OpenFileId(self.open_files.len() - 1)
            }
        }
    }

    /// Writes a text to a descriptor of a process. Errors are ignored.
    pub(super) fn print(&mut self, pid: Pid, descriptor: usize, text: &str) {
        if let Some(file) = self.descriptor(pid, descriptor) {
            let _ = self.write(pid, file, Data::text(text));
        }
    }

    /// Adds a reference to an open file.
    pub(super) fn retain(&mut self, id: OpenFileId) {
        if let Some(file) = &mut self.open_files[id.0] {
            file.references += 1;
        }
    }

    /// Drops a reference to an open file; the last one closes it.
    pub(super) fn close(&mut self, id: OpenFileId) {
        let Some(file) = &mut self.open_files[id.0] else { return };
        file.references -= 1;
        if file.references > 0 {
            return;
        }
        let target = file.target.clone();
        self.open_files[id.0] = None;
        self.free_files.push(id);
        if let Target::Pipe(id) = target
            && let Some(pipe) = self.pipes.get_mut(&id)
        {
            pipe.writers -= 1;
            let (reader, is_closed) = (pipe.reader, pipe.writers == 0);
            if is_closed && !self.processes.contains_key(&reader) {
                self.pipes.remove(&id);
            }
            self.wake(reader);
        }
    }

    /// Creates a pipe to a process; returns the pipe and its write end.
    pub(super) fn create_pipe(&mut self, reader: Pid) -> (PipeId, OpenFileId) {
        let id = PipeId(self.next_pipe);
        self.next_pipe += 1;
        self.pipes.insert(id, Pipe { reader, unread: Vec::new(), writers: 0 });
        (id, self.open(Target::Pipe(id)))
    }

    /// Returns what was written to a pipe since the last call, and whether all write ends are
    /// closed, which removes the pipe. The kernel wakes the reader when either changes.
    pub(super) fn read_pipe(&mut self, id: PipeId) -> (Vec<Data>, bool) {
        let Some(pipe) = self.pipes.get_mut(&id) else { return (Vec::new(), true) };
        let (unread, is_closed) = (std::mem::take(&mut pipe.unread), pipe.writers == 0);
        if is_closed {
            self.pipes.remove(&id);
        }
        (unread, is_closed)
    }

    /// Returns the open file of a process's descriptor.
    pub(super) fn descriptor(&self, pid: Pid, descriptor: usize) -> Option<OpenFileId> {
        self.processes.get(&pid)?.descriptors.get(descriptor).copied().flatten()
    }

    /// Replaces a descriptor; returns the open file that it had. References do not change.
    pub(super) fn swap_descriptor(
        &mut self,
        pid: Pid,
        descriptor: usize,
        file: Option<OpenFileId>,
    ) -> Option<OpenFileId> {
        let process = self.processes.get_mut(&pid)?;
        std::mem::replace(process.descriptors.get_mut(descriptor)?, file)
    }

    /// Replaces a descriptor, and closes the open file that it had.
    pub(super) fn set_descriptor(&mut self, pid: Pid, descriptor: usize, file: Option<OpenFileId>) {
        if let Some(before) = self.swap_descriptor(pid, descriptor, file) {
            self.close(before);
        }
    }

    /// Returns the offset of an open file.
    pub(super) fn position(&self, id: OpenFileId) -> Option<u64> {
        match self.target(id)? {
            Target::File { offset, .. } | Target::Text { offset, .. } => Some(*offset),
            _ => None,
        }
    }

    /// Sets the offset of an open file.
    pub(super) fn seek(&mut self, id: OpenFileId, to: u64) {
        if let Some(OpenFile { target: Target::File { offset, .. } | Target::Text { offset, .. }, .. }) =
            &mut self.open_files[id.0]
        {
            *offset = to;
        }
    }

    /// Returns what an open file refers to.
    pub(super) fn target(&self, id: OpenFileId) -> Option<&Target> {
        self.open_files[id.0].as_ref().map(|file| &file.target)
    }

    /// Returns the highest rate of an open file, in bytes a second.
    pub(super) fn throughput(&self, id: OpenFileId) -> u64 {
        match self.target(id) {
            Some(Target::Random) => calibration::RANDOM_RATE,
            Some(Target::Log { .. }) => calibration::LOG_RATE,
            Some(Target::Null) => calibration::COPY_RATE * 8,
            _ => calibration::COPY_RATE,
        }
    }

    /// Writes data.
    pub(super) fn write(&mut self, pid: Pid, id: OpenFileId, data: Data) -> Result<(), Errno> {
        match self.target(id).cloned() {
            None | Some(Target::Text { .. }) => Err(Errno::BadDescriptor),
            Some(Target::Null | Target::Zero | Target::Random) => Ok(()),
            Some(Target::Log { container: key, stream }) => {
                if let Some(container) = self.containers.get_mut(&key) {
                    container.log.write(self.now, stream, &data);
                    self.resize_log(key);
                }
                Ok(())
            }
            Some(Target::Exec { id: exec, stream }) => {
                self.write_exec(exec, stream, &data);
                Ok(())
            }
            Some(Target::Pipe(pipe)) => {
                // Data without a reader is dropped.
                if let Some(pipe) = self.pipes.get_mut(&pipe)
                    && self.processes.contains_key(&pipe.reader)
                {
                    pipe.unread.push(data);
                    let reader = pipe.reader;
                    self.wake(reader);
                }
                Ok(())
            }
            Some(Target::File { id: file, offset, append }) => {
                let offset =
                    if append { self.disk.file(file).map_or(offset, |file| file.size) } else { offset };
                let text = match &data {
                    Data::Bytes(bytes) => Some(bytes.as_slice()),
                    _ => None,
                };
                let written = self.disk.write(file, offset, data.len(), text);
                self.touch_pages(pid, file, offset, written)?;
                self.seek(id, offset + written);
                if written < data.len() { Err(Errno::NoSpace) } else { Ok(()) }
            }
        }
    }

    /// Records the use of a part of a file: its pages are cached, or become active if they were.
    fn touch_pages(&mut self, pid: Pid, id: FileId, offset: u64, len: u64) -> Result<(), Errno> {
        let Some(file) = self.disk.file_mut(id) else { return Ok(()) };
        if len == 0 {
            return Ok(());
        }
        let (tree, blocks, was_referenced) = (file.tree, file.blocks, file.referenced);
        let cached = self.cgroups.cached(id);
        if self.disk.is_tmpfs(tree) {
            let more = blocks.saturating_sub(cached.shmem);
            return self.cache_file(pid, id, Pages { shmem: more, ..Pages::default() });
        }
        let present = cached.inactive + cached.active;
        let end = (offset + len).next_multiple_of(BLOCK).min(blocks.max(present));
        // A page that is used twice becomes active (mm/swap.c). The model counts uses of a file
        // from its start.
        if offset == 0 && present > 0 && was_referenced {
            self.cgroups.activate(id);
        }
        // Pages that were reclaimed come back as far as they are used.
        let more = end.saturating_sub(present).min(len.next_multiple_of(BLOCK));
        if let Some(file) = self.disk.file_mut(id) {
            file.referenced |= offset == 0;
        }
        if more == 0 {
            return Ok(());
        }
        let kernel = calibration::page_cache_overhead(more);
        self.cache_file(pid, id, Pages { inactive: more, kernel, ..Pages::default() })
    }

    /// Reads at most `most` bytes; returns `None` at the end of the file.
    pub(super) fn read(&mut self, pid: Pid, id: OpenFileId, most: u64) -> Result<Option<Data>, Errno> {
        match self.target(id).cloned() {
            None | Some(Target::Pipe(_) | Target::Log { .. } | Target::Exec { .. }) => {
                Err(Errno::BadDescriptor)
            }
            Some(Target::Null) => Ok(None),
            Some(Target::Zero | Target::Random) => Ok(Some(Data::Fill(most))),
            Some(Target::Text { text, offset }) => {
                let rest = &text[(offset as usize).min(text.len())..];
                let data = rest[..rest.len().min(most as usize)].to_vec();
                self.seek(id, offset + data.len() as u64);
                Ok((!data.is_empty()).then_some(Data::Bytes(data)))
            }
            Some(Target::File { id: file_id, offset, .. }) => {
                let Some(file) = self.disk.file(file_id) else { return Ok(None) };
                let len = most.min(file.size.saturating_sub(offset));
                if len == 0 {
                    return Ok(None);
                }
                let data = match &file.text {
                    Some(text) => Data::Bytes(text[offset as usize..(offset + len) as usize].to_vec()),
                    None => Data::Fill(len),
                };
                self.touch_pages(pid, file_id, offset, len)?;
                self.seek(id, offset + len);
                Ok(Some(data))
            }
        }
    }

    /// Reads a line with its newline; returns `None` at the end of the file. Unknown content counts
    /// as the end.
    pub(super) fn read_line(&mut self, id: OpenFileId) -> Option<Vec<u8>> {
        let (line, offset) = match self.target(id)? {
            Target::File { id: file, offset, .. } => {
                (line_at(self.disk.file(*file)?.text.as_deref()?, *offset)?, *offset)
            }
            Target::Text { text, offset } => (line_at(text, *offset)?, *offset),
            _ => return None,
        };
        self.seek(id, offset + line.len() as u64);
        Some(line)
    }
}

/// Returns the line of a text at an offset with its newline; `None` at the end of the text.
fn line_at(text: &[u8], offset: u64) -> Option<Vec<u8>> {
    let rest = &text[(offset as usize).min(text.len())..];
    let len = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |end| end + 1);
    (len > 0).then(|| rest[..len].to_vec())
}
