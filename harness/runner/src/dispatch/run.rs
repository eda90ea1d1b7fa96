//! A run: the clusters of a backend, one after the other.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use evictlab_case::LoadedCase;
use evictlab_case::select::Shard;
use evictlab_report::baseline::Baseline;
use evictlab_report::{CaseId, CaseInfo, EventSender, RunEventKind, ShardInfo};
use jiff::{Timestamp, Unit};
use tokio::sync::RwLock;
use tokio::task::{JoinHandle, JoinSet, LocalSet, spawn_local};
use tokio_util::sync::CancellationToken;

use crate::dispatch::failures::Failures;
use crate::dispatch::interrupt::Interrupt;
use crate::dispatch::request::{RunRequest, SelectionShard, VanishedCase};
use crate::node_access::pressure_permits::PressurePermits;
use crate::pressure::host_budget::HostBudget;

/// State that all tasks of a run share.
pub(crate) struct RunContext {
    pub request: RunRequest,
    pub events: EventSender,
    /// Ends all cases, after an interrupt or the run's timeout.
    pub cancel: CancellationToken,
    /// The run's timeout has elapsed.
    pub timed_out: AtomicBool,
    /// Failures of the run and of its current cluster.
    pub failures: Failures,
    /// Number of conclusive verdicts of each case, by the id of its first attempt.
    pub conclusive: RefCell<HashMap<CaseId, u32>>,
    /// Memory budget of the host.
    pub host: HostBudget,
    /// One permit per node that may be under pressure; `None` for clusters of evictlab.
    pub pressure_permits: Option<PressurePermits>,
    /// Tasks that give the permits of recovered nodes back.
    pub recoveries: RefCell<JoinSet<()>>,
    /// Read by each case that shares its node, and written by one that is retried alone.
    pub shared_cases: RwLock<()>,
}

/// Runs the requested cases and sends everything that happens to `events`.
///
/// Returns after the cleanup; at the second stage of `interrupt`, immediately.
pub async fn run(request: RunRequest, events: EventSender, interrupt: Interrupt) {
    // One thread suffices: the tasks of a run mostly wait.
    LocalSet::new().run_until(run_local(request, events, interrupt)).await;
}

async fn run_local(request: RunRequest, events: EventSender, interrupt: Interrupt) {
    events.send(run_started(&request));
    let timeout = request.timeout;
    let context = Rc::new(RunContext {
        host: HostBudget::new(request.backend.is_one_host()),
        pressure_permits: request.backend.max_nodes_under_pressure().map(PressurePermits::new),
        recoveries: RefCell::default(),
        shared_cases: RwLock::default(),
        request,
        events,
        cancel: CancellationToken::new(),
        timed_out: AtomicBool::new(false),
        failures: Failures::default(),
        conclusive: RefCell::default(),
    });
    // A separate task, so that a panic does not prevent the cleanup.
    let work = spawn_local(context.clone().run_clusters());
    context.supervise(work, timeout, interrupt).await;
}

impl RunContext {
    async fn run_clusters(self: Rc<Self>) {
        for plan in self.request.backend.plans() {
            if self.cancel.is_cancelled() || self.has_failed_fast() {
                break;
            }
            self.clone().run_cluster(plan).await;
        }
    }

    /// Returns whether no case may start any more because one has failed.
    pub(crate) fn has_failed_fast(&self) -> bool {
        self.request.fail_fast && self.failures.has_failure()
    }

