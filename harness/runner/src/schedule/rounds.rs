//! The cases of a run on the nodes of one cluster: who runs when, where, and how often.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::task::{JoinSet, spawn_local};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::approach::Unsuited;
use super::case::{Outcome, Run};
use super::lease::Leased;
use super::queue::{Queue, Waiting};
use super::run::Shared;
use super::{Class, Limit, Repeat, class};
use crate::case::{Case, LoadedCase};
use crate::cluster::{Kubelet, Plan};
use crate::judge::{Doubt, Judgement, Phase, Verdict, known_bug, over_runs};
use crate::observe::Observations;
use crate::report::{CaseId, What};

/// How often a case is tried whose pressure was quicker than the node's statistics, each time at half the speed.
const TRIES: u32 = 4;
/// How many cases share a node at a time.
const SHARED: usize = 8;
/// How many cases share a host at a time, on all its nodes: each starts containers, and graces are counted in seconds.
const SHARED_ON_A_HOST: usize = 16;

/// The same for a model: one thread does all the work, so that more at a time take memory and save nothing.
const SHARED_ON_A_MODEL: usize = 32;

/// A case, what reports call it, and under stress the number of the last run of it that was planned.
type Job = (Arc<LoadedCase>, CaseId, Arc<AtomicU32>);

/// What runs at the same time: first those that share a node, then those that have one for themselves, node beside node, one of them at the disk,
/// then those that have the host for themselves.
const ROUNDS: [&[Class]; 3] = [&[Class::Shared], &[Class::Disk, Class::Node], &[Class::Host]];

impl Shared {
    /// Every case on every kubelet of the cluster, as often as asked for.
    pub(super) async fn cases(self: &Rc<Self>, plan: &Plan, leased: &[Arc<Leased>]) {
        let began = Instant::now();
        let mut attempt = 1;
        while self.request.repeat.goes_on(attempt, self.failed.load(Ordering::Relaxed)) {
            for round in ROUNDS {
                let mut work = JoinSet::new();
                for kubelet in &plan.kubelets {
                    let nodes: Vec<&Arc<Leased>> =
                        leased.iter().filter(|leased| leased.node.kubelet == kubelet.label).collect();
                    let cases = &self.request.cases;
                    let of = |class: Class| cases.iter().filter(move |case| self.class(&case.case) == class);
                    let planned = round.iter().copied().flat_map(of);
                    let waiting = planned.filter_map(|case| self.planned_on(case, kubelet, &nodes, attempt));
                    let workers = if round.contains(&Class::Shared) { self.sharing(leased.len()) } else { 1 };
                    let waiting = waiting.flat_map(|case| self.abreast(case, workers));
                    let queue = Arc::new(Queue::new(waiting, self.disk.clone()));
                    for node in nodes {
                        if !round.contains(&Class::Shared) && node.unfit().await.is_some() {
                            queue.withdraw(&node.node.name).await;
                        }
                        for _ in 0..workers {
                            work.spawn_local(self.clone().worker(node.clone(), queue.clone(), began));
                        }
                        // Whoever has the host for itself has no neighbour on another node.
                        if round.contains(&Class::Host) {
                            while work.join_next().await.is_some() {}
                        }
                    }
                }
                while work.join_next().await.is_some() {}
            }
            if self.cancel.is_cancelled() {
                break;
            }
            attempt += 1;
        }
        if self.over.load(Ordering::Relaxed) {
            self.failed.store(true, Ordering::Relaxed);
        }
    }

    /// A case as it is planned; under stress, one of it for each that may run beside it.
    fn abreast(&self, first: Waiting<Job>, workers: usize) -> Vec<Waiting<Job>> {
        let Repeat::Stress(limit) = self.request.repeat else { return vec![first] };
        let at_once = (first.nodes.len() * workers).min(limit.runs.map_or(usize::MAX, |runs| runs as usize));
        let mut all = vec![first];
        while all.len() < at_once
            && let Some(next) = all.last().map(next_run)
        {
            all.push(next);
        }
        all
    }

    /// What follows a run that ended, if anything does.
    fn after(&self, ended: &Waiting<Job>, began: Instant) -> Option<Waiting<Job>> {
        let Repeat::Stress(limit) = self.request.repeat else { return None };
        let next = next_run(ended);
        let goes_on = |limit: Limit| {
            limit.goes_on(next.case.1.attempt, began.elapsed(), self.broken.load(Ordering::Relaxed))
        };
        (goes_on(limit) && !self.cancel.is_cancelled()).then_some(next)
    }

    /// How many cases share a node, of so many nodes.
    fn sharing(&self, nodes: usize) -> usize {
        let backend = &self.request.backend;
        let in_all = if backend.is_one_host() {
            SHARED_ON_A_HOST
        } else if backend.model().is_some() {
            SHARED_ON_A_MODEL
        } else {
            return SHARED;
        };
        (in_all / nodes.max(1)).clamp(1, SHARED)
    }

