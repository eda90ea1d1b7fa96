//! Queries of all watched nodes, once.

use std::panic::resume_unwind;
use std::time::Duration;

use evictlab_cluster::{ClusterClient, ExistingError, READ_PERMISSIONS};
use evictlab_rules::threshold::Signal;
use futures::future::join;
use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node as ApiNode;
use kube::{Client, ResourceExt};
use tokio::task::spawn;
use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;

use super::bounded_set::BoundedSet;
use super::kubelet_client::{KubeletSnapshot, QueryError, query};
use super::node::NodeView;
use super::options::WatchOptions;
use super::pod_fields::WatchedPod;
use super::pod_index::PodIndex;
use super::reading::NodeInput;

/// Number of kubelets that are queried at a time.
pub(super) const MAX_PARALLEL_QUERIES: usize = 32;
/// Maximum time that [`inspect`] waits for the first statistics of new kubelets.
const FIRST_STATISTICS_TIMEOUT: Duration = Duration::from_secs(10);
/// Time between two queries of a kubelet without statistics.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// Queries each node once and returns the nodes by name. Waits up to 10 s for the first statistics
/// of kubelets that have just started.
///
/// # Errors
///
/// Permissions are missing, a node does not exist, or the API server does not answer. A kubelet
/// that does not answer is reported in its view.
pub async fn inspect(client: &ClusterClient, options: &WatchOptions) -> Result<Vec<NodeView>, ExistingError> {
    client.permits(&READ_PERMISSIONS).await?;
    let nodes = select_nodes(client, options).await?;
    let deadline = Instant::now() + FIRST_STATISTICS_TIMEOUT;
    // One task per node: decoding takes most of the time and then uses all cores.
    let start_query = |node| {
        let (client, signal) = (client.clone(), options.signal);
        AbortOnDropHandle::new(spawn(async move { inspect_node(&client, &node, signal, deadline).await }))
    };
    let views = stream::iter(nodes).map(start_query).buffer_unordered(MAX_PARALLEL_QUERIES);
    let views = views.map(|ended| ended.unwrap_or_else(|error| resume_unwind(error.into_panic())));
    let mut views: Vec<NodeView> = views.try_collect().await?;
    views.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(views)
}

async fn inspect_node(
    client: &ClusterClient,
    node: &ApiNode,
    signal: Signal,
    deadline: Instant,
) -> Result<NodeView, ExistingError> {
    let name = node.name_any();
    let (pods, snapshot) =
        join(client.pods_on(&name), query_with_statistics(&client.client, &name, deadline)).await;
    let pods = PodIndex::of(&pods?).pods_on(&name);
    Ok(first_view(node, &pods, snapshot.as_ref(), signal))
}

/// Queries a kubelet until it has statistics, until the deadline.
async fn query_with_statistics(
    client: &Client,
    node: &str,
    deadline: Instant,
) -> Result<KubeletSnapshot, QueryError> {
    loop {
        let result = query(client, node).await;
        let is_new = result.as_ref().is_err_and(QueryError::is_without_statistics);
        if !is_new || Instant::now() >= deadline {
            return result;
        }
        sleep(RETRY_INTERVAL).await;
    }
}

/// Returns the view of a node of which no eviction was seen yet.
fn first_view(
    node: &ApiNode,
    pods: &[WatchedPod],
    snapshot: Result<&KubeletSnapshot, &QueryError>,
    signal: Signal,
) -> NodeView {
    let (evicted, at) = (BoundedSet::default(), Timestamp::now());
    NodeView::new(&NodeInput { node, pods, snapshot, signal, evicted: &evicted, at })
}

/// Returns the nodes that match the options.
pub(super) async fn select_nodes(
    client: &ClusterClient,
    options: &WatchOptions,
) -> Result<Vec<ApiNode>, ExistingError> {
    let mut nodes = client.nodes(options.selector.as_deref()).await?;
    let missing = options.nodes.iter().find(|name| !nodes.iter().any(|node| node.name_any() == **name));
    if let Some(name) = missing {
        return Err(ExistingError::NoSuchNode {
            cluster: client.name.clone(),
            name: name.clone(),
            available: nodes.iter().map(ResourceExt::name_any).collect(),
        });
    }
    nodes.retain(|node| options.includes(node));
    Ok(nodes)
}

/// Queries every node once.
pub(super) async fn query_nodes(
    client: &Client,
    nodes: &[&ApiNode],
    pods: &PodIndex,
    signal: Signal,
) -> Vec<NodeView> {
    let view = async |node: &ApiNode| {
        let name = node.name_any();
        let snapshot = query(client, &name).await;
        first_view(node, &pods.pods_on(&name), snapshot.as_ref(), signal)
    };
    stream::iter(nodes).map(|node| view(node)).buffer_unordered(MAX_PARALLEL_QUERIES).collect().await
}
