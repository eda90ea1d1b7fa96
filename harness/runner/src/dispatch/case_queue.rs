//! Queue of the cases of one kubelet. Cases with disk pressure take turns, because all nodes of a
//! host share its disk.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::lease::exclusivity::Exclusivity;

/// A case in a queue.
pub(crate) struct QueuedCase<C> {
    pub case: C,
    pub exclusivity: Exclusivity,
    /// Nodes that the case may run on.
    pub nodes: Vec<String>,
}

/// Cases of one kubelet that wait for one of its nodes.
pub(crate) struct CaseQueue<C> {
    state: Mutex<QueueState<C>>,
    /// Held by the case with disk pressure; shared by all queues of the run.
    disk: Arc<Mutex<()>>,
}

struct QueueState<C> {
    cases: VecDeque<QueuedCase<C>>,
    /// Nodes that take a case only if no other node can run it.
    withdrawn: BTreeSet<String>,
}

impl<C> QueueState<C> {
    /// Returns whether a node may take a case.
    fn can_take(&self, case: &QueuedCase<C>, node: &str) -> bool {
        case.nodes.iter().any(|name| name == node)
            && (!self.withdrawn.contains(node) || case.nodes.iter().all(|name| self.withdrawn.contains(name)))
    }
}

/// Exclusive use of the host's disk, until it is dropped.
pub(crate) type DiskLock = OwnedMutexGuard<()>;

impl<C> CaseQueue<C> {
    pub(crate) fn new(cases: impl IntoIterator<Item = QueuedCase<C>>, disk: Arc<Mutex<()>>) -> Self {
        let state = QueueState { cases: cases.into_iter().collect(), withdrawn: BTreeSet::new() };
        Self { state: Mutex::new(state), disk }
    }

    /// Appends a case.
    pub(crate) async fn push(&self, case: QueuedCase<C>) {
        self.state.lock().await.cases.push_back(case);
    }

    /// Leaves cases to the other nodes that can run them.
    pub(crate) async fn withdraw(&self, node: &str) {
        self.state.lock().await.withdrawn.insert(node.to_owned());
    }

    /// Removes and returns the next case for a node, with the disk lock if the case needs it;
    /// `None` if no case for the node is left. Cases that need a locked disk are passed over while
    /// there are others.
    pub(crate) async fn next(&self, node: &str) -> Option<(QueuedCase<C>, Option<DiskLock>)> {
        let mut awaited_lock = None;
        loop {
            let mut state = self.state.lock().await;
            let lock = awaited_lock.take().or_else(|| self.disk.clone().try_lock_owned().ok());
            let is_ready = |case: &QueuedCase<C>| {
                state.can_take(case, node) && (lock.is_some() || case.exclusivity != Exclusivity::Disk)
            };
            let position = state.cases.iter().position(is_ready);
            if let Some(case) = position.and_then(|position| state.cases.remove(position)) {
                let lock = lock.filter(|_| case.exclusivity == Exclusivity::Disk);
                return Some((case, lock));
            }
            if !state.cases.iter().any(|case| state.can_take(case, node)) {
                return None;
            }
            drop((state, lock));
            // All remaining cases need the disk. The lock is kept for the next pass: if it were
            // released and requested again, waiting nodes would pass it to each other forever.
            awaited_lock = Some(self.disk.clone().lock_owned().await);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    fn queued(case: &'static str, exclusivity: Exclusivity, nodes: &[&str]) -> QueuedCase<&'static str> {
        QueuedCase { case, exclusivity, nodes: nodes.iter().map(|node| (*node).to_owned()).collect() }
    }

    async fn next(queue: &CaseQueue<&'static str>, node: &str) -> Option<(&'static str, Option<DiskLock>)> {
        let next = timeout(Duration::from_secs(1), queue.next(node)).await;
        next.expect("`next` blocks forever").map(|(queued, lock)| (queued.case, lock))
    }

    /// Returns whether `next` blocks.
    async fn blocks(queue: &CaseQueue<&'static str>, node: &str) -> bool {
        timeout(Duration::from_secs(1), queue.next(node)).await.is_err()
    }

    #[tokio::test(start_paused = true)]
    async fn cases_take_turns_at_the_disk_and_others_overtake_them() {
        let cases = [
            queued("logs", Exclusivity::Disk, &["a", "b"]),
            queued("inodes", Exclusivity::Disk, &["a", "b"]),
            queued("memory", Exclusivity::Node, &["a", "b"]),
        ];
        let queue = CaseQueue::new(cases, Arc::default());
        let (first, lock) = next(&queue, "a").await.unwrap();
        assert_eq!((first, lock.is_some()), ("logs", true));
        let (second, none) = next(&queue, "b").await.unwrap();
        assert_eq!((second, none.is_some()), ("memory", false), "memory pressure needs no disk lock");
        assert!(blocks(&queue, "b").await, "logs holds the disk lock");
        drop(lock);
        let (third, lock) = next(&queue, "b").await.unwrap();
        assert_eq!((third, lock.is_some()), ("inodes", true));
        assert!(next(&queue, "a").await.is_none(), "the queue is empty");
    }

    #[tokio::test(start_paused = true)]
    async fn the_queues_of_all_kubelets_share_the_disk_lock() {
        let disk = Arc::<Mutex<()>>::default();
        let of = |case| CaseQueue::new([queued(case, Exclusivity::Disk, &["a"])], disk.clone());
        let (old, new) = (of("old"), of("new"));
        let lock = next(&old, "a").await.unwrap().1;
        assert!(blocks(&new, "a").await);
        drop(lock);
        assert!(!blocks(&new, "a").await);
    }

    #[tokio::test(start_paused = true)]
    async fn each_node_that_waits_for_the_disk_gets_it() {
        let cases = (0..6).map(|_| queued("disk", Exclusivity::Disk, &["a", "b", "c"]));
        let queue = Arc::new(CaseQueue::new(cases, Arc::default()));
        let work_on = |node: &'static str| {
            let queue = queue.clone();
            async move {
                let mut done = 0;
                while let Some((_, lock)) = queue.next(node).await {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    drop(lock);
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
        let queue = CaseQueue::new(cases, Arc::default());
        queue.withdraw("a").await;
        assert_eq!(next(&queue, "a").await.map(|(case, _)| case), Some("only-a"), "no other node can run it");
        assert!(next(&queue, "a").await.is_none());
        assert_eq!(next(&queue, "b").await.map(|(case, _)| case), Some("both"));
        queue.withdraw("b").await;
        assert_eq!(
            next(&queue, "a").await.map(|(case, _)| case),
            Some("another"),
            "all nodes have withdrawn"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_takes_only_cases_that_it_may_run() {
        let queue = CaseQueue::new([queued("tainted", Exclusivity::Node, &["b"])], Arc::default());
        assert!(next(&queue, "a").await.is_none());
        assert_eq!(next(&queue, "b").await.map(|(case, _)| case), Some("tainted"));
    }
}
