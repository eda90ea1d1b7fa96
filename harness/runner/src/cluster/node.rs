//! One worker: what its API server tells of it, and behind that the machine it runs on.

use std::sync::Arc;
use std::time::Duration;

use evictlab_rules::KubeletVersion;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node as ApiNode;
use kube::{Api, Client};
use serde_json::{Map, Value};

use super::kind::{DockerError, first_cause};
use super::{Machine, Proxy};
use crate::case::Cgroup;
use crate::wait::{self, Probe};

/// How long a kubelet that was restarted may give the same error.
const PATIENCE: Duration = Duration::from_secs(60);

/// A node could not be asked or changed.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// By Docker.
    #[error(transparent)]
    Docker(#[from] DockerError),
    /// No fault can be injected.
    #[error("node {0} is a real one, and faults are for the embedded cluster")]
    Real(String),
    /// Its cluster's backend cannot do it.
    #[error("{what} is not done on node {node}")]
    NotHere {
        /// What, as a noun phrase.
        what: &'static str,
        /// The node.
        node: String,
    },
    /// Its kubelet is not the run's to change.
    #[error("node {0} is somebody else's, and its kubelet is not changed")]
    Borrowed(String),
    /// By the API server.
    #[error("the API server could not {doing} of node {node}: {}", said(source))]
    Api {
        /// What was asked, as a verb phrase.
        doing: &'static str,
        /// The node.
        node: String,
        /// Why not.
        source: Box<kube::Error>,
    },
    /// What it answered cannot be read.
    #[error("node {node} answers {doing} with something that cannot be read: {problem}")]
    Answer {
        /// What was asked.
        doing: &'static str,
        /// The node.
        node: String,
        /// What is wrong with the answer.
        problem: String,
    },
}

/// A worker of a cluster.
#[derive(Clone)]
pub struct Node {
    /// The node's name.
    pub name: String,
    /// The kubelet that it was made for, as labelled.
    pub kubelet: String,
    /// The version that it reported when it was ready.
    pub version: KubeletVersion,
    /// Whether its host has cgroup v1, where the kubelet can be notified of memory pressure by the kernel.
    pub cgroup_v1: bool,
    pub(super) client: Client,
    pub(super) machine: Arc<dyn Machine>,
}

impl Node {
    /// The API client of its cluster.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The version of its host's control groups.
    pub fn cgroup(&self) -> Cgroup {
        if self.cgroup_v1 { Cgroup::V1 } else { Cgroup::V2 }
    }

    /// What only its cluster's backend can do with it.
    pub fn machine(&self) -> &dyn Machine {
        &*self.machine
    }

    /// The kubelet's configuration as it runs with it (`/configz`), the object `kubeletconfig`.
    pub async fn configz(&self) -> Result<Value, NodeError> {
        self.proxy().configz().await
    }

    /// The kubelet's Summary (`/stats/summary`).
    pub async fn summary(&self) -> Result<Value, NodeError> {
        self.proxy().summary().await
    }

    /// The Summary, waited for: a kubelet that has just restarted may have none yet, or have shown one and have none for a moment
    /// (`unable to find data in memory cache`).
    pub async fn settled_summary(&self) -> Result<Value, NodeError> {
        settled(async || self.summary().await).await
    }

    /// The counter `kubelet_evictions`, waited for in the same way.
    pub async fn settled_evictions(&self) -> Result<Map<String, Value>, NodeError> {
        settled(async || self.evictions().await).await
    }

    /// The counter `kubelet_evictions` by its label `eviction_signal`, since the kubelet started.
    pub async fn evictions(&self) -> Result<Map<String, Value>, NodeError> {
        Ok(evictions(&self.proxy().metrics().await?))
    }

    /// The node object.
    pub async fn object(&self) -> Result<ApiNode, NodeError> {
        let nodes: Api<ApiNode> = Api::all(self.client.clone());
        nodes.get(&self.name).await.map_err(|source| self.api("read the status", source))
    }

    /// The lines of the kubelet's log since a moment; none where it cannot be had.
    pub async fn kubelet_log(&self, since: Timestamp) -> Result<Option<Vec<String>>, NodeError> {
        self.machine.kubelet_log(since).await
    }

    /// What is available of memory where the node runs, in bytes: on the host of all nodes, or on the node itself if it has one of its own.
    pub async fn host_memory(&self) -> Result<u64, NodeError> {
        self.machine.host_memory().await
    }

    fn proxy(&self) -> Proxy<'_> {
        Proxy::new(&self.client, &self.name)
    }

    pub(super) fn api(&self, doing: &'static str, source: kube::Error) -> NodeError {
        NodeError::Api { doing, node: self.name.clone(), source: Box::new(source) }
    }
}

/// Asks until there is an answer, or the same error for a while.
async fn settled<T>(mut ask: impl AsyncFnMut() -> Result<T, NodeError>) -> Result<T, NodeError> {
    let mut last = None;
    let answer = wait::until(PATIENCE, Duration::from_millis(200), async || match ask().await {
        Ok(answer) => Probe::Done(answer),
        Err(error) => {
            let text = error.to_string();
            last = Some(error);
            Probe::Pending(text)
        }
    })
    .await;
    match (answer, last) {
        (Ok(answer), _) => Ok(answer),
        (Err(_), Some(error)) => Err(error),
        // Whoever gave up has asked at least once.
        (Err(stalled), None) => Err(NodeError::Answer {
            doing: "wait for an answer",
            node: String::new(),
            problem: stalled.to_string(),
        }),
    }
}

/// What an error of the API says, without the client's wrapping.
pub fn said(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => first_cause(other),
    }
}

/// `kubelet_evictions{eviction_signal="X"} N` lines of a metrics page.
fn evictions(metrics: &str) -> Map<String, Value> {
    metrics
        .lines()
        .filter_map(|line| {
            let rest = line.strip_prefix("kubelet_evictions{eviction_signal=\"")?;
            let (signal, value) = rest.split_once("\"} ")?;
            Some((signal.to_owned(), Value::from(value.trim().parse::<f64>().ok()? as u64)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_kubelet_that_has_nothing_for_a_moment_is_asked_again() {
        let error = |problem: &str| NodeError::Answer {
            doing: "read the statistics",
            node: "n".to_owned(),
            problem: problem.to_owned(),
        };
        let mut asked = 0;
        let answer = settled(async || {
            asked += 1;
            if asked < 20 { Err(error("unable to find data in memory cache")) } else { Ok(asked) }
        });
        assert_eq!(answer.await.unwrap(), 20);
        let never = settled::<()>(async || Err(error("no such node"))).await.unwrap_err().to_string();
        assert!(never.ends_with("no such node"), "{never}");
    }

    #[test]
    fn eviction_counters_are_read() {
        let page = "# TYPE kubelet_evictions counter\n\
                    kubelet_evictions{eviction_signal=\"memory.available\"} 2\n\
                    kubelet_evictions{eviction_signal=\"emptydirfs.limit\"} 1e+00\n\
                    kubelet_node_name{node=\"a\"} 1\n";
        let counted = super::evictions(page);
        assert_eq!(counted.len(), 2);
        assert_eq!((&counted["memory.available"], &counted["emptydirfs.limit"]), (&2.into(), &1.into()));
    }
}
