//! Nobody is told that nextest is done: a process of its own waits for its end and deletes the cluster.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use evictlab_runner::cluster::{self, Docker, StateDir};

/// The variable that makes this program a reaper; its value is the cluster.
pub const VARIABLE: &str = "EVICTLAB_REAP";

/// Starts the reaper of a cluster, out of reach of a terminal's Ctrl-C.
pub fn spawn(cluster: &str) -> std::io::Result<()> {
    let null = Stdio::null;
    Command::new(std::env::current_exe()?)
        .env(VARIABLE, cluster)
        .process_group(0)
        .stdin(null())
        .stdout(null())
        .stderr(null())
        .spawn()
        .map(drop)
}

/// Waits until the cluster's owner is gone, and deletes the cluster.
pub fn main(cluster: &str) -> ExitCode {
    let reap = || -> Result<(), String> {
        let state = StateDir::open().map_err(|error| error.to_string())?;
        while state.read(cluster).is_some_and(|record| record.owner.alive()) {
            std::thread::sleep(Duration::from_millis(500));
        }
        // Its owner may have died while it was being made: whoever makes it has the lock.
        let _made = state.lock(cluster).map_err(|error| error.to_string())?;
        let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
        runtime.block_on(async {
            let docker = Docker::connect().await.map_err(|error| error.to_string())?;
            cluster::delete(&docker, &state, cluster).await.map_err(|error| error.to_string())
        })
    };
    // What it cannot delete, `evictlab gc` finds by its record.
    reap().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
}
