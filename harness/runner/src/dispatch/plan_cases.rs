//! Plan of the cases of a cluster: their order, the nodes of each, and the workers that run them.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use evictlab_case::{Case, LoadedCase};
use evictlab_cluster::{Backend, ClusterPlan, Kubelet};
use evictlab_judge::{CaseResult, Verdict};
use evictlab_report::CaseId;
use evictlab_report::text::count_noun;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::dispatch::case_queue::{CaseQueue, QueuedCase, WorkerKind};
use crate::dispatch::repeat::Repeat;
use crate::dispatch::run::RunContext;
use crate::dispatch::worker::{CaseJob, FinishedCase, Worker};
use crate::model_limits::model_limits;
use crate::node_access::exclusivity::{Exclusivity, SharedResources, exclusivity};
use crate::node_access::run_node::RunNode;
use crate::skip_reason::SkipReason;

/// Maximum number of cases that share a node.
const MAX_CASES_PER_NODE: usize = 8;
/// Maximum number of shared cases for each processor of a host, on all its nodes: each starts
/// containers, and grace periods have a resolution of one second.
const MAX_SHARED_CASES_PER_PROCESSOR: usize = 8;
/// The same on one node, whose kubelet starts pods one after the other.
const MAX_CASES_PER_NODE_AND_PROCESSOR: usize = 4;
/// Maximum number of shared cases on all nodes of a model, which runs on one thread: more would
/// take memory and save no time.
const MAX_SHARED_CASES_IN_MODEL: usize = 32;

impl RunContext {
    /// Runs every case on every kubelet of a cluster, with the requested repetition.
    pub(super) async fn run_cases(self: &Rc<Self>, plan: &ClusterPlan, nodes: &[Arc<RunNode>]) {
        let began = Instant::now();
        let mut attempts = self.request.repeat.first_attempts();
        while self.request.repeat.allows_attempt(*attempts.start(), self.failures.has_failure()) {
            self.run_attempts(plan, nodes, attempts.clone(), began).await;
            if self.cancel.is_cancelled() || self.has_failed_fast() {
                break;
            }
            let next = attempts.end() + 1;
            attempts = next..=next;
        }
        if self.timed_out.load(Ordering::Relaxed) {
            self.failures.record_cluster_failure();
        }
    }

    /// Runs every case of some attempts. Each node takes its next case when it has completed the
    /// last one, also one of the next attempt. `since`: start of the cluster's cases.
    async fn run_attempts(
        self: &Rc<Self>,
        plan: &ClusterPlan,
        nodes: &[Arc<RunNode>],
        attempts: RangeInclusive<u32>,
        since: Instant,
    ) {
        let limits = self.sharing_limits(nodes).await;
        let shared_per_node = limits.per_node;
        let planned: Vec<_> = plan
            .kubelets
            .iter()
            .flat_map(|kubelet| {
                let nodes: Vec<_> =
                    nodes.iter().filter(|run_node| run_node.node.kubelet == kubelet.label).collect();
                self.plan_kubelet(kubelet, &nodes, *attempts.start())
            })
            .collect();
        let repeated =
            attempts.flat_map(|attempt| planned.iter().map(move |case| case.with_attempt(attempt)));
        let mut queued: Vec<_> = repeated.flat_map(|case| self.replicate(case, shared_per_node)).collect();
        // Long cases first, so that no node is left with one when the others have ended.
        let has_several_nodes = nodes.len() > plan.kubelets.len();
        queued.sort_by_key(|queued| {
            let deadline = has_several_nodes.then(|| queued.case.case.case.deadline());
            (turn(queued.exclusivity), Reverse(deadline))
        });
        let queue = Rc::new(CaseQueue::new(queued, limits.in_total));
        let mut workers = JoinSet::new();
        for run_node in nodes {
            if run_node.unusable_reason().await.is_some() {
                queue.withdraw(&run_node.node.name);
            }
        }
        // Cases share a node only if there are more of them than nodes.
        let cluster: Rc<str> = plan.name.as_str().into();
        for number in 1..=shared_per_node {
            let kind = if number == 1 { WorkerKind::Any } else { WorkerKind::SharedOnly };
            for run_node in nodes {
                let (run_node, queue, cluster) = (run_node.clone(), queue.clone(), cluster.clone());
                let worker = Worker { run_node, queue, kind, cluster, since };
                workers.spawn_local(self.clone().work(worker));
            }
        }
        while workers.join_next().await.is_some() {}
    }

    /// Returns the cases of a kubelet, in the order in which they are taken.
    fn plan_kubelet(
        &self,
        kubelet: &Kubelet,
        nodes: &[&Arc<RunNode>],
        attempt: u32,
    ) -> Vec<QueuedCase<CaseJob>> {
        let cases = self.request.cases.iter();
        cases.filter_map(|case| self.plan_case(case, kubelet, nodes, attempt)).collect()
    }

