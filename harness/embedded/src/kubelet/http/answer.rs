//! Endpoints of the kubelet, as `nodes/N/proxy` serves them.

use serde::Serialize;
use serde_json::json;

use crate::apiserver::Status;
use crate::context::SimContext;
use crate::kubelet::state::Kubelet;
use crate::kubelet::stats::Summary;
use crate::machine::Machine;
use crate::resource::Kind;
use crate::sim::Time;

/// HTTP response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub code: u16,
    /// `Content-Type`.
    pub content: &'static str,
    /// Body.
    pub body: String,
}

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

impl Kubelet {
    /// Handles a GET request. The path is relative to the proxy, such as `stats/summary`. If the
    /// kubelet is stopped, the API server responds that it cannot reach it.
    pub fn answer(&mut self, path: &str, query: &str, machine: &Machine, ctx: &mut SimContext) -> Answer {
        if !self.running {
            return self.unreachable(ctx);
        }
        match path.trim_matches('/') {
            "stats/summary" => self.stats_summary(query, machine, ctx),
            "configz" => Answer::json(&self.config.configz()),
            "metrics" => Answer::text(200, self.metrics()),
            "metrics/resource" => self.resource_metrics(machine, ctx),
            "pods" => self.pod_list(),
            "healthz" => Answer::text(200, "ok".to_owned()),
            "logs" | "logs/kubelet.log" => {
                let lines: Vec<&str> = self.log.since(Time::ZERO).collect();
                Answer::text(200, lines.join("\n") + "\n")
            }
            _ => Answer::text(404, "404 page not found\n".to_owned()),
        }
    }

    fn stats_summary(&mut self, query: &str, machine: &Machine, ctx: &mut SimContext) -> Answer {
        match self.summary(false, machine, ctx) {
            Ok(mut summary) => {
                if query.split('&').any(|part| part == "only_cpu_and_memory=true") {
                    only_cpu_and_memory(&mut summary);
                }
                Answer::json(&summary)
            }
            Err(error) => Answer::text(500, format!("Internal Error: {error}\n")),
        }
    }

    fn pod_list(&self) -> Answer {
        let items: Vec<_> = self.pods.active().into_iter().map(|active| active.object).collect();
        let items: Vec<&serde_json::Value> = items.iter().map(AsRef::as_ref).collect();
        Answer::json(&json!({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}))
    }

    /// Returns `error trying to reach service` with status 503 (apimachinery's
    /// `util/proxy/transport.go`).
    fn unreachable(&self, ctx: &SimContext) -> Answer {
        let node = ctx.store.get(Kind::Node, "", &self.identity.node);
        let addresses = node.and_then(|node| node["status"]["addresses"].as_array()).into_iter().flatten();
        let mut internal = addresses.filter(|address| address["type"] == "InternalIP");
        let address = internal.find_map(|address| address["address"].as_str()).unwrap_or("127.0.0.1");
        let status = Status {
            code: 503,
            reason: "ServiceUnavailable",
            message: format!(
                "error trying to reach service: dial tcp {address}:10250: connect: connection refused"
            ),
            details: None,
        };
        Answer { code: status.code, ..Answer::json(&status.object()) }
    }
}

impl Answer {
    pub(super) fn text(code: u16, body: String) -> Self {
        Self { code, content: TEXT, body }
    }

    fn json(value: &impl Serialize) -> Self {
        match serde_json::to_string(value) {
            Ok(body) => Self { code: 200, content: JSON, body },
            Err(error) => Self::text(500, error.to_string()),
        }
    }
}

/// Removes the statistics that are slow to measure (`GetCPUAndMemoryStats`).
fn only_cpu_and_memory(summary: &mut Summary) {
    let node = &mut summary.node;
    (node.fs, node.runtime, node.rlimit) = (None, None, None);
    for pod in &mut summary.pods {
        (pod.ephemeral_storage, pod.process_stats) = (None, None);
        pod.volume.clear();
        for container in &mut pod.containers {
            (container.rootfs, container.logs) = (None, None);
        }
    }
}
