//! The `kind` command: it creates and deletes clusters, and nothing else is asked of it.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::makers;

/// The oldest kind that writes kubeadm v1beta4 for Kubernetes 1.36 and merges map-style patches into it.
pub const OLDEST: semver::Version = semver::Version::new(0, 32, 0);

/// `kind` could not do its part.
#[derive(Debug, thiserror::Error)]
pub enum KindError {
    /// Not on the PATH.
    #[error(
        "the command `kind` is not on the PATH\nInstall it: https://kind.sigs.k8s.io/docs/user/quick-start/"
    )]
    Missing,
    /// Too old.
    #[error(
        "kind {found} is too old, at least {OLDEST} is needed\nInstall a newer one: https://kind.sigs.k8s.io/docs/user/quick-start/"
    )]
    TooOld {
        /// What is installed.
        found: semver::Version,
    },
    /// Its version could not be read.
    #[error("`kind version` answers {0:?}, and no version can be read from that")]
    NoVersion(String),
    /// It failed.
    #[error("`kind {command}` failed:\n{output}")]
    Failed {
        /// Its arguments.
        command: String,
        /// The last lines it printed.
        output: String,
    },
    /// It could not be started or read.
    #[error("`kind {command}` could not be run: {source}")]
    Run {
        /// Its arguments.
        command: String,
        /// Why.
        source: std::io::Error,
    },
    /// A cluster of this name is there, and is not ours.
    #[error("there is a kind cluster of that name already")]
    Taken,
    /// It was stopped by us.
    #[error("interrupted")]
    Interrupted,
}

impl KindError {
    /// Whether kind or kubeadm gave up on a slow host: kind waits 30 s for systemd's last words, and kubeadm before v1beta4 a minute for the API
    /// server's answers and some minutes for a kubelet. None of that can be set.
    pub fn too_slow(&self) -> bool {
        const GAVE_UP: [&str; 3] =
            ["could not find a log line", "timed out waiting for the condition", "context deadline exceeded"];
        matches!(self, Self::Failed { output, .. } if GAVE_UP.iter().any(|words| output.contains(words)))
    }
}

/// The installed kind's version, if it is new enough.
pub async fn version() -> Result<semver::Version, KindError> {
    let said = run(&["version"], None, &CancellationToken::new(), |_| {}).await?;
    let found = said
        .split_whitespace()
        .find_map(|word| semver::Version::parse(word.strip_prefix('v')?).ok())
        .ok_or_else(|| KindError::NoVersion(said.trim().to_owned()))?;
    match found < OLDEST {
        true => Err(KindError::TooOld { found }),
        false => Ok(found),
    }
}

/// Creates a cluster; returns when kind does, which says nothing about its readiness. `progress` gets a line a step.
pub async fn create(
    name: &str,
    config: &Path,
    kubeconfig: &Path,
    cancel: &CancellationToken,
    progress: impl FnMut(&str),
) -> Result<(), KindError> {
    let (config, kubeconfig) = (config.to_string_lossy(), kubeconfig.to_string_lossy());
    let arguments =
        ["create", "cluster", "--name", name, "--config", &config, "--kubeconfig", &kubeconfig, "--retain"];
    match run(&arguments, Some(name), cancel, progress).await {
        Err(KindError::Failed { output, .. })
            if output.contains("already exist for a cluster with the name") =>
        {
            Err(KindError::Taken)
        }
        other => other.map(drop),
    }
}

/// Deletes a cluster; one that is not there is no error.
pub async fn delete(name: &str, kubeconfig: &Path) -> Result<(), KindError> {
    let kubeconfig = kubeconfig.to_string_lossy();
    let arguments = ["delete", "cluster", "--name", name, "--kubeconfig", &kubeconfig];
    run(&arguments, Some(name), &CancellationToken::new(), |_| {}).await.map(drop)
}

