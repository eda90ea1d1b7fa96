//! Workers: each takes cases from a queue and runs them on one node.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use evictlab_case::LoadedCase;
use evictlab_evidence::Observations;
use evictlab_judge::{CaseResult, Phase, Verdict};
use evictlab_report::{CaseId, RunEventKind};
use tokio::task::spawn_local;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::case_runner::{CaseOutcome, Interrupted};
use crate::dispatch::case_queue::{CaseQueue, QueuedCase, WorkerKind};
use crate::dispatch::repeat::Repeat;
use crate::dispatch::run::RunContext;
use crate::node_access::exclusivity::Exclusivity;
use crate::node_access::run_node::RunNode;

/// One planned attempt of a case on a kubelet.
#[derive(Clone)]
pub(crate) struct CaseJob {
    /// The case.
    pub case: Arc<LoadedCase>,
    /// Id in events and reports.
    pub id: CaseId,
    /// Highest planned attempt of the case; all jobs of a stress run share it.
    pub last_attempt: Arc<AtomicU32>,
}

impl QueuedCase<CaseJob> {
    /// Returns the same case with another attempt number.
    pub(crate) fn with_attempt(&self, attempt: u32) -> Self {
        let mut job = self.case.clone();
        job.id.attempt = attempt;
        job.last_attempt = Arc::new(AtomicU32::new(attempt));
        Self { case: job, exclusivity: self.exclusivity, nodes: self.nodes.clone() }
    }

    /// Returns the next attempt of the same case.
    pub(crate) fn next_attempt(&self) -> Self {
        let mut job = self.case.clone();
        job.id.attempt = job.last_attempt.fetch_add(1, Ordering::Relaxed) + 1;
        Self { case: job, exclusivity: self.exclusivity, nodes: self.nodes.clone() }
    }
}

/// A worker: takes cases from a queue and runs them on one node.
pub(crate) struct Worker {
    pub run_node: Arc<RunNode>,
    pub queue: Rc<CaseQueue<CaseJob>>,
    /// Cases that it takes.
    pub kind: WorkerKind,
    /// Name of the cluster.
    pub cluster: Rc<str>,
    /// Start of the cluster's cases, for the time limit of a stress run.
    pub since: Instant,
}

/// A case that ended.
pub(crate) struct FinishedCase {
    /// Id of the case.
    pub id: CaseId,
    /// The node; `None` if the case was not started.
    pub node: Option<String>,
    /// Duration of the case, in seconds.
    pub seconds: f64,
    /// The verdict.
    pub result: CaseResult,
    /// The evidence, if any.
    pub evidence: Option<Arc<Observations>>,
}

impl RunContext {
    /// Runs cases from the queue on a node until no case for the worker is left or the run is
    /// cancelled.
    pub(super) async fn work(self: Rc<Self>, worker: Worker) {
        let Worker { run_node, queue, kind, cluster, since } = worker;
        let node = &run_node.node.name;
        let next = || self.cancel.run_until_cancelled(queue.next(node, kind));
        while let Some((queued, _permit)) = next().await.flatten() {
            if self.has_failed_fast() {
                break;
            }
            let id = queued.case.id.clone();
            let exclusivity = queued.exclusivity;
            let began = Instant::now();
            self.events.send(RunEventKind::CaseStarted { id: id.clone(), node: node.clone() });
            // A separate task, so that a panic only affects its case.
            let run = self.clone().run_on_node(queued.case.clone(), run_node.clone(), exclusivity);
            let outcome = AbortOnDropHandle::new(spawn_local(run)).await;
            let outcome = outcome.unwrap_or_else(|panic| {
                let why = format!("evictlab panicked: {panic}");
                let result = CaseResult::without_evidence(Verdict::Error, why);
                Ok(CaseOutcome { result, evidence: None })
            });
            self.release_pressure_permit(&run_node, &cluster).await;
            let seconds = began.elapsed().as_secs_f64();
            match outcome.or_else(|Interrupted| self.timed_out().ok_or(Interrupted)) {
                Ok(CaseOutcome { result, evidence }) => {
                    let node = Some(node.clone());
                    self.end_case(FinishedCase { id, node, seconds, result, evidence });
                }
                Err(Interrupted) => {
                    self.events.send(RunEventKind::CaseInterrupted { id, node: node.clone(), seconds });
                }
            }
            if exclusivity != Exclusivity::Shared && run_node.unusable_reason().await.is_some() {
                queue.withdraw(&run_node.node.name);
            } else if let Some(next_attempt) = self.next_stress_attempt(&queued, since) {
                queue.push(next_attempt);
            }
        }
    }

