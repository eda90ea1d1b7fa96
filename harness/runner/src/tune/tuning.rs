//! The change itself, by the backend's means, and the proof that the kubelet runs with it.

use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;

use super::{Difference, differences};
use crate::cluster::{Node, NodeError};
use crate::wait::{self, Probe, Stalled};

/// How long a restarted kubelet may show no change before it is given up.
const PATIENCE: Duration = Duration::from_secs(90);

/// A node could not be tuned or put back.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// It could not be reached.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// Its configuration is no YAML mapping.
    #[error("{file} on node {node} is no KubeletConfiguration: {problem}")]
    Config {
        /// The node.
        node: String,
        /// The configuration's file.
        file: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The kubelet does not come back, or not with what it was given.
    #[error(
        "the kubelet on node {node} does not run with what it was given: {stalled}\nIts last words:\n{log}"
    )]
    NotInForce {
        /// The node.
        node: String,
        /// What was last seen.
        stalled: Stalled,
        /// The end of its log.
        log: String,
    },
}

/// A node that was tuned.
#[derive(Clone, Debug)]
pub struct Tuned {
    /// The whole configuration in force, from `configz`.
    pub configz: Value,
    /// How long it took, in seconds.
    pub seconds: f64,
}

/// Gives the node's kubelet its own configuration with these fields changed, restarts it, and reads back what is in force. Maps are merged,
/// everything else is replaced. What an earlier call changed is gone: every call starts from the node's own configuration.
pub async fn tune(node: &Node, changes: &Map<String, Value>) -> Result<Tuned, TuneError> {
    let began = Instant::now();
    node.machine().configure(changes).await?;
    let configz = in_force(node, changes).await?;
    Ok(Tuned { configz, seconds: began.elapsed().as_secs_f64() })
}

/// Whether the node's kubelet runs with these fields and with quick housekeeping already, as one made from our own kind configuration does.
pub async fn in_shape(node: &Node, fields: &Map<String, Value>) -> Result<bool, TuneError> {
    if !differences(fields, &node.configz().await?).is_empty() {
        return Ok(false);
    }
    Ok(node.machine().has_fresh_statistics().await?)
}

/// Gives the node's kubelet its own configuration back. Nothing is done where nothing was changed.
pub async fn restore(node: &Node) -> Result<bool, TuneError> {
    if !node.machine().put_back().await? {
        return Ok(false);
    }
    in_force(node, &Map::new()).await?;
    node.machine().settle().await?;
    Ok(true)
}

/// Asks `configz` until it shows the changes, and until the Summary answers: the new kubelet serves its configuration before it has
/// looked at its containers. The kubelet is new: what answers is what runs.
async fn in_force(node: &Node, changes: &Map<String, Value>) -> Result<Value, TuneError> {
    let asked = wait::until(PATIENCE, Duration::from_millis(100), async || match node.configz().await {
        Err(error) => Probe::Pending(error.to_string()),
        Ok(configz) => match differences(changes, &configz) {
            none if none.is_empty() => Probe::Done(configz),
            some => Probe::Pending(listed(&some)),
        },
    })
    .await;
    match asked {
        Ok(configz) => Ok(configz),
        Err(stalled) => {
            let log = node.machine().last_words().await?;
            Err(TuneError::NotInForce { node: node.name.clone(), stalled, log })
        }
    }
}

fn listed(differences: &[Difference]) -> String {
    differences.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