    fn class(&self, case: &Case) -> Class {
        let backend = &self.request.backend;
        match class(case, backend.is_one_host()) {
            // A fault of all cases strikes a node, too.
            Class::Shared if backend.faults().is_some_and(|faults| !faults.is_empty()) => Class::Node,
            class => class,
        }
    }

    /// A case for a kubelet; one that does not hold for it, whose faults cannot be injected, or that none of its nodes is for, is skipped
    /// here, once.
    fn planned_on(
        &self,
        case: &Arc<LoadedCase>,
        kubelet: &Kubelet,
        leased: &[&Arc<Leased>],
        attempt: u32,
    ) -> Option<Waiting<Job>> {
        let id = id(case, kubelet, attempt);
        if attempt > 1 && matches!(self.request.repeat, Repeat::UntilTold(_)) && self.has_told(&id) {
            return None;
        }
        let faulty = !case.case.faults.is_empty() && self.request.backend.faults().is_none();
        let refused = |leased: &Leased| leased.refuses(&case.case);
        let why = if !case.case.kubelet.matches(&kubelet.version) {
            format!("it holds for kubelets {}", case.case.kubelet)
        } else if let Some(why) =
            case.case.on_a_model.as_ref().filter(|_| self.request.backend.model().is_some())
        {
            format!("a model would tell nothing: {}", why.trim_end())
        } else if faulty {
            "its faults are for the embedded cluster".to_owned()
        } else {
            let fit = leased.iter().filter(|leased| refused(leased).is_none());
            let nodes: Vec<String> = fit.map(|leased| leased.node.name.clone()).collect();
            if !nodes.is_empty() || leased.is_empty() {
                let planned = Arc::new(AtomicU32::new(attempt));
                return Some(Waiting {
                    case: (case.clone(), id, planned),
                    class: self.class(&case.case),
                    nodes,
                });
            }
            none_fits(leased.iter().filter_map(|leased| Some((leased.node.name.as_str(), refused(leased)?))))
        };
        if attempt == 1 {
            self.ended(id, None, 0.0, Judgement::without_evidence(Verdict::Skipped, why), None);
        }
        None
    }

    /// Takes one case after the other from the queue, until it is empty or the run is over. `since`: when the cases of the cluster began.
    async fn worker(self: Rc<Self>, leased: Arc<Leased>, queue: Arc<Queue<Job>>, since: Instant) {
        let next = || self.cancel.run_until_cancelled(queue.next(&leased.node.name));
        while let Some((waiting, _disk)) = next().await.flatten() {
            let Waiting { case: (case, id, _), class, .. } = &waiting;
            let (case, id, class) = (case.clone(), id.clone(), *class);
            let began = Instant::now();
            let node = leased.node.name.clone();
            self.events.send(What::CaseStarted { id: id.clone(), node: node.clone() });
            let (shared, mine, named) = (self.clone(), leased.clone(), id.clone());
            // In a task of its own: a panic in one case is that case's error.
            let outcome = AbortOnDropHandle::new(spawn_local(async move {
                if let Some(why) = mine.unfit().await.filter(|_| class != Class::Shared) {
                    let mut judgement = Judgement::without_evidence(Verdict::Error, why);
                    judgement.phase = Some(Phase::Lease);
                    return (judgement, None);
                }
                let _turn = match class {
                    Class::Shared => (Some(mine.turn.read().await), None),
                    _ => (None, Some(mine.turn.write().await)),
                };
                let outcome = shared.counted(&case, &named, &mine, class).await;
                (outcome.judgement, outcome.evidence)
            }))
            .await;
            let (judgement, evidence) = outcome.unwrap_or_else(|panic| {
                (Judgement::without_evidence(Verdict::Error, format!("a bug in evictlab: {panic}")), None)
            });
            self.ended(id, Some(node), began.elapsed().as_secs_f64(), judgement, evidence);
            if class != Class::Shared && leased.unfit().await.is_some() {
                queue.withdraw(&leased.node.name).await;
            } else if let Some(another) = self.after(&waiting, since) {
                queue.push(another).await;
            }
        }
    }

