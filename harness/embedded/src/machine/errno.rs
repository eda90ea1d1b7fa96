//! Errors of system calls.

/// The error of a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Errno {
    /// The kernel killed the caller during the call. Not reported to anyone.
    Killed,
    /// ENOSPC
    NoSpace,
    /// ENOENT
    NotFound,
    /// EISDIR
    IsDirectory,
    /// EEXIST
    Exists,
    /// EAGAIN of `fork`
    CannotFork,
    /// EBADF
    BadDescriptor,
    /// EROFS
    ReadOnly,
}

impl Errno {
    /// Returns the number on Linux.
    pub(super) fn number(self) -> i32 {
        match self {
            Self::Killed => 4,
            Self::NoSpace => 28,
            Self::NotFound => 2,
            Self::IsDirectory => 21,
            Self::Exists => 17,
            Self::CannotFork => 11,
            Self::BadDescriptor => 9,
            Self::ReadOnly => 30,
        }
    }

    /// Returns the text of `strerror`.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Killed => "Killed",
            Self::NoSpace => "No space left on device",
            Self::NotFound => "No such file or directory",
            Self::IsDirectory => "Is a directory",
            Self::Exists => "File exists",
            Self::CannotFork => "Resource temporarily unavailable",
            Self::BadDescriptor => "Bad file descriptor",
            Self::ReadOnly => "Read-only file system",
        }
    }
}
