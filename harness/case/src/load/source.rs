//! Sources of suites.

use std::path::PathBuf;

/// File that marks a folder as a folder of evictlab suites.
pub const SCHEMA_FILE: &str = "case.schema.json";

/// A case file of the binary.
#[derive(Clone, Copy, Debug)]
pub struct BuiltInCase {
    /// Path in the folder of suites, such as `message/a.yaml`.
    pub path: &'static str,
    /// Text of the file.
    pub text: &'static str,
    /// The document of the file as JSON, which takes a fifth of the time to read. Without it, the
    /// text is read.
    pub json: Option<&'static str>,
}

/// Source of suites.
#[derive(Clone, Debug)]
pub enum Source {
    /// A folder with one folder per suite.
    Dir(PathBuf),
    /// The suites in the binary.
    BuiltIn(&'static [BuiltInCase]),
}

impl Source {
    /// Returns the folder if one is given; otherwise `./cases` if it has a [`SCHEMA_FILE`];
    /// otherwise the built-in suites.
    pub fn find(dir: Option<PathBuf>, built_in: &'static [BuiltInCase]) -> Self {
        let default = || Some(PathBuf::from("cases")).filter(|dir| dir.join(SCHEMA_FILE).is_file());
        dir.or_else(default).map_or(Self::BuiltIn(built_in), Self::Dir)
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Dir(dir) => dir.display().fmt(f),
            Self::BuiltIn(_) => f.write_str("the built-in cases"),
        }
    }
}
