//! What waits for a node. Who needs the disk takes turns: all nodes of a host share it.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};

use super::Class;

/// A case that waits.
pub(super) struct Waiting<C> {
    pub case: C,
    pub class: Class,
    /// The nodes that it may run on.
    pub nodes: Vec<String>,
}

/// The cases of one kubelet that wait for one of its nodes.
pub(super) struct Queue<C> {
    here: Mutex<Here<C>>,
    /// Whoever starves a disk has it. It is the host's, so other queues have the same.
    disk: Arc<Mutex<()>>,
}

struct Here<C> {
    waiting: VecDeque<Waiting<C>>,
    /// The nodes that have withdrawn.
    withdrawn: BTreeSet<String>,
}

impl<C> Here<C> {
    /// Whether a case is for a node. One that has withdrawn gets what no other can take.
    fn fits(&self, case: &Waiting<C>, node: &str) -> bool {
        case.nodes.iter().any(|name| name == node)
            && (!self.withdrawn.contains(node) || case.nodes.iter().all(|name| self.withdrawn.contains(name)))
    }
}

/// A case's turn at the disk, until it is dropped.
pub(super) type Turn = OwnedMutexGuard<()>;

impl<C> Queue<C> {
    pub fn new(waiting: impl IntoIterator<Item = Waiting<C>>, disk: Arc<Mutex<()>>) -> Self {
        let here = Here { waiting: waiting.into_iter().collect(), withdrawn: BTreeSet::new() };
        Self { here: Mutex::new(here), disk }
    }

    /// Puts one more at the end.
    pub async fn push(&self, case: Waiting<C>) {
        self.here.lock().await.waiting.push_back(case);
    }

    /// Leaves the cases to the other nodes that they may run on.
    pub async fn withdraw(&self, node: &str) {
        self.here.lock().await.withdrawn.insert(node.to_owned());
    }

    /// The next case for a node, with its turn at the disk if it needs one; none when no case is left for that node. A case that would have to
    /// wait for its turn is passed over while there is another.
    pub async fn next(&self, node: &str) -> Option<(Waiting<C>, Option<Turn>)> {
        let mut waited_for = None;
        loop {
            let mut here = self.here.lock().await;
            let turn = waited_for.take().or_else(|| self.disk.clone().try_lock_owned().ok());
            let now =
                |case: &Waiting<C>| here.fits(case, node) && (turn.is_some() || case.class != Class::Disk);
            let place = here.waiting.iter().position(now);
            if let Some(case) = place.and_then(|place| here.waiting.remove(place)) {
                let turn = turn.filter(|_| case.class == Class::Disk);
                return Some((case, turn));
            }
            if !here.waiting.iter().any(|case| here.fits(case, node)) {
                return None;
            }
            drop((here, turn));
            // All that is left waits for the disk. The turn is kept: given back and asked for again, it would go from one who waits to the next
            // for ever.
            waited_for = Some(self.disk.clone().lock_owned().await);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    fn waiting(case: &'static str, class: Class, nodes: &[&str]) -> Waiting<&'static str> {
        Waiting { case, class, nodes: nodes.iter().map(|node| (*node).to_owned()).collect() }
    }

    async fn name(queue: &Queue<&'static str>, node: &str) -> Option<(&'static str, Option<Turn>)> {
        let next = timeout(Duration::from_secs(1), queue.next(node)).await;
        next.expect("somebody waits for ever").map(|(waiting, turn)| (waiting.case, turn))
    }

    /// Whether `next` waits for something.
    async fn waits(queue: &Queue<&'static str>, node: &str) -> bool {
        timeout(Duration::from_secs(1), queue.next(node)).await.is_err()
    }

    #[tokio::test(start_paused = true)]
    async fn cases_take_turns_at_the_disk_and_others_pass_them() {
        let cases = [
            waiting("logs", Class::Disk, &["a", "b"]),
            waiting("inodes", Class::Disk, &["a", "b"]),
            waiting("memory", Class::Node, &["a", "b"]),
        ];
        let queue = Queue::new(cases, Arc::default());
        let (first, turn) = name(&queue, "a").await.unwrap();
        assert_eq!((first, turn.is_some()), ("logs", true));
        let (second, none) = name(&queue, "b").await.unwrap();
        assert_eq!((second, none.is_some()), ("memory", false), "it needs no turn");
        assert!(waits(&queue, "b").await, "inodes would run beside logs");
        drop(turn);
        let (third, turn) = name(&queue, "b").await.unwrap();
        assert_eq!((third, turn.is_some()), ("inodes", true));
        assert!(name(&queue, "a").await.is_none(), "nothing is left");
    }

    #[tokio::test(start_paused = true)]
    async fn the_disk_is_one_for_all_kubelets() {
        let disk = Arc::<Mutex<()>>::default();
        let of = |case| Queue::new([waiting(case, Class::Disk, &["a"])], disk.clone());
        let (old, new) = (of("old"), of("new"));
        let turn = name(&old, "a").await.unwrap().1;
        assert!(waits(&new, "a").await);
        drop(turn);
        assert!(!waits(&new, "a").await);
    }

    #[tokio::test(start_paused = true)]
    async fn many_that_wait_for_the_disk_all_get_it() {
        let cases = (0..6).map(|_| waiting("disk", Class::Disk, &["a", "b", "c"]));
        let queue = Arc::new(Queue::new(cases, Arc::default()));
        let worker = |node: &'static str| {
            let queue = queue.clone();
            async move {
                let mut done = 0;
                while let Some((_, turn)) = queue.next(node).await {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    drop(turn);
                    done += 1;
                }
                done
            }
        };
        let all = async { tokio::join!(worker("a"), worker("b"), worker("c")) };
        let (a, b, c) = timeout(Duration::from_secs(60), all).await.expect("somebody waits for ever");
        assert_eq!(a + b + c, 6);
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_withdraws_leaves_its_cases_to_the_others() {
        let cases = ["both", "mine", "another"]
            .map(|case| waiting(case, Class::Node, if case == "mine" { &["a"] } else { &["a", "b"] }));
        let queue = Queue::new(cases, Arc::default());
        queue.withdraw("a").await;
        assert_eq!(name(&queue, "a").await.map(|(case, _)| case), Some("mine"), "nobody else can");
        assert!(name(&queue, "a").await.is_none());
        assert_eq!(name(&queue, "b").await.map(|(case, _)| case), Some("both"));
        queue.withdraw("b").await;
        assert_eq!(name(&queue, "a").await.map(|(case, _)| case), Some("another"), "all have withdrawn");
    }

    #[tokio::test(start_paused = true)]
    async fn a_case_waits_for_a_node_that_is_for_it() {
        let queue = Queue::new([waiting("tainted", Class::Node, &["b"])], Arc::default());
        assert!(name(&queue, "a").await.is_none());
        assert_eq!(name(&queue, "b").await.map(|(case, _)| case), Some("tainted"));
    }
}
