//! Queue of the cases of a cluster: which node may take which case now.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::node_access::exclusivity::Exclusivity;

/// A case in a queue.
pub(crate) struct QueuedCase<C> {
    pub case: C,
    pub exclusivity: Exclusivity,
    /// Nodes that the case may run on.
    pub nodes: Arc<BTreeSet<String>>,
}

/// Cases that a worker takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkerKind {
    /// All cases. A node has one such worker.
    Any,
    /// Cases that share their node with others.
    SharedOnly,
}

/// Cases of a cluster that wait for a node, in their order.
///
/// A node takes its next case as soon as it has completed the last one, whatever other nodes do.
/// One case at a time needs the host or its disk, and a limited number of cases shares nodes;
/// others may overtake a case that waits for them.
pub(crate) struct CaseQueue<C> {
    state: RefCell<QueueState<C>>,
    /// Notified whenever a waiting worker may proceed.
    changed: Notify,
}

struct QueueState<C> {
    cases: VecDeque<QueuedCase<C>>,
    /// A case that needs the host or its disk runs.
    host_in_use: bool,
    /// Number of cases that run and share their nodes.
    shared: usize,
    /// Maximum of that number.
    max_shared: usize,
    /// Nodes that take a case that does not share them only if no other node can run it.
    withdrawn: BTreeSet<String>,
}

/// Right to run a case, until it is dropped.
pub(crate) struct RunPermit<C> {
    queue: Rc<CaseQueue<C>>,
    exclusivity: Exclusivity,
}

/// State of a queue for one worker.
enum Availability {
    /// The case at this position may run now.
    Ready(usize),
    /// Every case for the worker waits for others to end.
    Blocked,
    /// No case for the worker is left.
    Empty,
}

impl<C> QueueState<C> {
    fn can_take(&self, case: &QueuedCase<C>, node: &str, worker: WorkerKind) -> bool {
        let is_shared = case.exclusivity == Exclusivity::Shared;
        let is_left_to_others =
            || self.withdrawn.contains(node) && !case.nodes.iter().all(|name| self.withdrawn.contains(name));
        (is_shared || worker == WorkerKind::Any)
            && case.nodes.contains(node)
            && (is_shared || !is_left_to_others())
    }

    /// Returns whether a case may start beside those that run.
    fn can_start(&self, exclusivity: Exclusivity) -> bool {
        match exclusivity {
            Exclusivity::Shared => self.shared < self.max_shared,
            Exclusivity::Node => true,
            Exclusivity::Disk | Exclusivity::Host => !self.host_in_use,
        }
    }

    fn availability(&self, node: &str, worker: WorkerKind) -> Availability {
        let mut possible =
            self.cases.iter().enumerate().filter(|(_, case)| self.can_take(case, node, worker));
        if possible.clone().next().is_none() {
            return Availability::Empty;
        }
        let ready = possible.find(|(_, case)| self.can_start(case.exclusivity));
        ready.map_or(Availability::Blocked, |(position, _)| Availability::Ready(position))
    }
}

impl<C> CaseQueue<C> {
    /// Creates a queue. `max_shared`: maximum number of cases that run and share their nodes.
    pub(crate) fn new(cases: impl IntoIterator<Item = QueuedCase<C>>, max_shared: usize) -> Self {
        let cases = cases.into_iter().collect();
        let withdrawn = BTreeSet::new();
        let state = QueueState { cases, host_in_use: false, shared: 0, max_shared, withdrawn };
        Self { state: RefCell::new(state), changed: Notify::new() }
    }

    /// Appends a case.
    pub(crate) fn push(&self, case: QueuedCase<C>) {
        self.state.borrow_mut().cases.push_back(case);
        self.changed.notify_waiters();
    }

    /// Leaves cases that would not share the node to the other nodes that can run them.
    pub(crate) fn withdraw(&self, node: &str) {
        self.state.borrow_mut().withdrawn.insert(node.to_owned());
        self.changed.notify_waiters();
    }

    /// Removes and returns the next case for a worker of a node, as soon as it may run; `None` if
    /// no case for the worker is left.
    pub(crate) async fn next(
        self: &Rc<Self>,
        node: &str,
        worker: WorkerKind,
    ) -> Option<(QueuedCase<C>, RunPermit<C>)> {
        loop {
            // Created before the check, so that no notification is missed.
            let changed = self.changed.notified();
            {
                let mut state = self.state.borrow_mut();
                match state.availability(node, worker) {
                    Availability::Ready(position) => {
                        let case = state.cases.remove(position)?;
                        let needs_host = matches!(case.exclusivity, Exclusivity::Disk | Exclusivity::Host);
                        state.host_in_use |= needs_host;
                        state.shared += usize::from(case.exclusivity == Exclusivity::Shared);
                        let permit = RunPermit { queue: self.clone(), exclusivity: case.exclusivity };
                        return Some((case, permit));
                    }
                    Availability::Empty => return None,
                    Availability::Blocked => {}
                }
            }
            changed.await;
        }
    }
}

