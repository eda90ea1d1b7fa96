//! Conditions that a node has to meet before the next case.

use std::time::Duration;

use evictlab_cluster::wait::{self, Poll, StalledError};
use evictlab_cluster::workload::Namespace;
use evictlab_cluster::{Node, ProbeError, ProbePods, is_ready, system_taints};
use evictlab_rules::quantity::MIB;
use evictlab_rules::summary::{PodRef, Sample};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node as ApiNode;

use crate::recovery::canary::run_canary;

/// Limit for a recovering node without any change of its conditions, taints or memory.
pub(crate) const RECOVERY_PROGRESS_TIMEOUT: Duration = Duration::from_secs(90);
/// Growth of the node's memory use between two cases that counts as recovered, in bytes: the
/// kubelet and containerd vary by this much.
const MEMORY_TOLERANCE: u64 = 128 * MIB;
/// The same for statistics that may be older than the end of the case's last pod.
const OLD_MEMORY_TOLERANCE: u64 = 32 * MIB;

/// A node that did not recover.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecoveryError {
    /// Pressure conditions, taints or memory use remain.
    #[error("failed to wait for the recovery of node {node}: {stalled}")]
    NotRecovered {
        /// The node.
        node: String,
        /// Remaining conditions.
        stalled: StalledError,
    },
    /// The canary pod failed.
    #[error(transparent)]
    Canary(#[from] ProbeError),
}

/// State of a node without a case.
#[derive(Clone, Debug)]
pub(crate) struct NodeBaseline {
    /// Memory of all processes (`rssBytes`), in bytes; `None` if other workloads run on the node.
    /// The working set does not qualify: it contains page cache, which remains until memory is
    /// needed.
    pub rss: Option<u64>,
    /// System taints of the node outside of cases, such as that of a cordoned node.
    pub taints: Vec<String>,
    /// Limit for a recovery without progress.
    pub progress_timeout: Duration,
}

impl Default for NodeBaseline {
    fn default() -> Self {
        Self { rss: None, taints: Vec::new(), progress_timeout: RECOVERY_PROGRESS_TIMEOUT }
    }
}

/// Waits until the node is ready, its pressure conditions are `False`, their taints are removed,
/// its processes use no more memory than in the baseline, and no pod of a case runs: a pod that is
/// deleted at once is gone from the API before its processes have ended.
///
/// # Errors
/// Nothing changed for the baseline's progress timeout.
pub(crate) async fn wait_until_recovered(node: &Node, baseline: &NodeBaseline) -> Result<(), RecoveryError> {
    let mut usage = UsageOfCase::default();
    wait_until_nothing_remains(node, baseline, async || {
        let object = match node.object().await {
            Ok(object) => object,
            Err(error) => return vec![error.to_string()],
        };
        let remaining = remaining_pressure(&object, &baseline.taints);
        match baseline.rss {
            Some(before) if remaining.is_empty() => usage.remaining(node, before).await,
            _ => remaining,
        }
    })
    .await
}

/// Waits until the processes of a node use no more memory than `rss`, in bytes, and no pod of a
/// case runs, whatever the pressure conditions are.
///
/// # Errors
/// Nothing changed for the baseline's progress timeout.
pub(crate) async fn wait_until_unused(
    node: &Node,
    baseline: &NodeBaseline,
    rss: u64,
) -> Result<(), RecoveryError> {
    let mut usage = UsageOfCase::default();
    wait_until_nothing_remains(node, baseline, async || usage.remaining(node, rss).await).await
}

async fn wait_until_nothing_remains(
    node: &Node,
    baseline: &NodeBaseline,
    mut remaining: impl AsyncFnMut() -> Vec<String>,
) -> Result<(), RecoveryError> {
    let ended = wait::until(baseline.progress_timeout, Duration::from_millis(500), async || {
        let remaining = remaining().await;
        if remaining.is_empty() { Poll::Done(()) } else { Poll::Pending(remaining.join(", ")) }
    });
    ended.await.map_err(|stalled| RecoveryError::NotRecovered { node: node.name.clone(), stalled })
}

/// Reads what the pods of a case still use.
#[derive(Default)]
struct UsageOfCase {
    /// Time of the first statistics.
    first: Option<Option<Timestamp>>,
}

impl UsageOfCase {
    /// Returns descriptions of the memory, compared with that of all processes before the case, in
    /// bytes, and of the pods.
    async fn remaining(&mut self, node: &Node, before: u64) -> Vec<String> {
        let sample = match node.sample().await {
            Ok(sample) => sample,
            Err(error) => return vec![error.to_string()],
        };
        let time = sample.node.memory.as_ref().and_then(|memory| memory.time);
        let is_newer = *self.first.get_or_insert(time) != time;
        let pods = pods_of_cases(&sample).map(|pod| format!("pod {} still runs", pod.name));
        remaining_memory(&sample, before, is_newer).into_iter().chain(pods).collect()
    }
}

