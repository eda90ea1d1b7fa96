//! Operations on a modelled node.

use std::time::Duration;

use evictlab_embedded::{Cgroup, Cluster, FaultScope, Imagefs, Node, SimContext};
use evictlab_fault::Fault;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::docker::ExecOutput;
use crate::node::error::{ConfigureError, NodeError};
use crate::node::file_systems::NodeFileSystems;

/// Maximum number of static pods of a case.
const MAX_STATIC_PODS: usize = 16;
/// Interval at which the end of a command is looked for.
const EXEC_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Number of lines in a log tail.
const LOG_TAIL_LINES: usize = 5;

/// A node of an embedded cluster.
#[derive(Clone)]
pub struct EmbeddedNode {
    pub(crate) node: String,
    pub(crate) cluster: Cluster,
}

impl EmbeddedNode {
    /// Runs an operation on the model of the node.
    fn with<T>(&self, operation: impl FnOnce(&mut Node, &mut SimContext) -> T) -> Result<T, NodeError> {
        self.cluster.with_node(&self.node, operation).ok_or_else(|| NodeError::InvalidResponse {
            operation: "read the state",
            node: self.node.clone(),
            problem: "the cluster has no such node".to_owned(),
        })
    }

    pub(super) fn configure(&self, changes: &Map<String, Value>) -> Result<(), ConfigureError> {
        Ok(self.with(|node, ctx| node.kubelet.configure(changes, true, ctx))?)
    }

    pub(super) fn restart_kubelet(&self) -> Result<(), NodeError> {
        self.with(|node, ctx| node.kubelet.restart(ctx))
    }

    pub(super) fn has_short_housekeeping_interval(&self) -> Result<bool, NodeError> {
        self.with(|node, _| node.kubelet.has_fast_housekeeping())
    }

    pub(super) fn restore_config(&self) -> Result<(), NodeError> {
        self.with(|node, ctx| node.kubelet.restore(ctx))
    }

    pub(super) fn set_up_file_systems(&self, wanted: NodeFileSystems) -> Result<(), NodeError> {
        let imagefs = Imagefs {
            bytes: wanted.imagefs,
            inodes: wanted.imagefs_inodes,
            has_layers: !wanted.has_split_layers,
        };
        self.with(|node, ctx| node.set_imagefs(Some(imagefs), ctx))
    }

    pub(super) fn restore_file_systems(&self) -> Result<bool, NodeError> {
        self.with(|node, ctx| {
            let has_imagefs = node.machine.imagefs().is_some();
            if has_imagefs {
                node.set_imagefs(None, ctx);
            }
            has_imagefs
        })
    }

    pub(super) fn reserve_huge_pages(&self, bytes: u64) -> Result<(), NodeError> {
        self.with(|node, ctx| node.reserve_huge_pages(bytes, ctx))
    }

    pub(super) fn kubelet_log(&self, since: Timestamp) -> Result<Vec<String>, NodeError> {
        self.with(|node, ctx| node.kubelet.log_since(ctx.time_at(since)).map(str::to_owned).collect())
    }

    pub(super) fn log_tail(&self) -> Result<String, NodeError> {
        let lines = self.kubelet_log(Timestamp::MIN)?;
        let from = lines.len().saturating_sub(LOG_TAIL_LINES);
        Ok(lines[from..].join("\n"))
    }

    pub(super) fn host_memory(&self) -> Result<u64, NodeError> {
        self.with(|node, _| {
            let used = node.machine.memory(&Cgroup::Root).map_or(0, |used| used.working_set);
            node.machine.memory_total().saturating_sub(used)
        })
    }

    pub(super) fn limit_memory(&self, bytes: Option<u64>) -> Result<(), NodeError> {
        self.with(|node, _| node.machine.limit_memory(&Cgroup::Root, bytes))
    }

    /// Stops the kubelet. Containers continue, which is not observable until the kubelet resumes.
    pub(super) fn set_paused(&self, paused: bool) -> Result<(), NodeError> {
        self.with(|node, ctx| match (paused, node.kubelet.is_running()) {
            (true, _) => node.kubelet.stop(),
            (false, false) => node.kubelet.restart(ctx),
            (false, true) => {}
        })
    }

    pub(super) fn replace_static_pods(&self, pods: &[Value]) -> Result<(), NodeError> {
        let put = self.with(|node, ctx| {
            (0..MAX_STATIC_PODS)
                .try_for_each(|index| node.static_pod(&format!("evictlab-{index}"), pods.get(index), ctx))
        });
        let full = |_| NodeError::DiskFull { node: self.node.clone() };
        put.and_then(|put| put.map_err(full))
    }

    /// Runs a command in a container, in simulated time.
    pub(super) async fn exec(&self, container: &str, command: &[String]) -> Result<ExecOutput, NodeError> {
        let started = self.with(|node, ctx| node.exec(container, command, ctx))?;
        let id = started.map_err(|error| NodeError::exec(container, command, error.to_string()))?;
        loop {
            if let Some(result) = self.with(|node, _| node.machine.take_exec(id))? {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let (stdout, stderr) = (text(&result.stdout), text(&result.stderr));
                return Ok(ExecOutput { code: i64::from(result.code), stdout, stderr });
            }
            tokio::time::sleep(EXEC_POLL_INTERVAL).await;
        }
    }

    pub(super) fn load_image(&self, image: &str) -> Result<(), NodeError> {
        self.with(|node, ctx| node.kubelet.load_image(image, ctx))
    }

    pub(super) fn add_image(&self, image: &str, bytes: u64) -> Result<(), NodeError> {
        self.with(|node, ctx| node.kubelet.add_image(image, bytes, ctx))
    }

    pub(super) fn remove_image(&self, image: &str) -> Result<(), NodeError> {
        self.with(|node, _| node.kubelet.remove_image(image))
    }

    pub(super) fn inject_faults(&self, faults: &[Fault], namespace: &str) {
        let scope = FaultScope { namespace: Some(namespace.to_owned()), node: Some(self.node.clone()) };
        self.cluster.inject_faults(faults, &scope);
    }

    pub(super) fn end_faults(&self) {
        self.cluster.end_faults(&self.node);
    }
}
