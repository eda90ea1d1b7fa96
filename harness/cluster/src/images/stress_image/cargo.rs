//! Runs cargo to build the program of the `stress` image.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process_group};

use super::error::BuildError;

/// Compiler flags for a static program at a fixed address: it starts without relocations, which
/// matters for every child of the subcommand `pids`. Cargo separates the flags by 0x1f.
const FLAGS: &str = "-Ctarget-feature=+crt-static\x1f-Crelocation-model=static";

/// Number of output lines in an error.
const ERROR_LINES: usize = 20;

/// Destination of the messages that cargo prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CargoOutput {
    /// Stderr of this process.
    Inherited,
    /// The error, if cargo fails.
    Captured,
}

/// Runs cargo in a directory and returns its stdout.
///
/// Cargo runs in its own process group, so that Ctrl-C in a terminal only reaches evictlab. The
/// group is terminated when the returned future is dropped.
pub(super) async fn cargo(
    tree: &Path,
    arguments: &[&str],
    output: CargoOutput,
) -> Result<String, BuildError> {
    let command = format!("cargo {}", arguments.join(" "));
    let failed = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::NotFound => BuildError::NoCargo,
        _ => BuildError::Io { operation: format!("run `{command}`"), source },
    };
    // Cargo sets this variable for the programs that it runs.
    let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut expression = duct::cmd(program, arguments)
        .dir(tree)
        .env("CARGO_ENCODED_RUSTFLAGS", FLAGS)
        .stdin_null()
        .unchecked()
        .before_spawn(|command| {
            command.process_group(0);
            Ok(())
        });
    if output == CargoOutput::Captured {
        expression = expression.stderr_capture();
    }
    let mut reader = expression.reader().map_err(failed)?;
    let mut group = ProcessGroup(reader.pids().first().and_then(|pid| Pid::from_raw(*pid as i32)));
    let exited = tokio::task::spawn_blocking(move || -> std::io::Result<_> {
        let mut stdout = String::new();
        reader.read_to_string(&mut stdout)?;
        let output = reader.try_wait()?.cloned();
        Ok((stdout, output))
    });
    let (stdout, output) = match exited.await {
        Ok(exited) => exited.map_err(failed)?,
        Err(panic) => return Err(failed(std::io::Error::other(panic))),
    };
    group.0 = None;
    match output {
        Some(output) if output.status.success() => Ok(stdout),
        output => {
            let stderr = output.map(|output| output.stderr).unwrap_or_default();
            Err(BuildError::Failed { command, output: last_lines(&String::from_utf8_lossy(&stderr)) })
        }
    }
}

/// A process group that is terminated on drop.
struct ProcessGroup(Option<Pid>);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // The group may have exited already.
            let _ignored = kill_process_group(leader, Signal::TERM);
        }
    }
}

fn last_lines(output: &str) -> String {
    let lines: Vec<&str> = output.trim_end().lines().collect();
    lines[lines.len().saturating_sub(ERROR_LINES)..].join("\n")
}