/// Waits until the node is ready, its pressure conditions are `False`, their taints are removed,
/// and the kubelet has no statistics of pods in these namespaces any more. Unlike
/// [`wait_until_recovered`], ignores other cases that run on the node.
///
/// # Errors
/// Nothing changed for the baseline's progress timeout.
pub(crate) async fn wait_until_pressure_ended(
    node: &Node,
    baseline: &NodeBaseline,
    namespaces: &[String],
) -> Result<(), RecoveryError> {
    wait::until(baseline.progress_timeout, Duration::from_secs(1), async || {
        let (object, sample) = match (node.object().await, node.sample().await) {
            (Ok(object), Ok(sample)) => (object, sample),
            (Err(error), _) | (_, Err(error)) => return Poll::Pending(error.to_string()),
        };
        let mut remaining = remaining_pressure(&object, &baseline.taints);
        let pods = pods_of_cases(&sample).filter(|pod| namespaces.contains(&pod.namespace));
        remaining.extend(pods.map(|pod| format!("pod {} still runs", pod.name)));
        if remaining.is_empty() { Poll::Done(()) } else { Poll::Pending(remaining.join(", ")) }
    })
    .await
    .map_err(|stalled| RecoveryError::NotRecovered { node: node.name.clone(), stalled })
}

/// Waits until the node has recovered, then runs a canary pod. Returns the canary's start time.
///
/// # Errors
/// The node did not recover, or the canary pod failed.
pub(crate) async fn verify_recovered(
    node: &Node,
    canaries: &ProbePods,
    baseline: &NodeBaseline,
    image: &dyn Fn(&str) -> String,
) -> Result<Duration, RecoveryError> {
    wait_until_recovered(node, baseline).await?;
    Ok(run_canary(node, canaries, image).await?)
}

/// Returns the memory of all processes of a node (`rssBytes`), in bytes.
pub(crate) fn process_memory(sample: &Sample) -> Option<u64> {
    u64::try_from(sample.node.memory.as_ref()?.rss_bytes?).ok()
}

/// Returns the pods of cases that the kubelet still has statistics of. Their namespaces may be
/// gone, so that only the name shows whose they are.
pub(crate) fn pods_of_cases(sample: &Sample) -> impl Iterator<Item = &PodRef> {
    let references = sample.pods.iter().map(|pod| &pod.pod_ref);
    references.filter(|pod| Namespace::is_own_name(&pod.namespace))
}

/// Returns the conditions and taints that keep a node from being recovered.
fn remaining_pressure(node: &ApiNode, taints_before: &[String]) -> Vec<String> {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let pressure = conditions
        .filter(|condition| condition.type_.ends_with("Pressure") && condition.status != "False")
        .map(|condition| format!("condition {} is {}", condition.type_, condition.status));
    let tainted = system_taints(node)
        .into_iter()
        .filter(|key| !taints_before.contains(key))
        .map(|key| format!("taint {key} remains"));
    let not_ready = (!is_ready(node)).then(|| "condition Ready is not True".to_owned());
    pressure.chain(tainted).chain(not_ready).collect()
}

/// Returns the memory that a case left on its node. `is_newer`: the statistics are newer than the
/// first ones, which may be older than the end of the last pod. If they show more memory than an
/// idle kubelet's variation, the next case would measure its distance to the threshold too early.
fn remaining_memory(sample: &Sample, before: u64, is_newer: bool) -> Option<String> {
    // Rounded, so that small variations do not count as progress.
    const ROUNDING_MIB: u64 = 32;
    let now = process_memory(sample)?;
    let rounded = now / MIB / ROUNDING_MIB * ROUNDING_MIB;
    let tolerance = if is_newer { MEMORY_TOLERANCE } else { OLD_MEMORY_TOLERANCE };
    (now > before + tolerance)
        .then(|| format!("processes use about {rounded}Mi of memory, {}Mi before the case", before / MIB))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn reports_remaining_pressure_taints_and_memory() {
        let node = |ready: &str, pressure: &str, taints: Value| -> ApiNode {
            serde_json::from_value(json!({
                "spec": {"taints": taints},
                "status": {"conditions": [
                    {"type": "MemoryPressure", "status": pressure},
                    {"type": "Ready", "status": ready},
                ]},
            }))
            .unwrap()
        };
        let custom = json!([{"key": "custom", "effect": "NoSchedule"}]);
        assert!(remaining_pressure(&node("True", "False", custom), &[]).is_empty());
        let cordoned = node(
            "True",
            "False",
            json!([{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]),
        );
        assert_eq!(remaining_pressure(&cordoned, &[]), ["taint node.kubernetes.io/unschedulable remains"]);
        assert!(
            remaining_pressure(&cordoned, &system_taints(&cordoned)).is_empty(),
            "the node was cordoned before the case"
        );
        let taint = json!([{"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"}]);
        assert_eq!(
            remaining_pressure(&node("False", "True", taint), &[]),
            [
                "condition MemoryPressure is True",
                "taint node.kubernetes.io/memory-pressure remains",
                "condition Ready is not True"
            ]
        );
        let pod = |namespace: &str| json!({"podRef": {"namespace": namespace, "name": "p", "uid": "u"}});
        let summary: Sample = serde_json::from_value(json!({
            "node": {"memory": {"rssBytes": 400u64 << 20}},
            "pods": [pod("kube-system"), pod("evictlab-case-x")],
        }))
        .unwrap();
        let namespaces: Vec<&str> = pods_of_cases(&summary).map(|pod| pod.namespace.as_str()).collect();
        assert_eq!(namespaces, ["evictlab-case-x"]);
        assert_eq!(remaining_memory(&summary, 310 << 20, true), None);
        assert_eq!(
            remaining_memory(&summary, 200 << 20, true).unwrap(),
            "processes use about 384Mi of memory, 200Mi before the case"
        );
        assert_eq!(
            remaining_memory(&summary, 310 << 20, false).unwrap(),
            "processes use about 384Mi of memory, 310Mi before the case",
            "the first statistics may be older than the end of a pod"
        );
    }
}
