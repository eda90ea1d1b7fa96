//! Commands with a time limit.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Output;
use std::time::Duration;

use duct::Expression;
use rustix::process::{Pid, Signal, kill_process_group};

/// Maximum time for a killed command to close its output.
const REAP_TIMEOUT: Duration = Duration::from_secs(1);

/// Runs a command and returns its result; `None` if it has not ended within `timeout`. Then the
/// command and its children are killed and waited for, so that no zombie remains.
///
/// The command has its own process group: Ctrl-C in a terminal does not reach it.
///
/// # Errors
/// The command cannot be started. An exit status other than 0 is an error unless the expression is
/// [`Expression::unchecked`].
pub fn output_within(command: &Expression, timeout: Duration) -> io::Result<Option<Output>> {
    let command = command.before_spawn(|command| {
        command.process_group(0);
        Ok(())
    });
    let running = command.start()?;
    if let Some(output) = running.wait_timeout(timeout)? {
        return Ok(Some(output.clone()));
    }
    for group in running.pids().into_iter().filter_map(|pid| Pid::from_raw(i32::try_from(pid).ok()?)) {
        // The group may have ended already.
        let _ignored = kill_process_group(group, Signal::KILL);
    }
    // The status of the signal is an error unless the expression is unchecked. A process that has
    // left the group may keep the output open.
    let _ignored = running.wait_timeout(REAP_TIMEOUT);
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;

    use super::*;

    #[test]
    fn a_command_that_is_too_slow_is_killed_with_its_children_and_reaped() {
        let folder = tempfile::tempdir().unwrap();
        let pids = folder.path().join("pids");
        // The child keeps the output open.
        let script = format!("sleep 600 & echo $$ $! > {}; wait", pids.display());
        let command = duct::cmd!("sh", "-c", script).stdout_capture();
        let mut ids = String::new();
        while ids.split_whitespace().count() < 2 {
            assert!(output_within(&command, Duration::from_millis(200)).unwrap().is_none());
            ids = std::fs::read_to_string(&pids).unwrap_or_default();
        }
        let [parent, child] = ids.split_whitespace().collect::<Vec<_>>().try_into().unwrap();
        let state = |pid: &str| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            stat.rsplit_once(") ")?.1.chars().next()
        };
        assert_eq!(state(parent), None, "a zombie has the state Z");
        // The init process reaps the child. Until the kernel delivers the signal, it still runs.
        let has_ended = || matches!(state(child), None | Some('Z'));
        let ended = (0..3000).any(|_| {
            has_ended() || {
                sleep(Duration::from_millis(10));
                false
            }
        });
        assert!(ended, "{:?}", state(child));
    }

    #[test]
    fn the_output_of_a_command_that_ends_in_time_is_returned() {
        let command = duct::cmd!("sh", "-c", "echo done; exit 3").stdout_capture().unchecked();
        let output = output_within(&command, Duration::from_secs(60)).unwrap().unwrap();
        assert_eq!((output.stdout.as_slice(), output.status.code()), (&b"done\n"[..], Some(3)));
    }
}
