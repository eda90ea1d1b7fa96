//! Guard of a case on a node that evictlab does not manage: it ends the case before others suffer.

use std::time::Duration;

use evictlab_cluster::PressureForbidden;
use evictlab_cluster::workload::Namespace;
use evictlab_rules::quantity::MIB;
use evictlab_rules::summary::Sample;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::SemaphorePermit;

use crate::case_runner::error::CaseError;
use crate::case_runner::runner::CaseRunner;
use crate::lease::node_policy::NodePolicy;

/// Interval of the checks.
const INTERVAL: Duration = Duration::from_secs(5);
/// Memory or disk that the pods of a case may take beyond `--pressure-cap`: page cache and
/// containers without load.
const MARGIN: u64 = 256 * MIB;

impl CaseRunner<'_> {
    /// Waits until the case must end early on a node that evictlab does not manage; forever on
    /// other nodes. The case ends when the run has lost the node, when pods of others have arrived
    /// on a node under pressure, and when its pods take more than the cap.
    pub(super) async fn guard(&self, namespace: &Namespace) -> CaseError {
        let Some(policy) = &self.leased.policy else { return std::future::pending().await };
        loop {
            tokio::time::sleep(INTERVAL).await;
            if let Err(error) = self.check_node(policy, namespace).await {
                return error;
            }
        }
    }

    async fn check_node(&self, policy: &NodePolicy, namespace: &Namespace) -> Result<(), CaseError> {
        let node = &self.leased.node;
        node.backend().confirm_held().await?;
        if !policy.may_starve(&self.case.case) {
            return Ok(());
        }
        // A request that fails is repeated with the next check.
        let others = node.other_pods().await.unwrap_or_default();
        if !others.is_empty() && !policy.allows_other_pods() {
            let forbidden = PressureForbidden::InUse(others);
            return Err(CaseError::EndedByGuard(format!("it puts its node under pressure, {forbidden}")));
        }
        let used = node.summary().await.map(|summary| most_used(&summary, &namespace.name)).unwrap_or(0);
        let cap = policy.max_pressure_bytes();
        if used > cap.saturating_add(MARGIN) {
            let (used, cap) = (used / MIB, cap / MIB);
            return Err(CaseError::EndedByGuard(format!(
                "its pods took {used}Mi of memory or disk, more than the cap of {cap}Mi (--pressure-cap)"
            )));
        }
        Ok(())
    }

    /// Waits until the node may come under pressure beside the others (`--max-starved-nodes`).
    pub(super) async fn acquire_starvation(&self) -> Result<Option<SemaphorePermit<'_>>, CaseError> {
        let may_starve = self.leased.policy.as_ref().is_some_and(|policy| policy.may_starve(&self.case.case));
        let Some(nodes) = self.starved_nodes.filter(|_| may_starve) else { return Ok(None) };
        let acquire = async { Ok::<_, CaseError>(nodes.acquire().await.ok()) };
        self.cancellable(acquire).await
    }
}

/// Returns the memory or the disk space of the pods of a namespace by a Summary, in bytes,
/// whichever is more.
fn most_used(summary: &Value, namespace: &str) -> u64 {
    let Ok(sample) = Sample::deserialize(summary) else { return 0 };
    let pods = sample.pods.iter().filter(|pod| pod.pod_ref.namespace == namespace);
    let used = pods.map(|pod| {
        let memory = pod.memory.as_ref().and_then(|memory| memory.working_set_bytes);
        let disk = pod.ephemeral_storage.as_ref().and_then(|disk| disk.used_bytes);
        [memory, disk].map(|bytes| u64::try_from(bytes.unwrap_or(0)).unwrap_or(0))
    });
    let [memory, disk] = used.fold([0, 0], |sum: [u64; 2], pod| [sum[0] + pod[0], sum[1] + pod[1]]);
    memory.max(disk)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sums_the_pods_of_the_namespace() {
        let pod = |namespace: &str, memory: u64, disk: u64| {
            json!({
                "podRef": {"name": "p", "namespace": namespace, "uid": ""},
                "memory": {"workingSetBytes": memory},
                "ephemeral-storage": {"usedBytes": disk},
            })
        };
        let summary = json!({"node": {}, "pods": [pod("a", 10, 1), pod("b", 500, 500), pod("a", 20, 70)]});
        assert_eq!(
            (most_used(&summary, "a"), most_used(&summary, "b"), most_used(&summary, "c")),
            (71, 500, 0)
        );
    }
}
