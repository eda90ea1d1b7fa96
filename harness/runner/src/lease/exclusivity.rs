//! Exclusivity: resources that a case does not share with other cases.

use evictlab_case::{Case, Signal};
use serde::Serialize;

/// Resource that a case needs for itself while it runs, each including the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exclusivity {
    /// None: the case runs beside other cases on its node.
    Shared,
    /// The node, for example because its kubelet is reconfigured.
    Node,
    /// The node and the disk, which all nodes of a host share.
    Disk,
    /// The host: pods on any node change the signal.
    Host,
}

/// Returns the exclusivity of a case. `one_host`: all nodes share one host, as with kind.
///
/// A case that changes its node or the kubelet's configuration, or that has pressure or faults,
/// needs its node. On one host, disk pressure also needs the disk and process id pressure the host:
/// other cases write much less than the distance to a threshold, but start hundreds of processes.
pub fn exclusivity(case: &Case, one_host: bool) -> Exclusivity {
    let of_signal = |signal: Signal| match signal {
        Signal::NodefsAvailable | Signal::NodefsInodesFree if one_host => Exclusivity::Disk,
        Signal::PidAvailable if one_host => Exclusivity::Host,
        _ => Exclusivity::Node,
    };
    match &case.pressure {
        Some(pressure) => pressure.signals().map(of_signal).max().unwrap_or(Exclusivity::Node),
        // A kubelet evicts no other pod while it waits for an evicted one to terminate.
        None if case.expect.killed_within.or(case.expect.killed_after).is_some() => Exclusivity::Node,
        None if changes_node(case) => Exclusivity::Node,
        // The counters and the log also contain evictions of other cases.
        None if ["counted", "metrics", "kubeletLog"].iter().any(|one| case.references(one)) => {
            Exclusivity::Node
        }
        None => Exclusivity::Shared,
    }
}

fn changes_node(case: &Case) -> bool {
    !case.kubelet_config.is_empty()
        || !case.faults.is_empty()
        || !case.static_pods.is_empty()
        || case.node.memory.is_some()
        || !case.node.capacity.is_empty()
        || case.node_changes().next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_exclusive_where_they_disturb_others() {
        let rows = [
            ("", true, Exclusivity::Shared),
            ("kubelet-config: {evictionMaxPodGracePeriod: 3}", true, Exclusivity::Node),
            ("pressure: {signal: memory.available}", true, Exclusivity::Node),
            ("faults: [{kubelet-restart: {}}]", false, Exclusivity::Node),
            ("expect: {killed-within: 30s}", true, Exclusivity::Node),
            ("pressure: {signal: nodefs.available}", true, Exclusivity::Disk),
            ("pressure: {signal: nodefs.inodesFree}", true, Exclusivity::Disk),
            ("pressure: {signal: pid.available}", true, Exclusivity::Host),
            ("pressure: {signal: memory.available, also: {nodefs.available: 1Gi}}", true, Exclusivity::Disk),
            ("pressure: {signal: nodefs.available}", false, Exclusivity::Node),
        ];
        for (more, one_host, expected) in rows {
            let mut case = serde_json::json!({"name": "a", "about": "b", "pods": [], "expect": {}});
            let added: serde_json::Value = serde_saphyr::from_str(&format!("{{{more}}}")).unwrap();
            for (key, value) in added.as_object().into_iter().flatten() {
                case[key] = value.clone();
            }
            assert_eq!(exclusivity(&serde_json::from_value(case).unwrap(), one_host), expected, "{more}");
        }
    }
}