    async fn run_on_node(
        self: Rc<Self>,
        job: CaseJob,
        run_node: Arc<RunNode>,
        exclusivity: Exclusivity,
    ) -> Result<CaseOutcome, Interrupted> {
        if let Some(why) = run_node.unusable_reason().await.filter(|_| exclusivity != Exclusivity::Shared) {
            let mut result = CaseResult::without_evidence(Verdict::Error, why);
            result.phase = Some(Phase::AwaitNode);
            return Ok(CaseOutcome { result, evidence: None });
        }
        let _access = match exclusivity {
            Exclusivity::Shared => (Some(run_node.access.read().await), None),
            Exclusivity::Disk | Exclusivity::Node | Exclusivity::Host => {
                (None, Some(run_node.access.write().await))
            }
        };
        let outcome = self.run_for_rate(&job.case, &job.id, &run_node, exclusivity).await;
        if exclusivity == Exclusivity::Shared {
            run_node.mark_unsteady().await;
        }
        outcome
    }

    /// Gives the permit of a node for pressure back when the node has recovered. The permit of a
    /// node that does not recover is lost for the rest of the run.
    async fn release_pressure_permit(&self, run_node: &Arc<RunNode>, cluster: &str) {
        let (Some(permits), Some(permit)) = (&self.pressure_permits, run_node.take_pressure_permit().await)
        else {
            return;
        };
        let (permits, run_node, events) = (permits.clone(), run_node.clone(), self.events.clone());
        let cluster = cluster.to_owned();
        let mut recoveries = self.recoveries.borrow_mut();
        while recoveries.try_join_next().is_some() {}
        recoveries.spawn_local(async move {
            match run_node.wait_until_pressure_ended(&permit.namespaces).await {
                Ok(()) => drop(permit),
                Err(error) => {
                    let text = format!("{error}\nhelp: it counts as under pressure for the rest of the run");
                    events.send(RunEventKind::ClusterWarning { cluster, text });
                    permits.lose(permit, error.to_string());
                }
            }
        });
    }

    /// Returns the next attempt of a case in a stress run, unless its limit is reached.
    fn next_stress_attempt(
        &self,
        ended: &QueuedCase<CaseJob>,
        since: Instant,
    ) -> Option<QueuedCase<CaseJob>> {
        let Repeat::Stress(limit) = self.request.repeat else { return None };
        let next = ended.next_attempt();
        let failed = self.failures.has_failure();
        let is_due = limit.allows_attempt(next.case.id.attempt, since.elapsed(), failed);
        (is_due && !self.cancel.is_cancelled()).then_some(next)
    }

    /// Returns the outcome of a case that the time limit of the run ended; `None` if it is not
    /// reached.
    fn timed_out(&self) -> Option<CaseOutcome> {
        let timeout = self.request.timeout.filter(|_| self.timed_out.load(Ordering::Relaxed))?;
        let why = format!("the run timed out after {}", humantime::format_duration(timeout));
        let result = CaseResult::without_evidence(Verdict::Error, why);
        Some(CaseOutcome { result, evidence: None })
    }

    /// Returns the number of verdicts of a case on a kubelet that end its repetition.
    pub(super) fn conclusive_verdicts(&self, id: &CaseId) -> u32 {
        self.conclusive.borrow().get(&CaseId { attempt: 1, ..id.clone() }).copied().unwrap_or(0)
    }

    /// Reports the verdict of a case and updates the state of the run.
    pub(super) fn end_case(&self, ended: FinishedCase) {
        let FinishedCase { id, node, seconds, result, evidence } = ended;
        self.failures.record(result.verdict, self.request.flaky_result);
        if result.verdict.ends_repetition() {
            *self.conclusive.borrow_mut().entry(CaseId { attempt: 1, ..id.clone() }).or_default() += 1;
        }
        let result = Arc::new(result);
        self.events.send(RunEventKind::CaseEnded { id, node, seconds, result, evidence });
    }
}
