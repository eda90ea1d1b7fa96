//! Fields of the KubeletConfiguration that evictlab sets, with the reasons.

use evictlab_rules::{CgroupVersion, KubeletVersion};
use serde_json::{Map, Value, json};

/// Fields that are set on every node while a run uses it.
///
/// - `evictionPressureTransitionPeriod`: with the default, the node condition would last five
///   minutes after every case. Zero means five minutes, too (kubernetes/kubernetes#129548).
/// - `nodeStatusUpdateFrequency`: the kubelet publishes conditions and taints with the node status,
///   by default every 10 s.
/// - `volumeStatsAggPeriod`: the kubelet measures emptyDir volumes by default once a minute.
/// - `kernelMemcgNotification`: on cgroup v1 the kernel notifies the kubelet when memory falls
///   below a threshold. On cgroup v2 the kubelet does not use notifications.
pub fn base(cgroup: CgroupVersion) -> Map<String, Value> {
    let mut config = Map::new();
    config.insert("evictionPressureTransitionPeriod".to_owned(), json!("1s"));
    config.insert("nodeStatusUpdateFrequency".to_owned(), json!("2s"));
    config.insert("volumeStatsAggPeriod".to_owned(), json!("5s"));
    config.extend(memory_notification(cgroup));
    config
}

/// Fields that a kubelet needs to start on a host with this cgroup version.
///
/// From 1.35 on the kubelet refuses cgroup v1 unless `failCgroupV1` is false (KEP-4569); kubelets
/// before 1.31 do not have that field. The memory notification of [`base`] is included, so that new
/// nodes need no further configuration.
pub fn at_boot(version: &KubeletVersion, cgroup: CgroupVersion) -> Map<String, Value> {
    let mut config = memory_notification(cgroup);
    if cgroup == CgroupVersion::V1 && version.at_least(35) {
        config.insert("failCgroupV1".to_owned(), json!(false));
    }
    config
}

fn memory_notification(cgroup: CgroupVersion) -> Map<String, Value> {
    let is_notified = cgroup == CgroupVersion::V1;
    Map::from_iter(is_notified.then(|| ("kernelMemcgNotification".to_owned(), json!(true))))
}

/// Adds an eviction threshold of one signal: hard, or soft if a grace period is given.
pub fn with_threshold(
    mut config: Map<String, Value>,
    signal: &str,
    quantity: &str,
    soft_grace: Option<&str>,
) -> Map<String, Value> {
    let mut put = |field: &str, value: &str| {
        let map = config.entry(field).or_insert_with(|| json!({}));
        map[signal] = json!(value);
    };
    match soft_grace {
        None => put("evictionHard", quantity),
        Some(grace) => {
            put("evictionSoft", quantity);
            put("evictionSoftGracePeriod", grace);
        }
    }
    config
}

/// Adds a reservation of a resource for Kubernetes (`kubeReserved`), which pods cannot have.
pub fn with_reservation(
    mut config: Map<String, Value>,
    resource: &str,
    quantity: &str,
) -> Map<String, Value> {
    config.entry("kubeReserved").or_insert_with(|| json!({}))[resource] = json!(quantity);
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_and_reservations_keep_the_other_fields() {
        let case = json!({"evictionHard": {"pid.available": "5%"}, "evictionMaxPodGracePeriod": 3});
        let case = case.as_object().unwrap().clone();
        let hard = with_threshold(case.clone(), "memory.available", "1Gi", None);
        assert_eq!(hard["evictionHard"], json!({"pid.available": "5%", "memory.available": "1Gi"}));
        let soft = with_threshold(case, "memory.available", "1Gi", Some("5s"));
        assert_eq!(soft["evictionSoft"], json!({"memory.available": "1Gi"}));
        assert_eq!(soft["evictionSoftGracePeriod"], json!({"memory.available": "5s"}));
        assert_eq!(soft["evictionMaxPodGracePeriod"], 3);
        let both = with_threshold(soft, "memory.available", "512Mi", None);
        assert_eq!(both["evictionHard"]["memory.available"], "512Mi");
        assert_eq!(both["evictionSoft"]["memory.available"], "1Gi");
        let reserved = json!({"kubeReserved": {"cpu": "100m"}});
        let reserved = with_reservation(reserved.as_object().unwrap().clone(), "memory", "23Gi");
        assert_eq!(reserved["kubeReserved"], json!({"cpu": "100m", "memory": "23Gi"}));
    }
}