/// Runs kind in a process group of its own, so that a terminal's Ctrl-C reaches only us. Cancelled, kind alone is stopped: a `docker run`
/// that is cut off leaves Docker at work on a container that nobody can see yet. [`super::delete`] waits for kind's children, which carry
/// the mark of the `cluster` that they are at work on.
async fn run(
    arguments: &[&str],
    cluster: Option<&str>,
    cancel: &CancellationToken,
    mut progress: impl FnMut(&str),
) -> Result<String, KindError> {
    let command = arguments.join(" ");
    let failed = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::NotFound => KindError::Missing,
        _ => KindError::Run { command: command.clone(), source },
    };
    let reader = duct::cmd("kind", arguments)
        .stdin_null()
        .stderr_to_stdout()
        .unchecked()
        .before_spawn({
            let cluster = cluster.map(str::to_owned);
            move |command| {
                command.process_group(0);
                command.envs(cluster.iter().map(|cluster| (makers::VARIABLE, cluster)));
                Ok(())
            }
        })
        .reader()
        .map_err(failed)?;
    let kind = reader.pids().first().and_then(|pid| Pid::from_raw(*pid as i32));
    let (lines, mut received) = mpsc::unbounded_channel();
    let ended = tokio::task::spawn_blocking(move || -> std::io::Result<bool> {
        let mut buffered = BufReader::new(reader);
        let mut line = Vec::new();
        while buffered.read_until(b'\n', &mut line)? > 0 {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            // The run may have stopped listening; kind is read to its end all the same.
            let _unheard = lines.send(text);
            line.clear();
        }
        Ok(buffered.into_inner().try_wait()?.is_some_and(|output| output.status.success()))
    });
    let mut printed = Vec::new();
    loop {
        tokio::select! {
            biased;
            line = received.recv() => match line {
                Some(line) => {
                    // " • Preparing nodes 📦  ..." begins a step; everything else is an ending or an advertisement.
                    if let Some(step) = line.trim_start().strip_prefix("• ") {
                        progress(step.trim_end_matches(|c: char| !c.is_ascii_alphanumeric() && c != ')'));
                    }
                    printed.push(line);
                }
                None => break,
            },
            () = cancel.cancelled() => {
                stop(kind, ended).await;
                return Err(KindError::Interrupted);
            }
        }
    }
    let success = match ended.await {
        Ok(ended) => ended.map_err(failed)?,
        Err(panic) => return Err(failed(std::io::Error::other(panic))),
    };
    match success {
        true => Ok(printed.join("\n")),
        false => Err(KindError::Failed { command, output: told(&printed) }),
    }
}

/// What of kind's output says why it failed: its error, and the last lines but for Go's stack.
fn told(printed: &[String]) -> String {
    let stack = |line: &str| {
        line.starts_with('\t') || line.contains(".go:") || line.contains("k8s.io/kubernetes/cmd")
    };
    let plain: Vec<&str> = printed.iter().map(String::as_str).filter(|line| !stack(line)).collect();
    let error = plain.iter().position(|line| line.starts_with("ERROR"));
    let tail = plain.len().saturating_sub(20);
    let head = error.filter(|at| *at < tail).map(|at| plain[at]);
    head.into_iter().chain(plain[tail..].iter().copied()).collect::<Vec<_>>().join("\n")
}

/// Ends kind: politely, then by force.
async fn stop(kind: Option<Pid>, ended: tokio::task::JoinHandle<std::io::Result<bool>>) {
    let mut ended = ended;
    for (signal, patience) in
        [(Signal::TERM, Duration::from_secs(5)), (Signal::KILL, Duration::from_secs(10))]
    {
        if let Some(kind) = kind {
            // It may have ended by itself.
            let _gone = kill_process(kind, signal);
        }
        if tokio::time::timeout(patience, &mut ended).await.is_ok() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_is_told_and_not_the_stack() {
        let mut printed = vec!["Creating cluster".to_owned(), "ERROR: failed to join node".to_owned()];
        printed.extend((0..30).map(|line| format!("I1121 step {line}")));
        printed.push("error execution phase kubelet-start: timed out waiting for the condition".to_owned());
        printed.extend((0..40).map(|_| "\tk8s.io/kubernetes/cmd/kubeadm/app/x.go:1".to_owned()));
        let output = told(&printed);
        assert!(output.starts_with("ERROR: failed to join node\nI1121 step 11\n"), "{output}");
        assert!(output.ends_with("timed out waiting for the condition"), "{output}");
        assert!(KindError::Failed { command: String::new(), output }.too_slow());
    }
}
