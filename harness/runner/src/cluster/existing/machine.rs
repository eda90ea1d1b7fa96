//! A node of somebody else's: only what its API server tells can be known of it, and nothing is changed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use evictlab_embedded::fault::Fault;
use futures::FutureExt;
use futures::future::{LocalBoxFuture, ready};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::ExistingError;
use super::image::is_had;
use super::look::look;
use crate::cluster::{Borrowed, Machine, NodeError};
use crate::stage::Namespace;
use crate::tune::TuneError;

/// A node of an existing cluster.
pub(super) struct ExistingMachine {
    pub node: String,
    pub borrowed: Borrowed,
    /// Where small pods are run.
    pub namespace: Arc<Namespace>,
    /// The image of small pods.
    pub image: String,
    /// The images that it cannot have, with the reasons.
    pub lacks: Mutex<BTreeMap<String, String>>,
}

impl Machine for ExistingMachine {
    fn borrowed(&self) -> Option<&Borrowed> {
        Some(&self.borrowed)
    }

    fn lacks(&self) -> BTreeMap<String, String> {
        self.lacks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn configure<'a>(&'a self, _: &'a Map<String, Value>) -> LocalBoxFuture<'a, Result<(), TuneError>> {
        ready(Err(TuneError::Node(NodeError::Borrowed(self.node.clone())))).boxed_local()
    }

    /// Nobody has given it the flag, for all that is known.
    fn has_fresh_statistics(&self) -> LocalBoxFuture<'_, Result<bool, NodeError>> {
        ready(Ok(false)).boxed_local()
    }

    fn put_back(&self) -> LocalBoxFuture<'_, Result<bool, NodeError>> {
        ready(Ok(false)).boxed_local()
    }

    fn settle(&self) -> LocalBoxFuture<'_, Result<(), NodeError>> {
        ready(Ok(())).boxed_local()
    }

    fn kubelet_log(&self, _: Timestamp) -> LocalBoxFuture<'_, Result<Option<Vec<String>>, NodeError>> {
        ready(Ok(None)).boxed_local()
    }

    fn last_words(&self) -> LocalBoxFuture<'_, Result<String, NodeError>> {
        ready(Ok("(the kubelet's log cannot be had from an existing cluster)".to_owned())).boxed_local()
    }

    /// What the kernel under the node has: of nodes that are containers on one host it may be less than any of them tells.
    fn host_memory(&self) -> LocalBoxFuture<'_, Result<u64, NodeError>> {
        async {
            let unread = |problem: String| NodeError::Answer {
                doing: "what its kernel has of memory",
                node: self.node.clone(),
                problem,
            };
            let looked = look(&self.namespace, &self.node, &self.image).await;
            let looked = looked.map_err(|error| unread(error.to_string()))?;
            looked.available.ok_or_else(|| unread("/proc/meminfo has no MemAvailable".to_owned()))
        }
        .boxed_local()
    }

    fn limit_memory(&self, bytes: Option<u64>) -> LocalBoxFuture<'_, Result<(), NodeError>> {
        ready(self.nothing_if(bytes.is_none())).boxed_local()
    }

    fn pause(&self, paused: bool) -> LocalBoxFuture<'_, Result<(), NodeError>> {
        ready(self.nothing_if(!paused)).boxed_local()
    }

    fn static_pods<'a>(&'a self, pods: &'a [Value]) -> LocalBoxFuture<'a, Result<(), NodeError>> {
        ready(self.nothing_if(pods.is_empty())).boxed_local()
    }

    fn arm(&self, _: &[Fault], _: &str) -> Result<(), NodeError> {
        Err(NodeError::Real(self.node.clone()))
    }
}

impl ExistingMachine {
    /// Lets the node pull an image. One that it cannot have is noted: cases that need it are skipped.
    pub(super) async fn pull(&self, image: &str, nth: usize) -> Result<(), ExistingError> {
        match is_had(&self.namespace, &self.node, image, nth).await {
            Err(ExistingError::Image { image, why, .. }) => {
                self.lacks.lock().unwrap_or_else(PoisonError::into_inner).insert(image, why);
                Ok(())
            }
            done => done,
        }
    }

    /// What would change the node is refused; where there is nothing to take back, nothing is done.
    fn nothing_if(&self, nothing: bool) -> Result<(), NodeError> {
        if nothing { Ok(()) } else { Err(NodeError::Borrowed(self.node.clone())) }
    }
}
