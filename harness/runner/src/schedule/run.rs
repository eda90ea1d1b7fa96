//! A whole run: its clusters one after the other, on each every case that its kubelets are asked for.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Mutex;
use tokio::task::{LocalSet, spawn_local};
use tokio_util::sync::CancellationToken;

use super::host::Host;
use super::{Interrupt, Request};
use crate::case::LoadedCase;
use crate::cluster::{Kubelet, Plan};
use crate::report::{CaseId, Events, Planned, What};

/// What the tasks of a run share.
pub(super) struct Shared {
    pub request: Request,
    pub events: Events,
    /// Ends the cases: an interrupt, or the run's time.
    pub cancel: CancellationToken,
    /// Whether it was the run's time.
    pub over: AtomicBool,
    /// Whether anything was neither passed nor reproduced nor skipped.
    pub failed: AtomicBool,
    /// Whether anything failed or could not be run to its end: what stress looks for.
    pub broken: AtomicBool,
    /// The cases, under the number of their first run, that came to a verdict which tells something.
    pub told: RefCell<HashSet<CaseId>>,
    pub host: Host,
    /// Whoever starves a disk has it.
    pub disk: Arc<Mutex<()>>,
}

/// Runs it all and tells everything to `events`. Returns when everything is cleaned up; after the second interrupt, at once.
pub async fn run(request: Request, events: Events, interrupt: Interrupt) {
    // One thread is plenty: all that a run does is wait.
    LocalSet::new().run_until(on_one_thread(request, events, interrupt)).await;
}

async fn on_one_thread(request: Request, events: Events, interrupt: Interrupt) {
    let kubelets = labels(request.backend.plans());
    events.send(What::RunStarted {
        run: request.run.clone(),
        evictlab: env!("CARGO_PKG_VERSION").to_owned(),
        backend: request.backend.name().to_owned(),
        model: request.backend.model(),
        cases: request.cases.iter().map(|case| planned(case, &request, &kubelets)).collect(),
        kubelets,
    });
    let timeout = request.timeout;
    let shared = Rc::new(Shared {
        host: Host::new(request.backend.is_one_host()),
        disk: Arc::default(),
        request,
        events,
        cancel: interrupt.stop.child_token(),
        over: AtomicBool::new(false),
        failed: AtomicBool::new(false),
        broken: AtomicBool::new(false),
        told: RefCell::default(),
    });
    let work = {
        let shared = shared.clone();
        async move {
            for plan in shared.request.backend.plans() {
                if shared.cancel.is_cancelled() {
                    break;
                }
                shared.clone().on_cluster(plan).await;
            }
        }
    };
    // In a task of its own: a panic in it is no reason to leave without cleaning up.
    let mut work = spawn_local(work);
    let mut told = 0;
    let late = async {
        match timeout {
            Some(timeout) => tokio::time::sleep(timeout).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(late);
    loop {
        tokio::select! {
            biased;
            // Told from here, so that no interrupted run ends without its reports knowing it.
            () = interrupt.stop.cancelled(), if told == 0 => {
                told = 1;
                shared.events.send(What::Interrupted { stage: told });
            }
            ended = &mut work => {
                if let Err(panic) = ended {
                    shared.sweep(&format!("a bug in evictlab: {panic}")).await;
                }
                if told == 0 && interrupt.stop.is_cancelled() {
                    shared.events.send(What::Interrupted { stage: 1 });
                }
                return;
            }
            () = &mut late, if !shared.over.load(Ordering::Relaxed) => {
                shared.over.store(true, Ordering::Relaxed);
                shared.cancel.cancel();
            }
            () = interrupt.reports_only.cancelled() => {
                shared.events.send(What::Interrupted { stage: 2 });
                work.abort();
                return;
            }
        }
    }
}

/// From old to new, as a matrix is read.
fn labels(plans: &[Plan]) -> Vec<String> {
    let mut kubelets: Vec<&Kubelet> = plans.iter().flat_map(|plan| &plan.kubelets).collect();
    kubelets.sort_by(|a, b| a.version.cmp(&b.version));
    kubelets.into_iter().map(|kubelet| kubelet.label.clone()).collect()
}

fn planned(case: &LoadedCase, request: &Request, kubelets: &[String]) -> Planned {
    let baseline = request.baseline.iter().flat_map(|baseline| {
        let expected = |kubelet: &String| baseline.expected(&case.suite, case.case.name.as_str(), kubelet);
        kubelets.iter().filter_map(move |kubelet| Some((kubelet.clone(), expected(kubelet)?)))
    });
    Planned {
        baseline: baseline.collect(),
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

impl Shared {
    /// After a panic: everything of this run goes, however far it came.
    async fn sweep(&self, error: &str) {
        self.cancel.cancel();
        for plan in self.request.backend.plans() {
            self.events.send(What::ClusterFailed {
                cluster: plan.name.clone(),
                seconds: 0.0,
                error: error.to_owned(),
            });
            self.end(plan, None, true).await;
        }
    }
}
