//! Duration and memory of a process.

use std::fs;
use std::io;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use evictlab_rules::quantity::KIB;

/// Time between two samples of the memory of a process.
const MEMORY_SAMPLE_INTERVAL: Duration = Duration::from_millis(5);

/// Duration and memory of a process that succeeded.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProcessUsage {
    pub(super) seconds: f64,
    /// Peak memory in bytes; `None` on systems without `/proc`.
    pub(super) peak: Option<u64>,
}

/// Runs a command without input and output to its end.
///
/// # Errors
/// The command cannot be started, or fails.
pub(super) fn measure(command: &mut Command) -> io::Result<ProcessUsage> {
    let began = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let mut maximum = None;
    let status = loop {
        maximum = maximum.max(peak(&child));
        if let Some(status) = child.try_wait()? {
            break status;
        }
        sleep(MEMORY_SAMPLE_INTERVAL);
    };
    match status.success() {
        true => Ok(ProcessUsage { seconds: began.elapsed().as_secs_f64(), peak: maximum }),
        false => {
            let arguments = command.get_args().map(|argument| argument.to_string_lossy());
            let arguments = arguments.collect::<Vec<_>>().join(" ");
            Err(io::Error::other(format!("`evictlab {arguments}` exited with {status}")))
        }
    }
}

/// Returns the peak memory of a process in bytes (`VmHWM`, `proc_pid_status(5)`).
pub(super) fn peak(child: &Child) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * KIB)
}

/// A process that is killed on drop.
pub(super) struct Background(pub(super) Child);

impl Drop for Background {
    fn drop(&mut self) {
        // The process may have ended.
        let _ignored = self.0.kill();
        let _status = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_commands_are_not_measured() {
        let own = std::env::current_exe().unwrap();
        assert!(measure(Command::new(&own).arg("--list")).unwrap().seconds > 0.0);
        let error = measure(Command::new(&own).args(["--no-such-flag", "1"])).unwrap_err().to_string();
        assert!(error.starts_with("`evictlab --no-such-flag 1` exited with "), "{error}");
    }
}
