//! Execution of a case: wait for its node, configuration, pods, observation, verdict, cleanup.

use std::sync::Arc;
use std::time::Duration;

use evictlab_case::expression::Variable;
use evictlab_case::{Case, ContainerfsPlacement, LoadedCase, NodeChange, NodeSetup, Pressure, has_kind};
use evictlab_cluster::workload::{Namespace, NamespacePurpose};
use evictlab_cluster::{NodeFileSystems, NodeReversal};
use evictlab_evidence::{EvidenceSource, LiveState, MissingEvidence, ObservationEnd, Observations};
use evictlab_fault::Fault;
use evictlab_judge::{CaseResult, InconclusiveReason, Phase, Verdict, judge};
use evictlab_report::{CaseId, EventSender};
use evictlab_rules::quantity::MIB;
use kube::api::ApiResource;
use kube::core::GroupVersionKind;
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::case_runner::error::CaseError;
use crate::case_runner::observation::collect::{Collector, StateBefore};
use crate::case_runner::observation::logs::LogReader;
use crate::case_runner::observation::read_budget::{READ_TIMEOUT, ReadBudget};
use crate::node_access::exclusivity::Exclusivity;
use crate::node_access::node_policy::NodePolicy;
use crate::node_access::pressure_permits::PressurePermits;
use crate::node_access::room_budget::RoomPermit;
use crate::node_access::run_node::RunNode;
use crate::node_access::steady_statistics::UnsteadyError;
use crate::node_setup::changes::{reversal, unused_image_bytes};
use crate::pressure::host_budget::HostBudget;
use crate::pressure::plan::PressurePlan;
use crate::pressure::ramp::{Ramp, ramp, ramp_duration, ramp_to};
use crate::skip_reason::SkipReason;

/// Limit for the deletion of a case's namespace without progress, on a fast node.
const NAMESPACE_DELETION_TIMEOUT: Duration = Duration::from_secs(60);
/// Limit for the answer of a kubelet whose evidence is missing.
const NODE_ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// A case with everything that its execution needs.
pub(crate) struct CaseRunner<'a> {
    /// Id of the run.
    pub run_id: &'a str,
    /// The case.
    pub case: &'a LoadedCase,
    /// Id of the case in events and reports.
    pub id: CaseId,
    /// The node, locked for this case as its exclusivity requires.
    pub run_node: &'a RunNode,
    /// Exclusivity of the case.
    pub exclusivity: Exclusivity,
    /// Faults that the run injects in addition to those of the case.
    pub faults: &'a [Fault],
    /// Memory budget of the host.
    pub host: &'a HostBudget,
    /// One permit per node that may be under pressure; `None` for clusters of evictlab.
    pub pressure_permits: Option<&'a PressurePermits>,
    /// Receiver of progress.
    pub events: &'a EventSender,
    /// Ends the case early.
    pub cancel: &'a CancellationToken,
}

/// Result of a case.
pub(crate) struct CaseOutcome {
    /// The verdict.
    pub result: CaseResult,
    /// The evidence; `None` if nothing was observed.
    pub evidence: Option<Arc<Observations>>,
}

/// The run was interrupted before the case had a verdict.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interrupted;

/// Phase and evidence of a case while it is executed.
pub(crate) struct Execution {
    /// Current phase.
    pub phase: Phase,
    /// Evidence so far.
    pub observations: Observations,
}

/// Speed of a node.
#[derive(Clone, Copy)]
pub(crate) struct NodeSpeed {
    /// Time that the node takes to start a container.
    pub container_start_duration: Duration,
    /// Time to add to progress timeouts.
    pub extra_timeout: Duration,
    /// Duration of the case's ramp.
    pub ramp_duration: Duration,
}

impl NodeSpeed {
    /// Scales a timeout for a fast node, whose container start duration is at most 2 s, to this
    /// node. One slow start, while the host was busy, does not delay the end of a case by an hour.
    pub(crate) fn scale(&self, timeout: Duration) -> Duration {
        const MAX_TIMEOUT_FACTOR: f64 = 6.0;
        timeout.mul_f64((self.container_start_duration.as_secs_f64() / 2.0).clamp(1.0, MAX_TIMEOUT_FACTOR))
    }

