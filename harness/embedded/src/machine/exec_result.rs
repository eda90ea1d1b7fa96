//! Commands in running containers, and their results.

use evictlab_rules::quantity::KIB;

use super::data::Data;
use super::ids::Pid;
use super::types::OutputStream;

/// The bytes that are stored of a stream; the rest is dropped.
const MAX_OUTPUT: usize = 64 * KIB as usize;

/// The result of a command in a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecResult {
    /// The exit status; 128 plus the signal for a process that was killed.
    pub code: i32,
    /// Standard output, at most 64 KiB.
    pub stdout: Vec<u8>,
    /// Standard error, at most 64 KiB.
    pub stderr: Vec<u8>,
}

/// A command that cannot be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExecError {
    /// The container does not exist, or has exited.
    #[error("the container does not run")]
    NotRunning,
    /// The model does not have the program.
    #[error("this model does not run the program")]
    UnknownProgram,
    /// The container has as many processes as it may have.
    #[error("the container cannot have another process")]
    CannotFork,
}

/// A command in a container.
#[derive(Clone, Debug)]
pub(super) struct Exec {
    pub pid: Pid,
    /// `None` while the command runs.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
}

impl Exec {
    /// Returns a command that runs, or that has exited with `code`, without output.
    pub(super) fn new(pid: Pid, code: Option<i32>) -> Self {
        Self { pid, code, stdout: Vec::new(), stderr: Vec::new() }
    }

    /// Stores output.
    pub(super) fn write(&mut self, stream: OutputStream, data: &Data) {
        let output = match stream {
            OutputStream::Stdout => &mut self.stdout,
            OutputStream::Stderr => &mut self.stderr,
        };
        output.extend(data.first_bytes(MAX_OUTPUT.saturating_sub(output.len())));
    }
}
