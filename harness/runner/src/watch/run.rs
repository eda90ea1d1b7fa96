//! The watching itself: asks every kubelet again and again, and hears of evictions in between.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::time::Duration;

use evictlab_rules::threshold::Signal;
use futures::{StreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Node as ApiNode, Pod as ApiPod};
use kube::runtime::utils::Backoff;
use kube::{Client, ResourceExt};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::answer::{Answer, Unread, ask};
use super::change::Change;
use super::eviction::Eviction;
use super::ledger::Ledger;
use super::node::{NodeView, Seen};
use super::show::Show;
use super::sources::{News, Sources};
use crate::cluster::{ExistingError, Reached, TO_LOOK, TO_WATCH};
use crate::observe::Pause;

/// How many kubelets are asked at once for a single look.
const AT_ONCE: usize = 32;

/// What is to be watched.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Nodes by name; if none are named, all of them or those that the selector selects.
    pub nodes: Vec<String>,
    /// A label selector of nodes.
    pub selector: Option<String>,
    /// The signal.
    pub signal: Signal,
    /// How often each kubelet is asked.
    pub interval: Duration,
}

/// Watching failed.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The cluster cannot be used.
    #[error(transparent)]
    Cluster(#[from] ExistingError),
    /// Nobody reads what is shown, or it cannot be written.
    #[error("what is seen cannot be written: {0}")]
    Output(#[from] io::Error),
}

/// Looks at each node once.
///
/// # Errors
/// Rights that are missing, nodes that are not there, an API server that does not answer. A kubelet that does not is told in its view.
pub async fn look(reached: &Reached, asked: &Asked) -> Result<Vec<NodeView>, ExistingError> {
    reached.permits(&TO_LOOK).await?;
    let nodes = chosen(reached, asked).await?;
    let pods = reached.pods().await?;
    let pods: Vec<&ApiPod> = pods.iter().collect();
    let nodes: Vec<&ApiNode> = nodes.iter().collect();
    let mut views = views(&reached.client, &nodes, &pods, asked.signal).await;
    views.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(views)
}

/// Watches until it is stopped.
///
/// # Errors
/// At the beginning those of [`look`]; later only an output that cannot be written.
pub async fn watch<W: Write>(
    reached: &Reached,
    asked: &Asked,
    show: &mut Show<W>,
    stop: &CancellationToken,
) -> Result<(), WatchError> {
    let begin = async {
        reached.permits(&TO_WATCH).await?;
        // A node that is not there, and a selector that is none, are told at once.
        chosen(reached, asked).await?;
        let mut sources = Sources::open(&reached.client, asked);
        let events = complete(&mut sources).await;
        let (nodes, pods) = (sources.nodes.state(), sources.pods.state());
        let nodes: Vec<&ApiNode> = nodes.iter().map(AsRef::as_ref).filter(|node| asked.takes(node)).collect();
        let pods: Vec<&ApiPod> = pods.iter().map(AsRef::as_ref).collect();
        let views = views(&reached.client, &nodes, &pods, asked.signal).await;
        Ok::<_, ExistingError>((sources, events, views))
    };
    let (sources, events, views) = tokio::select! {
        biased;
        () = stop.cancelled() => return Ok(()),
        begun = begin => begun?,
    };
    let mut ledger = Ledger::default();
    for view in views {
        ledger.take(view, Timestamp::now());
    }
    ledger.begun = true;
    show.begin(&ledger, Timestamp::now())?;
    let (tell, answers) = channel(64);
    let known = events.iter().map(key).collect();
    let watch = Watch { reached, asked, sources, known, ledger, tell, pollers: BTreeMap::new() };
    watch.go(show, answers, stop).await?;
    Ok(())
}

impl Asked {
    fn takes(&self, node: &ApiNode) -> bool {
        self.nodes.is_empty() || self.nodes.contains(&node.name_any())
    }
}

/// The nodes that are asked for.
async fn chosen(reached: &Reached, asked: &Asked) -> Result<Vec<ApiNode>, ExistingError> {
    let mut nodes = reached.nodes(asked.selector.as_deref()).await?;
    let missing = asked.nodes.iter().find(|name| !nodes.iter().any(|node| node.name_any() == **name));
    if let Some(name) = missing {
        return Err(ExistingError::NoSuchNode {
            cluster: reached.name.clone(),
            name: name.clone(),
            has: nodes.iter().map(ResourceExt::name_any).collect(),
        });
    }
    nodes.retain(|node| asked.takes(node));
    Ok(nodes)
}

/// Every node, asked once.
async fn views(client: &Client, nodes: &[&ApiNode], pods: &[&ApiPod], signal: Signal) -> Vec<NodeView> {
    let none = BTreeSet::new();
    let view = async |node: &ApiNode| {
        let answer = ask(client, &node.name_any()).await;
        seen(node, pods, answer.as_ref(), signal, &none)
    };
    stream::iter(nodes).map(|node| view(node)).buffer_unordered(AT_ONCE).collect().await
}

fn seen(
    node: &ApiNode,
    pods: &[&ApiPod],
    answer: Result<&Answer, &Unread>,
    signal: Signal,
    evicted: &BTreeSet<String>,
) -> NodeView {
    let name = node.name_any();
    let on_it = |pod: &&&ApiPod| {
        pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref()).is_some_and(|bound| *bound == name)
    };
    let pods: Vec<&ApiPod> = pods.iter().filter(on_it).copied().collect();
    NodeView::of(&Seen { node, pods: &pods, answer, signal, evicted, at: Timestamp::now() })
}

