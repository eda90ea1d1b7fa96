//! One case on one node, from its lease to its verdict.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use evictlab_embedded::fault::Fault;
use futures::StreamExt;
use jiff::Timestamp;
use serde_json::{Map, Value};
use tokio::time::error::Elapsed;
use tokio::time::{Instant, MissedTickBehavior, timeout};
use tokio_util::sync::CancellationToken;

use super::Class;
use super::approach::{Approach, Unsuited, threshold};
use super::awaited::Awaited;
use super::host::{self, Host};
use super::lease::{LeaseError, Leased};
use super::loan::Loan;
use super::plan::patience;
use super::steps::Script;
use crate::case::{By, LoadedCase, Placed, Pressure, Signal};
use crate::cel::Scope;
use crate::cluster::{NodeError, heard_of, is_ready};
use crate::judge::{Doubt, Judgement, Phase, Verdict, judge};
use crate::observe::{Before, Ended, Observations, Seen, Wanted, Watched, collect, logs, sample, watch};
use crate::report::{CaseId, Events, What};
use crate::reset::own_taints;
use crate::stage::{self, Namespace, Placement, Ramp, StageError, Supply, manifest, object, place};
use crate::tune::{self, TuneError, Tuned};
use crate::wait::{self, Probe, Stalled};

/// How long nothing may move on a quick node before a case ends.
const PATIENCE: Duration = Duration::from_secs(40);
/// How long the kubelet waits for the end of pods that it evicted, and evicts nobody else meanwhile (`podCleanupTimeout`).
const CLEANUP: Duration = Duration::from_secs(30);
/// How long a case looks on after all that a known bug leaves to see: longer than the kubelet's loop of 10 s.
const QUIET: Duration = Duration::from_secs(12);
/// The taint of a node that is not ready.
const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// How long a node may show no change until it is ready after its kubelet was restarted.
const SETTLES: Duration = Duration::from_secs(60);
/// How often a kubelet is started for a case, at most, until the kernel notifies it.
const RESTARTS: u32 = 3;
/// How often the Summary is read.
const SAMPLING: Duration = Duration::from_millis(500);
/// How often it is read of a borrowed node, whose statistics are older and whose API server others need, and of one that cases share, none of which
/// starves it.
const SELDOM: Duration = Duration::from_secs(2);

