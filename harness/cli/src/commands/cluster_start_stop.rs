//! `evictlab cluster stop` and `evictlab cluster start`

use std::process::ExitCode;

use evictlab_cluster::{
    ClusterError, ClusterProgress, ClusterState, Docker, KnownCluster, ServedCluster, StateDir,
};
use evictlab_runner::Interrupt;

use super::cluster_lookup::{Found, find_cluster};
use super::serve_embedded::detach;
use crate::failure::Failure;
use crate::messages::{print_stderr, print_warning};
use crate::output::print;

/// Stops a cluster.
pub(super) async fn stop(name: &str, state: &StateDir) -> Result<ExitCode, Failure> {
    match find_cluster(state, name).await? {
        Found::Embedded(served) if served.stopped => {}
        Found::Embedded(served) => served.stop(state).await.map_err(Failure::infrastructure)?,
        Found::Kind(docker, found) => {
            check_usable(&found, "stop")?;
            evictlab_cluster::stop(&docker, state, name).await.map_err(Failure::infrastructure)?;
        }
    }
    print(format!("cluster {name} is stopped; start it: evictlab cluster start {name}"))?;
    Ok(ExitCode::SUCCESS)
}

/// Starts a stopped cluster.
pub(super) async fn start(name: &str, state: &StateDir) -> Result<ExitCode, Failure> {
    match find_cluster(state, name).await? {
        Found::Embedded(served) if served.stopped => start_server(&served, state).await,
        Found::Kind(docker, found) => {
            check_usable(&found, "start")?;
            // Also a running cluster: an interrupted start may have left it unfinished.
            start_nodes(&docker, state, name).await?;
            print_running(name, state)
        }
        Found::Embedded(_) => print_running(name, state),
    }
}

fn print_running(name: &str, state: &StateDir) -> Result<ExitCode, Failure> {
    print(format!("cluster {name} is ready; kubeconfig: {}", state.kubeconfig(name).display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Starts the server of an embedded cluster with the options of before.
async fn start_server(served: &ServedCluster, state: &StateDir) -> Result<ExitCode, Failure> {
    // The server writes a record of its own.
    served.forget(state);
    let started = detach(&served.cluster, &served.command).await;
    if started.is_err() {
        served.record_as_stopped(state).map_err(Failure::infrastructure)?;
    }
    started
}

/// Starts the nodes of a kind cluster.
async fn start_nodes(docker: &Docker, state: &StateDir, name: &str) -> Result<(), Failure> {
    let interrupt = Interrupt::listen().map_err(Failure::infrastructure)?;
    let step = |text: &str| print_stderr(text.trim());
    let progress = ClusterProgress { step: &step, warning: &print_warning };
    let started = evictlab_cluster::start(docker, state, name, progress);
    match interrupt.or_none(started).await {
        Some(started) => started.map_err(Failure::infrastructure),
        None => Err(Failure::interrupted()),
    }
}

/// Refuses a cluster that a process uses or has left, and one that is not evictlab's or not here.
fn check_usable(found: &KnownCluster, action: &str) -> Result<(), Failure> {
    let name = &found.record.cluster;
    let owner = &found.record.owner;
    let problem = if !found.is_local {
        format!("it is on another Docker host, {}", found.record.docker_host)
    } else if found.containers.is_empty() {
        return Err(Failure::bad_input(ClusterError::Unknown(name.clone())));
    } else if !found.is_own {
        "its nodes have no record of a run, so another program may have created it".to_owned()
    } else {
        match found.state {
            ClusterState::Kept | ClusterState::Stopped => return Ok(()),
            ClusterState::Live => {
                format!("process {} on {} uses it\nhelp: wait for the end of its run", owner.pid, owner.host)
            }
            ClusterState::Dead => "a run has left it\nhelp: `evictlab gc` removes it".to_owned(),
        }
    };
    Err(Failure::bad_input(format!("failed to {action} cluster {name}: {problem}")))
}
