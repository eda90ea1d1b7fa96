//! Observation of a case from the creation of its pods to its end.

use std::error::Error;
use std::pin::Pin;
use std::time::Duration;

use evictlab_case::expression::Variable;
use evictlab_case::{Name, NodeChange, case_name};
use evictlab_cluster::NodeError;
use evictlab_cluster::workload::{Namespace, Placement, StageError, container_manifest};
use evictlab_evidence::{
    ApiAnswer, EvidenceSource, LiveState, MissingEvidence, ObservationEnd, Observations, Recorded, Scope,
    reduce_summary,
};
use evictlab_judge::{Phase, known_bug};
use evictlab_rules::summary::Sample;
use futures::{Stream, StreamExt};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::{Instant, MissedTickBehavior, timeout};

use crate::case_runner::error::{CaseError, describe_rejection};
use crate::case_runner::observation::cached_condition::CachedCondition;
use crate::case_runner::observation::end_condition::{EndCondition, EndInputs, EndLimits, ExpectedOutcome};
use crate::case_runner::observation::outage::{Outage, OutageEffect};
use crate::case_runner::observation::step_queue::StepQueue;
use crate::case_runner::observation::watch::WatchUpdate;
use crate::case_runner::runner::{CaseRunner, NodeSpeed, ObservationResult};
use crate::node_access::exclusivity::Exclusivity;

/// Limit for a case without any progress, on a fast node.
const CASE_PROGRESS_TIMEOUT: Duration = Duration::from_secs(40);
/// Time that the kubelet waits for an evicted pod to terminate, without evicting others
/// (`podCleanupTimeout`).
const POD_CLEANUP_TIMEOUT: Duration = Duration::from_secs(30);
/// Time to observe a case further after the outcome that a known bug leads to: longer than one
/// interval of the kubelet's eviction manager (10 s).
const SETTLING_TIME: Duration = Duration::from_secs(12);
/// Interval of Summary requests. A kubelet that deletes containers or images ends some states
/// within a second.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(500);
/// Interval of Summary requests to external nodes, which have older statistics and an API server
/// with other clients, and to shared nodes, which have no pressure.
const SLOW_SAMPLE_INTERVAL: Duration = Duration::from_secs(2);

/// Request for a Summary that did not succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SummaryError {
    #[error(transparent)]
    Node(#[from] NodeError),
    #[error("failed to read the Summary of node {node}: not received within {seconds} s")]
    TimedOut { node: String, seconds: u64 },
}

/// Request for a Summary, with the time at which it began.
struct SummaryRequest<'a> {
    began: Instant,
    response: Pin<Box<dyn Future<Output = Result<Box<RawValue>, SummaryError>> + 'a>>,
}

/// State of the observation of a case.
pub(crate) struct Observer<'a> {
    runner: &'a CaseRunner<'a>,
    namespace: &'a Namespace,
    placement: &'a Placement<'a>,
    /// Start of the first pod's creation.
    began: Instant,
    /// Limit for the case, and for a Summary request, without progress.
    progress_timeout: Duration,
    /// Limit for the case with or without progress, from `began`.
    deadline: Duration,
    expected: ExpectedOutcome,
    end_condition: EndCondition,
    steps: StepQueue<'a>,
    until: Option<CachedCondition<'a>>,
    /// The case's trigger, until it was observed.
    trigger: Option<CachedCondition<'a>>,
    /// Indexes of the ephemeral containers that are not yet added.
    ephemeral_containers: Vec<usize>,
    live: LiveState,
    latest_sample: Option<Sample>,
    /// Failures since the last Summary; the next one clears them.
    outage: Option<Outage>,
}

impl<'a> Observer<'a> {
    pub(crate) fn new(
        runner: &'a CaseRunner<'a>,
        namespace: &'a Namespace,
        placement: &'a Placement<'a>,
        began: Instant,
        speed: NodeSpeed,
    ) -> Self {
        let case = &runner.case.case;
        // On a shared node, pods of other cases may be evicted first.
        let waits_for_others = runner.exclusivity == Exclusivity::Shared && !case.expect.evicted.is_empty();
        let cleanup = if waits_for_others { POD_CLEANUP_TIMEOUT } else { Duration::ZERO };
        let progress_timeout = case.timeout.map_or(CASE_PROGRESS_TIMEOUT + cleanup, |timeout| timeout.get());
        let progress_timeout = speed.scale(progress_timeout) + speed.extra_timeout;
        let settle_time = speed.scale(SETTLING_TIME) + speed.extra_timeout;
        Self {
            runner,
            namespace,
            placement,
            began,
            progress_timeout,
            deadline: speed.deadline(case),
            expected: expected_outcome(runner),
            end_condition: EndCondition::new(EndLimits { stall_timeout: progress_timeout, settle_time }),
            steps: StepQueue::new(&case.steps),
            until: case.until.as_ref().map(CachedCondition::new),
            trigger: case.trigger.as_ref().map(CachedCondition::new),
            ephemeral_containers: (0..case.ephemeral_containers.len()).collect(),
            live: LiveState::new(),
            latest_sample: None,
            outage: None,
        }
    }

