//! Runs the `kind` command to create and delete clusters.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use duct::ReaderHandle;
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::kind_processes::{self, KindProcesses};
use super::record::ClusterRecord;
use crate::error::{KindError, OLDEST_KIND};

/// Maximum number of lines of the output that are kept.
const MAX_LINES: usize = 4000;
/// Maximum number of lines that wait to be kept.
const MAX_WAITING_LINES: usize = 100;
/// Maximum times for the output of kind to end after SIGTERM, and after SIGKILL.
const STOP_TIMEOUTS: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(10)];

/// Version of the installed kind.
///
/// # Errors
/// kind is not installed, or older than [`OLDEST_KIND`].
pub async fn version() -> Result<semver::Version, KindError> {
    let output = run(&["version"], None, &CancellationToken::new(), |_| {}).await?;
    let found = output
        .split_whitespace()
        .find_map(|word| semver::Version::parse(word.strip_prefix('v')?).ok())
        .ok_or_else(|| KindError::UnknownVersion(output.trim().to_owned()))?;
    if found < OLDEST_KIND { Err(KindError::TooOld { found }) } else { Ok(found) }
}

/// Creates a cluster; returns when kind exits, before the nodes are ready. `progress` receives one
/// line per step.
pub(super) async fn create(
    record: &ClusterRecord,
    config: &Path,
    kubeconfig: &Path,
    cancel: &CancellationToken,
    progress: impl FnMut(&str),
) -> Result<(), KindError> {
    let (config, kubeconfig) = (config.to_string_lossy(), kubeconfig.to_string_lossy());
    let name = &record.cluster;
    let arguments =
        ["create", "cluster", "--name", name, "--config", &config, "--kubeconfig", &kubeconfig, "--retain"];
    match run(&arguments, Some(KindProcesses::of_record(record)), cancel, progress).await {
        Err(KindError::Failed { output, .. })
            if output.contains("already exist for a cluster with the name") =>
        {
            Err(KindError::NameTaken)
        }
        other => other.map(drop),
    }
}

/// Deletes a cluster. A cluster that does not exist is not an error.
pub(super) async fn delete(
    name: &str,
    kubeconfig: &Path,
    processes: &KindProcesses,
) -> Result<(), KindError> {
    let kubeconfig = kubeconfig.to_string_lossy();
    let arguments = ["delete", "cluster", "--name", name, "--kubeconfig", &kubeconfig];
    run(&arguments, Some(processes.clone()), &CancellationToken::new(), |_| {}).await.map(drop)
}

/// Runs kind and returns its output.
///
/// kind runs in its own process group, so that Ctrl-C in a terminal only reaches evictlab. On
/// cancellation only kind itself is stopped: Docker would continue the work of an interrupted
/// `docker run` on a container that is not listed yet. [`super::delete`] waits for the children of
/// kind, which it finds by the environment variable of `processes`.
async fn run(
    arguments: &[&str],
    processes: Option<KindProcesses>,
    cancel: &CancellationToken,
    progress: impl FnMut(&str),
) -> Result<String, KindError> {
    let command = arguments.join(" ");
    let failed = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::NotFound => KindError::Missing,
        _ => KindError::Run { command: command.clone(), source },
    };
    let expression = duct::cmd("kind", arguments).stdin_null().stderr_to_stdout().unchecked();
    let expression = expression.before_spawn(move |command| {
        command.process_group(0);
        command.envs(processes.iter().map(|processes| (kind_processes::VARIABLE, &processes.value)));
        Ok(())
    });
    let kind = Arc::new(expression.reader().map_err(failed)?);
    let (lines, mut received) = mpsc::channel(MAX_WAITING_LINES);
    let exited = tokio::task::spawn_blocking({
        let kind = kind.clone();
        move || send_lines(&kind, &lines)
    });
    let printed = tokio::select! {
        biased;
        printed = collect_lines(&mut received, progress) => printed,
        () = cancel.cancelled() => {
            // The thread must not wait for lines to be received.
            received.close();
            stop(&kind, exited, STOP_TIMEOUTS).await;
            return Err(KindError::Interrupted);
        }
    };
    let success = match exited.await {
        Ok(exited) => exited.map_err(failed)?,
        Err(panic) => return Err(failed(std::io::Error::other(panic))),
    };
    if success {
        Ok(printed.join("\n"))
    } else {
        Err(KindError::Failed { command, output: error_lines(&printed) })
    }
}

/// Receives lines until kind closes its output, and reports the steps among them.
async fn collect_lines(received: &mut mpsc::Receiver<String>, mut progress: impl FnMut(&str)) -> Vec<String> {
    let mut printed = Vec::new();
    while let Some(line) = received.recv().await {
        // " • Preparing nodes 📦  ..." starts a step; other lines are results and hints.
        if let Some(step) = line.trim_start().strip_prefix("• ") {
            progress(step.trim_end_matches(|c: char| !c.is_ascii_alphanumeric() && c != ')'));
        }
        keep_line(&mut printed, line);
    }
    printed
}

