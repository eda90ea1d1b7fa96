//! Running cargo.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process_group};

use super::build::{BuildError, Words};

/// A static program at a fixed address: nothing is left to be put right when it starts, once for every child of `pids`. Separated as cargo
/// wants it.
const FLAGS: &str = "-Ctarget-feature=+crt-static\x1f-Crelocation-model=static";

/// Runs cargo in a folder, and returns what it printed on stdout. It runs in a process group of its own, so that a terminal's Ctrl-C
/// reaches only us, and is stopped with all that it started when nobody waits for it any more.
pub(super) async fn cargo(tree: &Path, arguments: &[&str], words: Words) -> Result<String, BuildError> {
    let command = format!("cargo {}", arguments.join(" "));
    let failed = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::NotFound => BuildError::NoCargo,
        _ => BuildError::Io { doing: format!("running {command}"), source },
    };
    // Cargo sets this for what it runs: the same cargo then.
    let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut running = duct::cmd(program, arguments)
        .dir(tree)
        .env("CARGO_ENCODED_RUSTFLAGS", FLAGS)
        .stdin_null()
        .unchecked()
        .before_spawn(|command| {
            command.process_group(0);
            Ok(())
        });
    if words == Words::Kept {
        running = running.stderr_capture();
    }
    let mut reader = running.reader().map_err(failed)?;
    let mut group = Group(reader.pids().first().and_then(|pid| Pid::from_raw(*pid as i32)));
    let ended = tokio::task::spawn_blocking(move || -> std::io::Result<_> {
        let mut said = String::new();
        reader.read_to_string(&mut said)?;
        let output = reader.try_wait()?.cloned();
        Ok((said, output))
    });
    let (said, output) = match ended.await {
        Ok(ended) => ended.map_err(failed)?,
        Err(panic) => return Err(failed(std::io::Error::other(panic))),
    };
    group.0 = None;
    match output {
        Some(output) if output.status.success() => Ok(said),
        output => {
            let stderr = output.map(|output| output.stderr).unwrap_or_default();
            Err(BuildError::Failed { command, output: last(&String::from_utf8_lossy(&stderr)) })
        }
    }
}

/// A process group that ends with this.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // It may have ended by itself.
            let _gone = kill_process_group(leader, Signal::TERM);
        }
    }
}

/// The last lines of an output.
fn last(output: &str) -> String {
    let lines: Vec<&str> = output.trim_end().lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}
