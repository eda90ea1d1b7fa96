//! The types of open files.

use std::sync::Arc;

use super::data::Data;
use super::ids::{ContainerKey, ExecId, FileId, PipeId};
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
    /// `/dev/full`
    Full,
    /// The log of a container.
    Log { container: ContainerKey, stream: OutputStream },
    /// The output of a command in a container.
    Exec { id: ExecId, stream: OutputStream },
    /// A file on a disk.
    File { id: FileId, offset: u64, append: bool },
    /// A text that was generated when the file was opened.
    Text { text: Arc<[u8]>, offset: u64 },
    /// The read end of a pipe.
    PipeReader(PipeId),
    /// The write end of a pipe.
    PipeWriter(PipeId),
}

/// An open file description, which descriptors of several processes may share.
#[derive(Clone, Debug)]
pub(super) struct OpenFile {
    pub target: Target,
    pub references: u32,
}

/// The result of a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReadOutcome {
    Data(Data),
    /// End of file.
    End,
    /// The pipe is empty. The kernel wakes the reader when there is data.
    Blocked,
}
