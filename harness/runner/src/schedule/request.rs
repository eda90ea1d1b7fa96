//! All that a run is asked for.

use std::sync::Arc;
use std::time::Duration;

use super::Repeat;
use crate::case::LoadedCase;
use crate::cluster::{self, Base, ClusterError, Docker, Group, Owner};
use crate::images::Lock;

/// How long a cluster may be there before another host may take it for left behind.
pub const DEADLINE: Duration = Duration::from_secs(12 * 3600);

/// Where the nodes come from.
#[derive(Clone, Debug)]
pub enum Clusters {
    /// New clusters.
    New {
        /// The name, or the beginning of the names where the skew asks for several.
        name: String,
        /// The kind configuration.
        base: Base,
        /// Workers for each kubelet.
        nodes: usize,
    },
    /// The cluster of this name, which was kept.
    Kept(String),
}

/// When a new cluster outlives the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Never.
    Never,
    /// When a verdict is `failed`, `inconclusive` or `error`.
    OnFailure,
    /// Always.
    Always,
}

/// All that a run is asked for.
#[derive(Clone)]
pub struct Request {
    /// The run's id.
    pub run: String,
    /// The cases.
    pub cases: Vec<Arc<LoadedCase>>,
    /// Groups of kubelets that share a cluster.
    pub groups: Vec<Group>,
    /// Where the nodes come from.
    pub clusters: Clusters,
    /// When they stay.
    pub keep: Keep,
    /// How often.
    pub repeat: Repeat,
    /// The longest that the whole run may take.
    pub timeout: Option<Duration>,
    /// Image names.
    pub lock: Arc<Lock>,
    /// Who answers for the clusters: this process, or one that outlives it.
    pub owner: Owner,
}

/// A new run's id: eight letters and digits, good for a name.
pub fn new_id() -> String {
    use std::hash::{BuildHasher, Hasher};
    const LETTERS: &[u8] = b"abcdefghijkmnpqrstuvwxyz23456789";
    // The standard library's source of randomness.
    let mut random = std::hash::RandomState::new().build_hasher().finish();
    let letter = |_| {
        let letter = LETTERS[(random % LETTERS.len() as u64) as usize];
        random /= LETTERS.len() as u64;
        char::from(letter)
    };
    (0..8).map(letter).collect()
}

/// Refuses names of new clusters that are taken, before anything is made.
pub async fn free(docker: &Docker, clusters: &Clusters, groups: usize) -> Result<(), ClusterError> {
    let Clusters::New { .. } = clusters else { return Ok(()) };
    for group in 0..groups {
        let name = name_of(clusters, group, groups);
        if !cluster::containers(docker, &name).await?.is_empty() {
            return Err(ClusterError::Exists(name));
        }
    }
    Ok(())
}

/// The name of the cluster for a group of kubelets.
pub(super) fn name_of(clusters: &Clusters, group: usize, groups: usize) -> String {
    match clusters {
        Clusters::Kept(name) => name.clone(),
        Clusters::New { name, .. } if groups == 1 => name.clone(),
        Clusters::New { name, .. } => format!("{name}-{}", group + 1),
    }
}
