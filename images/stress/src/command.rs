//! A parsed command line.

use std::time::Duration;

use crate::agnhost::StressOptions;
use crate::ramp::Ramp;

/// The exit code after the system refused a resource.
pub const EXIT_REFUSED: i32 = 3;

/// A parsed command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Print the help text.
    Help,
    /// Consume a resource.
    Consume(ConsumeOptions),
    /// Consume nothing.
    Idle(Lifetime),
    /// Behave as `agnhost stress`.
    AgnhostStress(StressOptions),
    /// Be a child of `pids`: wait for the end of stdin.
    Child,
}

/// The options of a command that consumes a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumeOptions {
    /// The resource.
    pub resource: Resource,
    /// The amount and the rate.
    pub ramp: Ramp,
    /// The parent directory of the files.
    pub path: String,
    /// The reaction to a refusal by the system.
    pub on_refusal: OnRefusal,
    /// The time after the last step, and the reaction to signals.
    pub lifetime: Lifetime,
}

/// A resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Anonymous memory, in bytes.
    Memory,
    /// Disk space, in bytes.
    Disk {
        /// Allocate blocks instead of writing them.
        allocate: bool,
    },
    /// Empty files.
    Inodes,
    /// Log lines on stdout, in bytes.
    Logs,
    /// Processes.
    Pids,
    /// Active page cache, in bytes.
    PageCache,
}

impl Resource {
    /// Returns the command that consumes it.
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

    /// Returns whether its amount is a number of pieces instead of bytes.
    pub fn is_counted(self) -> bool {
        matches!(self, Self::Inodes | Self::Pids)
    }

    /// Returns whether its command writes files.
    pub fn has_path(self) -> bool {
        matches!(self, Self::Disk { .. } | Self::Inodes | Self::PageCache)
    }
}

/// The time after the last step, and the reaction to signals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// The time for which the program holds the resource; `None` until it is killed.
    pub hold: Option<Duration>,
    /// The action after `hold`.
    pub after_hold: AfterHold,
    /// The exit code after `hold`.
    pub exit_code: u8,
    /// The reaction to SIGTERM and SIGINT.
    pub on_term: OnTerm,
}

/// The action after the resource was held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterHold {
    /// Exits.
    Exit,
    /// Releases the resource and runs until it is killed.
    Release,
}

/// The reaction to SIGTERM and SIGINT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnTerm {
    /// Exits.
    Exit {
        /// The exit code.
        code: u8,
        /// The time until the exit.
        delay: Duration,
    },
    /// Prints a line and continues.
    Ignore,
}

/// The reaction to a refusal by the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRefusal {
    /// Exits with [`EXIT_REFUSED`].
    Exit,
    /// Holds what it has.
    Hold,
}
