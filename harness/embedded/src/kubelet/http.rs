//! HTTP endpoints of the kubelet, as `nodes/N/proxy` serves them.

use serde::Serialize;

use crate::apiserver::{Status, StatusReason};
use crate::context::SimContext;
use crate::kubelet::state::Kubelet;
use crate::kubelet::stats::resource_metrics;
use crate::machine::Machine;
use crate::resource::{Kind, ObjectExt};

/// HTTP response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// HTTP status.
    pub code: u16,
    /// `Content-Type`.
    pub content: &'static str,
    /// Body.
    pub body: String,
}

/// Port of the kubelet's API.
pub(crate) const KUBELET_PORT: u16 = 10250;
/// Address of a node that has none.
pub(crate) const DEFAULT_ADDRESS: &str = "127.0.0.1";

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

impl Kubelet {
    /// Handles a GET request. The path is relative to the proxy, such as `stats/summary`. If the
    /// kubelet is stopped, the API server responds that it cannot reach it.
    pub(crate) fn answer(&mut self, path: &str, machine: &Machine, ctx: &mut SimContext) -> Answer {
        if !self.running {
            return self.unreachable(ctx);
        }
        match path.trim_matches('/') {
            "stats/summary" => self.stats_summary(machine, ctx),
            "configz" => Answer::json(&self.config.configz()),
            "metrics" => Answer::text(200, self.metrics(ctx)),
            "metrics/resource" => self.resource_metrics(machine, ctx),
            "healthz" => Answer::text(200, "ok".to_owned()),
            _ => Answer::text(404, "404 page not found\n".to_owned()),
        }
    }

    /// Returns the counters, and the time at which the process that has them started.
    fn metrics(&self, ctx: &SimContext) -> String {
        let started = ctx.epoch().at(self.started).as_millisecond() as f64 / 1000.0;
        let process =
            format!("# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds {started}\n");
        self.eviction.metrics.text() + &process
    }

    /// Returns the memory of `/metrics/resource`; its CPU and swap are not modelled.
    fn resource_metrics(&mut self, machine: &Machine, ctx: &mut SimContext) -> Answer {
        match self.summary(false, machine, ctx) {
            Ok(summary) => Answer::text(200, resource_metrics::text(&summary, &self.options.defects)),
            Err(_) => Answer::text(200, "scrape_error 1\n".to_owned()),
        }
    }

    fn stats_summary(&mut self, machine: &Machine, ctx: &mut SimContext) -> Answer {
        match self.summary(false, machine, ctx) {
            Ok(summary) => Answer::json(&summary),
            Err(error) => Answer::text(500, format!("Internal Error: {error}\n")),
        }
    }

    /// Returns `error trying to reach service` with status 503 (apimachinery's
    /// `util/proxy/transport.go`).
    fn unreachable(&self, ctx: &SimContext) -> Answer {
        let node = ctx.store.get(Kind::Node, "", &self.options.name);
        let status = connection_refused(node.and_then(|node| node.internal_ip()));
        Answer { code: status.code, ..Answer::json(&status.object()) }
    }
}

impl Answer {
    fn text(code: u16, body: String) -> Self {
        Self { code, content: TEXT, body }
    }

    fn json(value: &impl Serialize) -> Self {
        match serde_json::to_string(value) {
            Ok(body) => Self { code: 200, content: JSON, body },
            Err(error) => Self::text(500, error.to_string()),
        }
    }
}

/// Returns the 503 Status of a proxied request to a kubelet that does not listen at its address.
pub(crate) fn connection_refused(address: Option<&str>) -> Status {
    let message = format!("error trying to reach service: {}", dial_refused(address));
    Status::new(StatusReason::ServiceUnavailable, message)
}

/// Returns Go's error of a connection to a kubelet that does not listen at its address.
pub(crate) fn dial_refused(address: Option<&str>) -> String {
    let address = address.unwrap_or(DEFAULT_ADDRESS);
    format!("dial tcp {address}:{KUBELET_PORT}: connect: connection refused")
}
