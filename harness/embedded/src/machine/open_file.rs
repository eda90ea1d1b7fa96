//! The types of open files, and descriptors of processes.

use std::sync::Arc;

use super::data::Data;
use super::ids::{ContainerKey, ExecId, FileId, OpenFileId, Pid, PipeId};
use super::types::OutputStream;

/// The object behind an open file. `offset` is the position in it, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// `/dev/null`
    Null,
    /// `/dev/zero`
    Zero,
    /// `/dev/urandom`
    Random,
    /// The log of a container.
    Log { container: ContainerKey, stream: OutputStream },
    /// The output of a command in a container.
    Exec { id: ExecId, stream: OutputStream },
    /// A file on a disk.
    File { id: FileId, offset: u64, append: bool },
    /// A text that was generated when the file was opened.
    Text { text: Arc<[u8]>, offset: u64 },
    /// The write end of a pipe.
    Pipe(PipeId),
}

/// An open file description, which descriptors of several processes may share.
#[derive(Clone, Debug)]
pub(super) struct OpenFile {
    pub target: Target,
    pub references: u32,
}

/// A pipe to a shell, which reads the output of a command substitution. It has no capacity: its
/// writers never wait.
#[derive(Clone, Debug)]
pub(super) struct Pipe {
    pub reader: Pid,
    /// Data that the reader has not taken.
    pub unread: Vec<Data>,
    /// Number of open write ends.
    pub writers: u32,
}

/// The open files of a process, by descriptor.
pub(super) type Descriptors = [Option<OpenFileId>; MAX_DESCRIPTORS];

/// The number of descriptors that a process can have.
pub(super) const MAX_DESCRIPTORS: usize = 10;

pub(super) const STDIN: usize = 0;
pub(super) const STDOUT: usize = 1;
pub(super) const STDERR: usize = 2;