impl<C> Drop for RunPermit<C> {
    fn drop(&mut self) {
        let mut state = self.queue.state.borrow_mut();
        match self.exclusivity {
            Exclusivity::Shared => state.shared -= 1,
            Exclusivity::Node => {}
            Exclusivity::Disk | Exclusivity::Host => state.host_in_use = false,
        }
        drop(state);
        self.queue.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    type TestQueue = Rc<CaseQueue<&'static str>>;

    fn queued(case: &'static str, exclusivity: Exclusivity, nodes: &[&str]) -> QueuedCase<&'static str> {
        let nodes = nodes.iter().map(|node| (*node).to_owned()).collect();
        QueuedCase { case, exclusivity, nodes: Arc::new(nodes) }
    }

    fn queue(cases: impl IntoIterator<Item = QueuedCase<&'static str>>) -> TestQueue {
        Rc::new(CaseQueue::new(cases, 2))
    }

    async fn next(queue: &TestQueue, node: &str) -> Option<(&'static str, RunPermit<&'static str>)> {
        let next = timeout(Duration::from_secs(1), queue.next(node, WorkerKind::Any)).await;
        next.expect("`next` blocks forever").map(|(queued, permit)| (queued.case, permit))
    }

    /// Returns whether `next` blocks.
    async fn blocks(queue: &TestQueue, node: &str) -> bool {
        timeout(Duration::from_secs(1), queue.next(node, WorkerKind::Any)).await.is_err()
    }

    #[tokio::test(start_paused = true)]
    async fn cases_take_turns_at_the_disk_and_others_overtake_them() {
        let queue = queue([
            queued("logs", Exclusivity::Disk, &["a", "b"]),
            queued("inodes", Exclusivity::Disk, &["a", "b"]),
            queued("memory", Exclusivity::Node, &["a", "b"]),
        ]);
        let (first, disk) = next(&queue, "a").await.unwrap();
        let (second, memory) = next(&queue, "b").await.unwrap();
        assert_eq!((first, second), ("logs", "memory"), "memory pressure does not need the disk");
        drop(memory);
        assert!(blocks(&queue, "b").await, "logs uses the disk");
        drop(disk);
        let (third, _disk) = next(&queue, "b").await.unwrap();
        assert_eq!(third, "inodes");
        assert!(next(&queue, "a").await.is_none(), "the queue is empty");
    }

    #[tokio::test(start_paused = true)]
    async fn pressure_on_process_ids_and_on_the_disk_take_turns() {
        let queue = queue([
            queued("pids", Exclusivity::Host, &["a", "b", "c"]),
            queued("disk", Exclusivity::Disk, &["a", "b", "c"]),
            queued("memory", Exclusivity::Node, &["a", "b", "c"]),
        ]);
        let (first, pids) = next(&queue, "a").await.unwrap();
        let (second, _memory) = next(&queue, "b").await.unwrap();
        assert_eq!((first, second), ("pids", "memory"));
        assert!(blocks(&queue, "c").await, "the host is in use");
        drop(pids);
        assert_eq!(next(&queue, "c").await.map(|(case, _)| case), Some("disk"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_limited_number_of_cases_shares_nodes() {
        let queue = queue(
            [Exclusivity::Shared, Exclusivity::Shared, Exclusivity::Shared, Exclusivity::Node]
                .map(|exclusivity| queued("case", exclusivity, &["a", "b", "c"])),
        );
        let mut shared = vec![next(&queue, "a").await.unwrap(), next(&queue, "b").await.unwrap()];
        let (_exclusive, _) = next(&queue, "c").await.expect("the exclusive case overtakes the third");
        assert!(blocks(&queue, "c").await, "two cases share their nodes");
        shared.pop();
        assert!(next(&queue, "c").await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_node_keeps_no_other_node_idle() {
        let cases = (0..7).map(|_| queued("case", Exclusivity::Node, &["slow", "fast"]));
        let queue = queue(cases);
        let work_on = |node: &'static str, seconds: u64| {
            let queue = queue.clone();
            async move {
                let mut done = 0;
                while let Some((_, _permit)) = queue.next(node, WorkerKind::Any).await {
                    tokio::time::sleep(Duration::from_secs(seconds)).await;
                    done += 1;
                }
                done
            }
        };
        let began = tokio::time::Instant::now();
        let done = tokio::join!(work_on("slow", 60), work_on("fast", 10));
        assert_eq!((done, began.elapsed().as_secs()), ((1, 6), 60));
    }

    #[tokio::test(start_paused = true)]
    async fn each_node_that_waits_for_the_disk_gets_it() {
        let queue = queue((0..6).map(|_| queued("disk", Exclusivity::Disk, &["a", "b", "c"])));
        let work_on = |node: &'static str| {
            let queue = queue.clone();
            async move {
                let mut done = 0;
                while let Some((_, permit)) = queue.next(node, WorkerKind::Any).await {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    drop(permit);
                    done += 1;
                }
                done
            }
        };
        let all = async { tokio::join!(work_on("a"), work_on("b"), work_on("c")) };
        let (a, b, c) = timeout(Duration::from_secs(60), all).await.expect("a node waits forever");
        assert_eq!(a + b + c, 6);
    }

    #[tokio::test(start_paused = true)]
    async fn a_withdrawn_node_leaves_its_cases_to_others() {
        let cases = ["both", "only-a", "another"]
            .map(|case| queued(case, Exclusivity::Node, if case == "only-a" { &["a"] } else { &["a", "b"] }));
        let queue = queue(cases);
        queue.withdraw("a");
        assert_eq!(next(&queue, "a").await.map(|(case, _)| case), Some("only-a"), "no other node can run it");
        assert!(next(&queue, "a").await.is_none());
        assert_eq!(next(&queue, "b").await.map(|(case, _)| case), Some("both"));
        queue.withdraw("b");
        let last = next(&queue, "a").await.map(|(case, _)| case);
        assert_eq!(last, Some("another"), "all nodes have withdrawn");
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_takes_only_cases_that_it_may_run() {
        let queue = queue([
            queued("memory", Exclusivity::Node, &["b"]),
            queued("shared", Exclusivity::Shared, &["b"]),
        ]);
        assert!(next(&queue, "a").await.is_none());
        let shared = queue.next("b", WorkerKind::SharedOnly).await.map(|(queued, _)| queued.case);
        assert_eq!(shared, Some("shared"));
        assert!(queue.next("b", WorkerKind::SharedOnly).await.is_none());
    }
}
