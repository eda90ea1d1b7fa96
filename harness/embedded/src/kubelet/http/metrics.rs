//! Metrics in the Prometheus text format.

use std::fmt::Write;

use crate::kubelet::state::Kubelet;

impl Kubelet {
    /// Returns the response of `metrics`: the metrics of evictions.
    pub(super) fn metrics(&self) -> String {
        let mut text = String::new();
        self.eviction.metrics.write(&mut text);
        let pods = self.pods.active();
        let containers: usize = pods.iter().map(|pod| self.pods.running(&pod.pod.metadata.uid).len()).sum();
        let version = &self.identity.version;
        let rest = [
            (
                "kubelet_node_name",
                "The node's name. The count is always 1.",
                "gauge",
                node(&self.identity.node),
                1,
            ),
            (
                "kubelet_running_containers",
                "Number of containers currently running",
                "gauge",
                "{container_state=\"running\"}".to_owned(),
                containers,
            ),
            (
                "kubelet_running_pods",
                "Number of pods that have a running pod sandbox",
                "gauge",
                String::new(),
                pods.len(),
            ),
            (
                "kubernetes_build_info",
                "A metric with a constant '1' value labeled by major, minor, git version, git commit, git tree state, build date, Go \
                 version, and compiler from which Kubernetes was built, and platform on which it is running.",
                "gauge",
                format!(
                    "{{git_version=\"{version}\",major=\"{}\",minor=\"{}\"}}",
                    version.major, version.minor
                ),
                1,
            ),
        ];
        for (name, help, kind, labels, value) in rest {
            // Writing to a string cannot fail.
            let _ =
                writeln!(text, "# HELP {name} [ALPHA] {help}\n# TYPE {name} {kind}\n{name}{labels} {value}");
        }
        text
    }
}

fn node(name: &str) -> String {
    format!("{{node=\"{name}\"}}")
}
