//! What a kubelet answers through its API server.

use http::Request;
use kube::Client;
use serde_json::Value;

use super::NodeError;

/// The way to one node's kubelet.
#[derive(Clone, Copy)]
pub struct Proxy<'a> {
    client: &'a Client,
    node: &'a str,
}

impl<'a> Proxy<'a> {
    /// The way to a node of this name. Nothing is asked yet.
    pub fn new(client: &'a Client, node: &'a str) -> Self {
        Self { client, node }
    }

    /// The kubelet's configuration as it runs with it (`/configz`), the object `kubeletconfig`.
    pub async fn configz(self) -> Result<Value, NodeError> {
        let mut answer: Value = self.json("read the configuration", "configz").await?;
        Ok(answer["kubeletconfig"].take())
    }

    /// The kubelet's Summary (`/stats/summary`).
    pub async fn summary(self) -> Result<Value, NodeError> {
        self.json("read the statistics", "stats/summary").await
    }

    /// The kubelet's metrics, a page of text.
    pub async fn metrics(self) -> Result<String, NodeError> {
        self.text("read the metrics", "metrics").await
    }

    async fn json(self, doing: &'static str, path: &str) -> Result<Value, NodeError> {
        let text = self.text(doing, path).await?;
        serde_json::from_str(&text).map_err(|error| self.unreadable(doing, error.to_string()))
    }

    async fn text(self, doing: &'static str, path: &str) -> Result<String, NodeError> {
        let uri = format!("/api/v1/nodes/{}/proxy/{path}", self.node);
        let request = Request::get(uri).body(Vec::new());
        let request = request.map_err(|error| self.unreadable(doing, error.to_string()))?;
        let answer = self.client.request_text(request).await;
        answer.map_err(|source| NodeError::Api {
            doing,
            node: self.node.to_owned(),
            source: Box::new(source),
        })
    }

    fn unreadable(self, doing: &'static str, problem: String) -> NodeError {
        NodeError::Answer { doing, node: self.node.to_owned(), problem }
    }
}