    /// Waits for the end of `work`, the timeout or an interrupt, and reports interrupts.
    async fn supervise(&self, mut work: JoinHandle<()>, timeout: Option<Duration>, interrupt: Interrupt) {
        let mut is_interrupt_reported = false;
        let timeout = sleep_or_forever(timeout);
        tokio::pin!(timeout);
        loop {
            tokio::select! {
                biased;
                // Reported here and not by the signal handler, so that the event precedes the end
                // of the cases and of the reports.
                () = interrupt.stop.cancelled(), if !is_interrupt_reported => {
                    is_interrupt_reported = true;
                    self.events.send(RunEventKind::Interrupted { stage: 1 });
                    self.cancel.cancel();
                }
                ended = &mut work => {
                    if let Err(panic) = ended {
                        self.clean_up_after_panic(&format!("evictlab panicked: {panic}")).await;
                    }
                    if !is_interrupt_reported && interrupt.stop.is_cancelled() {
                        self.events.send(RunEventKind::Interrupted { stage: 1 });
                    }
                    return;
                }
                () = &mut timeout, if !self.timed_out.load(Ordering::Relaxed) => {
                    self.timed_out.store(true, Ordering::Relaxed);
                    self.events.send(RunEventKind::TimedOut);
                    self.cancel.cancel();
                }
                () = interrupt.reports_only.cancelled() => {
                    self.events.send(RunEventKind::Interrupted { stage: 2 });
                    work.abort();
                    return;
                }
            }
        }
    }

    /// Deletes every cluster of the run, whatever its state is.
    async fn clean_up_after_panic(&self, error: &str) {
        self.cancel.cancel();
        for plan in self.request.backend.plans() {
            self.events.send(RunEventKind::ClusterFailed {
                cluster: plan.name.clone(),
                seconds: 0.0,
                error: error.to_owned(),
                cause: None,
            });
            self.tear_down(plan, None, true).await;
        }
    }
}

async fn sleep_or_forever(duration: Option<Duration>) {
    match duration {
        Some(duration) => tokio::time::sleep(duration).await,
        None => std::future::pending().await,
    }
}

fn run_started(request: &RunRequest) -> RunEventKind {
    let kubelets = request.kubelet_labels();
    let infos = |cases: &[Arc<LoadedCase>]| -> Vec<CaseInfo> {
        cases.iter().map(|case| case_info(case, request.baseline.as_ref(), &kubelets)).collect()
    };
    let verdicts_of = |suite: &str, name: &str| {
        let baseline = request.baseline.as_ref();
        baseline.map(|baseline| baseline.of_case(suite, name, &kubelets)).unwrap_or_default()
    };
    let mut planned = infos(&request.cases);
    planned.extend(request.vanished.iter().map(|VanishedCase { suite, name }| CaseInfo {
        suite: suite.clone(),
        case: name.clone(),
        about: "no file contains this case of the baseline".to_owned(),
        baseline: verdicts_of(suite, name),
        ..CaseInfo::default()
    }));
    let model = request.backend.model();
    RunEventKind::RunStarted {
        run_id: request.run_id.clone(),
        evictlab: env!("CARGO_PKG_VERSION").to_owned(),
        backend: request.backend.name(),
        real_start: model.is_some().then(|| Timestamp::now().round(Unit::Second).unwrap_or_default()),
        model,
        cases: planned,
        kubelet_args: request.kubelet_args(),
        repeat: request.repeat.planned_attempts(),
        flaky_result: request.flaky_result,
        shard: request.shard.as_ref().map(|SelectionShard { shard: Shard { part, of }, other_cases }| {
            ShardInfo { part: *part, of: *of, other_cases: infos(other_cases) }
        }),
        kubelets,
    }
}

fn case_info(case: &LoadedCase, baseline: Option<&Baseline>, kubelets: &[String]) -> CaseInfo {
    let expected = |baseline: &Baseline| baseline.of_case(&case.suite, case.case.name.as_str(), kubelets);
    CaseInfo {
        baseline: baseline.map(expected).unwrap_or_default(),
        suite: case.suite.clone(),
        case: case.case.name.to_string(),
        about: case.case.about.clone(),
        when_it_fails: case.case.when_it_fails.clone(),
        labels: case.case.labels.clone(),
        upstream: case.case.upstream.iter().map(|upstream| upstream.link()).collect(),
        file: case.file.clone(),
        path: case.path().map(str::to_owned),
    }
}
