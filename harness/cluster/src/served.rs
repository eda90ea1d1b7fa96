//! Embedded clusters that a process serves under a name, and the list of clusters.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use rustix::process::{Pid, Signal, kill_process};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use crate::error::StateError;
use crate::kind::{ClusterState, KnownCluster, StateDir};
use crate::owner::Owner;

/// Maximum time for a server to end after SIGTERM.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// An embedded cluster with a name. Its server has a record and a kubeconfig in the state directory
/// as long as it runs; the record of a stopped cluster remains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServedCluster {
    /// Name of the cluster.
    pub cluster: String,
    /// Process that serves it, or that served it before it was stopped.
    pub owner: Owner,
    /// Start of the server.
    pub created: Timestamp,
    /// Versions of its kubelets.
    pub kubelets: Vec<String>,
    /// Command of the server.
    #[serde(default)]
    pub command: ServerCommand,
    /// True if the cluster was stopped.
    #[serde(default)]
    pub stopped: bool,
}

/// The command that serves a cluster, so that it can be started again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerCommand {
    /// Arguments of `evictlab`.
    pub arguments: Vec<String>,
    /// Working directory.
    pub directory: PathBuf,
}

/// A cluster that evictlab created, as `evictlab cluster list --json` prints it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "backend", rename_all = "kebab-case")]
pub enum ListedCluster {
    /// An embedded cluster that a process serves.
    Embedded(Box<ServedCluster>),
    /// A kind cluster.
    Kind(Box<KnownCluster>),
}

/// A named embedded cluster cannot be served, or its server does not end.
#[derive(Debug, thiserror::Error)]
pub enum ServedError {
    /// The name belongs to another cluster.
    #[error(
        "failed to create cluster {0}: it exists\nhelp: choose another --name, or `evictlab cluster delete {0}`"
    )]
    Exists(String),
    /// The server runs on another host, or in another container.
    #[error(
        "failed to end the server of cluster {cluster}: it is process {pid} on {host}\nhelp: use the same command there"
    )]
    Elsewhere {
        /// Name of the cluster.
        cluster: String,
        /// Process of the server.
        pid: u32,
        /// Host of the server.
        host: String,
    },
    /// The server did not end.
    #[error("failed to end the server of cluster {cluster}: process {pid} did not end within {} s", STOP_TIMEOUT.as_secs())]
    StillRunning {
        /// Name of the cluster.
        cluster: String,
        /// Process of the server.
        pid: u32,
    },
    /// A file cannot be written.
    #[error(transparent)]
    State(#[from] StateError),
}

impl ServedCluster {
    /// Writes the record of a cluster that this process is going to serve.
    ///
    /// # Errors
    /// A cluster with this name exists, or the state directory is not writable.
    pub fn claim(
        state: &StateDir,
        name: &str,
        kubelets: Vec<String>,
        command: ServerCommand,
    ) -> Result<Self, ServedError> {
        // Removes the record of a server that was killed.
        Self::list(state);
        if state.read(name).is_some() {
            return Err(ServedError::Exists(name.to_owned()));
        }
        let (cluster, owner, created) = (name.to_owned(), Owner::current(), Timestamp::now());
        let served = Self { cluster, owner, created, kubelets, command, stopped: false };
        if state.write_new(&state.served_record(name), &served)? {
            Ok(served)
        } else {
            Err(ServedError::Exists(name.to_owned()))
        }
    }

    /// Lists the clusters, by name: those whose server runs, and those that were stopped. Removes
    /// the files of servers that were killed.
    pub fn list(state: &StateDir) -> Vec<Self> {
        let mut all: Vec<Self> = state.served_records().iter().filter_map(read).collect();
        all.retain(|served| {
            let exists = served.stopped || served.owner.is_alive();
            if !exists {
                served.forget(state);
            }
            exists
        });
        all.sort_by(|one, other| one.cluster.cmp(&other.cluster));
        all
    }

    /// State of the cluster.
    pub fn state(&self) -> ClusterState {
        if self.stopped { ClusterState::Stopped } else { ClusterState::Live }
    }

    /// Removes the record, the kubeconfig and the log. Errors are ignored: `list` tries again.
    pub fn forget(&self, state: &StateDir) {
        let name = &self.cluster;
        for path in [state.kubeconfig(name), state.served_log(name), state.served_record(name)] {
            let _ignored = fs::remove_file(path);
        }
    }

    /// Ends the server, and removes its files.
    ///
    /// # Errors
    /// The server runs elsewhere, or does not end.
    pub async fn delete(&self, state: &StateDir) -> Result<(), ServedError> {
        if !self.stopped {
            self.end().await?;
        }
        self.forget(state);
        Ok(())
    }

    /// Ends the server, and keeps the record with its command. The objects of the cluster are lost.
    ///
    /// # Errors
    /// The server runs elsewhere or does not end, or another process creates a cluster with this
    /// name.
    pub async fn stop(&self, state: &StateDir) -> Result<(), ServedError> {
        self.delete(state).await?;
        self.record_as_stopped(state)
    }

    /// Writes the record of the stopped cluster.
    ///
    /// # Errors
    /// A cluster with this name exists, or the state directory is not writable.
    pub fn record_as_stopped(&self, state: &StateDir) -> Result<(), ServedError> {
        let stopped = Self { stopped: true, ..self.clone() };
        if state.write_new(&state.served_record(&self.cluster), &stopped)? {
            Ok(())
        } else {
            Err(ServedError::Exists(self.cluster.clone()))
        }
    }

    /// Ends the server.
    async fn end(&self) -> Result<(), ServedError> {
        let (cluster, pid) = (self.cluster.clone(), self.owner.pid);
        if !self.owner.is_local() {
            return Err(ServedError::Elsewhere { cluster, pid, host: self.owner.host.clone() });
        }
        let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
        if let Some(process) = process.filter(|_| self.owner.is_alive()) {
            // The process may just have ended.
            let _ignored = kill_process(process, Signal::TERM);
        }
        let deadline = Instant::now() + STOP_TIMEOUT;
        while self.owner.is_alive() {
            if Instant::now() > deadline {
                return Err(ServedError::StillRunning { cluster, pid });
            }
            sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }
}

fn read(path: &PathBuf) -> Option<ServedCluster> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_belongs_to_one_server_as_long_as_it_runs() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::at(&folder.path().join("state")).unwrap();
        let claim = || ServedCluster::claim(&state, "lab", vec![], ServerCommand::default());
        let served = claim().unwrap();
        assert!(matches!(claim(), Err(ServedError::Exists(_))));
        assert_eq!(ServedCluster::list(&state), std::slice::from_ref(&served));
        // A server that was killed leaves its files.
        let killed = Owner { started: Some("earlier".to_owned()), ..Owner::current() };
        let left = ServedCluster { owner: killed, ..served };
        fs::write(state.served_record("lab"), serde_json::to_string(&left).unwrap()).unwrap();
        state.create_kubeconfig("lab").unwrap();
        assert!(ServedCluster::list(&state).is_empty());
        assert!(!state.served_record("lab").exists() && !state.kubeconfig("lab").exists());
        // That of a stopped cluster keeps its name.
        left.record_as_stopped(&state).unwrap();
        assert_eq!(ServedCluster::list(&state)[0].state(), ClusterState::Stopped);
        assert!(matches!(claim(), Err(ServedError::Exists(_))));
        ServedCluster::list(&state)[0].forget(&state);
        claim().unwrap().forget(&state);
        assert!(ServedCluster::list(&state).is_empty());
    }
}