    /// A case on its node, as often as it counts something.
    async fn counted(&self, case: &LoadedCase, id: &CaseId, leased: &Leased, class: Class) -> Outcome {
        let Some(rate) = &case.case.expect.rate else {
            return self.tried(case, id, leased, class).await;
        };
        let (mut judgements, mut evidence) = (vec![], None);
        for run in 1..=rate.runs {
            let outcome = self.tried(case, id, leased, class).await;
            let wrong = outcome.judgement.rate.as_ref().is_none_or(|rate| rate.right < rate.of);
            // The evidence that is kept is that of the first run in which something was wrong, else that of the first.
            if evidence.is_none() || wrong && judgements.iter().all(all_right) {
                evidence = outcome.evidence;
            }
            if let (Some(counted), true) = (&outcome.judgement.rate, run < rate.runs) {
                let text = format!("run {run} of {}: {counted}", rate.runs);
                self.events.send(What::CaseStep { id: id.clone(), phase: Phase::Judge, text });
            }
            judgements.push(outcome.judgement);
            let over = judgements.last().is_some_and(|last| last.rate.is_none());
            if over || self.cancel.is_cancelled() {
                break;
            }
        }
        let bug = known_bug(&case.case, &leased.node.version);
        Outcome { judgement: over_runs(bug, judgements), evidence }
    }

    /// A case on its node, again and slower while its pressure outruns the statistics, and again if it did not suffice.
    async fn tried(&self, case: &LoadedCase, id: &CaseId, leased: &Leased, class: Class) -> Outcome {
        let mut tries = 1;
        loop {
            let run = Run {
                run: &self.request.run,
                case,
                id: id.clone(),
                leased,
                class,
                faults: self.request.backend.faults().unwrap_or_default(),
                host: &self.host,
                events: &self.events,
                cancel: &self.cancel,
            };
            let outcome = run.go().await;
            let how = match outcome.judgement.doubt {
                Some(Doubt::StatsOutrun) if tries < TRIES => "again and slower",
                // What the node still gave back when it was measured makes the threshold lie too deep; once is enough to know.
                Some(Doubt::ThresholdNotReached) if tries == 1 => "again",
                _ => return outcome,
            };
            if self.cancel.is_cancelled() {
                return outcome;
            }
            tries += 1;
            if outcome.judgement.doubt == Some(Doubt::StatsOutrun) {
                leased.slow_down().await;
            }
            let text = format!("{how}: {}", outcome.judgement.why);
            self.events.send(What::CaseStep { id: id.clone(), phase: Phase::Lease, text });
        }
    }

    /// Whether a run of a case on a kubelet came to a verdict that tells something.
    fn has_told(&self, id: &CaseId) -> bool {
        self.told.borrow().contains(&CaseId { attempt: 1, ..id.clone() })
    }

    /// Tells a verdict.
    fn ended(
        &self,
        id: CaseId,
        node: Option<String>,
        seconds: f64,
        mut judgement: Judgement,
        evidence: Option<Arc<Observations>>,
    ) {
        if let (true, Verdict::Skipped, Some(timeout)) =
            (self.over.load(Ordering::Relaxed) && node.is_some(), judgement.verdict, self.request.timeout)
        {
            judgement.verdict = Verdict::Error;
            judgement.why = format!("the run's time of {} is over", humantime::format_duration(timeout));
        }
        if !matches!(judgement.verdict, Verdict::Passed | Verdict::Reproduced | Verdict::Skipped) {
            self.failed.store(true, Ordering::Relaxed);
        }
        if matches!(judgement.verdict, Verdict::Failed | Verdict::Error) {
            self.broken.store(true, Ordering::Relaxed);
        }
        if !matches!(judgement.verdict, Verdict::Inconclusive | Verdict::Error) {
            self.told.borrow_mut().insert(CaseId { attempt: 1, ..id.clone() });
        }
        self.events.send(What::CaseEnded { id, node, seconds, judgement: Arc::new(judgement), evidence });
    }
}

/// Why a case is for none of the nodes: each reason once, with its node where there are several.
fn none_fits<'a>(refusals: impl Iterator<Item = (&'a str, Unsuited)>) -> String {
    let mut reasons: Vec<(&str, Unsuited)> = refusals.collect();
    reasons.dedup_by(|one, other| one.1 == other.1);
    match reasons.as_slice() {
        [(_, only)] => only.to_string(),
        several => several.iter().map(|(node, why)| format!("{node}: {why}")).collect::<Vec<_>>().join("; "),
    }
}

fn all_right(judgement: &Judgement) -> bool {
    judgement.rate.as_ref().is_some_and(|rate| rate.right == rate.of)
}

/// The next run of a case, which has the next number.
fn next_run(Waiting { case: (case, id, planned), class, nodes }: &Waiting<Job>) -> Waiting<Job> {
    let id = CaseId { attempt: planned.fetch_add(1, Ordering::Relaxed) + 1, ..id.clone() };
    Waiting { case: (case.clone(), id, planned.clone()), class: *class, nodes: nodes.clone() }
}

/// What reports call a case on a kubelet.
fn id(case: &LoadedCase, kubelet: &Kubelet, attempt: u32) -> CaseId {
    CaseId {
        suite: case.suite.clone(),
        case: case.case.name.to_string(),
        kubelet: kubelet.label.clone(),
        attempt,
    }
}
