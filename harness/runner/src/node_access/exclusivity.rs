//! Exclusivity: resources that a case does not share with other cases.

use evictlab_case::expression::Variable;
use evictlab_case::{Case, NodeSetup, PressureMechanism, PressureSignal};
use schemars::JsonSchema;
use serde::Serialize;

/// Resource that a case needs for itself while it runs, each including the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Exclusivity {
    /// None: the case runs beside other cases on its node.
    Shared,
    /// The node, for example because its kubelet is reconfigured.
    Node,
    /// The node and the disk that it shares with other nodes.
    Disk,
    /// The node, and the disk, the process IDs and the processors of the host.
    Host,
}

/// Resources that the nodes of a cluster share, each including the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SharedResources {
    /// Every node is a separate machine.
    Nothing,
    /// Memory and process IDs of one host; each node has a disk of its own.
    Host,
    /// Memory, process IDs and the disk of one host.
    HostAndDisk,
}

/// Variables that also contain evictions of other cases.
const SHARED_VARIABLES: [Variable; 3] = [Variable::Counted, Variable::Metrics, Variable::KubeletLog];

/// Returns the exclusivity of a case on nodes that share resources.
///
/// A case needs its node if it
/// - has pressure or faults, or changes the node or the kubelet's configuration,
/// - states when a pod is killed, with `killed-within` or `killed-after`, or
/// - reads `counted`, `metrics` or `kubeletLog`, which also contain evictions of other cases.
///
/// On one host, PID pressure and nodes with limited memory also need the host, and disk
/// pressure a shared disk: one such case runs at a time. Others run beside it: they write and start
/// much less than the distance to its threshold. A node that runs out of memory reads its programs
/// from the disk again and again: several at once take the processors and the disk of all others.
pub fn exclusivity(case: &Case, shared: SharedResources) -> Exclusivity {
    let of_signal = |signal: PressureSignal| match signal {
        PressureSignal::MemoryAvailable => Exclusivity::Node,
        PressureSignal::NodefsAvailable
        | PressureSignal::NodefsInodesFree
        | PressureSignal::ImagefsAvailable
        | PressureSignal::ImagefsInodesFree => match shared {
            SharedResources::HostAndDisk => Exclusivity::Disk,
            SharedResources::Host | SharedResources::Nothing => Exclusivity::Node,
        },
        PressureSignal::PidAvailable => match shared {
            SharedResources::HostAndDisk | SharedResources::Host => Exclusivity::Host,
            SharedResources::Nothing => Exclusivity::Node,
        },
    };
    match &case.pressure {
        // The copy of containerd's directory changes a shared disk.
        _ if case.node.file_systems.is_some() && shared == SharedResources::HostAndDisk => Exclusivity::Disk,
        // A reservation limits the pods of the node only.
        Some(pressure) if pressure.by == PressureMechanism::KubeReserved => {
            pressure.also.keys().copied().map(of_signal).max().unwrap_or(Exclusivity::Node)
        }
        _ if case.node.memory.is_some() && shared != SharedResources::Nothing => Exclusivity::Host,
        Some(pressure) => pressure.signals().map(of_signal).max().unwrap_or(Exclusivity::Node),
        // A kubelet evicts no other pod while it waits for an evicted one to terminate.
        None if case.expect.killed_within.or(case.expect.killed_after).is_some() => Exclusivity::Node,
        None if changes_node(case) => Exclusivity::Node,
        None if SHARED_VARIABLES.into_iter().any(|variable| case.references(variable)) => Exclusivity::Node,
        None => Exclusivity::Shared,
    }
}

fn changes_node(case: &Case) -> bool {
    // The host has the swap; the case only needs it.
    let NodeSetup { memory, huge_pages, swap: _, capacity, unused_image, file_systems } = &case.node;
    !case.kubelet_config.is_empty()
        || !case.faults.is_empty()
        || !case.static_pods.is_empty()
        || memory.is_some()
        || huge_pages.is_some()
        || !capacity.is_empty()
        || file_systems.is_some()
        || unused_image.is_some()
        || case.node_changes().next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_exclusive_where_they_disturb_others() {
        use SharedResources::{Host, HostAndDisk, Nothing};
        let rows = [
            ("", HostAndDisk, Exclusivity::Shared),
            ("kubelet-config: {evictionMaxPodGracePeriod: 3}", HostAndDisk, Exclusivity::Node),
            ("pressure: {signal: memory.available}", HostAndDisk, Exclusivity::Node),
            ("faults: [{kubelet-restart: {}}]", Nothing, Exclusivity::Node),
            ("static-pods: [{}]", HostAndDisk, Exclusivity::Node),
            ("do: [{create-static-pod: {}}]", HostAndDisk, Exclusivity::Node),
            ("expect: {killed-within: 30s}", HostAndDisk, Exclusivity::Node),
            ("pressure: {signal: nodefs.available}", HostAndDisk, Exclusivity::Disk),
            ("pressure: {signal: nodefs.inodesFree}", HostAndDisk, Exclusivity::Disk),
            ("pressure: {signal: pid.available}", HostAndDisk, Exclusivity::Host),
            (
                "pressure: {signal: memory.available, also: {nodefs.available: 1Gi}}",
                HostAndDisk,
                Exclusivity::Disk,
            ),
            (
                "pressure: {signal: memory.available, by: kube-reserved, also: {nodefs.available: 1Gi}}",
                HostAndDisk,
                Exclusivity::Disk,
            ),
            ("pressure: {signal: nodefs.available}", Nothing, Exclusivity::Node),
            ("pressure: {signal: imagefs.available}", HostAndDisk, Exclusivity::Disk),
            ("node: {file-systems: {imagefs: 8Gi}}", HostAndDisk, Exclusivity::Disk),
            ("node: {file-systems: {imagefs: 8Gi}}", Host, Exclusivity::Node),
            ("pressure: {signal: nodefs.available}", Host, Exclusivity::Node),
            ("pressure: {signal: pid.available}", Host, Exclusivity::Host),
            ("node: {memory: 1500Mi}", Host, Exclusivity::Host),
            ("node: {memory: 1500Mi}", Nothing, Exclusivity::Node),
            ("pressure: {signal: pid.available, by: kube-reserved}", HostAndDisk, Exclusivity::Node),
        ];
        for (more, shared, expected) in rows {
            let mut case = serde_json::json!({"name": "a", "about": "b", "pods": [], "expect": {}});
            let added: serde_json::Value = serde_saphyr::from_str(&format!("{{{more}}}")).unwrap();
            for (key, value) in added.as_object().into_iter().flatten() {
                case[key] = value.clone();
            }
            assert_eq!(exclusivity(&serde_json::from_value(case).unwrap(), shared), expected, "{more}");
        }
    }
}
