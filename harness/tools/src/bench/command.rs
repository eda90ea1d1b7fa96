//! Duration of commands.

use std::env;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A command that could not be timed.
#[derive(Debug, thiserror::Error)]
#[error("failed to run `{} {argument}`: {source}", program.display())]
pub struct CommandError {
    program: PathBuf,
    argument: String,
    source: std::io::Error,
}

/// Returns the shortest duration of `runs` runs of a command with one argument, in seconds: with
/// the built-in cases, not those of the current folder. Discards its output.
pub fn command_seconds(program: &Path, argument: &str, runs: u32) -> Result<f64, CommandError> {
    let mut best = f64::INFINITY;
    for _ in 0..runs {
        let began = Instant::now();
        let command = duct::cmd!(program, argument).dir(env::temp_dir()).env_remove("EVICTLAB_CASES");
        command.stdin_null().stdout_null().stderr_null().run().map_err(|source| CommandError {
            program: program.to_owned(),
            argument: argument.to_owned(),
            source,
        })?;
        best = best.min(began.elapsed().as_secs_f64());
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_commands_have_no_duration() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = command_seconds(file.path(), "list", 2).unwrap_err().to_string();
        assert!(error.contains(" list`: "), "{error}");
        let own = env::current_exe().unwrap();
        assert!(command_seconds(&own, "--help", 2).unwrap().is_finite());
        assert!(command_seconds(&own, "--no-such-flag", 2).is_err());
    }
}
