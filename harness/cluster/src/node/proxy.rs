//! Kubelet endpoints through the proxy of the API server.

use std::time::Duration;

use evictlab_rules::summary::Sample;
use http::Request;
use kube::Client;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::error::NodeError;

/// Response of `/configz`.
#[derive(Deserialize)]
struct Configz {
    #[serde(default)]
    kubeletconfig: Value,
}

/// Access to the kubelet of one node (`/api/v1/nodes/NODE/proxy`).
#[derive(Clone, Copy)]
pub struct KubeletProxy<'a> {
    client: &'a Client,
    node: &'a str,
    timeout: Option<Duration>,
}

impl<'a> KubeletProxy<'a> {
    /// Access to the node with this name. Sends no request yet.
    pub fn new(client: &'a Client, node: &'a str) -> Self {
        Self { client, node, timeout: None }
    }

    /// Limits the time of each request. By default, the client decides.
    pub(crate) fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// Configuration of the running kubelet: the object `kubeletconfig` of `/configz`.
    pub async fn configz(self) -> Result<Value, NodeError> {
        let configz: Configz = self.json("read the configuration", "configz").await?;
        Ok(configz.kubeletconfig)
    }

    /// Summary of the kubelet (`/stats/summary`).
    pub async fn summary(self) -> Result<Value, NodeError> {
        self.json("read the statistics", "stats/summary").await
    }

    /// Text of the Summary of the kubelet (`/stats/summary`).
    pub async fn summary_text(self) -> Result<Box<RawValue>, NodeError> {
        self.json("read the statistics", "stats/summary").await
    }

    /// The part of the Summary that eviction depends on, without a copy of the whole.
    pub async fn sample(self) -> Result<Sample, NodeError> {
        self.json("read the statistics", "stats/summary").await
    }

    /// Waits for an answer of `/healthz`.
    pub(crate) async fn healthz(self) -> Result<(), NodeError> {
        self.text("read the health", "healthz").await.map(drop)
    }

    /// Metrics page of the kubelet, as text.
    pub async fn metrics(self) -> Result<String, NodeError> {
        self.text("read the metrics", "metrics").await
    }

    /// Metrics page of the resource usage (`/metrics/resource`), as text.
    pub async fn resource_metrics(self) -> Result<String, NodeError> {
        self.text("read the resource metrics", "metrics/resource").await
    }

    async fn json<T: serde::de::DeserializeOwned>(
        self,
        operation: &'static str,
        path: &str,
    ) -> Result<T, NodeError> {
        let text = self.text(operation, path).await?;
        serde_json::from_str(&text).map_err(|error| self.invalid(operation, error.to_string()))
    }

    async fn text(self, operation: &'static str, path: &str) -> Result<String, NodeError> {
        let uri = format!("/api/v1/nodes/{}/proxy/{path}", self.node);
        let request = Request::get(uri).body(Vec::new());
        let request = request.map_err(|error| self.invalid(operation, error.to_string()))?;
        let response = self.client.request_text(request);
        let response = match self.timeout {
            Some(timeout) => tokio::time::timeout(timeout, response).await.map_err(|_| {
                NodeError::NoAnswer { operation, node: self.node.to_owned(), seconds: timeout.as_secs() }
            })?,
            None => response.await,
        };
        response.map_err(|source| NodeError::Api {
            operation,
            node: self.node.to_owned(),
            source: Box::new(source),
        })
    }

    fn invalid(self, operation: &'static str, problem: String) -> NodeError {
        NodeError::InvalidResponse { operation, node: self.node.to_owned(), problem }
    }
}
