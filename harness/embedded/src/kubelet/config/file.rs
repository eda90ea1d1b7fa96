//! The file `/var/lib/kubelet/config.yaml`.

use evictlab_api_types::merge_fields;
use serde_json::{Map, Value, json};

use crate::options::{CgroupVersion, NodeOptions};

/// Returns the file that kubeadm writes on kind's nodes. kind disables disk eviction
/// (`pkg/cluster/internal/kubeadm/config.go`).
pub(super) fn of_kind(options: &NodeOptions) -> Map<String, Value> {
    let mut file = map(json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"cacheTTL": "0s", "enabled": true},
            "x509": {"clientCAFile": "/etc/kubernetes/pki/ca.crt"},
        },
        "authorization": {
            "mode": "Webhook",
            "webhook": {"cacheAuthorizedTTL": "0s", "cacheUnauthorizedTTL": "0s"},
        },
        "cgroupDriver": "systemd",
        "cgroupRoot": "/kubelet",
        "clusterDNS": ["10.96.0.10"],
        "clusterDomain": "cluster.local",
        "cpuManagerReconcilePeriod": "0s",
        "evictionHard": {"imagefs.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%"},
        "evictionPressureTransitionPeriod": "0s",
        "failSwapOn": false,
        "fileCheckFrequency": "0s",
        "healthzBindAddress": "127.0.0.1",
        "healthzPort": 10248,
        "httpCheckFrequency": "0s",
        "imageGCHighThresholdPercent": 100,
        "imageMinimumGCAge": "0s",
        "kind": "KubeletConfiguration",
        "logging": {
            "flushFrequency": 0,
            "options": {"json": {"infoBufferSize": "0"}},
            "verbosity": 0,
        },
        "memorySwap": {},
        "nodeStatusReportFrequency": "0s",
        "nodeStatusUpdateFrequency": "0s",
        "rotateCertificates": true,
        "runtimeRequestTimeout": "0s",
        "shutdownGracePeriod": "0s",
        "shutdownGracePeriodCriticalPods": "0s",
        "staticPodPath": "/etc/kubernetes/manifests",
        "streamingConnectionIdleTimeout": "0s",
        "syncFrequency": "0s",
        "volumeStatsAggPeriod": "0s",
    }));
    if options.cgroup == CgroupVersion::V1 && options.version.at_least(35) {
        // Without it the kubelet does not start on cgroup v1 (KEP-5573).
        file.insert("failCgroupV1".to_owned(), json!(false));
    }
    merge_fields(&mut file, &options.kubelet_config);
    file.retain(|_, value| !value.is_null());
    file
}

/// Returns the map of a JSON object.
pub(super) fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
