//! The type of a process.

use super::ids::{ContainerKey, MAX_DESCRIPTORS, OpenFileId, Pid, Signal};
use super::program::Program;
use crate::sim::Time;

/// The open files of a process, by descriptor.
pub(super) type Descriptors = [Option<OpenFileId>; MAX_DESCRIPTORS];

/// A process.
pub(super) struct Process {
    /// The PID in the container.
    pub ns_pid: u64,
    pub parent: Option<Pid>,
    pub container: ContainerKey,
    /// `comm`
    pub name: String,
    /// `None` while the program runs a step.
    pub program: Option<Program>,
    pub descriptors: Descriptors,
    /// Anonymous memory, in bytes.
    pub anon: u64,
    /// Kernel memory, in bytes.
    pub kernel: u64,
    pub tasks: u64,
    /// When the process runs next; `None` while it waits for an event.
    pub wakeup: Option<Time>,
    /// Signals for the program.
    pub signals: Vec<Signal>,
    /// Exited children that were not waited for: PID in the container, and exit status.
    pub exited_children: Vec<(u64, i32)>,
}
