//! Wait for steady statistics of a node without pods of cases.

use std::fmt;
use std::time::Duration;

use evictlab_cluster::{Node, NodeError};
use evictlab_rules::quantity::MIB;
use evictlab_rules::summary::Sample;
use jiff::Timestamp;
use tokio::time::{sleep, timeout};

use crate::recovery::verify_recovered::pods_of_cases;

/// Time limit for steady statistics: cAdvisor updates the statistics of a node every 10 to 15 s.
const STEADY_TIMEOUT: Duration = Duration::from_secs(45);
/// Interval of requests for new statistics.
const STATISTICS_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum difference of two statistics that agree, in bytes.
const MAX_STEADY_DIFFERENCE: u64 = 16 * MIB;

/// Statistics of a node that did not become steady.
#[derive(Debug, thiserror::Error)]
#[error(
    "failed to wait for steady statistics of node {node} within {} s: {last}",
    STEADY_TIMEOUT.as_secs()
)]
pub(crate) struct UnsteadyError {
    /// Name of the node.
    pub node: String,
    /// Reason why the last statistics were not accepted.
    pub last: UnsteadyReason,
}

/// Reason to wait for further statistics of a node.
#[derive(Debug)]
pub(crate) enum UnsteadyReason {
    /// The node did not answer.
    Unreachable(NodeError),
    /// The statistics list a pod of a case, by namespace and name.
    PodListed(String, String),
    /// The memory of the node has no time or no amount.
    Incomplete,
    /// Successive statistics differ, or no new ones arrived.
    Changing,
}

impl fmt::Display for UnsteadyReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(error) => write!(f, "{error}"),
            Self::PodListed(namespace, name) => write!(f, "pod {namespace}/{name} is listed"),
            Self::Incomplete => f.write_str("the memory of the node is missing"),
            Self::Changing => f.write_str("successive ones do not agree"),
        }
    }
}

/// Waits until the node's statistics do not list pods of cases any more, and two successive ones
/// agree: until then they include memory and files that become free, and a threshold below them may
/// be out of reach.
///
/// # Errors
/// The statistics did not become steady within [`STEADY_TIMEOUT`].
pub(super) async fn wait_until_steady(node: &Node) -> Result<(), UnsteadyError> {
    let read = async || Free::of_idle_node(&node.sample().await.map_err(UnsteadyReason::Unreachable)?);
    until_steady(read).await.map_err(|last| UnsteadyError { node: node.name.clone(), last })
}

async fn until_steady(read: impl AsyncFn() -> Result<Free, UnsteadyReason>) -> Result<(), UnsteadyReason> {
    let mut last_problem = UnsteadyReason::Changing;
    let steady = async {
        // The first statistics may be older than the end of the last pod.
        let (mut last, mut updates) = (read().await.ok(), 0);
        loop {
            sleep(STATISTICS_POLL_INTERVAL).await;
            let now = match read().await {
                Ok(now) => now,
                Err(problem) => {
                    last_problem = problem;
                    continue;
                }
            };
            last_problem = UnsteadyReason::Changing;
            let Some(before) = last.replace(now) else { continue };
            if now.time == before.time {
                continue;
            }
            updates += 1;
            if updates > 1 && now.agrees_with(&before) {
                return;
            }
        }
    };
    let is_steady = timeout(STEADY_TIMEOUT, steady).await.is_ok();
    if is_steady { Ok(()) } else { Err(last_problem) }
}

/// Free memory and disk space of a node without pods of cases.
#[derive(Clone, Copy, Debug)]
struct Free {
    /// Time of the memory statistics.
    time: Timestamp,
    /// Available memory, in bytes.
    memory: i64,
    /// Free space of nodefs, in bytes.
    nodefs: Option<i64>,
}

impl Free {
    fn of_idle_node(sample: &Sample) -> Result<Self, UnsteadyReason> {
        if let Some(pod) = pods_of_cases(sample).next() {
            return Err(UnsteadyReason::PodListed(pod.namespace.clone(), pod.name.clone()));
        }
        let memory = sample.node.memory.as_ref().ok_or(UnsteadyReason::Incomplete)?;
        let nodefs = sample.node.fs.as_ref().and_then(|fs| fs.available_bytes);
        let time = memory.time.ok_or(UnsteadyReason::Incomplete)?;
        let memory = memory.available_bytes.ok_or(UnsteadyReason::Incomplete)?;
        Ok(Self { time, memory, nodefs })
    }

    fn agrees_with(&self, other: &Self) -> bool {
        let is_steady = |now: i64, before: i64| now.abs_diff(before) < MAX_STEADY_DIFFERENCE;
        is_steady(self.memory, other.memory)
            && self.nodefs.zip(other.nodefs).is_none_or(|(now, before)| is_steady(now, before))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn two_new_statistics_that_agree_are_steady() {
        let reads = Cell::new(0);
        let read = async || {
            reads.set(reads.get() + 1);
            let time = Timestamp::from_second(reads.get()).unwrap();
            let memory = if reads.get() > 5 { 900 } else { 100 * reads.get() };
            Ok(Free { time, memory: memory << 20, nodefs: None })
        };
        until_steady(read).await.unwrap();
        assert_eq!(reads.get(), 7);
    }

    #[tokio::test(start_paused = true)]
    async fn a_timeout_states_the_last_problem() {
        let began = Instant::now();
        let read = async || Err(UnsteadyReason::PodListed("evictlab-a".to_owned(), "web".to_owned()));
        let problem = until_steady(read).await.unwrap_err();
        assert_eq!(problem.to_string(), "pod evictlab-a/web is listed");
        assert_eq!(began.elapsed(), STEADY_TIMEOUT);
        let still = async || Ok(Free { time: Timestamp::UNIX_EPOCH, memory: 0, nodefs: None });
        let problem = until_steady(still).await.unwrap_err();
        assert_eq!(problem.to_string(), "successive ones do not agree");
    }
}
