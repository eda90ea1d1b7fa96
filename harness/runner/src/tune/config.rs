//! What the harness changes in a KubeletConfiguration, and why.

use evictlab_rules::KubeletVersion;
use serde_json::{Map, Value, json};

/// What is set on every node for as long as a run uses it.
///
/// - `evictionPressureTransitionPeriod`: the default of five minutes would hold the node condition for as long after every case; a
///   zero means five minutes, too (kubernetes/kubernetes#129548).
/// - `nodeStatusUpdateFrequency`: conditions and taints are published with the node status, every 10 s by default.
/// - `volumeStatsAggPeriod`: the sizes of emptyDirs are measured once a minute by default.
/// - `kernelMemcgNotification`: on cgroup v1 the kernel tells when memory falls under a threshold; on v2 the kubelet does not ask.
pub fn base(cgroup_v1: bool) -> Map<String, Value> {
    let mut config = Map::new();
    config.insert("evictionPressureTransitionPeriod".to_owned(), json!("1s"));
    config.insert("nodeStatusUpdateFrequency".to_owned(), json!("2s"));
    config.insert("volumeStatsAggPeriod".to_owned(), json!("5s"));
    config.extend(notification(cgroup_v1));
    config
}

/// What a kubelet of this version must be given to start on a host: from 1.35 on it refuses cgroup v1 unless `failCgroupV1` is false (KEP-4569), a field that
/// no kubelet before 1.31 knows. The kernel's notice of [`base`] goes with it, so that a new node is in shape.
pub fn at_boot(version: &KubeletVersion, cgroup_v1: bool) -> Map<String, Value> {
    let mut config = notification(cgroup_v1);
    if cgroup_v1 && version.at_least(35) {
        config.insert("failCgroupV1".to_owned(), json!(false));
    }
    config
}

fn notification(cgroup_v1: bool) -> Map<String, Value> {
    Map::from_iter(cgroup_v1.then(|| ("kernelMemcgNotification".to_owned(), json!(true))))
}

/// A threshold for one signal added to a case's own changes: hard, or soft with a grace period.
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

/// Memory that is reserved for Kubernetes' own processes added to a case's own changes: pods are bounded to what is left.
pub fn with_reservation(mut config: Map<String, Value>, quantity: &str) -> Map<String, Value> {
    config.entry("kubeReserved").or_insert_with(|| json!({}))["memory"] = json!(quantity);
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_joins_what_the_case_sets() {
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
        let reserved = with_reservation(reserved.as_object().unwrap().clone(), "23Gi");
        assert_eq!(reserved["kubeReserved"], json!({"cpu": "100m", "memory": "23Gi"}));
    }
}
