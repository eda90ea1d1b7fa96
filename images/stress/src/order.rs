//! What the program is told to do.

use std::time::Duration;

use crate::agnhost::Stress;
use crate::pace::Pace;

/// What a command line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Tell how it is used.
    Help,
    /// Take something.
    Take(Take),
    /// Take nothing, and stay.
    Idle(Stay),
    /// What agnhost's `stress` does.
    Stress(Stress),
    /// Be one of the processes that `pids` begins: wait until the input ends.
    Child,
}

/// Something to be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Take {
    /// Of what.
    pub what: What,
    /// How much, and how fast.
    pub pace: Pace,
    /// The folder that files go into.
    pub path: String,
    /// What it does when the system gives no more.
    pub on_refusal: OnRefusal,
    /// What comes after.
    pub stay: Stay,
}

/// What there is to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Anonymous memory, in bytes.
    Memory,
    /// Disk, in bytes.
    Disk {
        /// Its blocks only: nothing is written.
        allocate: bool,
    },
    /// Empty files.
    Inodes,
    /// Lines of a log, in bytes.
    Logs,
    /// Processes.
    Pids,
    /// Active page cache, in bytes.
    PageCache,
}

impl What {
    /// The command that takes it.
    pub fn command(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Disk { .. } => "disk",
            Self::Inodes => "inodes",
            Self::Logs => "logs",
            Self::Pids => "pids",
            Self::PageCache => "page-cache",
        }
    }

    /// Whether it is counted by pieces, not by bytes.
    pub fn is_counted(self) -> bool {
        matches!(self, Self::Inodes | Self::Pids)
    }

    /// Whether it goes into files.
    pub fn has_path(self) -> bool {
        matches!(self, Self::Disk { .. } | Self::Inodes | Self::PageCache)
    }
}

/// What the program does once it has what it was told to take, and when it is told to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stay {
    /// How long it stays; none: until it is stopped.
    pub hold: Option<Duration>,
    /// What it does then.
    pub then: Then,
    /// The exit code of an end by itself.
    pub exit: u8,
    /// What it does when it is told to stop.
    pub on_term: OnTerm,
}

/// What the program does after it has stayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It ends.
    Exit,
    /// It gives everything back, and stays until it is stopped.
    Free,
}

/// What the program does when it is told to stop (SIGTERM, SIGINT).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnTerm {
    /// It ends, after a while, with this code.
    Exit {
        /// The exit code.
        code: u8,
        /// How long it goes on.
        after: Duration,
    },
    /// It goes on.
    Ignore,
}

/// What the program does when the system gives no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRefusal {
    /// It ends.
    Exit,
    /// It stays with what it has.
    Hold,
}
