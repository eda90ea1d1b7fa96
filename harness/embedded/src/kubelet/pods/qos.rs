//! OOM scores of containers (`pkg/kubelet/qos/policy.go`).

use evictlab_rules::KubeletVersion;
use evictlab_rules::pod::{Container, Pod, QosClass};

use crate::defect::{Defect, Defects};

use super::spec::{ContainerIndex, Group, Manifest};

const GUARANTEED: i64 = -997;
const BEST_EFFORT: i64 = 1000;
/// Priority class of node-critical pods.
const NODE_CRITICAL: &str = "system-node-critical";
/// Priority class of cluster-critical pods.
const CLUSTER_CRITICAL: &str = "system-cluster-critical";

/// Returns the `oom_score_adj` of a container on a node with `memory` bytes.
pub(super) fn oom_score_adj(
    manifest: &Manifest,
    place: ContainerIndex,
    capacity: u64,
    (version, defects): (&KubeletVersion, &Defects),
) -> i32 {
    let pod = &manifest.pod;
    // `IsNodeCriticalPod` needs the class; static pods and other critical pods do not qualify.
    let is_protected = |class: &str| match class {
        NODE_CRITICAL => !defects.has(Defect::OomNodeCriticalByQos),
        CLUSTER_CRITICAL => defects.has(Defect::OomClusterCriticalProtected),
        _ => false,
    };
    let critical =
        pod.is_critical() && manifest.spec.priority_class_name.as_deref().is_some_and(is_protected);
    let score = if critical {
        GUARANTEED
    } else {
        match pod.qos_class() {
            QosClass::Guaranteed if defects.has(Defect::OomGuaranteedDiffers) => GUARANTEED - 1,
            QosClass::Guaranteed => GUARANTEED,
            QosClass::BestEffort if defects.has(Defect::OomBestEffortLowered) => BEST_EFFORT - 1,
            QosClass::BestEffort => BEST_EFFORT,
            QosClass::Burstable if defects.has(Defect::OomBurstableIgnoresRequest) => BEST_EFFORT - 1,
            QosClass::Burstable => {
                burstable(pod, place, i64::try_from(capacity).unwrap_or(i64::MAX).max(1), (version, defects))
            }
        }
    };
    i32::try_from(score).unwrap_or(i32::MAX)
}

fn burstable(
    pod: &Pod,
    place: ContainerIndex,
    capacity: i64,
    (version, defects): (&KubeletVersion, &Defects),
) -> i64 {
    let list = match place.group {
        Group::Init => &pod.spec.init_containers,
        Group::Regular => &pod.spec.containers,
        Group::Ephemeral => &pod.spec.ephemeral_containers,
    };
    let Some(container) = list.get(place.index) else { return BEST_EFFORT - 1 };
    let request = |container: &Container| container.request("memory").map_or(0, |request| request.value());
    // `PodLevelResources`, on by default since 1.34: requests beyond those of the containers are
    // shared among them.
    let reads_pod = version.at_least(34) && !defects.has(Defect::OomBurstableIgnoresPodRequest);
    let rest = if reads_pod && pod.has_pod_level_resources() {
        // Plain init containers do not run at the same time as the others
        // (`remainingPodMemReqPerContainer` in pkg/kubelet/qos/helpers.go).
        let own = pod.container_requests("memory").value();
        let of_pod = pod.pod_level_request("memory").map_or(0, |request| request.value());
        let sharers = if defects.has(Defect::OomPodRequestOmitsInitContainers) {
            pod.spec.containers.len()
        } else {
            pod.spec.containers.len() + pod.spec.init_containers.len()
        };
        (of_pod - own).max(0) / i64::try_from(sharers).unwrap_or(1).max(1)
    } else {
        0
    };
    let score = |request: i64, rest: i64| {
        let share = i128::from(request + rest) * 1000 / i128::from(capacity);
        1000 - i64::try_from(share).unwrap_or(i64::MAX)
    };
    let mut adjust = score(request(container), rest);
    // Since 1.32 the score of a sidecar does not exceed that of any regular container of its pod.
    let shares = version.at_least(32) != defects.has(Defect::OomSidecarOfOtherVersion);
    if shares && place.group == Group::Init && container.is_sidecar() {
        let mut requests = pod.spec.containers.iter().map(request);
        let of_first = defects.has(Defect::OomSidecarOfFirstContainer);
        let least = if of_first { requests.next() } else { requests.min() };
        let rest = if defects.has(Defect::OomSidecarOmitsPodShare) { 0 } else { rest };
        let of_others = score(least.unwrap_or(0), rest);
        let ignores_own = defects.has(Defect::OomSidecarIgnoresOwnRequest);
        adjust = if ignores_own { of_others } else { adjust.min(of_others) };
    }
    adjust.clamp(1000 + GUARANTEED, BEST_EFFORT - 1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::spec::KnownFields;
    use super::*;

    fn pod(spec: serde_json::Value) -> Manifest {
        Manifest::read(&json!({"spec": spec}), KnownFields::ALL)
    }

    #[test]
    fn burstable_score_falls_with_memory_request() {
        let pod = pod(json!({"containers": [
            {"name": "a", "resources": {"requests": {"memory": "256Mi"}}},
            {"name": "b"},
        ]}));
        let score = |index| {
            oom_score_adj(
                &pod,
                ContainerIndex { group: Group::Regular, index },
                1 << 30,
                (&KubeletVersion::from_minor(31), &Defects::default()),
            )
        };
        assert_eq!((score(0), score(1)), (750, 999));
    }

    /// A plain init container does not add to the requests of the others.
    #[test]
    fn containers_share_the_rest_of_the_pod_level_request() {
        let container =
            |name: &str, memory: &str| json!({"name": name, "resources": {"requests": {"memory": memory}}});
        let pod = pod(json!({
            "resources": {"requests": {"memory": "1Gi"}},
            "initContainers": [container("i", "400Mi")],
            "containers": [container("a", "200Mi"), container("b", "200Mi")],
        }));
        let place = ContainerIndex { group: Group::Regular, index: 0 };
        let score =
            oom_score_adj(&pod, place, 8 << 30, (&KubeletVersion::from_minor(36), &Defects::default()));
        assert_eq!(score, 951);
    }

    #[test]
    fn from_1_32_a_sidecar_shares_the_fate_of_regular_containers() {
        let pod = pod(json!({
            "initContainers": [{"name": "s", "restartPolicy": "Always"}],
            "containers": [{"name": "a", "resources": {"requests": {"memory": "256Mi"}}}],
        }));
        let score = |minor| {
            oom_score_adj(
                &pod,
                ContainerIndex { group: Group::Init, index: 0 },
                1 << 30,
                (&KubeletVersion::from_minor(minor), &Defects::default()),
            )
        };
        assert_eq!((score(31), score(32)), (999, 750));
    }
}
