//! The types of open files.

use std::sync::Arc;

use super::ids::{ContainerKey, ExecId, FileId};
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
    /// The output of a command substitution.
    Capture(Vec<u8>),
}

/// An open file description, which descriptors of several processes may share.
#[derive(Clone, Debug)]
pub(super) struct OpenFile {
    pub target: Target,
    pub references: u32,
}
