//! What a node must show before the next case may have it.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node as ApiNode;
use serde_json::Value;

use crate::cluster::{Node, is_ready};
use crate::stage::{Namespace, StageError};
use crate::wait::{self, Probe, Stalled};

/// How long a node may show no change on its way back.
pub const PATIENCE: Duration = Duration::from_secs(90);
/// How much more memory than before the last case a node's processes may still use, in bytes: the kubelet and containerd breathe.
const SLACK: u64 = 128 * 1024 * 1024;

/// How the keys of Kubernetes' own taints begin.
const OWN_TAINTS: &str = "node.kubernetes.io/";

/// A node that did not come back to itself.
#[derive(Debug, thiserror::Error)]
pub enum NotItself {
    /// Pressure, taints or memory stay.
    #[error("node {node} is not itself again: {stalled}")]
    Lingers {
        /// The node.
        node: String,
        /// What was last seen.
        stalled: Stalled,
    },
    /// It takes no pods.
    #[error("node {node} takes no pods: {why}")]
    NoPods {
        /// The node.
        node: String,
        /// What the canary's status says.
        why: String,
    },
    /// The API could not be asked.
    #[error(transparent)]
    Stage(#[from] StageError),
}

/// A node when it is itself.
#[derive(Clone, Debug)]
pub struct Itself {
    /// What its processes use, `rssBytes`, in bytes, if that tells anything. The working set has the page cache, too, which stays as long as
    /// nobody needs its room.
    pub rss: Option<u64>,
    /// Kubernetes' own taints that it has all the time, such as a cordoned node's.
    pub taints: Vec<String>,
    /// How long it may show no change on its way back.
    pub patience: Duration,
}

impl Default for Itself {
    fn default() -> Self {
        Self { rss: None, taints: Vec::new(), patience: PATIENCE }
    }
}

/// Waits until the node's pressure conditions are false and their taints gone, and its processes use no more memory than they did.
pub async fn recovered(node: &Node, itself: &Itself) -> Result<(), NotItself> {
    wait::until(itself.patience, Duration::from_millis(250), async || {
        let object = match node.object().await {
            Ok(object) => object,
            Err(error) => return Probe::Pending(error.to_string()),
        };
        let mut lingers = pressed(&object, &itself.taints);
        if let Some(before) = itself.rss
            && lingers.is_empty()
        {
            match node.summary().await {
                Ok(summary) => lingers.extend(still_used(&summary, before)),
                Err(error) => lingers.push(error.to_string()),
            }
        }
        if lingers.is_empty() { Probe::Done(()) } else { Probe::Pending(lingers.join(", ")) }
    })
    .await
    .map_err(|stalled| NotItself::Lingers { node: node.name.clone(), stalled })
}

/// Waits until the node is [`recovered`], then runs a canary. Returns how long that took to start.
pub async fn proof(
    node: &Node,
    namespace: &Namespace,
    itself: &Itself,
    image: &dyn Fn(&str) -> String,
) -> Result<Duration, NotItself> {
    recovered(node, itself).await?;
    super::canary(node, namespace, image)
        .await?
        .map_err(|why| NotItself::NoPods { node: node.name.clone(), why })
}

/// What of pressure a node still shows.
fn pressed(node: &ApiNode, own: &[String]) -> Vec<String> {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let held = conditions
        .filter(|condition| condition.type_.ends_with("Pressure") && condition.status != "False")
        .map(|condition| format!("{} is {}", condition.type_, condition.status));
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let tainted = taints
        .filter(|taint| taint.key.starts_with(OWN_TAINTS) && !own.contains(&taint.key))
        .map(|taint| format!("taint {} is there", taint.key));
    let unready = (!is_ready(node)).then(|| "it is not ready".to_owned());
    held.chain(tainted).chain(unready).collect()
}

/// Those of Kubernetes' own taints that a node has.
pub fn own_taints(node: &ApiNode) -> Vec<String> {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.map(|taint| taint.key.clone()).filter(|key| key.starts_with(OWN_TAINTS)).collect()
}

fn still_used(summary: &Value, before: u64) -> Option<String> {
    const MIB: u64 = 1024 * 1024;
    // In steps, so that a little more or less does not look like progress.
    const STEP: u64 = 32;
    let now = summary["node"]["memory"]["rssBytes"].as_u64()?;
    let about = now / MIB / STEP * STEP;
    (now > before + SLACK)
        .then(|| format!("its processes use about {about}Mi of memory and used {}Mi before", before / MIB))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pressure_taints_and_memory_are_seen() {
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
        let mine = json!([{"key": "mine", "effect": "NoSchedule"}]);
        assert!(pressed(&node("True", "False", mine), &[]).is_empty());
        let cordoned = node(
            "True",
            "False",
            json!([{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]),
        );
        assert_eq!(pressed(&cordoned, &[]), ["taint node.kubernetes.io/unschedulable is there"]);
        assert!(pressed(&cordoned, &own_taints(&cordoned)).is_empty(), "it was cordoned before");
        let taint = json!([{"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"}]);
        assert_eq!(
            pressed(&node("False", "True", taint), &[]),
            [
                "MemoryPressure is True",
                "taint node.kubernetes.io/memory-pressure is there",
                "it is not ready"
            ]
        );
        let summary = json!({"node": {"memory": {"rssBytes": 400u64 << 20}}});
        assert_eq!(still_used(&summary, 310 << 20), None);
        assert_eq!(
            still_used(&summary, 200 << 20).unwrap(),
            "its processes use about 384Mi of memory and used 200Mi before"
        );
    }
}
