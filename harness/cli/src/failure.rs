//! The error of a command: its message and exit status.

use std::io::ErrorKind;
use std::process::ExitCode;

use evictlab_case::select::SelectError;
use evictlab_case::{LoadErrors, Problem};
use evictlab_report::{ReportError, exit_code};

use crate::messages::print_stderr;
use crate::profile::place;

/// The error message of a command and its exit status.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) message: String,
    status: u8,
    /// The option that has a wrong value.
    option: Option<OptionValue>,
}

/// A value of an option.
#[derive(Debug)]
struct OptionValue {
    /// Long name of the option.
    option: &'static str,
    /// The value as it is stated; `None` for all values.
    value: Option<String>,
}

impl Failure {
    /// Returns a failure with this message and exit status.
    pub(crate) fn new(message: impl ToString, status: u8) -> Self {
        Self { message: message.to_string(), status, option: None }
    }

    /// Invalid input: exit status 2, as clap uses for a wrong command line.
    pub(crate) fn bad_input(error: impl ToString) -> Self {
        Self::new(error, exit_code::BAD_INPUT)
    }

    /// A failure of the harness, a cluster or the host: exit status 4.
    pub(crate) fn infrastructure(error: impl ToString) -> Self {
        Self::new(error, exit_code::INFRASTRUCTURE)
    }

    /// Invalid input if `is_input`, else a failure of the harness, a cluster or the host.
    pub(crate) fn input_or_infrastructure(is_input: bool, error: impl ToString) -> Self {
        if is_input { Self::bad_input(error) } else { Self::infrastructure(error) }
    }

    /// Interrupted before the run started.
    pub(crate) fn interrupted() -> Self {
        Self::new("interrupted", exit_code::INTERRUPTED)
    }

    /// Invalid case files.
    pub(crate) fn invalid_cases(errors: &LoadErrors, status: u8) -> Self {
        Self::new(format!("failed to load case files\n\n{errors}"), status)
    }

    /// Names the option, by its long name, whose value is wrong.
    #[must_use]
    pub(crate) fn of_value(self, option: &'static str, value: impl ToString) -> Self {
        Self { option: Some(OptionValue { option, value: Some(value.to_string()) }), ..self }
    }

    /// Names the option, by its long name, whose values are wrong, or wrong together.
    #[must_use]
    pub(crate) fn of_option(self, option: &'static str) -> Self {
        Self { option: Some(OptionValue { option, value: None }), ..self }
    }

    /// Adds the place of the wrong value, if a profile states it.
    #[must_use]
    pub(crate) fn with_profile_place(self) -> Self {
        let wrong = self.option.as_ref();
        match wrong.and_then(|OptionValue { option, value }| place(option, value.as_deref())) {
            Some(place) => {
                let problem = Problem { message: self.message, spans: vec![place] };
                Self { message: problem.to_string(), ..self }
            }
            None => self,
        }
    }

    /// Writes the message to standard error, with visible control characters, and returns the exit
    /// status. The message may quote a file or an answer.
    pub(crate) fn report(&self) -> ExitCode {
        print_stderr(format_args!("error: {}", self.message));
        self.status.into()
    }
}

/// Returns the text of an error of a file or directory that the user can choose, with the help that
/// fits its cause; `choice` is such as `another file with --output`.
pub(crate) fn write_error(error: &ReportError, choice: &str) -> String {
    let ReportError::Write { path, source } = error else { return error.to_string() };
    format!("failed to write {}: {source}\n{}", path.display(), write_help(source.kind(), choice))
}

/// Returns the help for an error of a file or directory that the user can choose.
pub(crate) fn write_help(error: ErrorKind, choice: &str) -> String {
    let remedy = match error {
        ErrorKind::NotFound => "create its directory, or ",
        ErrorKind::NotADirectory => "a part of this path is a file: ",
        ErrorKind::PermissionDenied => "make its directory writable, or ",
        ErrorKind::ReadOnlyFilesystem => "its file system is read-only: ",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "free disk space, or ",
        _ => "",
    };
    format!("help: {remedy}choose {choice}")
}

impl From<LoadErrors> for Failure {
    fn from(errors: LoadErrors) -> Self {
        let failure = Self::invalid_cases(&errors, exit_code::BAD_INPUT);
        // The first problem may be that of the directory itself.
        match errors.0.first().and_then(|problem| problem.spans.first()) {
            Some(span) => failure.of_value("cases", &span.file),
            None => failure,
        }
    }
}

impl From<SelectError> for Failure {
    fn from(error: SelectError) -> Self {
        match error {
            SelectError::Load(errors) => errors.into(),
            SelectError::NoSuchName { ref name, .. } => Self::bad_input(&error).of_value("case", name),
            SelectError::NoLabelMatch { .. } => Self::bad_input(error).of_option("label-filter"),
            SelectError::NoFocusMatch { .. } => Self::bad_input(error).of_option("focus"),
            SelectError::AllSkipped { .. } => Self::bad_input(error).of_option("skip"),
            SelectError::NoUpstreamMatch { .. } => Self::bad_input(error).of_option("upstream"),
            SelectError::EmptyShard { .. } => Self::bad_input(error).of_option("shard"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_of_a_write_error_fits_its_cause() {
        let rows = [
            (ErrorKind::NotFound, "create its directory, or choose another file with --output"),
            (ErrorKind::NotADirectory, "a part of this path is a file: choose another"),
            (ErrorKind::PermissionDenied, "make its directory writable, or choose another"),
            (ErrorKind::ReadOnlyFilesystem, "its file system is read-only: choose another"),
            (ErrorKind::StorageFull, "free disk space, or choose another"),
            (ErrorKind::Other, "choose another"),
        ];
        for (kind, help) in rows {
            let error = ReportError::Write { path: "page.html".into(), source: kind.into() };
            let text = write_error(&error, "another file with --output");
            assert!(text.starts_with("failed to write page.html: "), "{text}");
            assert!(text.contains(&format!("\nhelp: {help}")), "{text}");
        }
    }
}
