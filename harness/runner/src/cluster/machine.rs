//! What of a node is not done through its API server.

use std::collections::BTreeMap;

use evictlab_embedded::fault::Fault;
use futures::future::LocalBoxFuture;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{NodeError, Spared};
use crate::tune::TuneError;

/// What goes for a node that is somebody else's: its kubelet is never changed.
#[derive(Clone, Debug)]
pub struct Borrowed {
    /// Why no case may starve it, if none may.
    pub spared: Option<Spared>,
    /// The nodes that share its kernel, and so its disk and process ids, and that no case may starve.
    pub beside: Vec<String>,
    /// The most that a case may take of its memory or disk, in bytes.
    pub cap: u64,
}

/// The machine under a node, as its cluster's backend can reach it.
pub trait Machine: Send + Sync {
    /// What goes for it if it is somebody else's; none for a node that the run may change.
    fn borrowed(&self) -> Option<&Borrowed> {
        None
    }

    /// The images that it was asked to pull and cannot, with the reasons.
    fn lacks(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// Gives the kubelet its own configuration with these fields changed and fresh container statistics, and restarts it; returns when the
    /// old kubelet is gone. Maps are merged, everything else is replaced. What an earlier call changed is gone.
    fn configure<'a>(&'a self, changes: &'a Map<String, Value>) -> LocalBoxFuture<'a, Result<(), TuneError>>;

    /// Whether the kubelet that runs has fresh container statistics.
    fn has_fresh_statistics(&self) -> LocalBoxFuture<'_, Result<bool, NodeError>>;

    /// Gives the kubelet its own configuration back and restarts it. `false`: nothing was changed, and nothing is done.
    fn put_back(&self) -> LocalBoxFuture<'_, Result<bool, NodeError>>;

    /// The kubelet that was put back runs: makes sure that nothing was changed since, and forgets what was kept to put it back.
    fn settle(&self) -> LocalBoxFuture<'_, Result<(), NodeError>>;

    /// The lines of the kubelet's log since a moment; none where it cannot be had.
    fn kubelet_log(&self, since: Timestamp) -> LocalBoxFuture<'_, Result<Option<Vec<String>>, NodeError>>;

    /// The end of the kubelet's log, for a person who wants to know why it does not come up.
    fn last_words(&self) -> LocalBoxFuture<'_, Result<String, NodeError>>;

    /// What is available of memory on the host that the node runs on, in bytes.
    fn host_memory(&self) -> LocalBoxFuture<'_, Result<u64, NodeError>>;

    /// Bounds the memory of the whole node, which the kubelet does not see, or takes the bound away.
    fn limit_memory(&self, bytes: Option<u64>) -> LocalBoxFuture<'_, Result<(), NodeError>>;

    /// Stops everything on the node, or lets it go on. Either may be so already.
    fn pause(&self, paused: bool) -> LocalBoxFuture<'_, Result<(), NodeError>>;

    /// Puts these pods, and none else of the harness, where the kubelet looks for static ones.
    fn static_pods<'a>(&'a self, pods: &'a [Value]) -> LocalBoxFuture<'a, Result<(), NodeError>>;

    /// Arms faults on the node and on what belongs to a namespace: their times count from now. A backend that knows no faults is not asked.
    ///
    /// # Errors
    /// No fault can be injected.
    fn arm(&self, faults: &[Fault], namespace: &str) -> Result<(), NodeError>;
}
