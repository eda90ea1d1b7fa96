//! Operations on a modelled node.

use std::time::Duration;

use evictlab_embedded::{
    Cgroup, Cluster, FaultScope, Housekeeping, Imagefs, NoSpace, Node, SimContext, SimTime,
};
use evictlab_fault::Fault;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::docker::ExecOutput;
use crate::node::error::{ConfigureError, NodeError};
use crate::node::file_systems::NodeFileSystems;

/// Prefix of the names of the static pods of a case.
const STATIC_POD: &str = "evictlab-";
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
    /// Runs `work` on the model of the node. `operation` is its verb phrase.
    fn with_node<T>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&mut Node, &mut SimContext) -> T,
    ) -> Result<T, NodeError> {
        let result = self.cluster.with_node(&self.node, work);
        result.ok_or_else(|| NodeError::NoSuchNode { operation, node: self.node.clone() })
    }

    pub(super) fn configure(&self, changes: &Map<String, Value>) -> Result<(), ConfigureError> {
        Ok(self.with_node("configure the kubelet", |node, ctx| {
            node.kubelet.configure(changes, Housekeeping::Fast, ctx)
        })?)
    }

    pub(super) fn restart_kubelet(&self) -> Result<(), NodeError> {
        self.with_node("restart the kubelet", |node, ctx| node.kubelet.restart(ctx))
    }

    pub(super) fn has_short_housekeeping_interval(&self) -> Result<bool, NodeError> {
        self.with_node("read the housekeeping interval", |node, _| {
            node.kubelet.housekeeping() == Housekeeping::Fast
        })
    }

    pub(super) fn restore_config(&self) -> Result<(), NodeError> {
        self.with_node("restore the kubelet configuration", |node, ctx| node.kubelet.restore_config(ctx))
    }

    pub(super) fn set_up_file_systems(&self, wanted: NodeFileSystems) -> Result<(), NodeError> {
        let imagefs = Imagefs {
            bytes: wanted.imagefs,
            inodes: wanted.imagefs_inodes,
            has_layers: !wanted.has_split_layers,
        };
        self.with_node("set up file systems", |node, ctx| node.set_imagefs(Some(imagefs), ctx))
    }

    pub(super) fn restore_file_systems(&self) -> Result<bool, NodeError> {
        self.with_node("restore the file systems", |node, ctx| {
            let has_imagefs = node.machine.imagefs().is_some();
            if has_imagefs {
                node.set_imagefs(None, ctx);
            }
            has_imagefs
        })
    }

    pub(super) fn reserve_huge_pages(&self, bytes: u64) -> Result<(), NodeError> {
        self.with_node("reserve huge pages", |node, ctx| node.reserve_huge_pages(bytes, ctx))
    }

    pub(super) fn kubelet_log(&self, since: Timestamp) -> Result<Vec<String>, NodeError> {
        self.with_node("read the kubelet log", |node, ctx| {
            node.kubelet.log_since(ctx.time_at(since)).map(str::to_owned).collect()
        })
    }

    pub(super) fn log_tail(&self) -> Result<String, NodeError> {
        self.with_node("read the kubelet log", |node, _| {
            let last = node.kubelet.log_since(SimTime::ZERO).rev().take(LOG_TAIL_LINES);
            let mut lines: Vec<&str> = last.collect();
            lines.reverse();
            lines.join("\n")
        })
    }

    pub(super) fn host_memory(&self) -> Result<u64, NodeError> {
        self.with_node("read the available memory", |node, _| {
            let used = node.machine.memory(&Cgroup::Root).map_or(0, |used| used.working_set);
            node.machine.memory_total().saturating_sub(used)
        })
    }

    pub(super) fn limit_memory(&self, bytes: Option<u64>) -> Result<(), NodeError> {
        self.with_node("limit the memory", |node, _| node.machine.limit_memory(&Cgroup::Root, bytes))
    }

    /// Pauses or resumes the node by stopping or starting its kubelet. Containers continue, which
    /// is not observable while the kubelet is stopped.
    pub(super) fn set_paused(&self, paused: bool) -> Result<(), NodeError> {
        self.with_node("stop or start the kubelet", |node, ctx| match (paused, node.kubelet.is_running()) {
            (true, _) => node.kubelet.stop(),
            (false, false) => node.kubelet.restart(ctx),
            (false, true) => {}
        })
    }

    pub(super) fn create_static_pod(&self, name: &str, pod: &Value) -> Result<(), NodeError> {
        let created = self.with_node("create a static pod", |node, ctx| {
            node.static_pod(&format!("{STATIC_POD}{name}"), Some(pod), ctx)
        })?;
        created.map_err(|_: NoSpace| NodeError::DiskFull { node: self.node.clone() })
    }

    pub(super) fn delete_static_pod(&self, name: &str) -> Result<(), NodeError> {
        let deleted = self.with_node("delete a static pod", |node, ctx| {
            node.static_pod(&format!("{STATIC_POD}{name}"), None, ctx)
        })?;
        deleted.map_err(|_: NoSpace| NodeError::DiskFull { node: self.node.clone() })
    }

    pub(super) fn delete_static_pods(&self) -> Result<(), NodeError> {
        let deleted = self.with_node("delete the static pods", |node, ctx| {
            let names = node.static_pod_names(STATIC_POD);
            names.iter().try_for_each(|name| node.static_pod(name, None, ctx))
        })?;
        deleted.map_err(|_: NoSpace| NodeError::DiskFull { node: self.node.clone() })
    }

    /// Runs a command in a container, in simulated time.
    pub(super) async fn exec(&self, container: &str, command: &[String]) -> Result<ExecOutput, NodeError> {
        let started = self.with_node("run a command", |node, ctx| node.exec(container, command, ctx))?;
        let id = started.map_err(|error| NodeError::exec(container, command, error.to_string()))?;
        loop {
            if let Some(result) = self.with_node("run a command", |node, _| node.machine.take_exec(id))? {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let (stdout, stderr) = (text(&result.stdout), text(&result.stderr));
                return Ok(ExecOutput { code: i64::from(result.code), stdout, stderr });
            }
            tokio::time::sleep(EXEC_POLL_INTERVAL).await;
        }
    }

    pub(super) fn load_image(&self, image: &str) -> Result<(), NodeError> {
        self.with_node("load an image", |node, _| node.kubelet.load_image(image))
    }

    pub(super) fn add_image(&self, image: &str, bytes: u64) -> Result<(), NodeError> {
        self.with_node("add an image", |node, _| node.kubelet.add_image(image, bytes))
    }

    pub(super) fn remove_images(&self, prefix: &str) -> Result<(), NodeError> {
        self.with_node("remove images", |node, _| node.kubelet.remove_images(prefix))
    }

    pub(super) fn inject_faults(&self, faults: &[Fault], namespace: &str) {
        let scope = FaultScope { namespace: Some(namespace.to_owned()), node: Some(self.node.clone()) };
        self.cluster.inject_faults(faults, &scope);
    }

    pub(super) fn end_faults(&self) {
        self.cluster.end_faults(&self.node);
    }
}

