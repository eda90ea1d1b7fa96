//! Metrics of a watch in the text format of OpenMetrics 1.0.

use std::fmt::Write;
use std::time::Duration;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::routing::get;
use evictlab_embedded::serve_http;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::sync::oneshot;

use super::eviction::PredictionOutcome;
use super::state::WatchState;

/// Content type of OpenMetrics.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Maximum number of connections: more would take the files that the watch needs.
const MAX_CONNECTIONS: usize = 16;
/// Maximum duration of a connection. A scraper connects again.
const LONGEST_CONNECTION: Duration = Duration::from_secs(300);

/// Requests for the metrics, which the watch answers from its state.
pub type MetricsRequests = Receiver<oneshot::Sender<String>>;

/// Serves `/metrics` in the background as long as the runtime. Answers 503 after the returned
/// requests were dropped.
pub fn serve_metrics(listener: TcpListener) -> MetricsRequests {
    let (sender, requests) = mpsc::channel(8);
    let routes = Router::new().route("/metrics", get(move || scrape(sender.clone())));
    tokio::spawn(serve_http(listener, routes, MAX_CONNECTIONS, LONGEST_CONNECTION));
    requests
}

async fn scrape(
    sender: Sender<oneshot::Sender<String>>,
) -> (StatusCode, [(header::HeaderName, &'static str); 1], String) {
    let (reply, text) = oneshot::channel();
    // A reply that could not be sent is dropped.
    let _ = sender.send(reply).await;
    match text.await {
        Ok(text) => (StatusCode::OK, [(header::CONTENT_TYPE, CONTENT_TYPE)], text),
        Err(_) => (
            StatusCode::SERVICE_UNAVAILABLE,
            [(header::CONTENT_TYPE, "text/plain")],
            "the watch ended\n".to_owned(),
        ),
    }
}

/// Renders the metrics of a watched cluster.
pub(super) fn render(state: &WatchState) -> String {
    let mut text = String::new();
    family(
        &mut text,
        "evictlab_node_queryable",
        "gauge",
        "1 if the kubelet answered the last query, else 0.",
    );
    for (name, view) in &state.nodes {
        sample(&mut text, "evictlab_node_queryable", &[("node", name)], u8::from(view.problem.is_none()));
    }
    let help =
        "Available amount above an eviction threshold, negative below it; bytes, inodes or process IDs.";
    family(&mut text, "evictlab_threshold_distance", "gauge", help);
    // The last amounts of a node that does not answer may be long past.
    for (name, view) in state.nodes.iter().filter(|(_, view)| view.problem.is_none()) {
        for (signal, status) in view.reading.iter().flat_map(|reading| &reading.distances) {
            let kind = if status.grace_seconds.is_some() { "soft" } else { "hard" };
            let labels = [("node", name.as_str()), ("signal", signal.as_str()), ("kind", kind)];
            sample(&mut text, "evictlab_threshold_distance", &labels, status.margin);
        }
    }
    let help = "Pods that a kubelet evicted or rejected, by the resource or limit in the message.";
    family(&mut text, "evictlab_evictions", "counter", help);
    for ((node, cause), count) in &state.counters.evictions {
        sample(&mut text, "evictlab_evictions_total", &[("node", node), ("cause", cause)], count);
    }
    let help = "Evictions by the forecast of the ranking: hit, miss, or none if the ranking does not apply.";
    family(&mut text, "evictlab_forecasts", "counter", help);
    for outcome in PredictionOutcome::ALL {
        let count = state.counters.predictions.get(&outcome).copied().unwrap_or_default();
        sample(&mut text, "evictlab_forecasts_total", &[("outcome", outcome.as_str())], count);
    }
    text + "# EOF\n"
}

fn family(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# TYPE {name} {kind}\n# HELP {name} {help}");
}

fn sample(text: &mut String, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
    let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let labels: Vec<String> =
        labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    let _ = writeln!(text, "{name}{{{}}} {value}", labels.join(","));
}