/// Why a case could not be run to its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum CaseError {
    #[error(transparent)]
    Node(#[from] NodeError),
    #[error(transparent)]
    Tune(#[from] TuneError),
    #[error(transparent)]
    Stage(#[from] StageError),
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The API's answer about an object of the case, with the case's line.
    #[error("{0}")]
    Refused(String),
    /// The host cannot take it.
    #[error(transparent)]
    TooSmall(#[from] host::TooSmall),
    /// It is not for this node.
    #[error(transparent)]
    Unsuited(#[from] Unsuited),
    /// The node has less than the distance to the threshold.
    #[error("node {0} has less of {1} than the distance of the threshold")]
    NoDistance(String, &'static str),
    /// Its kubelet was restarted and is not ready again.
    #[error("node {0} is not ready again after its kubelet was restarted: {1}")]
    NotReady(String, Stalled),
    /// Interrupted.
    #[error("interrupted")]
    Interrupted,
}

/// A case with everything that it runs with.
pub struct Run<'a> {
    /// The run's id.
    pub run: &'a str,
    /// The case.
    pub case: &'a LoadedCase,
    /// What reports call it.
    pub id: CaseId,
    /// Its node, for itself or shared as its class asks.
    pub leased: &'a Leased,
    /// What it has for itself.
    pub class: Class,
    /// What goes wrong beside the case's own faults.
    pub faults: &'a [Fault],
    /// The host's budget.
    pub host: &'a Host,
    /// Where to tell what happens.
    pub events: &'a Events,
    /// Ends it early.
    pub cancel: &'a CancellationToken,
}

/// How quick a node is.
#[derive(Clone, Copy)]
struct Pace {
    /// What it needs to start a container.
    start: Duration,
    /// How much longer than elsewhere nothing may move.
    slack: Duration,
}

/// What a case came to.
pub struct Outcome {
    /// The verdict.
    pub judgement: Judgement,
    /// The evidence, as far as it was gathered.
    pub evidence: Option<Arc<Observations>>,
}

impl Run<'_> {
    /// Runs the case. Whatever happens, its namespace is deleted; its node is put back before the next case has it.
    pub async fn go(self) -> Outcome {
        let mut phase = Phase::Lease;
        let mut seen = Observations::default();
        let result = self.lived(&mut phase, &mut seen).await;
        let has_evidence = !seen.pods_created.is_empty();
        let judgement = match result {
            Ok(judgement) => judgement,
            Err(error) => ended_by(error, phase),
        };
        Outcome { judgement, evidence: has_evidence.then(|| Arc::new(seen)) }
    }

    async fn lived(&self, phase: &mut Phase, seen: &mut Observations) -> Result<Judgement, CaseError> {
        let node = &self.leased.node;
        let case = &self.case.case;
        seen.scenario = case.name.to_string();
        seen.kubelet_version = node.version.to_string();
        seen.node = node.name.clone();
        seen.cgroup = node.cgroup().as_str().to_owned();
        if self.leased.used().await {
            self.step(Phase::Lease, "proving that the node is itself again");
            self.cancellable(self.leased.reset()).await??;
        }
        let start = self.leased.start().await;
        let approach = self.cancellable(self.approach()).await??;
        let ramp = self.ramp(start, approach.as_ref()).await;
        let _room = match (&case.pressure, &ramp) {
            (Some(pressure), Some(ramp)) => {
                let room = self.cancellable(self.host.room(pressure, ramp)).await?;
                self.cancellable(self.host.fits(node, pressure, ramp)).await???;
                room
            }
            _ => None,
        };
        *phase = Phase::Tune;
        let before = self.cancellable(self.tuned(seen)).await??;
        *phase = Phase::Stage;
        let namespace = Namespace::create(node.client(), self.run, case.name.as_str()).await?;
        let grace = approach.and_then(|approach| approach.grace).unwrap_or_default();
        let slack = self.leased.loan.as_ref().map_or(Duration::ZERO, Loan::slack) + grace;
        let watched = self.watched(&namespace, ramp.as_ref(), Pace { start, slack }, phase, seen).await;
        if let Ok((watched, _)) = &watched {
            self.asked_at_the_end(&namespace, watched, seen).await;
        }
        let taken_back = self.taken_back().await;
        let judgement = match &watched {
            Ok((watched, _)) => {
                let whole_log = case.speaks_of("kubeletLog");
                for lost in collect(node, &namespace.name, &before, watched, whole_log, seen).await {
                    self.step(Phase::Observe, format!("could not be collected: {lost}"));
                }
                *phase = Phase::Judge;
                Some(judge(case, &node.version, seen))
            }
            Err(_) => None,
        };
        if !self.cancel.is_cancelled() {
            if judgement.is_some() {
                *phase = Phase::Reset;
            }
            self.step(Phase::Reset, "deleting the pods");
            taken_back?;
            namespace.delete_priority_classes(case.priority_classes.keys().map(|name| name.as_str())).await?;
            let deleted =
                self.cancellable(namespace.delete(patience(Duration::from_secs(60), start))).await?;
            // What ended the case is told before what its end met.
            if watched.is_ok() {
                deleted?;
            }
        }
        match (watched, judgement) {
            (Err(error), _) => Err(error),
            (Ok((watched, Some(ended))), Some(judgement)) => {
                let as_stated = [Verdict::Passed, Verdict::Reproduced, Verdict::Fixed];
                if as_stated.contains(&judgement.verdict)
                    && let Some(start) = watched.first_start(&case.pods)
                {
                    self.leased.sound(start).await;
                }
                Ok(said(judgement, &ended))
            }
            _ => Err(CaseError::Interrupted),
        }
    }

    /// How a borrowed node's own threshold is come to, in a case with pressure.
    async fn approach(&self) -> Result<Option<Approach>, CaseError> {
        let Some(loan) = &self.leased.loan else { return Ok(None) };
        let approach = loan.approach(&self.case.case, &self.leased.node).await??;
        if let (Some(approach), Some(pressure)) = (&approach, &self.case.case.pressure) {
            let (signal, available) = (pressure.signal.as_str(), approach.available >> 20);
            let text =
                format!("{signal} is {available}Mi, the node's own threshold {}Mi", approach.threshold >> 20);
            self.step(Phase::Lease, text);
        }
        Ok(approach)
    }

    async fn ramp(&self, start: Duration, approach: Option<&Approach>) -> Option<Ramp> {
        let pressure = self.case.case.pressure.as_ref()?;
        let Some(approach) = approach else {
            return Some(stage::ramp(pressure, self.case.case.containers(), start));
        };
        let time = stage::ramp_time(pressure, self.case.case.containers(), start)
            .max(self.leased.least_ramp().await);
        Some(stage::over(approach.way, time))
    }

    /// Sets the threshold from what the node has now, and notes how things stand before the pods.
    async fn tuned(&self, seen: &mut Observations) -> Result<Before, CaseError> {
        let node = &self.leased.node;
        let case = &self.case.case;
        let mut changes = case.kubelet_config.clone();
        if let Some(pressure) = case.pressure.as_ref().filter(|_| self.leased.loan.is_none()) {
            let has = host::supply(&node.settled_summary().await?, pressure.signal);
            changes = self.with_pressure(pressure, has, changes)?;
        }
        if self.leased.loan.is_some() {
            if case.pressure.is_some() {
                self.leased.use_up().await;
            }
            seen.configz = node.configz().await?;
        } else if self.class == Class::Shared {
            seen.kubelet_config_overrides = tune::base(node.cgroup_v1);
            seen.configz = node.configz().await?;
        } else {
            let all = merged(tune::base(node.cgroup_v1), changes);
            self.leased.use_up().await;
            let tuned = self.restarted(&all).await?;
            seen.tune_seconds = tuned.seconds;
            seen.configz = tuned.configz;
            seen.kubelet_config_overrides = all;
        }
        let before = Before {
            at: self.events.now(),
            summary: node.settled_summary().await?,
            evictions: node.settled_evictions().await?,
        };
        seen.summary_before = before.summary.clone();
        Ok(before)
    }

    /// Tunes the node, and waits until its kubelet is over the restart. One that the kernel does not notify of memory pressure yet, although it could, is
    /// restarted again: that takes less than the notice would come late.
    async fn restarted(&self, changes: &Map<String, Value>) -> Result<Tuned, CaseError> {
        let node = &self.leased.node;
        let of_memory = |pressure: &Pressure| pressure.signal == Signal::MemoryAvailable;
        let notified = changes.get("kernelMemcgNotification") == Some(&Value::Bool(true))
            && self.case.case.pressure.as_ref().is_some_and(of_memory);
        let mut restarts = 1;
        loop {
            let began = self.events.now();
            let tuned = tune::tune(node, changes).await?;
            self.settled(began).await?;
            let log = if notified { node.kubelet_log(began).await? } else { None };
            if restarts == RESTARTS || !log.is_some_and(|log| tune::is_late(&log)) {
                return Ok(tuned);
            }
            self.step(Phase::Tune, "its kubelet saw nothing at its first look: restarting it again");
            restarts += 1;
        }
    }

    /// Waits until a kubelet that was restarted since a moment is over it: at first it may say that it is not ready, and the node is tainted for it. What a
    /// case sees of its node is to be its own doing.
    async fn settled(&self, since: Timestamp) -> Result<(), CaseError> {
        let node = &self.leased.node;
        let settled = wait::until(SETTLES, Duration::from_millis(200), async || match node.object().await {
            Ok(object) if !is_ready(&object) => Probe::Pending("its condition Ready is not True".to_owned()),
            // What the kubelet said before its restart stands until it says something.
            Ok(object) if heard_of(&object).is_none_or(|heard| heard <= since) => {
                Probe::Pending("its kubelet has not told its status yet".to_owned())
            }
            Ok(object) if own_taints(&object).iter().any(|key| key == NOT_READY) => {
                Probe::Pending(format!("it is tainted {NOT_READY}"))
            }
            Ok(_) => Probe::Done(()),
            Err(error) => Probe::Pending(error.to_string()),
        });
        settled.await.map_err(|stalled| CaseError::NotReady(node.name.clone(), stalled))
    }

    /// The changes with what makes pressure, for a node that has so much now.
    fn with_pressure(
        &self,
        pressure: &Pressure,
        has: Supply,
        changes: Map<String, Value>,
    ) -> Result<Map<String, Value>, CaseError> {
        let signal = pressure.signal.as_str();
        let far_enough = |quantity: Option<String>| {
            quantity.ok_or_else(|| CaseError::NoDistance(self.leased.node.name.clone(), signal))
        };
        let is = stage::amount(pressure, has.available);
        if pressure.by == By::KubeReserved {
            let reserved = far_enough(stage::reservation(pressure, has))?;
            self.step(Phase::Tune, format!("{signal} is {is}, kubeReserved {reserved}"));
            return Ok(tune::with_reservation(changes, &reserved));
        }
        let threshold = far_enough(stage::threshold(pressure, has))?;
        let grace = pressure.soft_grace.map(|grace| humantime::format_duration(grace.get()).to_string());
        let changes = tune::with_threshold(changes, signal, &threshold, grace.as_deref());
        let Some(hard) = stage::hard_threshold(pressure, has) else {
            self.step(Phase::Tune, format!("{signal} is {is}, threshold {threshold}"));
            return Ok(changes);
        };
        let hard = far_enough(hard)?;
        self.step(
            Phase::Tune,
            format!("{signal} is {is}, soft threshold {threshold}, hard threshold {hard}"),
        );
        Ok(tune::with_threshold(changes, signal, &hard, None))
    }

    /// Creates the pods and watches them until the case is over. `None` for the end: it was interrupted.
    async fn watched(
        &self,
        namespace: &Namespace,
        ramp: Option<&Ramp>,
        Pace { start, slack }: Pace,
        phase: &mut Phase,
        seen: &mut Observations,
    ) -> Result<(Watched, Option<Ended>), CaseError> {
        let node = &self.leased.node;
        let case = &self.case.case;
        let mut told = watch(node.client(), &namespace.name, &node.name);
        let environment = ramp.map(|ramp| ramp.environment().to_vec()).unwrap_or_default();
        let images = self.leased.images();
        let mut classes = vec![];
        for (name, value) in &case.priority_classes {
            let made = namespace.create_priority_class(name.as_str(), *value, self.run).await?;
            classes.push((name.to_string(), made));
        }
        let tolerations = match case.placed {
            Placed::Bound => vec![],
            Placed::Scheduled => node.tolerations().await?,
        };
        let placement = Placement {
            namespace: &namespace.name,
            node: &node.name,
            placed: case.placed,
            tolerations: &tolerations,
            priority_classes: &classes,
            environment: &environment,
            image: &**images,
        };
        if let Some(ramp) = ramp {
            self.step(Phase::Stage, ramp.to_string());
        }
        self.set_up(&placement).await?;
        for manifest in &case.objects {
            namespace.create_object(&object(manifest, &placement)).await?;
        }
        for faults in [self.faults, &case.faults] {
            if !faults.is_empty() {
                let names: Vec<_> = faults.iter().map(Fault::name).collect();
                self.step(Phase::Stage, format!("arming the faults {}", names.join(", ")));
                node.machine().arm(faults, &namespace.name)?;
            }
        }
        let began = Instant::now();
        for (place, pod) in case.pods.iter().enumerate() {
            let created = namespace.create_pod(&manifest(pod, &placement)).await;
            seen.pods_created.push(created.map_err(|error| self.refused_pod(place, error))?);
        }
        *phase = Phase::Observe;
        let mut wanted = self.wanted();
        // Neighbours may be evicted before.
        let queues = self.class == Class::Shared && !case.expect.evicted.is_empty();
        let patient = if queues { PATIENCE + CLEANUP } else { PATIENCE };
        let limits = [case.timeout.map_or(patient, |timeout| timeout.get()), QUIET];
        let limits: (Duration, Duration) = limits.map(|limit| patience(limit, start) + slack).into();
        let mut script = Script::new(&case.steps);
        let mut until = case.until.as_ref().map(Awaited::new);
        let mut late: Vec<usize> = (0..case.ephemeral_containers.len()).collect();
        let mut watched = Watched::new();
        let seldom = self.leased.loan.is_some() || self.class == Class::Shared;
        let mut ticks = tokio::time::interval(if seldom { SELDOM } else { SAMPLING });
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut broken = None;
        let mut latest = None;
        let mut asking: Option<Asking<'_>> = None;
        loop {
            // The variables of expressions that this changes.
            let changed: &[&str] = tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Ok((watched, None)),
                Some(news) = told.next() => {
                    let changed = news.changes();
                    match news {
                        Seen::Pod(pod) => watched.pod(seconds(began), pod),
                        Seen::PodGone(pod) => watched.pod_gone(seconds(began), pod),
                        Seen::Node(node) => watched.node(seconds(began), node),
                        Seen::Event(event) => {
                            self.tell_event(&event);
                            watched.event(event);
                        }
                        Seen::Broken(why) => broken = Some(why),
                    }
                    changed
                }
                answer = answer_to(&mut asking) => {
                    asking = None;
                    match answer {
                        Ok(Ok(summary)) => {
                            let sample = latest.insert(sample(seconds(began), &summary, &namespace.name));
                            seen.samples.push(sample);
                            self.tell_progress(sample, seen);
                            broken = None;
                        }
                        Ok(Err(error)) => broken = Some(error.to_string()),
                        Err(_) => {
                            let waited = limits.0.as_secs();
                            broken = Some(format!("the Summary of {} did not come in {waited} s", node.name));
                        }
                    }
                    // A node that the case stops has nothing to say, and that is no failure.
                    if case.steps.iter().any(|step| step.pause) {
                        broken = None;
                    }
                    &["samples", "stats"]
                }
                // Asked beside: a server that takes the question and never answers must not hold up anything else.
                _ = ticks.tick() => {
                    asking.get_or_insert_with(|| Box::pin(timeout(limits.0, node.summary())));
                    &[]
                }
            };
            let ready = late.iter().position(|at| watched.runs(case.ephemeral_containers[*at].pod.as_str()));
            if let Some(at) = ready.map(|position| late.remove(position)) {
                self.add_ephemeral(namespace, at, &placement, seen).await?;
            }
            if seen.seconds_to_outcome.is_none()
                && !wanted.evicted.is_empty()
                && wanted.evicted.iter().all(|pod| watched.evicted().contains(&pod.as_str()))
            {
                seen.seconds_to_outcome = Some(began.elapsed().as_secs_f64());
            }
            let t = seconds(began);
            seen.seconds = Some(t);
            if script.is_left() {
                let due = script.due(changed, &Scope::live(seen, t, &watched));
                if let Some(step) = due {
                    self.step_done(step, namespace, &placement, &watched, seen).await?;
                }
                if due.is_some() || script.waits() {
                    watched.goes_on();
                }
            }
            wanted.steps_left = script.is_left();
            wanted.until = match &mut until {
                Some(until) if !wanted.steps_left => {
                    Some(until.holds(changed, &Scope::live(seen, t, &watched)))
                }
                until => until.as_ref().map(|_| false),
            };
            seen.stopped_at = script.waited_for();
            match watched.ended(&wanted, !changed.is_empty(), latest.as_ref(), seen.refused.is_some(), limits)
            {
                Some(Ended::Stalled) if broken.is_some() => {
                    let why = broken.unwrap_or_default();
                    return Err(CaseError::Refused(format!("the API server is gone: {why}")));
                }
                Some(ended) => return Ok((watched, Some(ended))),
                None => {}
            }
        }
    }

    /// What only the end of a case knows, and its pods' end would take away.
    async fn asked_at_the_end(&self, namespace: &Namespace, watched: &Watched, seen: &mut Observations) {
        let case = &self.case.case;
        if case.speaks_of("logs") {
            for (name, pod) in &watched.pods {
                let logs = logs(self.leased.node.client(), &namespace.name, pod).await;
                seen.container_logs.entry(name.clone()).or_insert(Value::Object(logs));
            }
        }
        let created = case.steps.iter().filter_map(|step| step.create.as_ref());
        for manifest in case.objects.iter().chain(created).filter(|manifest| manifest["kind"] != "Pod") {
            let manifest = Value::Object(manifest.clone());
            match namespace.object(&manifest).await {
                Ok(object) => {
                    let name = manifest["metadata"]["name"].as_str().unwrap_or_default();
                    seen.objects.insert(name.to_owned(), object);
                }
                Err(error) => self.step(Phase::Observe, error.to_string()),
            }
        }
    }

    async fn add_ephemeral(
        &self,
        namespace: &Namespace,
        at: usize,
        placement: &Placement<'_>,
        seen: &mut Observations,
    ) -> Result<(), CaseError> {
        let case = &self.case.case;
        let ephemeral = &case.ephemeral_containers[at];
        let mut container = Value::Object(ephemeral.container.clone());
        place(&mut container, placement);
        let name = container["name"].as_str().unwrap_or_default().to_owned();
        self.step(Phase::Observe, format!("adding the ephemeral container {name}"));
        match namespace.add_ephemeral_container(ephemeral.pod.as_str(), &container).await {
            Ok(_) => Ok(()),
            Err(StageError::Refused { status, .. }) if case.expect.refused.is_some() => {
                seen.refused = serde_json::to_value(status).ok();
                Ok(())
            }
            Err(StageError::Refused { object, status }) => {
                let problem = self.case.show_refused_ephemeral_container(at, &object, &status);
                Err(CaseError::Refused(problem.to_string()))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn refused_pod(&self, at: usize, error: StageError) -> CaseError {
        match error {
            StageError::Refused { object, status } => {
                CaseError::Refused(self.case.show_refused_pod(at, &object, &status).to_string())
            }
            error => error.into(),
        }
    }

    fn wanted(&self) -> Wanted {
        let case = &self.case.case;
        let names = |names: &[crate::case::Name]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let bug = case.known_bugs.iter().find(|bug| bug.kubelet.matches(&self.leased.node.version));
        Wanted {
            evicted: names(&case.expect.evicted),
            instead: bug.and_then(|bug| bug.evicted.as_deref()).map(names),
            summary: case.expect.summary.iter().map(|(pod, list)| (pod.to_string(), names(list))).collect(),
            refusal: case.expect.refused.is_some(),
            ..Wanted::default()
        }
    }

    async fn cancellable<T>(&self, work: impl Future<Output = T>) -> Result<T, CaseError> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(CaseError::Interrupted),
            done = work => Ok(done),
        }
    }

    pub(super) fn step(&self, phase: Phase, text: impl Into<String>) {
        self.events.send(What::CaseStep { id: self.id.clone(), phase, text: text.into() });
    }

    fn tell_event(&self, event: &Value) {
        let text = |field: &str| event[field].as_str().unwrap_or_default();
        if text("type") == "Warning" {
            let pod = event["involvedObject"]["name"].as_str().unwrap_or_default();
            self.step(Phase::Observe, format!("{} {pod}: {}", text("reason"), text("message").trim_end()));
        }
    }

    /// The container that uses most, and how much the node has left above its threshold.
    fn tell_progress(&self, latest: &Value, seen: &Observations) {
        let containers = latest["pods"]
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|pod| pod["containers"].as_array().into_iter().flatten());
        let use_of = |container: &Value| container["memory"]["workingSetBytes"].as_u64().unwrap_or(0);
        let Some(most) = containers.max_by_key(|container| use_of(container)) else { return };
        let name = most["name"].as_str().unwrap_or_default();
        let left = self.case.case.pressure.as_ref().and_then(|pressure| {
            let threshold = threshold(pressure, &seen.configz, latest)?;
            let available = host::available(latest, pressure.signal)?;
            Some(match available.checked_sub(threshold) {
                Some(left) => format!(", {}Mi to go", left >> 20),
                None => format!(", {}Mi under the threshold", (threshold - available) >> 20),
            })
        });
        let text = format!("{name} at {}Mi{}", use_of(most) >> 20, left.unwrap_or_default());
        self.events.send(What::CaseProgress { id: self.id.clone(), phase: Phase::Observe, text });
    }
}

/// A question to the node's kubelet for its Summary.
type Asking<'a> = Pin<Box<dyn Future<Output = Result<Result<Value, NodeError>, Elapsed>> + 'a>>;

/// The answer to a question; never, where none is asked.
async fn answer_to(asking: &mut Option<Asking<'_>>) -> Result<Result<Value, NodeError>, Elapsed> {
    match asking {
        Some(asked) => asked.await,
        None => std::future::pending().await,
    }
}

fn seconds(began: Instant) -> f64 {
    began.elapsed().as_secs_f64()
}

fn merged(mut base: Map<String, Value>, changes: Map<String, Value>) -> Map<String, Value> {
    base.extend(changes);
    base
}

/// The verdict of a case that did not come to be judged.
fn ended_by(error: CaseError, phase: Phase) -> Judgement {
    let (verdict, doubt) = match &error {
        CaseError::TooSmall(_) | CaseError::NoDistance(..) => (Verdict::Inconclusive, Some(Doubt::HostUnfit)),
        CaseError::Interrupted | CaseError::Node(NodeError::NotHere { .. }) | CaseError::Unsuited(_) => {
            (Verdict::Skipped, None)
        }
        _ => (Verdict::Error, None),
    };
    let mut judgement = Judgement::without_evidence(verdict, error.to_string());
    judgement.doubt = doubt;
    judgement.phase = (verdict == Verdict::Error).then_some(phase);
    judgement
}

/// Why watching ended belongs to a verdict that doubts.
fn said(mut judgement: Judgement, ended: &Ended) -> Judgement {
    if let (Verdict::Inconclusive, Ended::Died(why)) = (judgement.verdict, ended) {
        judgement.why = format!("{}; {why}", judgement.why);
    }
    judgement
}