    /// Returns a case once; in a stress run, once for each worker that can run it, within the
    /// limit.
    fn replicate(&self, first: QueuedCase<CaseJob>, shared_per_node: usize) -> Vec<QueuedCase<CaseJob>> {
        let Repeat::Stress(limit) = self.request.repeat else { return vec![first] };
        let workers_per_node = if first.exclusivity == Exclusivity::Shared { shared_per_node } else { 1 };
        let max_attempts = limit.max_attempts.map_or(usize::MAX, |runs| runs as usize);
        let count = (first.nodes.len() * workers_per_node).min(max_attempts);
        let mut replicas = vec![first];
        while replicas.len() < count
            && let Some(next) = replicas.last().map(QueuedCase::next_attempt)
        {
            replicas.push(next);
        }
        replicas
    }

    /// Returns how many cases share nodes at a time.
    async fn sharing_limits(&self, nodes: &[Arc<RunNode>]) -> SharingLimits {
        let backend = &self.request.backend;
        let count = nodes.len().max(1);
        if backend.is_one_host() {
            // All nodes have the processors of the host. A node that does not answer has no cases.
            let processors = match nodes.first() {
                Some(first) => first.node.processors().await.ok().flatten(),
                None => None,
            };
            SharingLimits::of_host(count, processors.unwrap_or(1))
        } else if backend.model().is_some() {
            let per_node = (MAX_SHARED_CASES_IN_MODEL / count).clamp(1, MAX_CASES_PER_NODE);
            SharingLimits { per_node, in_total: usize::MAX }
        } else {
            SharingLimits { per_node: MAX_CASES_PER_NODE, in_total: usize::MAX }
        }
    }

    /// Returns the job of a case for a kubelet. A case that no node of the kubelet can run is
    /// reported as skipped, at the first attempt only.
    fn plan_case(
        &self,
        case: &Arc<LoadedCase>,
        kubelet: &Kubelet,
        nodes: &[&Arc<RunNode>],
        attempt: u32,
    ) -> Option<QueuedCase<CaseJob>> {
        let id = case_id(case, kubelet, attempt);
        if let Repeat::UntilConclusive { verdicts, .. } = self.request.repeat
            && self.conclusive_verdicts(&id) >= verdicts
        {
            return None;
        }
        match usable_nodes(&self.request.backend, case, kubelet, nodes) {
            Ok(usable) => {
                let last_attempt = Arc::new(AtomicU32::new(attempt));
                let own_disks = nodes.iter().all(|run_node| run_node.node.backend().has_own_disk());
                let exclusivity = exclusivity_on(&self.request.backend, &case.case, own_disks);
                let mut usable_nodes = nodes.iter().filter(|run_node| usable.contains(&run_node.node.name));
                let may_cause_pressure = usable_nodes.any(|run_node| run_node.may_cause_pressure(&case.case));
                let exclusivity =
                    if may_cause_pressure { exclusivity.max(Exclusivity::Node) } else { exclusivity };
                let job = CaseJob { case: case.clone(), id, last_attempt };
                Some(QueuedCase { case: job, exclusivity, nodes: Arc::new(usable) })
            }
            Err(why) => {
                if attempt == 1 {
                    let result = CaseResult::without_evidence(Verdict::Skipped, why.to_string());
                    self.end_case(FinishedCase { id, node: None, seconds: 0.0, result, evidence: None });
                }
                None
            }
        }
    }
}

/// Returns the exclusivity of a case on a backend. `own_disks`: no node shares its file system with
/// another one.
pub(super) fn exclusivity_on(backend: &Backend, case: &Case, own_disks: bool) -> Exclusivity {
    let shared = match (backend.is_one_host(), own_disks) {
        (false, _) => SharedResources::Nothing,
        (true, true) => SharedResources::Host,
        (true, false) => SharedResources::HostAndDisk,
    };
    match exclusivity(case, shared) {
        // Faults of the run affect the whole node.
        Exclusivity::Shared if backend.faults().is_some_and(|faults| !faults.is_empty()) => Exclusivity::Node,
        exclusivity => exclusivity,
    }
}

/// Returns the reason why a case does not run on any node of a kubelet, as far as it is known
/// without the nodes.
pub(super) fn unsuitable_kubelet(
    backend: &Backend,
    case: &LoadedCase,
    kubelet: &Kubelet,
) -> Option<NoUsableNode> {
    if !case.case.kubelet.matches(&kubelet.version) {
        return Some(NoUsableNode::Kubelet(case.case.kubelet.to_string()));
    }
    let model = backend.model();
    if let Some(why) = case.case.model_skip_reason.as_ref().filter(|_| model.is_some()) {
        return Some(NoUsableNode::Model(why.trim_end().to_owned()));
    }
    // A container that does something else than in the cluster proves nothing.
    if let Some(limit) = model.as_ref().and_then(|_| model_limits(case).into_iter().next()) {
        return Some(NoUsableNode::Model(limit.message));
    }
    if !case.case.faults.is_empty() && backend.faults().is_none() {
        return Some(NoUsableNode::Faults);
    }
    let cgroup = case.case.cgroup.filter(|cgroup| model.is_some_and(|model| model.cgroup != *cgroup));
    cgroup.map(|cgroup| NoUsableNode::Cgroup(SkipReason::Cgroup(cgroup)))
}

