//! The error of a command: its message and exit status.

use std::io::Write;
use std::process::ExitCode;

use evictlab_case::LoadErrors;
use evictlab_case::select::SelectError;
use evictlab_report::exit_code;
use evictlab_report::words::{visible, without_workflow_commands};

/// The error message of a command and its exit status.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) message: String,
    status: u8,
}

impl Failure {
    /// Returns a failure with this message and exit status.
    pub(crate) fn new(message: impl ToString, status: u8) -> Self {
        Self { message: message.to_string(), status }
    }

    /// Interrupted before the run started.
    pub(crate) fn interrupted() -> Self {
        Self::new("interrupted", exit_code::INTERRUPTED)
    }

    /// Invalid case files.
    pub(crate) fn invalid_cases(errors: &LoadErrors, status: u8) -> Self {
        Self::new(format!("failed to load case files\n\n{errors}"), status)
    }

    /// Writes the message to standard error, with visible control characters, and returns the exit
    /// status. The message may quote a file or an answer.
    pub(crate) fn report(&self) -> ExitCode {
        let message = visible(&self.message);
        let _ignored = writeln!(std::io::stderr().lock(), "error: {}", without_workflow_commands(&message));
        self.status.into()
    }
}

/// Invalid input: exit status 2, as clap uses for a wrong command line.
pub(crate) fn bad_input(error: impl ToString) -> Failure {
    Failure::new(error, exit_code::BAD_INPUT)
}

/// A failure of the harness, a cluster or the host: exit status 4.
pub(crate) fn infrastructure(error: impl ToString) -> Failure {
    Failure::new(error, exit_code::INFRASTRUCTURE)
}

impl From<LoadErrors> for Failure {
    fn from(errors: LoadErrors) -> Self {
        Self::invalid_cases(&errors, exit_code::BAD_INPUT)
    }
}

impl From<SelectError> for Failure {
    fn from(error: SelectError) -> Self {
        match error {
            SelectError::Load(errors) => errors.into(),
            other => bad_input(other),
        }
    }
}