/// Keeps a line. Of a long output, the first and the last lines are kept, with a note between them.
fn keep_line(printed: &mut Vec<String>, line: String) {
    const HALF: usize = MAX_LINES / 2;
    if printed.len() == MAX_LINES {
        printed.drain(HALF..HALF + MAX_LINES / 4);
        printed.insert(HALF, "(some lines were not kept)".to_owned());
    }
    printed.push(line);
}

/// The error line of kind's output and its last 20 lines, without Go stack traces.
fn error_lines(printed: &[String]) -> String {
    let is_stack = |line: &str| {
        line.starts_with('\t') || line.contains(".go:") || line.contains("k8s.io/kubernetes/cmd")
    };
    let plain: Vec<&str> = printed.iter().map(String::as_str).filter(|line| !is_stack(line)).collect();
    let error = plain.iter().position(|line| line.starts_with("ERROR"));
    let tail = plain.len().saturating_sub(20);
    let head = error.filter(|at| *at < tail).map(|at| plain[at]);
    head.into_iter().chain(plain[tail..].iter().copied()).collect::<Vec<_>>().join("\n")
}

/// Sends the output of kind, line by line. Returns whether kind succeeded, when the output ends.
fn send_lines(kind: &ReaderHandle, lines: &mpsc::Sender<String>) -> std::io::Result<bool> {
    let mut buffered = BufReader::new(kind);
    let mut line = Vec::new();
    while buffered.read_until(b'\n', &mut line)? > 0 {
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        // After a cancellation the receiver is gone; the output is still read to its end.
        let _ignored = lines.blocking_send(text);
        line.clear();
    }
    Ok(kind.try_wait()?.is_some_and(|output| output.status.success()))
}

/// Stops kind: SIGTERM, then SIGKILL. Waits until its output ends, or for a time after each signal:
/// children of kind may keep the output open after its end. Kind itself is reaped in any case.
async fn stop(
    kind: &ReaderHandle,
    mut exited: JoinHandle<std::io::Result<bool>>,
    [after_term, after_kill]: [Duration; 2],
) {
    let pid = kind.pids().first().and_then(|pid| Pid::from_raw(i32::try_from(*pid).ok()?));
    for (signal, timeout) in [(Signal::TERM, after_term), (Signal::KILL, after_kill)] {
        // Reaps kind if it has exited. Its id may then be that of another process.
        let is_running = matches!(kind.try_wait(), Ok(None));
        if let Some(pid) = pid.filter(|_| is_running) {
            // kind may have exited since.
            let _ignored = kill_process(pid, signal);
        }
        if tokio::time::timeout(timeout, &mut exited).await.is_ok() {
            return;
        }
    }
    let _reaped = kind.try_wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_output_is_cut_in_the_middle_with_a_note() {
        let mut printed = Vec::new();
        (0..100_000).for_each(|line| keep_line(&mut printed, format!("line {line}")));
        assert!(printed.len() <= MAX_LINES);
        assert_eq!((&printed[0][..], &printed[printed.len() - 1][..]), ("line 0", "line 99999"));
        assert!(printed.contains(&"(some lines were not kept)".to_owned()));
    }

    /// `docker` commands of kind outlive it, and keep its output open.
    #[tokio::test]
    async fn a_stopped_kind_is_reaped_while_its_children_run() {
        let script = "trap '' TERM; sleep 60 & echo $!; while :; do sleep 1; done";
        let kind = Arc::new(duct::cmd!("sh", "-c", script).unchecked().reader().unwrap());
        let (lines, mut received) = mpsc::channel(MAX_WAITING_LINES);
        let reading = tokio::task::spawn_blocking({
            let kind = kind.clone();
            move || send_lines(&kind, &lines)
        });
        let child: i32 = received.recv().await.unwrap().parse().unwrap();
        received.close();
        stop(&kind, reading, [Duration::from_millis(100), Duration::from_secs(2)]).await;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", kind.pids()[0]));
        assert!(stat.is_err(), "it is a zombie: {stat:?}");
        kill_process(Pid::from_raw(child).unwrap(), Signal::KILL).unwrap();
    }

    #[test]
    fn errors_have_no_stack_traces() {
        let mut printed = vec!["Creating cluster".to_owned(), "ERROR: failed to join node".to_owned()];
        printed.extend((0..30).map(|line| format!("I1121 step {line}")));
        printed.push("error execution phase kubelet-start: timed out waiting for the condition".to_owned());
        printed.extend((0..40).map(|_| "\tk8s.io/kubernetes/cmd/kubeadm/app/x.go:1".to_owned()));
        let output = error_lines(&printed);
        assert!(output.starts_with("ERROR: failed to join node\nI1121 step 11\n"), "{output}");
        assert!(output.ends_with("timed out waiting for the condition"), "{output}");
        assert!(KindError::Failed { command: String::new(), output }.is_slow_host());
    }
}
