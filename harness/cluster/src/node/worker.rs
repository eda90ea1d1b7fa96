//! A worker node: its identity and the requests to its kubelet.

use std::time::Duration;

use evictlab_rules::summary::Sample;
use evictlab_rules::{CgroupVersion, KubeletVersion};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node as ApiNode, Pod};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::backend::{MAX_KUBELET_LOG_LINES, NodeBackend};
use super::error::NodeError;
use super::external::ExternalNode;
use super::metrics::MetricLine;
use super::other_pods::names_of_other_pods;
use super::proxy::KubeletProxy;
use crate::run_lease::ServerClock;
use crate::typed::Typed;
use crate::wait::{self, Poll};
use crate::workload::{Namespace, NamespaceGuards};

/// Maximum time for which a restarted kubelet may return the same error.
const KUBELET_SETTLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum time of a request to a kubelet of an existing cluster. A request without an answer takes
/// one of the few permits of the client.
const KUBELET_TIMEOUT: Duration = Duration::from_secs(10);

/// Swap statistics of a node, which eviction does not depend on.
#[derive(Default, Deserialize)]
struct SwapStats {
    #[serde(rename = "swapAvailableBytes")]
    available: Option<u64>,
    #[serde(rename = "swapUsageBytes")]
    usage: Option<u64>,
}

/// A worker of a cluster.
#[derive(Clone)]
pub struct Node {
    /// Name of the node.
    pub name: String,
    /// Label of the kubelet that the worker was created for.
    pub kubelet: String,
    /// Version that the kubelet reported when the node was ready.
    pub version: KubeletVersion,
    /// cgroup version of the host. On v1, the kernel can notify the kubelet of memory pressure.
    pub cgroup: CgroupVersion,
    pub(crate) client: Client,
    pub(crate) backend: NodeBackend,
}

impl Node {
    /// API client of the cluster.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Guards of the namespaces whose pods run on the node: none on a node that evictlab created.
    pub fn guards(&self) -> NamespaceGuards {
        self.backend.external().map(ExternalNode::guards).unwrap_or_default()
    }

    /// Returns the names of the pods on the node that have not ended and belong neither to the node
    /// nor to a run.
    pub async fn other_pods(&self) -> Result<Vec<String>, NodeError> {
        let api: Api<Typed<Pod>> = Api::all(self.client.clone());
        let on_node = ListParams::default().fields(&format!("spec.nodeName={}", self.name));
        let failed = |source| self.api_error("list the pods", source);
        let listed = api.list(&on_node).await.map_err(failed)?;
        let namespaces = listed.items.iter().filter_map(ResourceExt::namespace).collect();
        let own = Namespace::own_among(&self.client, namespaces).await.map_err(failed)?;
        let is_own = |pod: &Pod| pod.namespace().is_some_and(|namespace| own.contains(&namespace));
        let others = listed.items.iter().map(|pod| &pod.0).filter(|pod| !is_own(pod));
        Ok(names_of_other_pods(others, &self.name))
    }

    /// Returns the number of processors of the node; `None` if the kubelet did not report it.
    pub async fn processors(&self) -> Result<Option<usize>, NodeError> {
        let node = self.object().await?;
        let capacity = node.status.and_then(|status| status.capacity).unwrap_or_default();
        Ok(capacity.get("cpu").and_then(|count| count.0.parse().ok()))
    }

    /// Returns the operations that bypass the API server.
    pub fn backend(&self) -> &NodeBackend {
        &self.backend
    }

    /// Returns the configuration of the running kubelet: the object `kubeletconfig` of `/configz`.
    pub async fn configz(&self) -> Result<Value, NodeError> {
        self.proxy().configz().await
    }

    /// Returns the Summary of the kubelet (`/stats/summary`).
    pub async fn summary(&self) -> Result<Value, NodeError> {
        self.proxy().summary().await
    }

    /// Returns the text of the Summary of the kubelet (`/stats/summary`).
    pub async fn summary_text(&self) -> Result<Box<RawValue>, NodeError> {
        self.proxy().summary_text().await
    }

    /// Returns the part of the Summary that eviction depends on, without a copy of the whole.
    pub async fn sample(&self) -> Result<Sample, NodeError> {
        self.proxy().sample().await
    }

    /// Returns the Summary of the kubelet, with retries. A kubelet that has just restarted may
    /// return an error even after a first summary (`unable to find data in memory cache`).
    pub async fn settled_summary(&self) -> Result<Value, NodeError> {
        retry_until_settled(async || self.summary().await).await
    }

    /// Waits until the Summary shows file systems as they were after the call: until the kubelet
    /// has measured them twice, because the first measurement may be under way.
    ///
    /// # Errors
    /// The kubelet does not answer, or does not measure for a minute.
    pub async fn wait_for_file_system_statistics(&self) -> Result<(), NodeError> {
        let (mut times, mut last_error) = (Vec::new(), None);
        let measured = wait::until(KUBELET_SETTLE_TIMEOUT, Duration::from_millis(500), async || {
            match self.sample().await {
                Ok(sample) => times.push(sample.node.fs.and_then(|fs| fs.time)),
                Err(error) => last_error = Some(error),
            }
            times.dedup();
            match times.len() {
                ..=2 => Poll::Pending(format!("{} measurements", times.len())),
                _ => Poll::Done(()),
            }
        });
        let stalled = match measured.await {
            Ok(()) => return Ok(()),
            Err(stalled) => stalled,
        };
        Err(last_error.unwrap_or_else(|| NodeError::InvalidResponse {
            operation: "wait for file system statistics",
            node: self.name.clone(),
            problem: stalled.to_string(),
        }))
    }

