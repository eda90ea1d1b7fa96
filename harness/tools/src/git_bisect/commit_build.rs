//! The build of a commit: the command of the user, in the worktree.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use duct::Handle;
use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio_util::sync::CancellationToken;

use super::repository::in_directory;

/// Interval at which a build is checked for its end and for an interrupt.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Time for an interrupted build to end before its processes are killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Number of bytes at the end of a build log that are searched for its last line.
const LOG_TAIL: u64 = 4096;

/// Build command of commits.
#[derive(Clone, Debug)]
pub struct Build {
    /// Command for `sh`, which runs at the top of the worktree.
    pub command: String,
    /// Path of the kubelet after the build, relative to the worktree.
    pub kubelet: PathBuf,
}

/// Result of a build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildOutcome {
    /// The kubelet that was built.
    Built(PathBuf),
    /// No kubelet was built, with the reason.
    NotBuilt(String),
    /// The build was interrupted.
    Interrupted,
}

/// The log of a build, locked by its processes.
#[derive(Debug)]
pub struct BuildLog {
    file: File,
}

impl BuildLog {
    /// Opens an empty log; `None` after an interrupt. Blocks: a build of a killed evictlab holds
    /// the lock on its log until its end, and changes the worktree until then.
    ///
    /// # Errors
    /// The log cannot be written, or is a symbolic link.
    pub fn open(path: &Path, stop: &CancellationToken) -> io::Result<Option<Self>> {
        // The run directory may be another user's: a link could lead to a file of the user.
        let no_link = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
        let file =
            OpenOptions::new().create(true).append(true).read(true).custom_flags(no_link).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the log is not a regular file"));
        }
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if stop.is_cancelled() => return Ok(None),
                Err(TryLockError::WouldBlock) => thread::sleep(CHECK_INTERVAL),
            }
        }
        file.set_len(0)?;
        Ok(Some(Self { file }))
    }

    /// Returns the last line that is not empty.
    fn last_line(&mut self) -> io::Result<String> {
        let length = self.file.metadata()?.len();
        self.file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL)))?;
        let mut tail = Vec::new();
        self.file.read_to_end(&mut tail)?;
        let tail = String::from_utf8_lossy(&tail);
        let last = tail.lines().rfind(|line| !line.trim().is_empty());
        Ok(last.map_or_else(|| "no output".to_owned(), |line| line.trim().to_owned()))
    }
}

impl Build {
    /// Builds the commit that is checked out in `worktree`. Blocks.
    ///
    /// # Errors
    /// The command cannot be started.
    pub fn run(
        &self,
        worktree: &Path,
        mut log: BuildLog,
        stop: &CancellationToken,
    ) -> io::Result<BuildOutcome> {
        let kubelet = worktree.join(&self.kubelet);
        // The kubelet of another commit must not count as the result of this build.
        remove_if_exists(&kubelet)?;
        let command = in_directory(duct::cmd!("sh", "-c", &self.command), worktree);
        // The processes of the build inherit the lock with the file.
        let command = command.stdin_null().stderr_to_stdout().stdout_file(log.file.try_clone()?).unchecked();
        let build = command.start()?;
        let Some(status) = wait(&build, stop)? else { return Ok(BuildOutcome::Interrupted) };
        if !status.success() {
            let last = log.last_line()?;
            return Ok(BuildOutcome::NotBuilt(format!("the build ended with {status}: {last}")));
        }
        Ok(match problem_of_kubelet(&kubelet) {
            None => BuildOutcome::Built(kubelet),
            Some(problem) => BuildOutcome::NotBuilt(format!(
                "the build wrote no kubelet: {}{problem}",
                self.kubelet.display()
            )),
        })
    }
}

/// Returns why a file is not a kubelet, after its name.
fn problem_of_kubelet(path: &Path) -> Option<String> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(" does not exist".to_owned()),
        Err(error) => Some(format!(": {error}")),
        Ok(found) if !found.is_file() => Some(" is not a file".to_owned()),
        Ok(found) if found.permissions().mode() & 0o111 == 0 => Some(" is not executable".to_owned()),
        Ok(_) => None,
    }
}