#[cfg(test)]
mod tests {
    use evictlab_embedded::{ClusterOptions, NodeOptions};
    use evictlab_rules::KubeletVersion;
    use serde_json::json;

    use super::*;

    fn node(name: &str) -> EmbeddedNode {
        let options = NodeOptions::new("worker", KubeletVersion::from_minor(36));
        let epoch = "2026-01-01T00:00:00Z".parse().unwrap();
        let cluster = Cluster::new(ClusterOptions::new(1, epoch, vec![options])).unwrap();
        EmbeddedNode { node: name.to_owned(), cluster }
    }

    #[tokio::test]
    async fn static_pods_are_deleted_by_name_or_together() {
        let node = node("worker");
        let files = || node.with_node("list files", |node, _| node.static_pod_names("")).unwrap();
        let pod = json!({"kind": "Pod", "metadata": {"name": "web"}});
        let own = node.with_node("create a file", |node, ctx| node.static_pod("own", Some(&pod), ctx));
        own.unwrap().unwrap();
        for name in ["a", "b", "b", "c"] {
            node.create_static_pod(name, &pod).unwrap();
        }
        node.delete_static_pod("a").unwrap();
        node.delete_static_pod("unknown").unwrap();
        assert_eq!(files(), ["evictlab-b", "evictlab-c", "own"]);
        node.delete_static_pods().unwrap();
        assert_eq!(files(), ["own"]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_tail_of_the_log_is_in_order() {
        let node = node("worker");
        for _ in 0..LOG_TAIL_LINES {
            node.restart_kubelet().unwrap();
            // Each start of the kubelet is logged.
            let seconds = tokio::time::timeout(Duration::from_secs(10), node.cluster.drive()).await;
            seconds.unwrap_err();
        }
        let all = node.kubelet_log(Timestamp::MIN).unwrap();
        assert!(all.len() > LOG_TAIL_LINES, "{all:?}");
        assert_eq!(node.log_tail().unwrap(), all[all.len() - LOG_TAIL_LINES..].join("\n"));
    }

    #[tokio::test]
    async fn errors_name_the_operation() {
        let error = node("other").set_paused(true).unwrap_err();
        assert_eq!(
            error.to_string(),
            "failed to stop or start the kubelet on node other: the cluster has no such node"
        );
    }
}
