//! Guard of a case on a node that evictlab does not manage: it ends the case before others suffer.

use std::fmt;
use std::time::Duration;

use evictlab_cluster::workload::Namespace;
use evictlab_cluster::{NodeError, PressureForbidden};
use evictlab_rules::quantity::MIB;
use evictlab_rules::summary::Sample;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, timeout};

use crate::case_runner::error::CaseError;
use crate::case_runner::runner::CaseRunner;
use crate::node_access::node_policy::NodePolicy;
use crate::pressure::room::NodeRoom;

/// Interval of the checks.
const INTERVAL: Duration = Duration::from_secs(2);
/// Maximum time from a write until the pods have ended because of it: the age of the statistics of
/// file systems, the interval, and the end of the pods.
const REACTION_TIME: Duration = Duration::from_secs(25);
/// Limit for the requests of one check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);
/// Limit for a case that may put its node under pressure, without a successful check.
const UNCHECKED_LIMIT: Duration = Duration::from_secs(30);
/// Memory or disk that the pods of a case may take beyond `--pressure-cap`: page cache and
/// containers without load.
pub(super) const MARGIN: u64 = 256 * MIB;
/// Memory or disk above its thresholds that a node keeps during a case that may not put it under
/// pressure.
const MIN_ROOM: u64 = 64 * MIB;
/// Processes and inodes that the pods of a case may take: limits on memory and disk do not bound
/// them, and nodes have at least 32,768 process IDs.
const MAX_PROCESSES: u64 = 10_000;
const MAX_INODES: u64 = 1_000_000;

/// Result of a check after which a case may have to end.
enum CheckError {
    /// The case harms the node or others.
    Harmful(Harm),
    /// The node could not be checked.
    Unknown(String),
}

impl CaseRunner<'_> {
    /// Returns the state of the guard of a case that begins.
    pub(super) fn checks(&self) -> Checks {
        let may_cause_pressure =
            self.run_node.policy.as_ref().is_some_and(|policy| policy.may_cause_pressure(&self.case.case));
        Checks { may_cause_pressure, last_success: Instant::now(), disk: DiskTrend::default() }
    }

    /// Awaits `work`, unless the run is interrupted or the [guard](Self::guard) ends the case.
    ///
    /// # Errors
    /// [`CaseError::Interrupted`], or the reason of the guard.
    pub(super) async fn guarded<T>(
        &self,
        namespace: &Namespace,
        checks: &mut Checks,
        work: impl Future<Output = T>,
    ) -> Result<T, CaseError> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(CaseError::Interrupted),
            error = self.guard(namespace, checks) => Err(error),
            done = work => Ok(done),
        }
    }

    /// Waits until the case must end early on a node that evictlab does not manage; forever on
    /// other nodes. The case ends when
    /// - the run is interrupted: a request that is never answered does not delay the clean-up,
    /// - the run has lost the node,
    /// - its pods take more than the cap, or too many inodes or processes,
    /// - it may put the node under pressure, and pods of others have arrived, or the node could not
    ///   be checked for 30 s,
    /// - it may not, and the node has come close to a threshold.
    pub(super) async fn guard(&self, namespace: &Namespace, checks: &mut Checks) -> CaseError {
        let Some(policy) = &self.run_node.policy else { return std::future::pending().await };
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => CaseError::Interrupted,
            error = self.check_until_harmful(policy, namespace, checks) => error,
        }
    }

    async fn check_until_harmful(
        &self,
        policy: &NodePolicy,
        namespace: &Namespace,
        checks: &mut Checks,
    ) -> CaseError {
        loop {
            tokio::time::sleep(INTERVAL).await;
            if let Err(lost) = self.run_node.node.backend().confirm_held().await {
                return lost.into();
            }
            let check = timeout(CHECK_TIMEOUT, self.check_node(policy, namespace, checks)).await;
            let check = check.unwrap_or_else(|_| Err(CheckError::Unknown("no answer".to_owned())));
            if let Some(why) = checks.reason_to_end(check) {
                return CaseError::EndedByGuard(why);
            }
        }
    }

    async fn check_node(
        &self,
        policy: &NodePolicy,
        namespace: &Namespace,
        checks: &mut Checks,
    ) -> Result<(), CheckError> {
        let may_cause_pressure = checks.may_cause_pressure;
        let node = &self.run_node.node;
        let unknown = |error: NodeError| CheckError::Unknown(error.to_string());
        if may_cause_pressure && !policy.allows_other_pods() {
            let others = node.other_pods().await.map_err(unknown)?;
            if !others.is_empty() {
                return Err(CheckError::Harmful(Harm::OtherPods(PressureForbidden::InUse(others))));
            }
        }
        let summary = node.summary().await.map_err(unknown)?;
        let used =
            Usage::of(&summary, &namespace.name).map_err(|error| CheckError::Unknown(error.to_string()))?;
        used.check(policy.max_pressure_bytes()).map_err(CheckError::Harmful)?;
        if may_cause_pressure {
            return Ok(());
        }
        let room = policy.room(&summary).map_err(|why| CheckError::Unknown(why.to_string()))?;
        checks.disk.record(room.disk, Instant::now());
        check_room(room, checks.disk.expected_loss()).map_err(CheckError::Harmful)
    }

    /// Waits until the node may come under pressure beside the others (`--max-starved-nodes`), if
    /// the case may put it there. The node keeps the permit until it has recovered.
    pub(super) async fn acquire_pressure_permit(&self) -> Result<(), CaseError> {
        let may_cause_pressure = self.checks().may_cause_pressure;
        let Some(permits) = self.pressure_permits.filter(|_| may_cause_pressure) else { return Ok(()) };
        self.cancellable(self.run_node.acquire_pressure_permit(permits)).await
    }
}

