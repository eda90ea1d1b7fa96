//! The watch loop: handles messages of the watches, results of queries, keys and requests for
//! metrics.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::time::Duration;

use evictlab_rules::threshold::Signal;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver};
use tokio::sync::oneshot;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::bounded_set::BoundedSet;
use super::change::WatchChange;
use super::eviction::EvictionEvent;
use super::keyboard::Key;
use super::kubelet_client::{KubeletSnapshot, QueryError};
use super::metrics::{MetricsRequests, render};
use super::node::NodeView;
use super::options::WatchOptions;
use super::poller::{Poller, QueryResult};
use super::reading::NodeInput;
use super::state::WatchState;
use super::view::WatchView;
use super::watches::{WatchMessage, Watches};

/// Time between two checks for added and removed nodes.
const NODE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Inputs of a running watch.
#[derive(Debug, Default)]
pub struct WatchInputs {
    /// Requests for metrics.
    pub metrics_requests: Option<MetricsRequests>,
    /// Keys; without keys, the terminal does not show a selection.
    pub keys: Option<UnboundedReceiver<Key>>,
}

/// UID and count of an event: repetitions of an event increase its count.
pub(super) type EventKey = (String, i32);

pub(super) fn event_key(event: &Event) -> EventKey {
    let series = event.series.as_ref().and_then(|series| series.count);
    (event.uid().unwrap_or_default(), event.count.or(series).unwrap_or_default())
}

/// When nodes without a poller are queried first.
#[derive(Clone, Copy)]
enum FirstQuery {
    /// Known nodes within one interval, evenly spread; others at once.
    Spread,
    /// All at once.
    AtOnce,
}

/// State and inputs of a running watch.
pub(super) struct WatchLoop<'a> {
    pub options: &'a WatchOptions,
    /// The watched signal, which a key changes.
    pub signal: Signal,
    pub watches: Watches,
    /// Events that are already reported.
    pub known_events: BoundedSet<EventKey>,
    pub state: WatchState,
    pub poller: Poller,
    /// Tasks that query the nodes, by node name.
    pub pollers: BTreeMap<String, AbortOnDropHandle<()>>,
    pub inputs: WatchInputs,
}

impl WatchLoop<'_> {
    /// Runs until `stop` is cancelled or a key quits.
    pub(super) async fn run<W: Write>(
        mut self,
        view: &mut WatchView<W>,
        results: Receiver<QueryResult>,
        stop: &CancellationToken,
    ) -> io::Result<()> {
        self.show_changes(view, results, stop).await?;
        view.finish(&self.state, Timestamp::now())
    }

    async fn show_changes<W: Write>(
        &mut self,
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
                Some(key) = next_key(&mut self.inputs.keys) => match self.handle_key(key, view)? {
                    ControlFlow::Continue(changes) => changes,
                    ControlFlow::Break(()) => return Ok(()),
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

    /// Applies a key to the watched signal and the view. Breaks if the key quits; otherwise returns
    /// the changes of the nodes.
    fn handle_key<W: Write>(
        &mut self,
        key: Key,
        view: &mut WatchView<W>,
    ) -> io::Result<ControlFlow<(), Vec<WatchChange>>> {
        if key == Key::Quit {
            return Ok(ControlFlow::Break(()));
        }
        let changes = self.change_signal(key);
        view.press(key, &self.state, Timestamp::now())?;
        Ok(ControlFlow::Continue(changes))
    }

    /// Watches the next or previous signal, and queries the nodes again. Returns the changes of the
    /// nodes since the last check.
    fn change_signal(&mut self, key: Key) -> Vec<WatchChange> {
        let count = Signal::ALL.len();
        let step = match key {
            Key::NextSignal => 1,
            Key::PreviousSignal => count - 1,
            Key::Up
            | Key::Down
            | Key::PageUp
            | Key::PageDown
            | Key::Home
            | Key::End
            | Key::Open
            | Key::Close
            | Key::Quit => return Vec::new(),
        };
        let index = Signal::ALL.iter().position(|signal| *signal == self.signal).unwrap_or(0);
        self.signal = Signal::ALL[(index + step) % count];
        self.state.forget_readings();
        self.pollers.clear();
        self.update_pollers(FirstQuery::AtOnce)
    }

    /// Starts a poller for each new node and stops those of removed nodes.
    fn update_pollers(&mut self, first_query: FirstQuery) -> Vec<WatchChange> {
        let nodes = self.watches.nodes.state();
        let present: BTreeSet<String> =
            nodes.iter().filter(|node| self.options.includes(node)).map(|node| node.name_any()).collect();
        self.pollers.retain(|name, _| present.contains(name));
        let added: Vec<&String> = present.iter().filter(|name| !self.pollers.contains_key(*name)).collect();
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
            self.pollers.insert(name.clone(), AbortOnDropHandle::new(tokio::spawn(poll)));
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use evictlab_embedded::{Cluster, ClusterOptions};
    use k8s_openapi::api::core::v1::Node as ApiNode;
    use kube::Client;
    use tokio::sync::Semaphore;
    use tokio::sync::mpsc::channel;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_change_of_the_signal_reports_removed_nodes() {
        let cluster = Cluster::new(ClusterOptions::new(0, Timestamp::UNIX_EPOCH, Vec::new())).unwrap();
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
        let query_permits = Arc::new(Semaphore::new(1));
        let poller = Poller { client: client.clone(), interval: options.interval, sender, query_permits };
        let mut watch_loop = WatchLoop {
            options: &options,
            signal: options.signal,
            watches: Watches::open(&client, &options),
            known_events: BoundedSet::default(),
            state,
            poller,
            pollers: BTreeMap::new(),
            inputs: WatchInputs::default(),
        };
        let changes = watch_loop.change_signal(Key::NextSignal);
        let texts: Vec<&str> = changes.iter().map(|change| change.text.as_str()).collect();
        assert_eq!(texts, ["node removed from the cluster"]);
        assert_ne!(watch_loop.signal, options.signal);
    }
}