    /// Observes the case until it ends or the run is interrupted.
    ///
    /// # Errors
    /// A step failed, a condition is too costly, or the case stalled while the API server or the
    /// kubelet did not answer.
    pub(crate) async fn run(
        mut self,
        mut updates: impl Stream<Item = WatchUpdate> + Unpin,
        observations: &mut Observations,
    ) -> Result<ObservationResult, CaseError> {
        let runner = self.runner;
        let is_slow = runner.run_node.policy.is_some() || runner.exclusivity == Exclusivity::Shared;
        let interval = if is_slow { SLOW_SAMPLE_INTERVAL } else { SAMPLE_INTERVAL };
        let mut ticks = tokio::time::interval(interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut pending_request: Option<SummaryRequest<'_>> = None;
        loop {
            let changed: &[Variable] = tokio::select! {
                biased;
                () = runner.cancel.cancelled() => return Ok(ObservationResult { live: self.live, end: None }),
                Some(update) = updates.next() => self.apply_update(update),
                (began, summary) = response(&mut pending_request) => {
                    pending_request = None;
                    self.apply_summary(began, summary, observations);
                    &[Variable::PodStats, Variable::Samples, Variable::Stats]
                }
                // The request is awaited beside the watches, which continue if it is never
                // answered.
                _ = ticks.tick() => {
                    pending_request.get_or_insert_with(|| self.request_summary());
                    &[]
                }
            };
            self.add_ephemeral_container(observations).await?;
            self.note_outcome(observations);
            self.note_trigger(changed, observations)?;
            // The time before the step, so that one pass evaluates all conditions at the same time.
            let t = self.seconds();
            observations.seconds = Some(t);
            self.execute_due_step(t, changed, observations).await?;
            self.evaluate_until(t, changed, observations)?;
            observations.stopped_at = self.steps.describe_next();
            if let Some(end) = self.end_reason(changed, observations)? {
                self.await_first_sample(pending_request, observations).await;
                return Ok(ObservationResult { live: self.live, end: Some(end) });
            }
        }
    }

    /// Waits for the first Summary of a case that ended before the kubelet answered: on a busy
    /// host, it needs longer than a case without pressure.
    async fn await_first_sample(
        &mut self,
        pending_request: Option<SummaryRequest<'_>>,
        observations: &mut Observations,
    ) {
        let Some(request) = pending_request.filter(|_| observations.samples.is_empty()) else { return };
        tokio::select! {
            biased;
            () = self.runner.cancel.cancelled() => {}
            summary = request.response => self.apply_summary(request.began, summary, observations),
        }
        if let Some(outage) = self.outage.take() {
            self.live.record_missing(MissingEvidence::new(EvidenceSource::Summary, outage.into_error()));
        }
    }

    fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    fn apply_update(&mut self, update: WatchUpdate) -> &'static [Variable] {
        let changed = update.changed_variables();
        match update {
            WatchUpdate::Pod(pod) => self.live.record_pod(self.seconds(), pod),
            WatchUpdate::PodDeleted(pod) => self.live.record_pod_gone(self.seconds(), pod),
            WatchUpdate::Node(node) => self.live.record_node(self.seconds(), node),
            WatchUpdate::Event(event) => {
                self.runner.report_warning(&event);
                self.live.record_event(event);
            }
            WatchUpdate::ListStarted(kind) => self.live.record_list_start(kind),
            WatchUpdate::ListEnded(kind) => self.live.record_list_end(self.seconds(), kind),
            WatchUpdate::UndecodablePod(pod) => self.live.record_undecodable_pod(pod),
            WatchUpdate::Undecodable(missing) => self.live.record_missing(missing),
            WatchUpdate::Failed(error) => self.note_failure(Instant::now(), error),
        }
        changed
    }

