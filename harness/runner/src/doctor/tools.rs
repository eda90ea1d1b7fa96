//! The commands that have to be on this machine.

use std::io::ErrorKind;

use super::{About, Check};
use crate::cluster::{OLDEST_KIND, kind_version};

/// The `kind` command.
pub async fn kind() -> Check {
    match kind_version().await {
        Ok(version) => Check::ok(About::Kind, format!("kind {version}, at least {OLDEST_KIND} is needed")),
        Err(error) => Check::error(About::Kind, &error),
    }
}

/// The `docker` command, which kind makes nodes with: it must be there and speak to the daemon of this id, if that is known.
pub async fn docker(daemon: Option<&str>) -> Check {
    let asked = tokio::task::spawn_blocking(|| {
        duct::cmd!("docker", "info", "--format", "{{.ID}}")
            .stdin_null()
            .stdout_capture()
            .stderr_capture()
            .unchecked()
            .run()
    });
    let said = match asked.await {
        Ok(Ok(said)) => said,
        Ok(Err(error)) if error.kind() == ErrorKind::NotFound => {
            return Check::fail(
                About::DockerCommand,
                "the command `docker` is not on the PATH, and kind makes nodes with it",
                "Install it: https://docs.docker.com/engine/install/",
            );
        }
        Ok(Err(error)) => return broken(&error.to_string()),
        Err(panic) => return broken(&panic.to_string()),
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    let id = text(&said.stdout);
    match (said.status.success() && !id.is_empty(), daemon) {
        (false, _) => broken(text(&said.stderr).lines().last().unwrap_or("it says nothing")),
        (true, daemon) => same(&id, daemon),
    }
}

fn broken(why: &str) -> Check {
    Check::fail(
        About::DockerCommand,
        format!("the command `docker` reaches no daemon: {why}"),
        "`docker context ls` shows which daemon it is meant to speak to; `docker info` must work.",
    )
}

fn same(id: &str, daemon: Option<&str>) -> Check {
    match daemon {
        None => Check::ok(About::DockerCommand, "it reaches a daemon"),
        Some(daemon) if daemon == id => Check::ok(About::DockerCommand, "it speaks to the same daemon"),
        Some(_) => Check::fail(
            About::DockerCommand,
            "the command `docker` speaks to another daemon than evictlab: kind would make its nodes there",
            "Set DOCKER_HOST to the endpoint that `docker context inspect` shows: both follow it.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::State;

    #[test]
    fn another_daemon_is_no_good() {
        for (daemon, state) in
            [(Some("ONTV:5DK6"), State::Ok), (Some("AAAA:BBBB"), State::Fail), (None, State::Ok)]
        {
            assert_eq!(same("ONTV:5DK6", daemon).state, state, "{daemon:?}");
        }
    }
}