/// Waits until everything that was there is known; returns the evictions among it.
async fn complete(sources: &mut Sources) -> Vec<Event> {
    let (mut events, mut left) = (Vec::new(), BTreeSet::new());
    while left.len() < Sources::COUNT {
        match sources.news.recv().await {
            Some(News::Complete(of)) => {
                left.insert(of);
            }
            Some(News::Event(event)) => events.push(*event),
            Some(News::Refused(..)) => {}
            None => break,
        }
    }
    events
}

/// What makes a telling of an event: a repeated one is counted up.
type Key = (String, i32);

fn key(event: &Event) -> Key {
    let series = event.series.as_ref().and_then(|series| series.count);
    (event.uid().unwrap_or_default(), event.count.or(series).unwrap_or_default())
}

struct Watch<'a> {
    reached: &'a Reached,
    asked: &'a Asked,
    sources: Sources,
    /// The events that were told already.
    known: BTreeSet<Key>,
    ledger: Ledger,
    tell: Sender<Told>,
    pollers: BTreeMap<String, AbortOnDropHandle<()>>,
}

/// What came of asking a node.
type Told = (String, Result<Answer, Unread>);

impl Watch<'_> {
    async fn go<W: Write>(
        mut self,
        show: &mut Show<W>,
        mut answers: Receiver<Told>,
        stop: &CancellationToken,
    ) -> io::Result<()> {
        let mut tick = interval(Duration::from_secs(1));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let changes = tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                Some(news) = self.sources.news.recv() => self.news(news),
                Some((node, answer)) = answers.recv() => self.answer(&node, &answer),
                _ = tick.tick() => self.poll(),
            };
            show.tell(&self.ledger, &changes, Timestamp::now())?;
        }
    }

    fn news(&mut self, news: News) -> Vec<Change> {
        let now = Timestamp::now();
        match news {
            News::Complete(_) => Vec::new(),
            News::Refused(of, why) => self.ledger.refused(of, why, now),
            News::Event(event) => match Eviction::of(&event) {
                Some(eviction) if self.known.insert(key(&event)) => {
                    let of_it = |pod: &ApiPod| pod.uid().as_ref() == Some(&eviction.uid);
                    let pod = self.sources.pods.find(of_it);
                    let bound = pod.and_then(|pod| pod.spec.as_ref()?.node_name.clone());
                    self.ledger.evict(&eviction, bound, now)
                }
                _ => Vec::new(),
            },
        }
    }

    fn answer(&mut self, name: &str, answer: &Result<Answer, Unread>) -> Vec<Change> {
        let now = Timestamp::now();
        if let Err(Unread::Server(why)) = answer {
            return self.ledger.server(Some(why.clone()), now);
        }
        let mut changes = self.ledger.server(None, now);
        let node = self.sources.nodes.find(|node| node.name_any() == name);
        let Some(node) = node.filter(|node| self.asked.takes(node)) else { return changes };
        let pods = self.sources.pods.state();
        let pods: Vec<&ApiPod> = pods.iter().map(AsRef::as_ref).collect();
        let view = seen(&node, &pods, answer.as_ref(), self.asked.signal, &self.ledger.evicted);
        changes.extend(self.ledger.take(view, now));
        changes
    }

    /// Asks the nodes that are there, and no others.
    fn poll(&mut self) -> Vec<Change> {
        let nodes = self.sources.nodes.state();
        let there: BTreeSet<String> =
            nodes.iter().filter(|node| self.asked.takes(node)).map(|node| node.name_any()).collect();
        self.pollers.retain(|name, _| there.contains(name));
        for name in &there {
            self.pollers.entry(name.clone()).or_insert_with(|| {
                let asking =
                    asking(self.reached.client.clone(), name.clone(), self.asked.interval, self.tell.clone());
                AbortOnDropHandle::new(tokio::spawn(asking))
            });
        }
        let now = Timestamp::now();
        let mut changes = self.ledger.retain(&there, now);
        changes.extend(self.ledger.granted(now));
        changes
    }
}

/// Asks a node again and again; one that does not answer, less and less often.
async fn asking(client: Client, node: String, interval: Duration, tell: Sender<Told>) {
    let mut pause = Pause::default();
    loop {
        let answer = ask(&client, &node).await;
        let wait = match &answer {
            Ok(_) => {
                pause.reset();
                interval
            }
            Err(_) => pause.next().unwrap_or(interval).max(interval),
        };
        if tell.send((node.clone(), answer)).await.is_err() {
            return;
        }
        sleep(wait).await;
    }
}
