//! Descriptors of processes.

use super::ids::OpenFileId;

/// The open files of a process, by descriptor.
pub(super) type Descriptors = [Option<OpenFileId>; MAX_DESCRIPTORS];

/// The number of descriptors that a process can have.
pub(super) const MAX_DESCRIPTORS: usize = 10;

pub(super) const STDIN: usize = 0;
pub(super) const STDOUT: usize = 1;
pub(super) const STDERR: usize = 2;
