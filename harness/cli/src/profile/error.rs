//! Errors of profiles.

use std::io;
use std::path::PathBuf;

use evictlab_case::Problem;

/// A profile that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProfileError {
    /// The file exists but cannot be read.
    #[error("failed to read {}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file is not TOML, or has a key or a value that no option has.
    #[error("failed to read profiles: {0}")]
    Invalid(Problem),
    /// The file does not have the profile.
    #[error("failed to find profile `{name}` in {file}{}", .profiles.as_ref().map(|all| format!("\nhelp: its profiles are {all}")).unwrap_or_default())]
    Unknown {
        /// The profile.
        name: String,
        /// The file as the user opens it.
        file: String,
        /// The profiles of the file.
        profiles: Option<String>,
    },
    /// A profile is named, but the file does not exist.
    #[error(
        "failed to find profile `{0}`: no evictlab.toml in this directory or its parents up to the root of the repository\nhelp: create the file with a table [profile.{0}], or remove --profile and EVICTLAB_PROFILE"
    )]
    NoFile(String),
}
