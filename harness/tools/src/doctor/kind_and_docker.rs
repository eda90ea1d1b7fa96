//! Checks of the commands that kind clusters need.

use std::io::ErrorKind;
use std::process::Output;
use std::time::Duration;

use super::check::{Check, CheckSubject};
use evictlab_cluster::{OLDEST_KIND, kind_version, output_within};

/// Maximum time for `docker info`.
const DOCKER_TIMEOUT: Duration = Duration::from_secs(10);

/// Checks the `kind` command.
pub(crate) async fn kind() -> Check {
    match kind_version().await {
        Ok(version) => {
            Check::ok(CheckSubject::Kind, format!("kind {version}, at least {OLDEST_KIND} required"))
        }
        Err(error) => Check::error(CheckSubject::Kind, &error),
    }
}

/// Checks the `docker` command, with which kind creates nodes: it must be installed and use the
/// daemon with this ID, if the ID is known.
pub(crate) async fn docker(daemon: Option<&str>) -> Check {
    let output = match tokio::task::spawn_blocking(|| docker_info(DOCKER_TIMEOUT)).await {
        Ok(Ok(Some(output))) => output,
        Ok(Ok(None)) => {
            return unreachable_daemon(&format!("no answer within {} s", DOCKER_TIMEOUT.as_secs()));
        }
        Ok(Err(error)) if error.kind() == ErrorKind::NotFound => {
            return Check::fail(
                CheckSubject::DockerCommand,
                "the command `docker`, which kind uses, is not on the PATH",
                "Install Docker: https://docs.docker.com/engine/install/",
            );
        }
        Ok(Err(error)) => return unreachable_daemon(&error.to_string()),
        Err(panic) => return unreachable_daemon(&panic.to_string()),
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    let id = text(&output.stdout);
    match (output.status.success() && !id.is_empty(), daemon) {
        (false, _) => unreachable_daemon(text(&output.stderr).lines().last().unwrap_or("no error message")),
        (true, daemon) => compare_daemons(&id, daemon),
    }
}

/// Runs `docker info`; `None` if it does not end in time.
fn docker_info(timeout: Duration) -> std::io::Result<Option<Output>> {
    let command = duct::cmd!("docker", "info", "--format", "{{.ID}}").stdin_null();
    output_within(&command.stdout_capture().stderr_capture().unchecked(), timeout)
}

fn unreachable_daemon(reason: &str) -> Check {
    Check::fail(
        CheckSubject::DockerCommand,
        format!("the command `docker` does not reach a daemon: {reason}"),
        "Check the daemon address with `docker context ls`; `docker info` must work.",
    )
}

fn compare_daemons(id: &str, daemon: Option<&str>) -> Check {
    match daemon {
        None => Check::ok(CheckSubject::DockerCommand, "connected to a daemon"),
        Some(daemon) if daemon == id => {
            Check::ok(CheckSubject::DockerCommand, "connected to the same daemon")
        }
        Some(_) => Check::fail(
            CheckSubject::DockerCommand,
            "the command `docker` uses another daemon than evictlab: kind would create its nodes there",
            "Set DOCKER_HOST to the endpoint from `docker context inspect`: both use it.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::check::CheckState;

    #[test]
    fn rejects_another_daemon() {
        for (daemon, state) in [
            (Some("ONTV:5DK6"), CheckState::Ok),
            (Some("AAAA:BBBB"), CheckState::Fail),
            (None, CheckState::Ok),
        ] {
            assert_eq!(compare_daemons("ONTV:5DK6", daemon).state, state, "{daemon:?}");
        }
    }
}
