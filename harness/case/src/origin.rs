//! Origins of case files.

use std::fmt;
use std::fs;

/// Path of the standard input in commands.
pub(crate) const STDIN: &str = "-";

/// Suite of a case from the standard input.
pub(crate) const STDIN_SUITE: &str = "stdin";

/// Origin of a case file. Errors display it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// The binary: the path in the folder of suites, such as `message/a.yaml`.
    BuiltIn(String),
    /// A file: its path as the user opens it.
    File(String),
    /// The standard input.
    Stdin,
}

impl Origin {
    /// Returns an origin that is equal for all paths of the same file.
    pub(crate) fn canonical(&self) -> Self {
        match self {
            Self::File(path) => match fs::canonicalize(path) {
                Ok(canonical) => Self::File(canonical.display().to_string()),
                Err(_) => self.clone(),
            },
            Self::BuiltIn(_) | Self::Stdin => self.clone(),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn(path) => write!(f, "(built-in) {path}"),
            Self::File(path) => f.write_str(path),
            Self::Stdin => f.write_str("<stdin>"),
        }
    }
}