/// The checks of a case.
pub(super) struct Checks {
    may_cause_pressure: bool,
    last_success: Instant,
    disk: DiskTrend,
}

/// Decrease of the disk that a node has left above its thresholds. Limits on disk do not bound how
/// fast pods write.
#[derive(Default)]
struct DiskTrend {
    /// Last measured amount, in bytes, and the time at which it was first seen.
    last: Option<(u64, Instant)>,
    /// Decrease from the measurement before, in bytes per second.
    rate: f64,
}

impl DiskTrend {
    fn record(&mut self, left: u64, now: Instant) {
        match self.last {
            Some((last, _)) if last == left => {}
            Some((last, at)) => {
                let seconds = now.duration_since(at).max(INTERVAL).as_secs_f64();
                self.rate = last.saturating_sub(left) as f64 / seconds;
                self.last = Some((left, now));
            }
            None => self.last = Some((left, now)),
        }
    }

    /// Returns the bytes that the node loses until the pods have ended, if they write on as before.
    fn expected_loss(&self) -> u64 {
        (self.rate * REACTION_TIME.as_secs_f64()) as u64
    }
}

impl Checks {
    /// Returns why the case ends after a check. Without pressure, the limits of the pods suffice
    /// while its node cannot be checked.
    fn reason_to_end(&mut self, check: Result<(), CheckError>) -> Option<String> {
        match check {
            Ok(()) => {
                self.last_success = Instant::now();
                None
            }
            Err(CheckError::Harmful(harm)) => Some(harm.to_string()),
            Err(CheckError::Unknown(why)) => {
                let unchecked = self.last_success.elapsed();
                let seconds = unchecked.as_secs();
                (self.may_cause_pressure && unchecked >= UNCHECKED_LIMIT)
                    .then(|| format!("the node could not be checked for {seconds} s: {why}"))
            }
        }
    }
}

/// Harm of a case to its node or to others. Amounts are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Harm {
    /// Pods of others are on the node that the case puts under pressure.
    OtherPods(PressureForbidden),
    /// The node has come close to a threshold, or will until its pods have ended.
    NearThreshold { room: NodeRoom, expected_loss: u64 },
    /// The pods use more memory or disk than the cap.
    OverCap { used: u64, cap: u64 },
    /// The pods use more of a resource than a case may use.
    TooMany { resource: &'static str, used: u64, max: u64 },
}

