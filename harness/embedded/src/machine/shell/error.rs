//! Errors of the shell.

use crate::machine::errno::Errno;

/// A script does not compile, or a command of a running script fails.
///
/// A running shell prints the error after its name and exits with 2, as ash does.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ShellError {
    /// The script is not valid shell syntax.
    #[error("syntax error")]
    Syntax,
    /// ash runs this construct, the model does not.
    #[error("{0} is not supported by this model")]
    Unsupported(&'static str),
    /// The operand of an arithmetic expression is not a number.
    #[error("arithmetic syntax error")]
    NotANumber,
    /// Division or remainder by zero.
    #[error("divide by zero")]
    DivideByZero,
    /// The value of a variable is longer than the model stores.
    #[error("{0}: value exceeds the model's limit of 1 MiB")]
    ValueTooLong(String),
    /// The process limit of the pod or the node is reached.
    #[error("can't fork: {}", Errno::CannotFork.text())]
    CannotFork,
    /// The kernel killed the shell itself. The error is never printed.
    #[error("killed")]
    Killed,
}

#[cfg(test)]
mod error_texts {
    use super::*;
    use crate::error_texts::row;

    #[test]
    fn texts() {
        let rows = [
            row(ShellError::Syntax),
            row(ShellError::Unsupported("coproc")),
            row(ShellError::NotANumber),
            row(ShellError::DivideByZero),
            row(ShellError::ValueTooLong("out".to_owned())),
            row(ShellError::CannotFork),
            row(ShellError::Killed),
        ];
        insta::assert_snapshot!(rows.concat());
    }
}
