//! The reaper: a process that waits until nextest ends and then deletes its cluster. nextest does
//! not notify tests of its end.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use evictlab_cluster::{Docker, StateDir};

/// Environment variable that starts this program as a reaper; its value is the cluster.
pub(crate) const REAPER_VARIABLE: &str = "EVICTLAB_REAP";

/// Starts the reaper of a cluster in its own process group, so that Ctrl-C does not reach it.
pub(crate) fn spawn(cluster: &str) -> std::io::Result<()> {
    let null = Stdio::null;
    Command::new(std::env::current_exe()?)
        .env(REAPER_VARIABLE, cluster)
        .process_group(0)
        .stdin(null())
        .stdout(null())
        .stderr(null())
        .spawn()
        .map(drop)
}

/// Waits until the owner of the cluster is dead, and deletes the cluster.
pub(crate) fn main(cluster: &str) -> ExitCode {
    let delete = || -> Result<(), String> {
        let state = StateDir::open().map_err(|error| error.to_string())?;
        while state.read(cluster).is_some_and(|record| record.owner.is_alive()) {
            std::thread::sleep(Duration::from_millis(500));
        }
        // The process that creates the cluster holds its lock, also after the owner died.
        let _created = state.lock(cluster).map_err(|error| error.to_string())?;
        let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
        runtime.block_on(async {
            let docker = Docker::connect().await.map_err(|error| error.to_string())?;
            evictlab_cluster::delete(&docker, &state, cluster).await.map_err(|error| error.to_string())
        })
    };
    // `evictlab gc` finds a cluster that cannot be deleted, by its record.
    delete().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
}
