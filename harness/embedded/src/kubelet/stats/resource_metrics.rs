//! Page `/metrics/resource` (`pkg/kubelet/metrics/collectors/resource_metrics.go`), which
//! metrics-server reads for `kubectl top`.

use std::fmt::Write;

use evictlab_rules::summary::{MemoryStats, Sample};

use crate::defect::{Defect, Defects};

/// Returns the working sets of the node, its pods and containers, in bytes.
pub(in crate::kubelet) fn text(summary: &Sample, defects: &Defects) -> String {
    let mut page = String::new();
    let mut write = |name: &str, labels: &str, memory: &Option<MemoryStats>| {
        let memory = memory.as_ref();
        let bytes = if defects.has(Defect::ResourceMetricsCountCache) {
            memory.and_then(|memory| memory.usage_bytes)
        } else {
            memory.and_then(|memory| memory.working_set_bytes)
        };
        if let Some(bytes) = bytes {
            // A write to a string cannot fail.
            let _ = writeln!(page, "{name}_memory_working_set_bytes{labels} {bytes}");
        }
    };
    write("node", "", &summary.node.memory);
    for pod in &summary.pods {
        let of_pod = format!("namespace={:?},pod={:?}", pod.pod_ref.namespace, pod.pod_ref.name);
        for container in &pod.containers {
            let labels = format!("{{container={:?},{of_pod}}}", container.name);
            write("container", &labels, &container.memory);
        }
        write("pod", &format!("{{{of_pod}}}"), &pod.memory);
    }
    page += "resource_scrape_error 0\nscrape_error 0\n";
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn has_working_sets_of_node_pods_and_containers() {
        let memory = |bytes: u64| json!({"workingSetBytes": bytes, "usageBytes": bytes + 100});
        let summary: Sample = serde_json::from_value(json!({
            "node": {"nodeName": "n", "memory": memory(3)},
            "pods": [{
                "podRef": {"name": "p", "namespace": "d", "uid": "u"},
                "memory": memory(2),
                "containers": [{"name": "c", "memory": memory(1)}],
            }],
        }))
        .unwrap();
        let expected = "node_memory_working_set_bytes 3\n\
                        container_memory_working_set_bytes{container=\"c\",namespace=\"d\",pod=\"p\"} 1\n\
                        pod_memory_working_set_bytes{namespace=\"d\",pod=\"p\"} 2\n\
                        resource_scrape_error 0\nscrape_error 0\n";
        assert_eq!(text(&summary, &Defects::default()), expected);
        let defects = [Defect::ResourceMetricsCountCache].into_iter().collect();
        assert!(text(&summary, &defects).starts_with("node_memory_working_set_bytes 103\n"));
    }
}