    fn request_summary(&self) -> SummaryRequest<'a> {
        let node = &self.runner.run_node.node;
        let limit = self.progress_timeout;
        let response = Box::pin(async move {
            match timeout(limit, node.summary_text()).await {
                Ok(summary) => Ok(summary?),
                Err(_) => Err(SummaryError::TimedOut { node: node.name.clone(), seconds: limit.as_secs() }),
            }
        });
        SummaryRequest { began: Instant::now(), response }
    }

    /// Records the response to a request for a Summary that began at `began`.
    fn apply_summary(
        &mut self,
        began: Instant,
        summary: Result<Box<RawValue>, SummaryError>,
        observations: &mut Observations,
    ) {
        match summary {
            Ok(summary) => {
                match reduce_summary(self.seconds(), &summary, &self.namespace.name) {
                    Ok(sample) => {
                        observations.samples.push(&sample);
                        self.latest_sample = observations.samples.decode_latest();
                        if let Some(sample) = &self.latest_sample {
                            self.runner.report_usage(sample, observations);
                        }
                    }
                    Err(error) => {
                        self.live.record_missing(MissingEvidence::new(EvidenceSource::Summary, error));
                    }
                }
                if let Some(outage) = self.outage.take() {
                    self.end_condition.mark_end_of_outage(outage.age());
                }
            }
            Err(error) => self.note_failure(began, error.to_string()),
        }
        // A node that the case pauses is expected not to answer.
        if self.runner.case.case.node_changes().any(|change| *change == NodeChange::Pause) {
            self.outage = None;
        }
    }

    fn note_failure(&mut self, began: Instant, error: String) {
        self.outage = Some(Outage::after_failure(self.outage.take(), began, error));
    }

    /// Adds the next ephemeral container whose pod runs.
    async fn add_ephemeral_container(&mut self, observations: &mut Observations) -> Result<(), CaseError> {
        let case = self.runner.case;
        let all = &case.case.ephemeral_containers;
        let runs = |index: &usize| self.live.is_running(all[*index].pod.as_str());
        let Some(position) = self.ephemeral_containers.iter().position(runs) else { return Ok(()) };
        let index = self.ephemeral_containers.remove(position);
        let ephemeral = &all[index];
        let container = container_manifest(&ephemeral.container, self.placement);
        let name = container.get("name").and_then(Value::as_str).unwrap_or_default();
        self.runner.report_step(Phase::Observe, format!("adding ephemeral container {name}"));
        let name_in_case = ephemeral.pod.as_str();
        let pod = self.live.pods.get(name_in_case).map_or(name_in_case, |pod| pod.name());
        match self.namespace.add_ephemeral_container(pod, &container).await {
            Ok(_) => Ok(()),
            Err(StageError::Rejected { status, .. }) if case.case.expect.api_rejection.is_some() => {
                let rejection = recorded_rejection(&status);
                let rejection =
                    rejection.map_err(|source| CaseError::Rejection { pod: pod.to_owned(), source })?;
                observations.api_rejection = Some(rejection);
                Ok(())
            }
            Err(StageError::Rejected { object, status, .. }) => {
                let problem =
                    case.ephemeral_container_rejection_problem(index, &object, &describe_rejection(&status));
                Err(CaseError::ApiRejected(problem.to_string()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Records the time at which all expected pods were evicted.
    fn note_outcome(&self, observations: &mut Observations) {
        let expected = &self.expected.evicted;
        if observations.seconds_to_outcome.is_none()
            && !expected.is_empty()
            && expected.iter().all(|pod| self.live.evicted_pods().contains(&pod.as_str()))
        {
            observations.seconds_to_outcome = Some(self.seconds());
        }
    }

    /// Records that the case's trigger holds. It is not evaluated again.
    fn note_trigger(
        &mut self,
        changed: &[Variable],
        observations: &mut Observations,
    ) -> Result<(), CaseError> {
        let Some(trigger) = &mut self.trigger else { return Ok(()) };
        let scope = Scope::live(observations, self.began.elapsed().as_secs_f64(), &self.live);
        let is_observed = trigger.holds(changed, &scope).map_err(CaseError::condition("trigger"))?;
        drop(scope);
        if is_observed {
            observations.trigger_observed = true;
            self.trigger = None;
        }
        Ok(())
    }

    /// Executes the next step if its condition holds at `t`, in seconds.
    async fn execute_due_step(
        &mut self,
        t: f64,
        changed: &[Variable],
        observations: &mut Observations,
    ) -> Result<(), CaseError> {
        if self.steps.is_empty() {
            return Ok(());
        }
        let due = self.steps.pop_due(changed, &Scope::live(observations, t, &self.live));
        let due = due.map_err(CaseError::condition("when"))?;
        if let Some(step) = due {
            let (namespace, placement) = (self.namespace, self.placement);
            self.runner.execute_step(step, namespace, placement, &self.live, observations).await?;
        }
        if due.is_some() || self.steps.is_waiting() {
            self.end_condition.mark_progress();
        }
        Ok(())
    }

    /// Evaluates the case's `until` at `t`, in seconds, if all steps are done.
    fn evaluate_until(
        &mut self,
        t: f64,
        changed: &[Variable],
        observations: &Observations,
    ) -> Result<(), CaseError> {
        self.expected.steps_left = !self.steps.is_empty();
        self.expected.until = match &mut self.until {
            Some(until) if self.steps.is_empty() => {
                let holds = until.holds(changed, &Scope::live(observations, t, &self.live));
                Some(holds.map_err(CaseError::condition("until"))?)
            }
            until => until.as_ref().map(|_| false),
        };
        Ok(())
    }

    /// Returns why the observation ends now; `None` if it continues.
    fn end_reason(
        &mut self,
        changed: &[Variable],
        observations: &Observations,
    ) -> Result<Option<ObservationEnd>, CaseError> {
        let end = self.end_condition.check(&EndInputs {
            state: &self.live,
            expected: &self.expected,
            has_changes: !changed.is_empty(),
            latest_sample: self.latest_sample.as_ref(),
            api_rejected: observations.api_rejection.is_some(),
        });
        let is_overdue = self.began.elapsed() >= self.deadline;
        let end = end.or_else(|| is_overdue.then_some(ObservationEnd::Deadline(self.deadline)));
        let (Some(end), Some(outage)) = (&end, &self.outage) else { return Ok(end) };
        let is_outcome_known = observations.seconds_to_outcome.is_some();
        let limit = (!is_overdue).then_some(self.progress_timeout);
        match outage.effect(end, is_outcome_known, limit) {
            OutageEffect::Continue => Ok(None),
            OutageEffect::EndWithout(cause) => {
                self.live.record_missing(MissingEvidence::new(EvidenceSource::Summary, cause));
                Ok(Some(end.clone()))
            }
            OutageEffect::Unreachable(error) => Err(CaseError::Unreachable(error)),
        }
    }
}

/// Returns the Status of a rejection as evidence.
fn recorded_rejection(
    status: &kube::core::Status,
) -> Result<Recorded<ApiAnswer>, Box<dyn Error + Send + Sync>> {
    Ok(Recorded::decode(serde_json::to_value(status)?)?)
}

fn expected_outcome(runner: &CaseRunner<'_>) -> ExpectedOutcome {
    let case = &runner.case.case;
    let names = |names: &[Name]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let node = &runner.run_node.node;
    let bug = known_bug(case, &node.version, Some(node.cgroup));
    let evicted = names(&case.expect.evicted);
    let evicted_with_bug = bug.and_then(|bug| bug.evicted.as_deref()).map(names);
    let may_be_evicted = names(&case.expect.may_be_evicted);
    let expected = || evicted.iter().chain(evicted_with_bug.iter().flatten()).chain(&may_be_evicted);
    let never_evicted = case.pods.iter().filter_map(case_name).map(str::to_owned);
    let never_evicted = never_evicted.filter(|pod| !expected().any(|name| name == pod));
    ExpectedOutcome {
        // Without a list, the case does not state who is evicted.
        never_evicted: if evicted.is_empty() { Vec::new() } else { never_evicted.collect() },
        evicted,
        evicted_with_bug,
        summary: case.expect.summary.iter().map(|(pod, list)| (pod.to_string(), names(list))).collect(),
        api_rejection: case.expect.api_rejection.is_some(),
        waits_for_nothing: case.waits_for_nothing(),
        ..ExpectedOutcome::default()
    }
}

/// Awaits the response to a pending request, and returns it with the time at which the request
/// began; without a request, never returns.
async fn response(
    pending: &mut Option<SummaryRequest<'_>>,
) -> (Instant, Result<Box<RawValue>, SummaryError>) {
    match pending {
        Some(request) => (request.began, request.response.as_mut().await),
        None => std::future::pending().await,
    }
}
