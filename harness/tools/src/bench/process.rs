//! Duration and memory of a process.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use evictlab_rules::quantity::KIB;
use tokio_util::sync::CancellationToken;

/// Time between two samples of the memory of a process.
const MEMORY_SAMPLE_INTERVAL: Duration = Duration::from_millis(5);

/// The program whose commands are measured.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredProgram<'a> {
    /// Path of the program.
    pub program: &'a Path,
    /// Ends a measurement and its processes when it is cancelled.
    pub stop: &'a CancellationToken,
}

impl MeasuredProgram<'_> {
    /// Returns a command of the program.
    pub(super) fn command(&self) -> Command {
        Command::new(self.program)
    }

    /// Waits, until the measurement is interrupted at the latest.
    ///
    /// # Errors
    /// The measurement is interrupted.
    pub(super) fn wait(&self, duration: Duration) -> io::Result<()> {
        const STEP: Duration = Duration::from_millis(50);
        let began = Instant::now();
        loop {
            if self.stop.is_cancelled() {
                return Err(ErrorKind::Interrupted.into());
            }
            let rest = duration.saturating_sub(began.elapsed());
            if rest.is_zero() {
                return Ok(());
            }
            sleep(rest.min(STEP));
        }
    }

    /// Runs a command without input and output to its end.
    ///
    /// # Errors
    /// The command cannot be started or fails, or the measurement is interrupted, which kills it.
    pub(super) fn measure(&self, command: &mut Command) -> io::Result<ProcessUsage> {
        self.wait(Duration::ZERO)?;
        let began = Instant::now();
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let mut child = Background(child);
        let mut maximum = None;
        let status = loop {
            maximum = maximum.max(peak(&child.0));
            if let Some(status) = child.0.try_wait()? {
                break status;
            }
            self.wait(MEMORY_SAMPLE_INTERVAL)?;
        };
        if status.success() {
            Ok(ProcessUsage { seconds: began.elapsed().as_secs_f64(), peak: maximum })
        } else {
            let arguments = command.get_args().map(|argument| argument.to_string_lossy());
            let arguments = arguments.collect::<Vec<_>>().join(" ");
            Err(io::Error::other(format!("`evictlab {arguments}` exited with {status}")))
        }
    }
}

/// Duration and memory of a process that succeeded.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProcessUsage {
    pub(super) seconds: f64,
    /// Peak memory in bytes; `None` on systems without `/proc`.
    pub(super) peak: Option<u64>,
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
        let measured = MeasuredProgram { program: &own, stop: &CancellationToken::new() };
        assert!(measured.measure(measured.command().arg("--list")).unwrap().seconds > 0.0);
        let failed = measured.measure(measured.command().args(["--no-such-flag", "1"]));
        let error = failed.unwrap_err().to_string();
        assert!(error.starts_with("`evictlab --no-such-flag 1` exited with "), "{error}");
    }

    #[test]
    fn an_interrupt_ends_the_process() {
        let stop = CancellationToken::new();
        let measured = MeasuredProgram { program: Path::new("sleep"), stop: &stop };
        let later = stop.clone();
        let interrupt = std::thread::spawn(move || {
            sleep(Duration::from_millis(100));
            later.cancel();
        });
        let error = measured.measure(measured.command().arg("600")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Interrupted);
        interrupt.join().unwrap();
        // Nothing is started after it.
        let missing = MeasuredProgram { program: Path::new("/no such program"), stop: &stop };
        assert_eq!(missing.measure(&mut missing.command()).unwrap_err().kind(), ErrorKind::Interrupted);
    }
}
