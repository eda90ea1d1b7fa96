//! Properties of a node that its API server does not report.

use evictlab_rules::CgroupVersion;
use evictlab_rules::quantity::KIB;
use k8s_openapi::api::core::v1::Pod;

use super::error::ProbeError;
use super::pod::{POD_TIMEOUT, ProbePod, ProbePods, container_status};

/// Script of the pod. It exits with 0 on cgroup v2, whose root is the only one with this file. The
/// termination message is the memory of the kernel, which may differ from that of the node.
const SCRIPT: &str = "cat /proc/meminfo > /dev/termination-log; [ -e /sys/fs/cgroup/cgroup.controllers ]";

/// Returns `MemAvailable` of `/proc/meminfo`, in bytes.
pub fn available_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    kib.checked_mul(KIB)
}

/// Result of [`probe`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProbeResult {
    /// cgroup version of the kernel.
    pub(crate) cgroup: CgroupVersion,
    /// Available memory of the kernel in bytes, if it could be read.
    pub(crate) available: Option<u64>,
    /// True if the default priority class of the cluster, which the pod got, preempts others.
    pub(crate) preempts: bool,
}

/// Runs a probe pod on a node.
pub(crate) async fn probe(pods: &ProbePods, node: &str, image: &str) -> Result<ProbeResult, ProbeError> {
    let purpose = "look".to_owned();
    let pod = ProbePod { node, purpose, image, command: &["sh", "-c", SCRIPT], timeout: POD_TIMEOUT };
    pods.run(&pod, parse_result).await
}

fn parse_result(pod: &Pod) -> Option<ProbeResult> {
    let terminated = container_status(pod)?.state.as_ref()?.terminated.as_ref()?;
    let cgroup = match terminated.exit_code {
        0 => CgroupVersion::V2,
        1 => CgroupVersion::V1,
        _ => return None,
    };
    let available = terminated.message.as_deref().and_then(available_memory);
    Some(ProbeResult { cgroup, available, preempts: preempts(pod) })
}

/// Returns whether the scheduler would preempt others for a pod: pods without a class have the
/// priority 0, and those below make room on purpose.
fn preempts(pod: &Pod) -> bool {
    let Some(spec) = &pod.spec else { return false };
    spec.priority.is_some_and(|priority| priority > 0) && spec.preemption_policy.as_deref() != Some("Never")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn reads_available_memory() {
        let meminfo = "MemTotal:       24000000 kB\nMemAvailable:   20480 kB\n";
        assert_eq!(available_memory(meminfo), Some(20 << 20));
        assert_eq!(available_memory("MemTotal: 1 kB\n"), None);
        assert_eq!(available_memory("MemAvailable: 18446744073709551615 kB\n"), None);
    }

    #[test]
    fn reads_exit_status_and_message() {
        let pod = |state: Value| -> Pod {
            let statuses = json!([{"name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": state}]);
            serde_json::from_value(json!({"metadata": {}, "status": {"containerStatuses": statuses}}))
                .unwrap()
        };
        let terminated = |code: i64, message: Option<&str>| {
            pod(json!({"terminated": {"exitCode": code, "message": message}}))
        };
        let meminfo = "MemTotal:       24000000 kB\nMemFree: 1 kB\nMemAvailable:   20480 kB\n";
        assert_eq!(
            parse_result(&terminated(0, Some(meminfo))),
            Some(ProbeResult { cgroup: CgroupVersion::V2, available: Some(20 << 20), preempts: false })
        );
        assert_eq!(
            parse_result(&terminated(1, None)),
            Some(ProbeResult { cgroup: CgroupVersion::V1, available: None, preempts: false })
        );
        assert_eq!(parse_result(&terminated(127, None)), None);
        assert_eq!(parse_result(&pod(json!({"running": {}}))), None);
    }

    #[test]
    fn a_default_class_above_others_preempts_unless_it_never_does() {
        let rows = [
            (json!({"containers": []}), false),
            (json!({"containers": [], "priority": 0, "preemptionPolicy": "PreemptLowerPriority"}), false),
            (json!({"containers": [], "priority": 100, "preemptionPolicy": "PreemptLowerPriority"}), true),
            (json!({"containers": [], "priority": 100}), true),
            (json!({"containers": [], "priority": 100, "preemptionPolicy": "Never"}), false),
        ];
        for (spec, expected) in rows {
            let pod: Pod = serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap();
            assert_eq!(preempts(&pod), expected, "{spec}");
        }
    }
}
