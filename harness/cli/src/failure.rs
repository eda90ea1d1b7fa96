//! How a command that could not do its work ends.

use std::process::ExitCode;

use evictlab_runner::case::LoadErrors;
use evictlab_runner::report::exit_code;
use evictlab_runner::select::SelectError;

use crate::output::tell;

/// What went wrong, for a person, and the exit status.
#[derive(Debug)]
pub struct Failure {
    pub text: String,
    status: u8,
}

impl Failure {
    /// The status of input that cannot be used; clap exits with the same for a wrong command line.
    pub const BAD_INPUT: u8 = exit_code::BAD_INPUT;

    /// A failure with this text and exit status.
    pub fn new(text: impl ToString, status: u8) -> Self {
        Self { text: text.to_string(), status }
    }

    /// What a first signal ends before there was anything to report.
    pub fn interrupted() -> Self {
        Self::new("interrupted", exit_code::INTERRUPTED)
    }

    /// Case files that cannot be used.
    pub fn of_cases(errors: &LoadErrors, status: u8) -> Self {
        Self::new(format!("the case files cannot be used\n\n{errors}"), status)
    }

    /// Writes it to standard error, and gives the status to exit with.
    pub fn tell(&self) -> ExitCode {
        tell(format_args!("error: {}", self.text));
        self.status.into()
    }
}

/// Input that cannot be used.
pub fn bad_input(error: impl ToString) -> Failure {
    Failure::new(error, Failure::BAD_INPUT)
}

/// The harness, the cluster or the host went wrong.
pub fn infrastructure(error: impl ToString) -> Failure {
    Failure::new(error, exit_code::INFRASTRUCTURE)
}

impl From<LoadErrors> for Failure {
    fn from(errors: LoadErrors) -> Self {
        Self::of_cases(&errors, Self::BAD_INPUT)
    }
}

impl From<SelectError> for Failure {
    fn from(error: SelectError) -> Self {
        match error {
            SelectError::Load(errors) => errors.into(),
            other => Self::new(other, Self::BAD_INPUT),
        }
    }
}