fn remove_if_exists(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Waits for the end of a build; `None` if it was interrupted, after the end of its processes.
fn wait(build: &Handle, stop: &CancellationToken) -> io::Result<Option<std::process::ExitStatus>> {
    let group = build.pids().first().and_then(|pid| Pid::from_raw(*pid as i32));
    let signal = |signal| {
        if let Some(group) = group {
            // The group may have ended already.
            let _ignored = kill_process_group(group, signal);
        }
    };
    loop {
        if let Some(output) = build.wait_timeout(CHECK_INTERVAL)? {
            return Ok(Some(output.status));
        }
        if stop.is_cancelled() {
            break;
        }
    }
    signal(Signal::TERM);
    if build.wait_timeout(STOP_TIMEOUT)?.is_none() {
        signal(Signal::KILL);
        build.wait()?;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn build(command: &str) -> (tempfile::TempDir, io::Result<BuildOutcome>) {
        let worktree = tempfile::tempdir().unwrap();
        fs::write(worktree.path().join("kubelet"), "of another commit").unwrap();
        let build = Build { command: command.to_owned(), kubelet: "kubelet".into() };
        let stop = CancellationToken::new();
        let log = BuildLog::open(&worktree.path().join("log"), &stop).unwrap().unwrap();
        let outcome = build.run(worktree.path(), log, &stop);
        (worktree, outcome)
    }

    #[test]
    fn a_build_without_a_new_executable_kubelet_is_not_built() {
        let (worktree, outcome) = build("echo new > kubelet && chmod +x kubelet");
        assert_eq!(outcome.unwrap(), BuildOutcome::Built(worktree.path().join("kubelet")));
        for (command, reason) in [
            (
                "echo compiling; echo 'undefined: x' >&2; exit 2",
                "the build ended with exit status: 2: undefined: x",
            ),
            ("exit 1", "the build ended with exit status: 1: no output"),
            ("true", "the build wrote no kubelet: kubelet does not exist"),
            ("echo new > kubelet", "the build wrote no kubelet: kubelet is not executable"),
            ("mkdir kubelet", "the build wrote no kubelet: kubelet is not a file"),
        ] {
            assert_eq!(build(command).1.unwrap(), BuildOutcome::NotBuilt(reason.to_owned()), "{command}");
        }
    }

    #[test]
    fn a_log_that_is_a_link_is_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("mine"), "text").unwrap();
        std::os::unix::fs::symlink("mine", path("log")).unwrap();
        assert!(BuildLog::open(&path("log"), &CancellationToken::new()).is_err());
        assert_eq!(fs::read_to_string(path("mine")).unwrap(), "text");
    }

    #[test]
    fn an_interrupted_build_is_stopped_with_its_children() {
        let worktree = tempfile::tempdir().unwrap();
        let stop = CancellationToken::new();
        let command = "sleep 600 & touch started; wait";
        let build = Build { command: command.to_owned(), kubelet: "kubelet".into() };
        let log = BuildLog::open(&worktree.path().join("log"), &stop).unwrap().unwrap();
        let (dir, token) = (worktree.path().to_owned(), stop.clone());
        let running = thread::spawn(move || build.run(&dir, log, &token).unwrap());
        while !worktree.path().join("started").exists() {
            thread::sleep(CHECK_INTERVAL);
        }
        stop.cancel();
        assert_eq!(running.join().unwrap(), BuildOutcome::Interrupted);
        // Each process of the build has the lock on the log until its end.
        let log = File::open(worktree.path().join("log")).unwrap();
        let began = Instant::now();
        while log.try_lock().is_err() {
            assert!(began.elapsed() < Duration::from_secs(120), "a child of the build still runs");
            thread::sleep(CHECK_INTERVAL);
        }
    }
}
