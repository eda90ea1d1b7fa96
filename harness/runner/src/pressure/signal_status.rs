//! Available amount and capacity of an eviction signal, read from the Summary API.

use evictlab_case::PressureSignal;
use evictlab_rules::summary::{FsStats, MemoryStats, NodeStats};
use serde::Deserialize;
use serde_json::Value;

/// Available amount and capacity of a signal on a node, in bytes, inodes or process IDs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalStatus {
    /// Available amount.
    pub available: u64,
    /// Capacity of the node.
    pub capacity: u64,
    /// Working set of the `pods` cgroup; 0 for every signal but `memory.available`.
    pub used_by_pods: u64,
}

impl SignalStatus {
    /// Reads the status of a signal from a Summary. A value that the kubelet did not report is 0.
    pub(crate) fn from_summary(summary: &Value, signal: PressureSignal) -> Self {
        let node = node_stats(summary);
        let available = available_on(&node, signal).unwrap_or(0);
        let fs = file_system(&node, signal);
        let capacity = match signal {
            PressureSignal::MemoryAvailable => available + working_set(node.memory.as_ref()),
            PressureSignal::NodefsAvailable | PressureSignal::ImagefsAvailable => {
                unsigned(fs.and_then(|fs| fs.capacity_bytes))
            }
            PressureSignal::NodefsInodesFree | PressureSignal::ImagefsInodesFree => {
                unsigned(fs.and_then(|fs| fs.inodes))
            }
            PressureSignal::PidAvailable => unsigned(node.rlimit.as_ref().and_then(|rlimit| rlimit.maxpid)),
        };
        let used_by_pods = match signal {
            PressureSignal::MemoryAvailable => {
                let pods = node.system_containers.iter().find(|cgroup| cgroup.name == "pods");
                working_set(pods.and_then(|pods| pods.memory.as_ref()))
            }
            _ => 0,
        };
        Self { available, capacity, used_by_pods }
    }
}

/// Returns the available amount of a signal by a Summary or a sample of it, in bytes, inodes or
/// process IDs; `None` if the kubelet did not report it.
pub(crate) fn available(summary: &Value, signal: PressureSignal) -> Option<u64> {
    available_on(&node_stats(summary), signal)
}

/// Deserializes the node's part of a Summary; empty if it has another shape.
pub(crate) fn node_stats(summary: &Value) -> NodeStats {
    summary.get("node").and_then(|node| NodeStats::deserialize(node).ok()).unwrap_or_default()
}

fn available_on(node: &NodeStats, signal: PressureSignal) -> Option<u64> {
    let amount = match signal {
        PressureSignal::MemoryAvailable => node.memory.as_ref()?.available_bytes?,
        PressureSignal::NodefsAvailable | PressureSignal::ImagefsAvailable => {
            file_system(node, signal)?.available_bytes?
        }
        PressureSignal::NodefsInodesFree | PressureSignal::ImagefsInodesFree => {
            file_system(node, signal)?.inodes_free?
        }
        PressureSignal::PidAvailable => {
            let rlimit = node.rlimit.as_ref()?;
            rlimit.maxpid?.checked_sub(rlimit.curproc?)?
        }
    };
    u64::try_from(amount).ok()
}

/// Returns the file system of a signal.
fn file_system(node: &NodeStats, signal: PressureSignal) -> Option<&FsStats> {
    if signal.is_on_imagefs() { node.runtime.as_ref()?.image_fs.as_ref() } else { node.fs.as_ref() }
}

fn working_set(memory: Option<&MemoryStats>) -> u64 {
    unsigned(memory.and_then(|memory| memory.working_set_bytes))
}

fn unsigned(value: Option<i64>) -> u64 {
    value.and_then(|value| u64::try_from(value).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_each_signal_from_a_summary() {
        let memory =
            |available: u64, used: u64| json!({"availableBytes": available, "workingSetBytes": used});
        let summary = json!({"node": {
            "memory": memory(600, 400),
            "fs": {"availableBytes": 70, "capacityBytes": 100, "inodesFree": 7, "inodes": 10},
            "runtime": {"imageFs": {"availableBytes": 50, "capacityBytes": 60, "inodesFree": 5, "inodes": 6}},
            "rlimit": {"maxpid": 1000, "curproc": 900},
            "systemContainers": [{"name": "kubelet"}, {"name": "pods", "memory": memory(500, 300)}],
        }});
        let rows = [
            (PressureSignal::MemoryAvailable, (600, 1000, 300)),
            (PressureSignal::NodefsAvailable, (70, 100, 0)),
            (PressureSignal::NodefsInodesFree, (7, 10, 0)),
            (PressureSignal::ImagefsAvailable, (50, 60, 0)),
            (PressureSignal::ImagefsInodesFree, (5, 6, 0)),
            (PressureSignal::PidAvailable, (100, 1000, 0)),
        ];
        for (signal, (available, capacity, used_by_pods)) in rows {
            let expected = SignalStatus { available, capacity, used_by_pods };
            assert_eq!(SignalStatus::from_summary(&summary, signal), expected);
            assert_eq!(super::available(&json!({}), signal), None, "not reported");
        }
    }
}