impl fmt::Display for Harm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherPods(forbidden) => write!(f, "the case puts its node under pressure, {forbidden}"),
            Self::NearThreshold { room, expected_loss } => {
                let [memory, disk] = [room.memory, room.disk].map(|bytes| bytes / MIB);
                write!(f, "the node came close to its thresholds: ")?;
                write!(f, "{memory}Mi of memory and {disk}Mi of disk are left")?;
                match expected_loss / MIB {
                    0 => Ok(()),
                    loss => write!(f, ", and the pods of the case may write {loss}Mi until they have ended"),
                }
            }
            Self::OverCap { used, cap } => {
                let (used, cap) = (used / MIB, cap / MIB);
                write!(
                    f,
                    "the pods of the case use {used}Mi of memory or disk, more than the cap of {cap}Mi (--pressure-cap)"
                )
            }
            Self::TooMany { resource, used, max } => {
                write!(f, "the pods of the case use {used} {resource}, more than {max}")
            }
        }
    }
}

/// Returns an error if a node has come close to a threshold, or will until its pods have ended.
/// `expected_loss`: of disk, in bytes.
fn check_room(room: NodeRoom, expected_loss: u64) -> Result<(), Harm> {
    if room.memory.min(room.disk.saturating_sub(expected_loss)) >= MIN_ROOM {
        Ok(())
    } else {
        Err(Harm::NearThreshold { room, expected_loss })
    }
}

/// Resources that the pods of a namespace take, by a Summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Usage {
    /// Memory, in bytes.
    memory: u64,
    /// Disk, in bytes.
    disk: u64,
    inodes: u64,
    processes: u64,
}

impl Usage {
    /// # Errors
    /// The Summary has another shape.
    fn of(summary: &Value, namespace: &str) -> Result<Self, serde_json::Error> {
        let sample = Sample::deserialize(summary)?;
        let pods = sample.pods.iter().filter(|pod| pod.pod_ref.namespace == namespace);
        let amount = |amount: Option<i64>| amount.and_then(|amount| u64::try_from(amount).ok()).unwrap_or(0);
        Ok(pods.fold(Self::default(), |sum, pod| {
            let disk = pod.ephemeral_storage.as_ref();
            Self {
                memory: sum.memory.saturating_add(amount(pod.working_set())),
                disk: sum.disk.saturating_add(amount(disk.and_then(|disk| disk.used_bytes))),
                inodes: sum.inodes.saturating_add(amount(disk.and_then(|disk| disk.inodes_used))),
                processes: sum
                    .processes
                    .saturating_add(amount(pod.process_stats.as_ref().and_then(|stats| stats.process_count))),
            }
        }))
    }

