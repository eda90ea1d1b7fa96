//! Operations on a modelled node.

use evictlab_embedded::fault::Scope;
use evictlab_embedded::machine::Cgroup;
use evictlab_embedded::sim::Time;
use evictlab_embedded::{Cluster, Node, SimContext};
use evictlab_fault::Fault;
use futures::FutureExt;
use futures::future::{LocalBoxFuture, ready};
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::node::{ConfigureError, NodeBackend, NodeError};

/// Maximum number of static pods of a case.
const MAX_STATIC_PODS: usize = 16;
/// Number of lines in a log tail.
const LOG_TAIL_LINES: usize = 5;

/// A node of an embedded cluster.
pub(super) struct EmbeddedNode {
    pub node: String,
    pub cluster: Cluster,
}

impl EmbeddedNode {
    /// Runs an operation on the model of the node.
    fn with<T>(&self, operation: impl FnOnce(&mut Node, &mut SimContext) -> T) -> Result<T, NodeError> {
        let done = self.cluster.with(|world| {
            world.with(|_, nodes, ctx| nodes.get_mut(&self.node).map(|node| operation(node, ctx)))
        });
        done.ok_or_else(|| NodeError::InvalidResponse {
            operation: "read the state",
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

impl NodeBackend for EmbeddedNode {
    fn configure<'a>(
        &'a self,
        changes: &'a Map<String, Value>,
    ) -> LocalBoxFuture<'a, Result<(), ConfigureError>> {
        let configured = self.with(|node, ctx| node.kubelet.configure(changes, true, ctx));
        ready(configured.map_err(ConfigureError::from)).boxed_local()
    }

    fn restart_kubelet(&self) -> LocalBoxFuture<'_, Result<(), NodeError>> {
        ready(self.with(|node, ctx| node.kubelet.restart(ctx))).boxed_local()
    }

    fn has_fresh_statistics(&self) -> LocalBoxFuture<'_, Result<bool, NodeError>> {
        ready(self.with(|node, _| node.kubelet.config.fast_housekeeping)).boxed_local()
    }

    fn restore_config(&self) -> LocalBoxFuture<'_, Result<bool, NodeError>> {
        ready(self.with(|node, ctx| node.kubelet.restore(ctx)).map(|()| true)).boxed_local()
    }

    fn confirm_restored(&self) -> LocalBoxFuture<'_, Result<(), NodeError>> {
        ready(Ok(())).boxed_local()
    }

    fn kubelet_log(&self, since: Timestamp) -> LocalBoxFuture<'_, Result<Option<Vec<String>>, NodeError>> {
        ready(self.log(since).map(Some)).boxed_local()
    }

    fn log_tail(&self) -> LocalBoxFuture<'_, Result<String, NodeError>> {
        let tail = self.log(Timestamp::MIN).map(|lines| {
            let from = lines.len().saturating_sub(LOG_TAIL_LINES);
            lines[from..].join("\n")
        });
        ready(tail).boxed_local()
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

    /// Stops the kubelet. Containers continue, which is not observable until the kubelet resumes.
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
            (0..MAX_STATIC_PODS)
                .try_for_each(|index| node.static_pod(&format!("evictlab-{index}"), pods.get(index), ctx))
        });
        let full = |_| NodeError::DiskFull { node: self.node.clone() };
        ready(put.and_then(|put| put.map_err(full))).boxed_local()
    }

    fn inject_faults(&self, faults: &[Fault], namespace: &str) -> Result<(), NodeError> {
        let scope = Scope { namespace: Some(namespace.to_owned()), node: Some(self.node.clone()) };
        self.cluster.with(|simulation| simulation.inject_faults(faults, &scope));
        Ok(())
    }
}
