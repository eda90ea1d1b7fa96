//! The watch loop: queries every kubelet periodically and receives evictions in between.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use evictlab_cluster::{ClusterClient, ExistingError, READ_PERMISSIONS, WATCH_PERMISSIONS, WatchBackoff};
use evictlab_rules::threshold::Signal;
use futures::future::join;
use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Node as ApiNode};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::utils::Backoff;
use kube::{Client, ResourceExt};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{Receiver, Sender, UnboundedReceiver, channel};
use tokio::sync::oneshot;
use tokio::task::spawn;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::bounded_set::BoundedSet;
use super::change::WatchChange;
use super::eviction::EvictionEvent;
use super::keyboard::Key;
use super::kubelet_client::{KubeletSnapshot, QueryError, query};
use super::metrics::{MetricsRequests, render};
use super::node::NodeView;
use super::node_input::NodeInput;
use super::options::WatchOptions;
use super::pod_fields::WatchedPod;
use super::pod_index::PodIndex;
use super::state::WatchState;
use super::view::WatchView;
use super::watches::{WatchMessage, Watches};

/// Number of kubelets that are queried in parallel for a single inspection.
const MAX_PARALLEL_QUERIES: usize = 32;
/// Time between two checks for added and removed nodes.
const NODE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum time that a single inspection waits for the first statistics of new kubelets.
const FIRST_STATISTICS_TIMEOUT: Duration = Duration::from_secs(10);
/// Time between two queries of a kubelet without statistics.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// Errors of a watch.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The cluster cannot be used.
    #[error(transparent)]
    Cluster(#[from] ExistingError),
    /// The output is closed or cannot be written.
    #[error("failed to write output: {0}")]
    Output(#[from] io::Error),
}

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
    let until = Instant::now() + FIRST_STATISTICS_TIMEOUT;
    let inspect = |node| {
        let (client, signal) = (client.clone(), options.signal);
        AbortOnDropHandle::new(spawn(async move { inspect_node(&client, &node, signal, until).await }))
    };
    let views = stream::iter(nodes).map(inspect).buffer_unordered(MAX_PARALLEL_QUERIES);
    let views = views.map(|ended| ended.unwrap_or_else(|error| resume_unwind(error.into_panic())));
    let mut views: Vec<NodeView> = views.try_collect().await?;
    views.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(views)
}

/// Queries a node and its pods. A task of its own for each node: decoding takes most of the time.
async fn inspect_node(
    client: &ClusterClient,
    node: &ApiNode,
    signal: Signal,
    until: Instant,
) -> Result<NodeView, ExistingError> {
    let name = node.name_any();
    let (pods, snapshot) =
        join(client.pods_on(&name), query_with_statistics(&client.client, &name, until)).await;
    let pods = PodIndex::of(&pods?).pods_on(&name);
    Ok(first_view(node, &pods, snapshot.as_ref(), signal))
}

