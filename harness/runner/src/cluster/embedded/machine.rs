//! A modelled node.

use evictlab_embedded::Cluster;
use evictlab_embedded::fault::{Fault, Scope};
use evictlab_embedded::machine::Cgroup;
use evictlab_embedded::node::Node;
use evictlab_embedded::time::Time;
use evictlab_embedded::world::Ctx;
use futures::FutureExt;
use futures::future::{LocalBoxFuture, ready};
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::cluster::{Machine, NodeError};
use crate::tune::TuneError;

/// The most static pods that a case can have.
const MOST: usize = 16;
/// How many lines of a log are its last words.
const LAST: usize = 5;

/// A node of an embedded cluster.
pub(super) struct EmbeddedMachine {
    pub node: String,
    pub cluster: Cluster,
}

impl EmbeddedMachine {
    /// Works on the node as it is now.
    fn with<T>(&self, work: impl FnOnce(&mut Node, &mut Ctx) -> T) -> Result<T, NodeError> {
        let done = self
            .cluster
            .with(|world| world.with(|_, nodes, ctx| nodes.get_mut(&self.node).map(|node| work(node, ctx))));
        done.ok_or_else(|| NodeError::Answer {
            doing: "anything",
            node: self.node.clone(),
            problem: "the cluster has no such node".to_owned(),
        })
    }

    fn log(&self, since: Timestamp) -> Result<Vec<String>, NodeError> {
        self.with(|node, ctx| {
            let since = since.duration_since(ctx.epoch().0).try_into().unwrap_or_default();
            node.kubelet.log.since(Time::after(since)).map(str::to_owned).collect()
        })
    }
}

impl Machine for EmbeddedMachine {
    fn configure<'a>(&'a self, changes: &'a Map<String, Value>) -> LocalBoxFuture<'a, Result<(), TuneError>> {
        let configured = self.with(|node, ctx| node.kubelet.configure(changes, true, ctx));
        ready(configured.map_err(TuneError::from)).boxed_local()
    }

    fn has_fresh_statistics(&self) -> LocalBoxFuture<'_, Result<bool, NodeError>> {
        ready(self.with(|node, _| node.kubelet.config.fast_housekeeping)).boxed_local()
    }

    fn put_back(&self) -> LocalBoxFuture<'_, Result<bool, NodeError>> {
        ready(self.with(|node, ctx| node.kubelet.restore(ctx)).map(|()| true)).boxed_local()
    }

    fn settle(&self) -> LocalBoxFuture<'_, Result<(), NodeError>> {
        ready(Ok(())).boxed_local()
    }

    fn kubelet_log(&self, since: Timestamp) -> LocalBoxFuture<'_, Result<Option<Vec<String>>, NodeError>> {
        ready(self.log(since).map(Some)).boxed_local()
    }

    fn last_words(&self) -> LocalBoxFuture<'_, Result<String, NodeError>> {
        let words = self.log(Timestamp::MIN).map(|lines| {
            let from = lines.len().saturating_sub(LAST);
            lines[from..].join("\n")
        });
        ready(words).boxed_local()
    }

    fn host_memory(&self) -> LocalBoxFuture<'_, Result<u64, NodeError>> {
        let available = self.with(|node, _| {
            let used = node.machine.memory(&Cgroup::Root).map_or(0, |used| used.working_set);
            node.machine.memory_total().saturating_sub(used)
        });
        ready(available).boxed_local()
    }

    fn limit_memory(&self, bytes: Option<u64>) -> LocalBoxFuture<'_, Result<(), NodeError>> {
        ready(self.with(|node, _| node.machine.limit_memory(&Cgroup::Root, bytes))).boxed_local()
    }

    /// The kubelet stands still; what runs in containers goes on, which nobody can see meanwhile.
    fn pause(&self, paused: bool) -> LocalBoxFuture<'_, Result<(), NodeError>> {
        let done = self.with(|node, ctx| match (paused, node.kubelet.running) {
            (true, _) => node.kubelet.stop(),
            (false, false) => node.kubelet.restart(ctx),
            (false, true) => {}
        });
        ready(done).boxed_local()
    }

    fn static_pods<'a>(&'a self, pods: &'a [Value]) -> LocalBoxFuture<'a, Result<(), NodeError>> {
        let put = self.with(|node, ctx| {
            (0..MOST)
                .try_for_each(|place| node.static_pod(&format!("evictlab-{place}"), pods.get(place), ctx))
        });
        let full =
            |_| NodeError::NotHere { what: "a static pod: its disk is full; it", node: self.node.clone() };
        ready(put.and_then(|put| put.map_err(full))).boxed_local()
    }

    fn arm(&self, faults: &[Fault], namespace: &str) -> Result<(), NodeError> {
        let scope = Scope { namespace: Some(namespace.to_owned()), node: Some(self.node.clone()) };
        self.with(|_, ctx| ctx.faults.arm(faults, &scope, ctx.now, ctx.agenda))
    }
}
