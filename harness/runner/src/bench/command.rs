//! How long a command takes from its start to its end.

use std::path::{Path, PathBuf};
use std::time::Instant;

/// A command that cannot be timed.
#[derive(Debug, thiserror::Error)]
#[error("`{} {argument}` cannot be timed: {source}", program.display())]
pub struct CommandError {
    program: PathBuf,
    argument: String,
    source: std::io::Error,
}

/// The best of so many runs of a command with one argument, in seconds; what it prints is thrown away.
pub fn command_seconds(program: &Path, argument: &str, runs: u32) -> Result<f64, CommandError> {
    let mut best = f64::INFINITY;
    for _ in 0..runs {
        let began = Instant::now();
        duct::cmd!(program, argument).stdin_null().stdout_null().stderr_null().run().map_err(|source| {
            CommandError { program: program.to_owned(), argument: argument.to_owned(), source }
        })?;
        best = best.min(began.elapsed().as_secs_f64());
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_fails_has_no_time() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = command_seconds(file.path(), "list", 2).unwrap_err().to_string();
        assert!(error.contains("list` cannot be timed"), "{error}");
        let own = std::env::current_exe().unwrap();
        assert!(command_seconds(&own, "--help", 2).unwrap().is_finite());
        assert!(command_seconds(&own, "--no-such-flag", 2).is_err());
    }
}