    /// Returns an error if it is more than a case may take. `cap`: memory or disk, in bytes.
    fn check(self, cap: u64) -> Result<(), Harm> {
        let used = self.memory.max(self.disk);
        if used > cap.saturating_add(MARGIN) {
            return Err(Harm::OverCap { used, cap });
        }
        let counts = [("inodes", self.inodes, MAX_INODES), ("processes", self.processes, MAX_PROCESSES)];
        match counts.into_iter().find(|(_, used, max)| used > max) {
            Some((resource, used, max)) => Err(Harm::TooMany { resource, used, max }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn usage(pods: &[Value], namespace: &str) -> Usage {
        Usage::of(&json!({"node": {}, "pods": pods}), namespace).unwrap()
    }

    #[test]
    fn sums_the_pods_of_the_namespace() {
        let pod = |namespace: &str, memory: u64, disk: u64| {
            json!({
                "podRef": {"name": "p", "namespace": namespace, "uid": ""},
                "memory": {"workingSetBytes": memory},
                "ephemeral-storage": {"usedBytes": disk, "inodesUsed": 2},
                "process_stats": {"process_count": 3},
            })
        };
        let pods = [pod("a", 10, 1), pod("b", 500, 500), pod("a", 20, 70)];
        assert_eq!(usage(&pods, "a"), Usage { memory: 30, disk: 71, inodes: 4, processes: 6 });
        assert_eq!(usage(&pods, "c"), Usage::default());
        let huge = pod("a", i64::MAX as u64, 0);
        let sum = usage(&[huge.clone(), huge.clone(), huge], "a");
        assert_eq!(sum.memory, u64::MAX, "the sum does not overflow");
        let wrapped = pod("a", 5, u64::MAX);
        assert_eq!(usage(&[wrapped], "a").memory, 5, "a wrapped difference does not hide the pod");
        assert!(Usage::of(&json!({"node": {}, "pods": 3}), "a").is_err());
    }

    #[test]
    fn pods_take_at_most_the_cap_and_few_inodes_and_processes() {
        let cap = 100 * MIB;
        let rows = [
            (Usage { memory: cap + MARGIN, disk: cap, inodes: MAX_INODES, processes: MAX_PROCESSES }, ""),
            (Usage { disk: cap + MARGIN + 1, ..Usage::default() }, "356Mi of memory or disk"),
            (Usage { inodes: 10_000_000, ..Usage::default() }, "10000000 inodes, more than 1000000"),
            (Usage { processes: 30_000, ..Usage::default() }, "30000 processes, more than 10000"),
        ];
        for (used, expected) in rows {
            let error = used.check(cap).err().map(|harm| harm.to_string()).unwrap_or_default();
            assert!(error.contains(expected) && error.is_empty() == expected.is_empty(), "{used:?}: {error}");
        }
    }

    #[test]
    fn a_case_ends_when_its_node_comes_close_to_a_threshold() {
        let check =
            |memory: u64, disk: u64| check_room(NodeRoom { memory: memory * MIB, disk: disk * MIB }, 0);
        assert_eq!(check(64, 64), Ok(()));
        for (memory, disk) in [(63, 1000), (1000, 0)] {
            let why = check(memory, disk).unwrap_err().to_string();
            assert!(why.ends_with(&format!("{memory}Mi of memory and {disk}Mi of disk are left")), "{why}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_case_ends_before_a_fast_writer_fills_the_disk() {
        let (mut trend, began) = (DiskTrend::default(), Instant::now());
        // Seconds, disk left in MiB, and the expected loss: a measurement is seen several times.
        let rows = [
            (0, 50_000, 0),
            (2, 50_000, 0),
            (10, 40_000, 25_000),
            (12, 40_000, 25_000),
            (20, 30_000, 25_000),
            (30, 20_000, 25_000),
            (40, 21_000, 0),
        ];
        for (seconds, left, loss) in rows {
            trend.record(left * MIB, began + Duration::from_secs(seconds));
            assert_eq!(trend.expected_loss() / MIB, loss, "after {seconds} s");
            let room = NodeRoom { memory: 1000 * MIB, disk: left * MIB };
            assert_eq!(check_room(room, trend.expected_loss()).is_err(), seconds == 30, "after {seconds} s");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_case_under_pressure_ends_without_checks_and_others_do_not() {
        let unknown = || Err(CheckError::Unknown("no answer".to_owned()));
        for may_cause_pressure in [true, false] {
            let mut checks =
                Checks { may_cause_pressure, last_success: Instant::now(), disk: DiskTrend::default() };
            tokio::time::advance(Duration::from_secs(29)).await;
            assert_eq!(checks.reason_to_end(unknown()), None);
            assert_eq!(checks.reason_to_end(Ok(())), None);
            tokio::time::advance(Duration::from_secs(30)).await;
            let why = checks.reason_to_end(unknown());
            let expected = "the node could not be checked for 30 s: no answer";
            assert_eq!(why.as_deref(), may_cause_pressure.then_some(expected));
            let harm = Harm::TooMany { resource: "inodes", used: 2, max: 1 };
            let expected = harm.to_string();
            assert_eq!(checks.reason_to_end(Err(CheckError::Harmful(harm))), Some(expected));
        }
    }
}
