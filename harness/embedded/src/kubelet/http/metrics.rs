//! Metrics in the Prometheus text format.

use std::fmt::Write;

use super::answer::Answer;
use crate::context::SimContext;
use crate::kubelet::state::Kubelet;
use crate::kubelet::stats::MetaTime;
use crate::machine::Machine;

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

    /// Returns the response of `metrics/resource`, the source of `kubectl top`.
    pub(super) fn resource_metrics(&mut self, machine: &Machine, ctx: &mut SimContext) -> Answer {
        let summary = match self.summary(false, machine, ctx) {
            Ok(summary) => summary,
            Err(error) => return Answer::text(500, format!("{error}\n")),
        };
        let mut lines: [Vec<String>; 6] = Default::default();
        for pod in &summary.pods {
            let own = format!("namespace=\"{}\",pod=\"{}\"", pod.pod_ref.namespace, pod.pod_ref.name);
            for container in &pod.containers {
                let labels = format!("{{container=\"{}\",{own}}}", container.name);
                lines[0].push(sample(
                    &labels,
                    seconds(container.cpu.usage_core_nano_seconds),
                    container.cpu.time,
                ));
                let memory = container.memory.working_set_bytes as f64;
                lines[1].push(sample(&labels, memory, container.memory.time));
            }
            let labels = format!("{{{own}}}");
            if let Some(cpu) = pod.cpu {
                lines[4].push(sample(&labels, seconds(cpu.usage_core_nano_seconds), cpu.time));
            }
            if let Some(memory) = pod.memory {
                lines[5].push(sample(&labels, memory.working_set_bytes as f64, memory.time));
            }
        }
        let node = &summary.node;
        lines[2].push(sample("", seconds(node.cpu.usage_core_nano_seconds), node.cpu.time));
        lines[3].push(sample("", node.memory.working_set_bytes as f64, node.memory.time));
        let names = [
            (
                "container_cpu_usage_seconds_total",
                "Cumulative cpu time consumed by the container in core-seconds",
                "counter",
            ),
            ("container_memory_working_set_bytes", "Current working set of the container in bytes", "gauge"),
            (
                "node_cpu_usage_seconds_total",
                "Cumulative cpu time consumed by the node in core-seconds",
                "counter",
            ),
            ("node_memory_working_set_bytes", "Current working set of the node in bytes", "gauge"),
            (
                "pod_cpu_usage_seconds_total",
                "Cumulative cpu time consumed by the pod in core-seconds",
                "counter",
            ),
            ("pod_memory_working_set_bytes", "Current working set of the pod in bytes", "gauge"),
        ];
        let mut text = String::new();
        for ((name, help, kind), lines) in names.into_iter().zip(lines).filter(|(_, lines)| !lines.is_empty())
        {
            let _ = writeln!(text, "# HELP {name} [STABLE] {help}\n# TYPE {name} {kind}");
            for line in lines {
                let _ = writeln!(text, "{name}{line}");
            }
        }
        Answer::text(200, text)
    }
}

fn node(name: &str) -> String {
    format!("{{node=\"{name}\"}}")
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

fn sample(labels: &str, value: f64, time: MetaTime) -> String {
    format!("{labels} {value} {}", time.0.as_millisecond())
}
