//! Start of a watch: the first listing of the cluster and the first query of every kubelet.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::Arc;

use evictlab_cluster::{ClusterClient, ExistingError, WATCH_PERMISSIONS};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node as ApiNode;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::channel;
use tokio_util::sync::CancellationToken;

use super::bounded_set::BoundedSet;
use super::inspect::{MAX_PARALLEL_QUERIES, query_nodes, select_nodes};
use super::options::WatchOptions;
use super::poller::Poller;
use super::state::WatchState;
use super::view::WatchView;
use super::watch_loop::{EventKey, WatchInputs, WatchLoop, event_key};
use super::watches::{WatchMessage, Watches};

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

/// Watches until `stop` is cancelled or a key quits, and answers requests for metrics.
///
/// # Errors
///
/// Initially those of [`inspect`](super::inspect()); later only errors of the output.
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
            nodes.iter().map(|node| &node.0).filter(|node| options.includes(node)).collect();
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
        query_permits: Arc::new(Semaphore::new(MAX_PARALLEL_QUERIES)),
    };
    let pollers = BTreeMap::new();
    let signal = options.signal;
    let watch_loop = WatchLoop { options, signal, watches, known_events, state, poller, pollers, inputs };
    watch_loop.run(view, results, stop).await?;
    Ok(())
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
