//! The file `/var/lib/kubelet/config.yaml`.

use serde_json::{Map, Value, json};

use crate::kubelet::identity::Identity;
use crate::options::CgroupVersion;

/// Returns the file that kubeadm writes on kind's nodes. kind disables disk eviction
/// (`pkg/cluster/internal/kubeadm/config.go`).
pub(super) fn of_kind(identity: &Identity) -> Map<String, Value> {
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
    if identity.cgroup == CgroupVersion::V1 && identity.version.at_least(35) {
        // Without it the kubelet does not start on cgroup v1 (KEP-5573).
        file.insert("failCgroupV1".to_owned(), json!(false));
    }
    merge(&mut file, &identity.options.kubelet_config);
    file.retain(|_, value| !value.is_null());
    file
}

/// Merges changes into a file: maps key by key, other values as a whole.
pub(super) fn merge(into: &mut Map<String, Value>, changes: &Map<String, Value>) {
    for (key, value) in changes {
        match (into.get_mut(key), value) {
            (Some(Value::Object(into)), Value::Object(changes)) => merge(into, changes),
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Returns the map of a JSON object.
pub(super) fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
