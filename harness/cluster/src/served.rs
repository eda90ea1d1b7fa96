//! Embedded clusters that another process serves under a name, and the list of clusters.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use rustix::process::{Pid, Signal, kill_process};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use crate::error::StateError;
use crate::kind::{KnownCluster, StateDir};
use crate::owner::Owner;

/// Maximum time for a server to end after SIGTERM.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// An embedded cluster with a name. Its server has a record and a kubeconfig in the state directory
/// as long as it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServedCluster {
    /// Name of the cluster.
    pub cluster: String,
    /// Process that serves it.
    pub owner: Owner,
    /// Start of the server.
    pub created: Timestamp,
    /// Versions of its kubelets.
    pub kubelets: Vec<String>,
}

/// A cluster that evictlab created, as `evictlab cluster list --json` prints it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "backend", rename_all = "kebab-case")]
pub enum ListedCluster {
    /// An embedded cluster that a process serves.
    Embedded(ServedCluster),
    /// A kind cluster.
    Kind(Box<KnownCluster>),
}

/// A named embedded cluster cannot be served, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServedError {
    /// The name belongs to another cluster.
    #[error(
        "failed to create cluster {0}: it exists\nhelp: choose another --name, or `evictlab cluster delete {0}`"
    )]
    Exists(String),
    /// The server runs on another host, or in another container.
    #[error("failed to delete cluster {cluster}: process {pid} on {host} serves it\nhelp: delete it there")]
    Elsewhere {
        /// Name of the cluster.
        cluster: String,
        /// Process of the server.
        pid: u32,
        /// Host of the server.
        host: String,
    },
    /// The server did not end.
    #[error("failed to delete cluster {cluster}: process {pid}, which serves it, did not end within {} s", STOP_TIMEOUT.as_secs())]
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
    pub fn claim(state: &StateDir, name: &str, kubelets: Vec<String>) -> Result<Self, ServedError> {
        // Removes the record of a server that was killed.
        Self::list(state);
        if state.read(name).is_some() {
            return Err(ServedError::Exists(name.to_owned()));
        }
        let served =
            Self { cluster: name.to_owned(), owner: Owner::this(), created: Timestamp::now(), kubelets };
        match state.write_new(&state.served_record(name), &served)? {
            true => Ok(served),
            false => Err(ServedError::Exists(name.to_owned())),
        }
    }

    /// Lists the clusters whose server runs, by name. Removes the files of servers that were
    /// killed.
    pub fn list(state: &StateDir) -> Vec<Self> {
        let mut all: Vec<Self> = state.served_records().iter().filter_map(read).collect();
        all.retain(|served| {
            let is_alive = served.owner.alive();
            if !is_alive {
                served.forget(state);
            }
            is_alive
        });
        all.sort_by(|one, other| one.cluster.cmp(&other.cluster));
        all
    }

    /// Removes the record, the kubeconfig and the log. Errors are ignored: `list` tries again.
    pub fn forget(&self, state: &StateDir) {
        let name = &self.cluster;
        for path in [state.kubeconfig(name), state.served_log(name), state.served_record(name)] {
            let _ignored = fs::remove_file(path);
        }
    }

    /// Ends the server, and waits until its files are gone.
    ///
    /// # Errors
    /// The server runs elsewhere, or does not end.
    pub async fn stop(&self, state: &StateDir) -> Result<(), ServedError> {
        let (cluster, pid) = (self.cluster.clone(), self.owner.pid);
        if !self.owner.is_here() {
            return Err(ServedError::Elsewhere { cluster, pid, host: self.owner.host.clone() });
        }
        let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
        if let Some(process) = process.filter(|_| self.owner.alive()) {
            // The process may just have ended.
            let _ignored = kill_process(process, Signal::TERM);
        }
        let deadline = Instant::now() + STOP_TIMEOUT;
        while self.owner.alive() {
            if Instant::now() > deadline {
                return Err(ServedError::StillRunning { cluster, pid });
            }
            sleep(POLL_INTERVAL).await;
        }
        self.forget(state);
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
        let served = ServedCluster::claim(&state, "lab", vec!["v1.36.4".to_owned()]).unwrap();
        assert!(matches!(ServedCluster::claim(&state, "lab", vec![]), Err(ServedError::Exists(_))));
        assert_eq!(ServedCluster::list(&state), std::slice::from_ref(&served));
        // A server that was killed leaves its files.
        let killed = Owner { started: "earlier".to_owned(), ..Owner::this() };
        let left = ServedCluster { owner: killed, ..served };
        fs::write(state.served_record("lab"), serde_json::to_string(&left).unwrap()).unwrap();
        state.create_kubeconfig("lab").unwrap();
        assert!(ServedCluster::list(&state).is_empty());
        assert!(!state.served_record("lab").exists() && !state.kubeconfig("lab").exists());
        ServedCluster::claim(&state, "lab", vec![]).unwrap().forget(&state);
        assert!(ServedCluster::list(&state).is_empty());
    }
}