    /// Returns the maximum time from the first pod to the end of a case.
    pub(crate) fn deadline(&self, case: &Case) -> Duration {
        self.scale(case.deadline()) + self.extra_timeout + self.ramp_duration
    }
}

/// A case whose node is ready for its pods.
struct PreparedCase<'a> {
    namespace: Namespace,
    /// State of the node before the pods.
    before: StateBefore,
    /// Growth of the pods; `None` without pressure.
    ramp: Option<Ramp>,
    speed: NodeSpeed,
    /// Held until the end of the case.
    _room: Option<RoomPermit<'a>>,
    /// Held until the end of the case.
    _host_memory: Option<OwnedSemaphorePermit>,
}

/// End of an observation.
pub(crate) struct ObservationResult {
    /// State of the watches.
    pub live: LiveState,
    /// Why the observation ended; `None` if it was interrupted.
    pub end: Option<ObservationEnd>,
}

impl CaseRunner<'_> {
    /// Runs the case and deletes its namespace. The next case on the node reverts its
    /// configuration.
    ///
    /// # Errors
    /// The run was interrupted.
    pub(crate) async fn run(self) -> Result<CaseOutcome, Interrupted> {
        let mut execution = Execution { phase: Phase::AwaitNode, observations: Observations::default() };
        let result = self.execute(&mut execution).await;
        self.run_node.node.backend().end_faults();
        let result = match result {
            Ok(result) => result,
            Err(CaseError::Interrupted) => return Err(Interrupted),
            Err(error) => error.into_result(execution.phase),
        };
        let has_evidence = !execution.observations.is_empty();
        let evidence = has_evidence.then(|| Arc::new(execution.observations));
        Ok(CaseOutcome { result, evidence })
    }

    async fn execute(&self, execution: &mut Execution) -> Result<CaseResult, CaseError> {
        self.describe_node(&mut execution.observations);
        self.cancellable(self.run_node.delete_leftovers(NAMESPACE_DELETION_TIMEOUT)).await?;
        if self.run_node.is_dirty().await {
            self.report_step(Phase::AwaitNode, "waiting for the node to recover");
            self.cancellable(self.recover()).await?;
        }
        if self.exclusivity != Exclusivity::Shared && self.case.case.pressure.is_some() {
            self.await_statistics(Phase::AwaitNode, self.run_node.wait_until_steady()).await;
        }
        match self.prepare(execution).await {
            Ok(prepared) => self.observe_and_judge(prepared, execution).await,
            Err(error) => {
                // The node has nothing else of the case yet.
                let unused_images = self.case.case.node.unused_image.is_some();
                // The error of the preparation is reported. The next case tries again.
                let _ = self.run_node.revert(NodeReversal { unused_images, ..NodeReversal::default() }).await;
                Err(error)
            }
        }
    }

    /// Waits until the node has recovered from the last case. A case that only configures the
    /// kubelet replaces the configuration of the last one, without a start of the kubelet between
    /// them, unless files that the last one left would change its distance to a threshold.
    async fn recover(&self) -> Result<(), CaseError> {
        let case = &self.case.case;
        let only_configures = self.exclusivity != Exclusivity::Shared
            && case.node == NodeSetup::default()
            && !case.pressure.as_ref().is_some_and(Pressure::is_on_disk);
        if !(only_configures && self.run_node.wait_until_unused().await) {
            self.run_node.recover().await?;
        }
        Ok(())
    }

    /// Gives the node and its kubelet what the case states, plans the pressure, and creates the
    /// namespace.
    async fn prepare(&self, execution: &mut Execution) -> Result<PreparedCase<'_>, CaseError> {
        let (node, case) = (&self.run_node.node, &self.case.case);
        self.cancellable(self.set_up_for_case()).await?;
        let container_start_duration = self.run_node.scaled_container_start_duration().await;
        self.acquire_pressure_permit().await?;
        let room = async { Ok::<_, CaseError>(self.run_node.acquire_room(case).await) };
        let room = self.cancellable(room).await?;
        let plan = self.cancellable(self.plan_pressure()).await?;
        let ramp = self.ramp(container_start_duration, plan.as_ref()).await;
        let host_memory = self.acquire_host_memory(ramp.as_ref()).await?;
        execution.phase = Phase::Configure;
        let before = self.cancellable(self.configure_node(&mut execution.observations)).await?;
        execution.phase = Phase::CreatePods;
        let namespace = Namespace::create(
            node.client(),
            self.run_id,
            NamespacePurpose::Pods(case.name.as_str()),
            node.guards(),
        )
        .await?;
        self.run_node.record_pressure_namespace(&namespace.name).await;
        let stats_delay = self.run_node.policy.as_ref().map_or(Duration::ZERO, NodePolicy::stats_delay);
        let grace = plan.and_then(|plan| plan.grace).unwrap_or_default();
        let ramp_duration = ramp.as_ref().map(Ramp::duration).unwrap_or_default();
        let speed = NodeSpeed { container_start_duration, extra_timeout: stats_delay + grace, ramp_duration };
        Ok(PreparedCase { namespace, before, ramp, speed, _room: room, _host_memory: host_memory })
    }

    /// Creates the pods, observes and judges the case, and reverts its changes of the node.
    async fn observe_and_judge(
        &self,
        prepared: PreparedCase<'_>,
        execution: &mut Execution,
    ) -> Result<CaseResult, CaseError> {
        let PreparedCase { namespace, ramp, speed, .. } = &prepared;
        let mut checks = self.checks();
        let mut observed = tokio::select! {
            observed = self.create_and_observe(namespace, ramp.as_ref(), *speed, execution) => observed,
            error = self.guard(namespace, &mut checks) => Err(error),
        };
        // Without the node, the end of the pods says nothing about the kubelet.
        if let Err(lost) = self.run_node.node.backend().confirm_held().await {
            observed = Err(lost.into());
        }
        let mut budget = ReadBudget::new(speed.scale(READ_TIMEOUT));
        if let Ok(ObservationResult { live, end: end @ Some(_) }) = &observed {
            execution.observations.ended.clone_from(end);
            let read = self.read_final_state(namespace, live, &mut budget, &mut execution.observations);
            if let Err(error) = self.guarded(namespace, &mut checks, read).await {
                observed = Err(error);
            }
        }
        let reversal = reversal(&self.case.case);
        let reverted = self.run_node.revert(NodeReversal { static_pods: false, ..reversal }).await;
        let mut result = None;
        if let Ok(ObservationResult { live, end: Some(_) }) = &observed {
            let judged = self.collect_and_judge(&prepared, live, &mut budget, execution);
            match self.guarded(namespace, &mut checks, judged).await {
                Ok(judged) => result = Some(judged),
                Err(error) => observed = Err(error),
            }
        }
        let answers = self.cancellable(self.confirm_node_answers(result.as_ref())).await;
        // Their end is not part of the case, so its evidence is read before.
        let static_pods = NodeReversal { static_pods: reversal.static_pods, ..NodeReversal::default() };
        let reverted = self.run_node.revert(static_pods).await.and(reverted);
        if !self.cancel.is_cancelled() {
            if result.is_some() {
                execution.phase = Phase::Recover;
            }
            self.report_step(Phase::Recover, "deleting the pods");
            let ignore_failure = observed.is_err() || reverted.is_err();
            self.delete_objects(namespace, *speed, ignore_failure).await?;
            reverted?;
        }
        let concluded = match answers {
            Ok(()) => self.conclude(observed?, result).await,
            Err(error) => Err(error),
        };
        self.release_host().await;
        concluded
    }

    /// Confirms that the node answers if evidence is missing: a node that is gone is not a property
    /// of the case, and another node may give a verdict.
    ///
    /// # Errors
    /// The kubelet does not answer any more.
    async fn confirm_node_answers(&self, result: Option<&CaseResult>) -> Result<(), CaseError> {
        let is_missing =
            |result: &CaseResult| result.inconclusive_reason == Some(InconclusiveReason::EvidenceLost);
        if !result.is_some_and(is_missing) {
            return Ok(());
        }
        match timeout(NODE_ANSWER_TIMEOUT, self.run_node.node.summary()).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(CaseError::Unreachable(error.to_string())),
            Err(_) => {
                let seconds = NODE_ANSWER_TIMEOUT.as_secs();
                let name = &self.run_node.node.name;
                Err(CaseError::Unreachable(format!("node {name} did not answer for {seconds} s")))
            }
        }
    }

    /// Waits until a case that had the host or its disk for itself, or changed the node's file
    /// systems, has left nothing there: pods were deleted at once, so their processes and files may
    /// remain for some seconds, and the next case measures its distance to the threshold first.
    async fn release_host(&self) {
        let had_disk = self.exclusivity == Exclusivity::Disk || self.case.case.node.file_systems.is_some();
        let had_host = had_disk || self.exclusivity == Exclusivity::Host;
        if !had_host || self.cancel.is_cancelled() || !self.run_node.is_dirty().await {
            return;
        }
        self.report_step(Phase::Recover, "waiting for the node to recover");
        let recovery = async {
            // Processes end with their pods; files are deleted later.
            if had_disk || !self.run_node.wait_until_unused().await {
                // The next case on the node reports a node that did not recover.
                let _ = self.run_node.recover().await;
            }
        };
        // After an interrupt, the teardown of the cluster restores the node.
        self.cancel.run_until_cancelled(recovery).await;
        if had_disk {
            // A pod that is deleted at once is gone from the API before its files are deleted.
            self.await_statistics(Phase::Recover, self.run_node.wait_until_pods_ended()).await;
        }
    }

    /// Awaits steady statistics unless the run is interrupted. If they do not become steady, that
    /// is reported, and the case goes on.
    async fn await_statistics(&self, phase: Phase, steady: impl Future<Output = Result<(), UnsteadyError>>) {
        if let Some(Err(error)) = self.cancel.run_until_cancelled(steady).await {
            self.report_step(phase, error.to_string());
        }
    }

    fn describe_node(&self, observations: &mut Observations) {
        let node = &self.run_node.node;
        observations.case_name = self.case.case.name.to_string();
        observations.kubelet_version = node.version.to_string();
        observations.node = node.name.clone();
        observations.cgroup = Some(node.cgroup);
    }

    /// Gives the node what the case states, before the pressure is planned.
    async fn set_up_for_case(&self) -> Result<(), CaseError> {
        self.check_swap().await?;
        self.set_up_file_systems().await?;
        self.set_up_huge_pages().await?;
        self.add_unused_image().await
    }

    /// Gives the node the file systems of the case. The pressure is relative to them.
    async fn set_up_file_systems(&self) -> Result<(), CaseError> {
        let Some(stated) = &self.case.case.node.file_systems else { return Ok(()) };
        let wanted = NodeFileSystems {
            imagefs: stated.imagefs.amount(),
            imagefs_inodes: stated.imagefs_inodes,
            has_split_layers: stated.containerfs == ContainerfsPlacement::Nodefs,
        };
        self.report_step(Phase::AwaitNode, format!("giving the node an imagefs of {}", stated.imagefs));
        Ok(self.run_node.set_up_file_systems(wanted).await?)
    }

    /// Checks that the node has the swap space of the case.
    async fn check_swap(&self) -> Result<(), CaseError> {
        let Some(stated) = &self.case.case.node.swap else { return Ok(()) };
        let (needs, has) = (stated.amount(), self.run_node.node.swap().await?);
        if has < needs { Err(SkipReason::Swap { needs, has }.into()) } else { Ok(()) }
    }

    /// Reserves the huge pages of the case, or checks that the node has them.
    async fn set_up_huge_pages(&self) -> Result<(), CaseError> {
        let Some(stated) = &self.case.case.node.huge_pages else { return Ok(()) };
        let needs = stated.amount();
        let has = self.run_node.set_up_huge_pages(needs).await?;
        if has < needs { Err(SkipReason::HugePages { needs, has }.into()) } else { Ok(()) }
    }

    /// Gives the node the unused image of the case. The pressure is relative to the space left.
    async fn add_unused_image(&self) -> Result<(), CaseError> {
        let Some(bytes) = unused_image_bytes(&self.case.case) else { return Ok(()) };
        self.report_step(Phase::AwaitNode, format!("giving the node an unused image of {} MiB", bytes / MIB));
        self.run_node.mark_dirty().await;
        let node = &self.run_node.node;
        node.backend().add_unused_image(bytes).await?;
        Ok(node.wait_for_file_system_statistics().await?)
    }

    /// Plans the pressure on an external node, whose threshold is not changed.
    async fn plan_pressure(&self) -> Result<Option<PressurePlan>, CaseError> {
        let Some(policy) = &self.run_node.policy else { return Ok(None) };
        let plan = policy.plan_for_current_state(&self.case.case, &self.run_node.node).await?;
        if let (Some(plan), Some(pressure)) = (&plan, &self.case.case.pressure) {
            let (signal, available, threshold) =
                (pressure.signal.as_str(), plan.available / MIB, plan.threshold / MIB);
            let text = format!("{signal} is {available}Mi, the node's own threshold {threshold}Mi");
            self.report_step(Phase::AwaitNode, text);
        }
        Ok(plan)
    }

    async fn ramp(&self, container_start_duration: Duration, plan: Option<&PressurePlan>) -> Option<Ramp> {
        let pressure = self.case.case.pressure.as_ref()?;
        let containers = self.case.case.container_count();
        let Some(plan) = plan else { return Some(ramp(pressure, containers, container_start_duration)) };
        let duration = ramp_duration(pressure, containers, container_start_duration);
        Some(ramp_to(plan.target, duration.max(self.run_node.min_ramp_duration().await)))
    }

    /// Acquires the memory that the case takes, and checks that the host keeps its reserve.
    async fn acquire_host_memory(
        &self,
        ramp: Option<&Ramp>,
    ) -> Result<Option<OwnedSemaphorePermit>, CaseError> {
        let (Some(pressure), Some(ramp)) = (&self.case.case.pressure, ramp) else { return Ok(None) };
        let acquire = async { Ok::<_, CaseError>(self.host.acquire(pressure, ramp).await) };
        let permit = self.cancellable(acquire).await?;
        self.cancellable(self.host.check(&self.run_node.node, pressure, ramp)).await?;
        Ok(permit)
    }

    /// Reads container logs and objects that do not outlive the case's pods.
    async fn read_final_state(
        &self,
        namespace: &Namespace,
        live: &LiveState,
        budget: &mut ReadBudget,
        observations: &mut Observations,
    ) {
        let case = &self.case.case;
        if case.references(Variable::Logs) {
            let client = self.run_node.node.client();
            let mut reader = LogReader { client, namespace: &namespace.name, budget, observations };
            reader.read_unread(live).await;
        }
        let created = case.created_objects();
        let objects = case.objects.iter().chain(created).filter(|manifest| !has_kind(manifest, "Pod"));
        for manifest in objects {
            let manifest = Value::Object(manifest.clone());
            match budget.read(namespace.object(&manifest)).await {
                Ok(object) => {
                    let name = object_name(&manifest).to_owned();
                    observations.objects.insert(name, object);
                }
                Err(error) => {
                    let missing = MissingEvidence::new(object_source(&manifest), error);
                    self.report_step(Phase::Observe, format!("evidence is incomplete: {missing}"));
                    observations.missing.push(missing);
                }
            }
        }
    }

    async fn collect_and_judge(
        &self,
        prepared: &PreparedCase<'_>,
        live: &LiveState,
        budget: &mut ReadBudget,
        execution: &mut Execution,
    ) -> CaseResult {
        let case = &self.case.case;
        let collector = Collector {
            node: &self.run_node.node,
            namespace: &prepared.namespace.name,
            before: &prepared.before,
            full_kubelet_log: case.references(Variable::KubeletLog),
            restarts_kubelet: case.node_changes().any(|change| *change == NodeChange::RestartKubelet),
            metrics: case.metrics_read(),
        };
        for missing in collector.collect(live, budget, &mut execution.observations).await {
            self.report_step(Phase::Observe, format!("evidence is incomplete: {missing}"));
            execution.observations.missing.push(missing);
        }
        execution.phase = Phase::Judge;
        judge(case, &self.run_node.node.version, &execution.observations)
    }

    /// Deletes the case's namespace. With `ignore_failure`, a namespace that
    /// cannot be deleted is ignored, because an earlier error is reported. The next case on the
    /// node deletes it.
    async fn delete_objects(
        &self,
        namespace: &Namespace,
        speed: NodeSpeed,
        ignore_failure: bool,
    ) -> Result<(), CaseError> {
        let timeout = speed.scale(NAMESPACE_DELETION_TIMEOUT);
        match self.cancellable(namespace.delete(timeout)).await {
            Err(CaseError::Interrupted) => Err(CaseError::Interrupted),
            Err(error) => {
                self.run_node.leave_namespace(namespace.clone()).await;
                if ignore_failure { Ok(()) } else { Err(error) }
            }
            Ok(()) => Ok(()),
        }
    }

    /// Returns the result of a case that was observed to its end.
    async fn conclude(
        &self,
        ObservationResult { live, end }: ObservationResult,
        result: Option<CaseResult>,
    ) -> Result<CaseResult, CaseError> {
        let (Some(end), Some(mut result)) = (end, result) else { return Err(CaseError::Interrupted) };
        let is_as_expected = result.verdict.is_success();
        if is_as_expected && let Some(start) = live.first_container_start(&self.case.case.pods) {
            self.run_node.mark_healthy(start).await;
        }
        if is_as_expected && self.case.case.pressure.is_some() {
            self.run_node.record_followed_ramp().await;
        }
        // The verdict may be inconclusive for this very reason.
        let is_explained = result.inconclusive_reason == Some(InconclusiveReason::EndNotReached);
        let is_unexpected = match end {
            ObservationEnd::Died(_) => result.verdict == Verdict::Inconclusive,
            ObservationEnd::Deadline(_) => true,
            ObservationEnd::Outcome
            | ObservationEnd::Unexpected(_)
            | ObservationEnd::Stuck
            | ObservationEnd::Stalled => false,
        };
        if let Some(why) = end.describe_failure().filter(|_| is_unexpected && !is_explained) {
            result.why = format!("{}; {why}", result.why);
        }
        Ok(result)
    }

    /// Awaits `work` unless the run is interrupted.
    ///
    /// # Errors
    /// The error of `work`, or [`CaseError::Interrupted`].
    pub(super) async fn cancellable<T, E: Into<CaseError>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, CaseError> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(CaseError::Interrupted),
            result = work => result.map_err(Into::into),
        }
    }
}

fn object_name(manifest: &Value) -> &str {
    manifest.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

/// Returns the source of an object of the case.
fn object_source(manifest: &Value) -> EvidenceSource {
    let kind = manifest.get("kind").and_then(Value::as_str).unwrap_or_default();
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "", kind)).plural;
    EvidenceSource::Object { resource, name: object_name(manifest).to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_longer_on_slow_nodes() {
        let timeout = Duration::from_secs(40);
        let scaled = |container_start_duration| {
            let speed = NodeSpeed {
                container_start_duration,
                extra_timeout: Duration::ZERO,
                ramp_duration: Duration::ZERO,
            };
            speed.scale(timeout)
        };
        assert_eq!(scaled(Duration::from_millis(700)), timeout);
        assert_eq!(scaled(Duration::from_secs(10)), timeout * 5);
        assert_eq!(scaled(Duration::from_secs(60)), timeout * 6, "a start on a busy host");
    }
}