/// Queries a kubelet until it has statistics, up to a time.
async fn query_with_statistics(
    client: &Client,
    node: &str,
    until: Instant,
) -> Result<KubeletSnapshot, QueryError> {
    loop {
        let result = query(client, node).await;
        let is_new = result.as_ref().is_err_and(QueryError::is_without_statistics);
        if !is_new || Instant::now() >= until {
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

/// Inputs of a running watch.
#[derive(Debug, Default)]
pub struct WatchInputs {
    /// Requests for metrics.
    pub metrics_requests: Option<MetricsRequests>,
    /// Keys; without keys, the terminal does not show a selection.
    pub keys: Option<UnboundedReceiver<Key>>,
}

/// Watches until `stop` is cancelled or a key quits, and answers requests for metrics.
///
/// # Errors
///
/// Initially those of [`inspect`]; later only errors of the output.
pub async fn watch<W: Write>(
    client: &ClusterClient,
    options: &WatchOptions,
    view: &mut WatchView<W>,
    inputs: WatchInputs,
    stop: &CancellationToken,
) -> Result<(), WatchError> {
    let start = async {
        client.permits(&WATCH_PERMISSIONS).await?;
        // Reports missing nodes and invalid selectors before the watches start.
        select_nodes(client, options).await?;
        let mut watches = Watches::open(&client.client, options);
        let known_events = initial_events(&mut watches).await;
        let nodes = watches.nodes.state();
        let nodes: Vec<&ApiNode> =
            nodes.iter().map(AsRef::as_ref).filter(|node| options.includes(node)).collect();
        let views = query_nodes(&client.client, &nodes, &watches.pods, options.signal).await;
        Ok::<_, ExistingError>((watches, known_events, views))
    };
    let (watches, known_events, views) = tokio::select! {
        biased;
        () = stop.cancelled() => return Ok(()),
        started = start => started?,
    };
    let mut state = WatchState::default();
    for node in views {
        state.apply(node, Timestamp::now());
    }
    state.started = true;
    if inputs.keys.is_some() {
        view.enable_keys();
    }
    view.start(&state, Timestamp::now())?;
    let (sender, results) = channel(64);
    let poller = Poller {
        client: client.client.clone(),
        interval: options.interval,
        sender,
        queries: Arc::new(Semaphore::new(MAX_PARALLEL_QUERIES)),
    };
    let polling = BTreeMap::new();
    let signal = options.signal;
    let watch_loop = WatchLoop { options, signal, watches, known_events, state, poller, polling, inputs };
    watch_loop.run(view, results, stop).await?;
    Ok(())
}

/// Returns the nodes that match the options.
async fn select_nodes(client: &ClusterClient, options: &WatchOptions) -> Result<Vec<ApiNode>, ExistingError> {
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
async fn query_nodes(client: &Client, nodes: &[&ApiNode], pods: &PodIndex, signal: Signal) -> Vec<NodeView> {
    let view = async |node: &ApiNode| {
        let name = node.name_any();
        let snapshot = query(client, &name).await;
        first_view(node, &pods.pods_on(&name), snapshot.as_ref(), signal)
    };
    stream::iter(nodes).map(|node| view(node)).buffer_unordered(MAX_PARALLEL_QUERIES).collect().await
}

/// Waits until all watches have listed the existing objects; returns the existing evictions.
async fn initial_events(watches: &mut Watches) -> BoundedSet<EventKey> {
    let (mut events, mut listed) = (BoundedSet::default(), BTreeSet::new());
    while listed.len() < Watches::COUNT {
        match watches.messages.recv().await {
            Some(WatchMessage::ListComplete(resource)) => {
                listed.insert(resource);
            }
            Some(WatchMessage::Event(event)) => {
                events.insert(event_key(&event));
            }
            Some(WatchMessage::Denied(..)) => {}
            None => break,
        }
    }
    events
}

/// UID and count of an event: repetitions of an event increase its count.
type EventKey = (String, i32);

fn event_key(event: &Event) -> EventKey {
    let series = event.series.as_ref().and_then(|series| series.count);
    (event.uid().unwrap_or_default(), event.count.or(series).unwrap_or_default())
}

/// Name of a node and the result of its query.
type QueryResult = (String, Result<KubeletSnapshot, QueryError>);

/// When nodes without a poller are queried first.
#[derive(Clone, Copy)]
enum FirstQuery {
    /// Known nodes within one interval, evenly spread; others at once.
    Spread,
    /// All at once.
    AtOnce,
}

struct WatchLoop<'a> {
    options: &'a WatchOptions,
    /// The watched signal, which a key changes.
    signal: Signal,
    watches: Watches,
    /// Events that are already reported.
    known_events: BoundedSet<EventKey>,
    state: WatchState,
    poller: Poller,
    /// Tasks that query the nodes, by node name.
    polling: BTreeMap<String, AbortOnDropHandle<()>>,
    inputs: WatchInputs,
}

impl WatchLoop<'_> {
    async fn run<W: Write>(
        mut self,
        view: &mut WatchView<W>,
        mut results: Receiver<QueryResult>,
        stop: &CancellationToken,
    ) -> io::Result<()> {
        let mut tick = interval(NODE_CHECK_INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let changes = tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                Some(message) = self.watches.messages.recv() => self.handle_message(message),
                Some((node, result)) = results.recv() => self.handle_result(&node, &result),
                Some(reply) = next_metrics_request(&mut self.inputs.metrics_requests) => {
                    // A client that has gone needs no answer.
                    let _ = reply.send(render(&self.state));
                    continue;
                }
                Some(key) = next_key(&mut self.inputs.keys) => match key {
                    Key::Quit => return Ok(()),
                    key => {
                        let changes = self.change_signal(key);
                        view.press(key, &self.state, Timestamp::now())?;
                        changes
                    }
                },
                _ = tick.tick() => self.update_pollers(FirstQuery::Spread),
            };
            view.update(&self.state, &changes, Timestamp::now())?;
        }
    }

    fn handle_message(&mut self, message: WatchMessage) -> Vec<WatchChange> {
        let now = Timestamp::now();
        match message {
            WatchMessage::ListComplete(_) => Vec::new(),
            WatchMessage::Denied(resource, reason) => self.state.watch_denied(resource, reason, now),
            WatchMessage::Event(event) => match EvictionEvent::from_event(&event) {
                Some(eviction) if self.known_events.insert(event_key(&event)) => {
                    let node = self.watches.pods.node_of(&eviction.uid);
                    self.state.apply_eviction(&eviction, node, now)
                }
                _ => Vec::new(),
            },
        }
    }

    fn handle_result(
        &mut self,
        name: &str,
        result: &Result<KubeletSnapshot, QueryError>,
    ) -> Vec<WatchChange> {
        let now = Timestamp::now();
        if let Err(QueryError::ApiServer(reason)) = result {
            return self.state.set_server_error(Some(reason.clone()), now);
        }
        let mut changes = self.state.set_server_error(None, now);
        let node = self.watches.nodes.get(&ObjectRef::new(name));
        let Some(node) = node.filter(|node| self.options.includes(node)) else { return changes };
        let view = NodeView::new(&NodeInput {
            node: &node,
            pods: &self.watches.pods.pods_on(name),
            snapshot: result.as_ref(),
            signal: self.signal,
            evicted: &self.state.evicted,
            at: now,
        });
        changes.extend(self.state.apply(view, now));
        changes
    }

    /// Watches the next or previous signal, and queries the nodes again. Returns the changes of the
    /// nodes since the last check.
    fn change_signal(&mut self, key: Key) -> Vec<WatchChange> {
        let count = Signal::ALL.len();
        let step = match key {
            Key::NextSignal => 1,
            Key::PreviousSignal => count - 1,
            _ => return Vec::new(),
        };
        let place = Signal::ALL.iter().position(|signal| *signal == self.signal).unwrap_or(0);
        self.signal = Signal::ALL[(place + step) % count];
        self.state.forget_readings();
        self.polling.clear();
        self.update_pollers(FirstQuery::AtOnce)
    }

    /// Starts a poller for each new node and stops those of removed nodes.
    fn update_pollers(&mut self, first_query: FirstQuery) -> Vec<WatchChange> {
        let nodes = self.watches.nodes.state();
        let present: BTreeSet<String> =
            nodes.iter().filter(|node| self.options.includes(node)).map(|node| node.name_any()).collect();
        self.polling.retain(|name, _| present.contains(name));
        let added: Vec<&String> = present.iter().filter(|name| !self.polling.contains_key(*name)).collect();
        let count = added.len();
        for (nth, name) in added.into_iter().enumerate() {
            let delay = match first_query {
                // The initial nodes have just been queried.
                FirstQuery::Spread if self.state.nodes.contains_key(name) => {
                    self.poller.interval.mul_f64(nth as f64 / count as f64)
                }
                FirstQuery::Spread | FirstQuery::AtOnce => Duration::ZERO,
            };
            let poll = self.poller.clone().poll(name.clone(), delay);
            self.polling.insert(name.clone(), AbortOnDropHandle::new(tokio::spawn(poll)));
        }
        let now = Timestamp::now();
        let mut changes = self.state.retain(&present, now);
        changes.extend(self.state.watches_recovered(now));
        changes
    }
}

/// Awaits a request for metrics; forever without metrics.
async fn next_metrics_request(
    metrics_requests: &mut Option<MetricsRequests>,
) -> Option<oneshot::Sender<String>> {
    match metrics_requests {
        Some(metrics_requests) => metrics_requests.recv().await,
        None => std::future::pending().await,
    }
}

/// Awaits a key; forever without keys.
async fn next_key(keys: &mut Option<UnboundedReceiver<Key>>) -> Option<Key> {
    match keys {
        Some(keys) => keys.recv().await,
        None => std::future::pending().await,
    }
}

/// Queries nodes.
#[derive(Clone)]
struct Poller {
    client: Client,
    interval: Duration,
    sender: Sender<QueryResult>,
    /// Permits of the queries that run at a time. The wait for one is not part of a query's
    /// timeout.
    queries: Arc<Semaphore>,
}

impl Poller {
    /// Queries a node periodically after a delay, with increasing pauses while the node does not
    /// answer.
    async fn poll(self, node: String, delay: Duration) {
        let mut backoff = WatchBackoff::default();
        let mut pause = delay;
        loop {
            sleep(pause).await;
            let Ok(permit) = self.queries.acquire().await else { return };
            let result = query(&self.client, &node).await;
            drop(permit);
            pause = match &result {
                Ok(_) => {
                    backoff.reset();
                    self.interval
                }
                Err(_) => backoff.next().unwrap_or(self.interval).max(self.interval),
            };
            if self.sender.send((node.clone(), result)).await.is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use evictlab_embedded::{Cluster, Options};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_change_of_the_signal_reports_removed_nodes() {
        let cluster = Cluster::new(Options::new(0, Timestamp::UNIX_EPOCH, Vec::new())).unwrap();
        let client = Client::new(cluster.router(), "default");
        let options = WatchOptions {
            nodes: vec![],
            selector: None,
            signal: Signal::MemoryAvailable,
            interval: Duration::from_secs(10),
        };
        let mut state = WatchState::default();
        let mut node = ApiNode::default();
        node.metadata.name = Some("gone".to_owned());
        let error = QueryError::Kubelet("no answer".to_owned());
        let view = NodeView::new(&NodeInput {
            node: &node,
            pods: &[],
            snapshot: Err(&error),
            signal: options.signal,
            evicted: &BoundedSet::default(),
            at: Timestamp::now(),
        });
        state.apply(view, Timestamp::now());
        let (sender, _results) = channel(64);
        let queries = Arc::new(Semaphore::new(1));
        let poller = Poller { client: client.clone(), interval: options.interval, sender, queries };
        let mut watch_loop = WatchLoop {
            options: &options,
            signal: options.signal,
            watches: Watches::open(&client, &options),
            known_events: BoundedSet::default(),
            state,
            poller,
            polling: BTreeMap::new(),
            inputs: WatchInputs::default(),
        };
        let changes = watch_loop.change_signal(Key::NextSignal);
        let texts: Vec<&str> = changes.iter().map(|change| change.text.as_str()).collect();
        assert_eq!(texts, ["node removed from the cluster"]);
        assert_ne!(watch_loop.signal, options.signal);
    }
}