/// Returns the nodes of a kubelet that a case can run on.
fn usable_nodes(
    backend: &Backend,
    case: &LoadedCase,
    kubelet: &Kubelet,
    nodes: &[&Arc<RunNode>],
) -> Result<BTreeSet<String>, NoUsableNode> {
    if let Some(why) = unsuitable_kubelet(backend, case, kubelet) {
        return Err(why);
    }
    let (mut usable, mut reasons) = (BTreeSet::new(), vec![]);
    for run_node in nodes {
        let name = run_node.node.name.clone();
        match run_node.skip_reason(&case.case) {
            None => {
                usable.insert(name);
            }
            Some(reason) => reasons.push((name, reason)),
        }
    }
    if usable.is_empty() && !reasons.is_empty() {
        return Err(NoUsableNode::Reasons(reasons));
    }
    Ok(usable)
}

/// Reason why a case runs on no node of a kubelet.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoUsableNode {
    #[error("requires kubelets {0}")]
    Kubelet(String),
    #[error("a model gives no evidence: {0}")]
    Model(String),
    #[error("injects faults, which require the embedded cluster")]
    Faults,
    #[error("{0}")]
    Cgroup(SkipReason),
    /// The reason of each node.
    #[error("{}", describe_reasons(.0))]
    Reasons(Vec<(String, SkipReason)>),
}

/// Maximum number of nodes whose reasons are described.
const MAX_REASONS: usize = 10;

/// Returns a common reason once, else each reason with its node.
fn describe_reasons(reasons: &[(String, SkipReason)]) -> String {
    let mut distinct: Vec<&(String, SkipReason)> = reasons.iter().collect();
    distinct.dedup_by(|one, other| one.1 == other.1);
    match distinct.as_slice() {
        [(_, only)] => only.to_string(),
        several => {
            let described = several.iter().take(MAX_REASONS).map(|(node, why)| format!("{node}: {why}"));
            let others = several.len().saturating_sub(MAX_REASONS);
            let others = (others > 0).then(|| format!("and other reasons on {}", count_noun(others, "node")));
            described.chain(others).collect::<Vec<_>>().join("; ")
        }
    }
}

fn case_id(case: &LoadedCase, kubelet: &Kubelet, attempt: u32) -> CaseId {
    CaseId {
        suite: case.suite.clone(),
        case: case.case.name.to_string(),
        kubelet: kubelet.label.clone(),
        attempt,
    }
}

/// Maximum numbers of cases that share nodes at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SharingLimits {
    /// On each node.
    per_node: usize,
    /// On all nodes.
    in_total: usize,
}

impl SharingLimits {
    /// Returns the limits for nodes that share the processors of one host.
    fn of_host(nodes: usize, processors: usize) -> Self {
        let in_total = MAX_SHARED_CASES_PER_PROCESSOR * processors;
        let max_per_node = MAX_CASES_PER_NODE.min(MAX_CASES_PER_NODE_AND_PROCESSOR * processors);
        Self { per_node: in_total.div_ceil(nodes).min(max_per_node), in_total }
    }
}

/// Returns the turn of a case. Cases that run one at a time on a host come before those that run
/// beside them.
fn turn(exclusivity: Exclusivity) -> u8 {
    match exclusivity {
        Exclusivity::Shared => 0,
        Exclusivity::Disk | Exclusivity::Host => 1,
        Exclusivity::Node => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_processors_run_more_shared_cases() {
        let rows =
            [((1, 1), (4, 8)), ((1, 2), (8, 16)), ((9, 2), (2, 16)), ((40, 2), (1, 16)), ((3, 16), (8, 128))];
        for ((nodes, processors), (per_node, in_total)) in rows {
            assert_eq!(SharingLimits::of_host(nodes, processors), SharingLimits { per_node, in_total });
        }
    }

    #[test]
    fn a_common_skip_reason_is_described_once() {
        let reasons = [("a".to_owned(), SkipReason::Cordoned), ("b".to_owned(), SkipReason::Cordoned)];
        assert_eq!(describe_reasons(&reasons), SkipReason::Cordoned.to_string());
        let reasons = [("a".to_owned(), SkipReason::Cordoned), ("b".to_owned(), SkipReason::NoKubeletLog)];
        let described = describe_reasons(&reasons);
        assert!(described.starts_with("a: ") && described.contains("; b: "), "{described}");
        let reasons = [SkipReason::Cordoned, SkipReason::NoKubeletLog];
        let many: Vec<_> = (0..20).map(|nth| (nth.to_string(), reasons[nth % 2].clone())).collect();
        let described = describe_reasons(&many);
        assert!(described.contains("; 9: ") && !described.contains("10: "), "{described}");
        assert!(described.ends_with("; and other reasons on 10 nodes"), "{described}");
    }
}