    /// Metrics of the kubelet, with retries like [`Node::settled_summary`].
    pub async fn settled_metrics(&self) -> Result<Vec<MetricLine>, NodeError> {
        retry_until_settled(async || self.metrics().await).await
    }

    /// Metrics of the kubelet since it started (`/metrics`).
    pub async fn metrics(&self) -> Result<Vec<MetricLine>, NodeError> {
        Ok(MetricLine::parse_page(&self.proxy().metrics().await?))
    }

    /// Usage of the node, its pods and containers, as metrics-server reads it
    /// (`/metrics/resource`).
    pub async fn resource_metrics(&self) -> Result<Vec<MetricLine>, NodeError> {
        Ok(MetricLine::parse_page(&self.proxy().resource_metrics().await?))
    }

    /// Returns the time on the node at a time of this host, at most a second before the exact one.
    /// Returns `time` itself for a modelled node, which has the clock of the run, and for a node
    /// that does not answer.
    pub async fn time_at(&self, time: Timestamp) -> Timestamp {
        match self.backend {
            NodeBackend::Embedded(_) => time,
            NodeBackend::Kind(_) | NodeBackend::Existing(_) => {
                let clock = ServerClock::read_of_node(&self.client, &self.name).await;
                clock.map_or(time, |clock| clock.at(time))
            }
        }
    }

    /// Returns the node object.
    pub async fn object(&self) -> Result<ApiNode, NodeError> {
        let nodes: Api<Typed<ApiNode>> = Api::all(self.client.clone());
        let node = nodes.get(&self.name).await;
        node.map(|node| node.0).map_err(|source| self.api_error("read the status", source))
    }

    /// Returns the last lines of the kubelet log since a point in time, at most
    /// [`MAX_KUBELET_LOG_LINES`]; `None` if the log is not accessible.
    pub async fn kubelet_log(&self, since: Timestamp) -> Result<Option<Vec<String>>, NodeError> {
        let mut lines = self.backend.kubelet_log(since).await?;
        if let Some(lines) = &mut lines {
            lines.drain(..lines.len().saturating_sub(MAX_KUBELET_LOG_LINES));
        }
        Ok(lines)
    }

    /// Swap space of the node in bytes; 0 if its Summary has none.
    pub async fn swap(&self) -> Result<u64, NodeError> {
        let summary = self.settled_summary().await?;
        let swap = summary.get("node").and_then(|node| node.get("swap"));
        let swap = swap.and_then(|swap| SwapStats::deserialize(swap).ok()).unwrap_or_default();
        Ok(swap.available.unwrap_or(0).saturating_add(swap.usage.unwrap_or(0)))
    }

    /// Available memory in bytes: of the host if all nodes share one, else of the node itself.
    pub async fn host_memory(&self) -> Result<u64, NodeError> {
        self.backend.host_memory().await
    }

    fn proxy(&self) -> KubeletProxy<'_> {
        let proxy = KubeletProxy::new(&self.client, &self.name);
        match self.backend {
            NodeBackend::Existing(_) => proxy.with_timeout(KUBELET_TIMEOUT),
            NodeBackend::Embedded(_) | NodeBackend::Kind(_) => proxy,
        }
    }

    pub(super) fn api_error(&self, operation: &'static str, source: kube::Error) -> NodeError {
        NodeError::Api { operation, node: self.name.clone(), source: Box::new(source) }
    }
}

/// Retries a request until it succeeds, or returns the same error for
/// [`KUBELET_SETTLE_TIMEOUT`].
async fn retry_until_settled<T>(
    mut request: impl AsyncFnMut() -> Result<T, NodeError>,
) -> Result<T, NodeError> {
    let mut last = None;
    let poll = async || match request().await {
        Ok(response) => Poll::Done(response),
        Err(error) => {
            let text = error.to_string();
            last = Some(error);
            Poll::Pending(text)
        }
    };
    let response = wait::until(KUBELET_SETTLE_TIMEOUT, Duration::from_millis(200), poll).await;
    response.map_err(|_| last.expect("a wait that stalled has failed at least once"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn retries_until_the_kubelet_answers() {
        let error = |problem: &str| NodeError::InvalidResponse {
            operation: "read the statistics",
            node: "n".to_owned(),
            problem: problem.to_owned(),
        };
        let mut requests = 0;
        let response = retry_until_settled(async || {
            requests += 1;
            if requests < 20 { Err(error("unable to find data in memory cache")) } else { Ok(requests) }
        });
        assert_eq!(response.await.unwrap(), 20);
        let never =
            retry_until_settled::<()>(async || Err(error("no such node"))).await.unwrap_err().to_string();
        assert!(never.ends_with("no such node"), "{never}");
    }
}
