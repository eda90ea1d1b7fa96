//! Preemption of pods by a critical pod (`pkg/kubelet/preemption/preemption.go`).

use std::collections::BTreeMap;

use evictlab_rules::KubeletVersion;
use evictlab_rules::message::EVICTED_REASON;
use evictlab_rules::pod::{Pod, QosClass};
use evictlab_rules::threshold::Signal;

use super::admit::{AdmittedStart, Rejection, Shortage, request_of};
use super::spec::Manifest;
use super::state::Preemption;
use super::worker::{Reason, Worker};
use crate::context::SimContext;
use crate::defect::Defect;
use crate::kubelet::event::PodEvent;
use crate::kubelet::recorder::EventObject;
use crate::kubelet::state::Kubelet;
use crate::machine::{Machine, PodUid};
use crate::resource::EventBody;

const MESSAGE: &str = "Preempted in order to admit critical pod";

/// Pod that may be preempted, with its requests.
struct PreemptionCandidate<'a> {
    uid: &'a PodUid,
    pod: &'a Pod,
    version: &'a KubeletVersion,
}

/// Missing resources with their amounts.
type Wants = Vec<(String, i64)>;

impl Kubelet {
    /// Kills pods for a critical pod, one after the other (`evictPodsToFreeRequests` of
    /// preemption.go). Returns when the critical pod starts.
    pub(super) fn preempt(
        &mut self,
        worker: &Worker,
        shortages: &[Shortage],
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) -> Result<AdmittedStart, Rejection> {
        let is_for_all = self.has(Defect::PreemptionFreesTheWholeRequest);
        let wants = shortages.iter().map(|short| {
            let free = if is_for_all { 0 } else { short.capacity - short.used };
            (short.resource.clone(), short.requested - free)
        });
        let counted = if self.has(Defect::PreemptionForFirstResource) { 1 } else { shortages.len() };
        let victims = self.victims(&worker.manifest.pod, wants.take(counted).collect())?;
        let resource = shortages.first().map(|short| short.resource.clone()).unwrap_or_default();
        let now = (PodUid::new(), 0);
        let preemption = Preemption { pod: worker.manifest.uid.clone(), resource, now, next: victims.into() };
        Ok(self.preempt_next(preemption, machine, ctx))
    }

    /// Kills the next pod. Returns when the critical pod starts: now if none is left.
    fn preempt_next(
        &mut self,
        mut preemption: Preemption,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) -> AdmittedStart {
        while let Some(victim) = preemption.next.pop_front() {
            match self.preempt_pod(&victim, machine, ctx) {
                Some(number) => {
                    preemption.now = (victim, number);
                    self.pods.preemptions.push(preemption);
                    return AdmittedStart::AfterPreemption;
                }
                // A pod without containers has ended already.
                None => self.count_preemption(&preemption.resource),
            }
        }
        AdmittedStart::Now
    }

    /// Starts to kill a pod, and returns the number of the call that waits for its end.
    fn preempt_pod(&mut self, victim: &str, machine: &mut Machine, ctx: &mut SimContext) -> Option<u64> {
        let object = self.pods.workers.get(victim)?.object.clone();
        if !self.has(Defect::PreemptionWithoutEvent) {
            let event = EventBody::warning("Preempting", MESSAGE);
            self.record_event(EventObject::Pod(&object, None), event, ctx);
        }
        if self.has(Defect::PreemptionIsCounted) {
            self.eviction.metrics.count_eviction(Signal::MemoryAvailable.as_str());
        }
        let reason = Reason {
            reason: if self.has(Defect::PreemptionReasonDiffers) { EVICTED_REASON } else { "Preempting" }
                .into(),
            message: MESSAGE.to_owned(),
            disruption: self.disruption_of_preemption(),
        };
        let grace = self.has(Defect::PreemptionGraceIsOne).then_some(1);
        self.kill_now(victim, reason, grace, machine, ctx)
    }

    /// Returns the message of the condition `DisruptionTarget`, which the gate
    /// `PodDisruptionConditions` can disable through 1.30.
    fn disruption_of_preemption(&self) -> Option<String> {
        let is_set = self.config.settings.gates.disruption_conditions;
        is_set.then(|| "Pod was preempted by Kubelet to accommodate a critical pod.".to_owned())
    }

    fn count_preemption(&mut self, resource: &str) {
        if !self.has(Defect::PreemptionNotCounted) {
            self.eviction.metrics.count_preemption(resource);
        }
    }

    /// Continues the preemption that waits for a pod, if a call of one does. Only a pod whose
    /// containers ended in time counts. After the last pod, the critical pod starts.
    pub(super) fn preemption_continues(
        &mut self,
        number: u64,
        in_time: bool,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) -> bool {
        let Some(place) = self.pods.preemptions.iter().position(|one| one.now.1 == number) else {
            return false;
        };
        let preemption = self.pods.preemptions.remove(place);
        if in_time {
            self.count_preemption(&preemption.resource);
        }
        let critical = preemption.pod.clone();
        if self.preempt_next(preemption, machine, ctx) == AdmittedStart::Now {
            if let Some(worker) = self.pods.workers.get_mut(&critical) {
                worker.preempts = false;
            }
            self.schedule_pod(ctx.now, PodEvent::Sync(critical), ctx);
        }
        true
    }

    /// Returns whether a pod is never preempted: a defect.
    fn spares(&self, pod: &Pod) -> bool {
        pod.is_critical() && self.has(Defect::PreemptionSparesLowerCritical)
            || pod.qos_class() == QosClass::Guaranteed && self.has(Defect::PreemptionSparesGuaranteed)
    }

    /// Returns whether a critical pod preempts one that it must not preempt: a defect.
    fn preempts_wrongly(&self, critical: &Pod, other: &Pod) -> bool {
        other.priority() == critical.priority() && self.has(Defect::PreemptionOfEqualPriority)
            || critical.priority() > other.priority() && self.has(Defect::PreemptionOfStatic)
            || critical.spec.priority.is_none() && self.has(Defect::PreemptionByStaticOfCritical)
    }

    /// Returns the pods with a pending resize that count with their desired resources. Since 1.34,
    /// no pod does: `getAllocatedPods` replaces `GetActivePods` (kubernetes/kubernetes#132105).
    fn pending_resizes(&self) -> BTreeMap<&PodUid, Pod> {
        if self.options.version.at_least(34) && !self.has(Defect::PreemptionCountsPendingResizes) {
            return BTreeMap::new();
        }
        let pending = self.pods.admitted().filter(|(_, worker)| worker.pending_resize.is_some());
        let desired = |object| Manifest::read(object, self.known_fields()).pod;
        pending.map(|(uid, worker)| (uid, desired(&worker.object))).collect()
    }

    /// Returns the pods of a QoS class that a critical pod may preempt. Pods in `resized` count
    /// with these resources.
    fn candidates<'a>(
        &'a self,
        critical: &Pod,
        qos: QosClass,
        resized: &'a BTreeMap<&PodUid, Pod>,
    ) -> Vec<PreemptionCandidate<'a>> {
        let version = &self.options.version;
        let admitted = self.pods.admitted().map(|(uid, worker)| {
            let pod = resized.get(uid).unwrap_or(&worker.manifest.pod);
            PreemptionCandidate { uid, pod, version }
        });
        let is_candidate = |candidate: &PreemptionCandidate<'_>| {
            (is_preemptable(critical, candidate.pod) || self.preempts_wrongly(critical, candidate.pod))
                && !self.spares(candidate.pod)
                && candidate.pod.qos_class() == qos
        };
        admitted.filter(is_candidate).collect()
    }

    /// Returns the pods to kill, in this order (`getPodsToPreempt`).
    fn victims(&self, critical: &Pod, wants: Wants) -> Result<Vec<PodUid>, Rejection> {
        let resized = self.pending_resizes();
        let with_qos = |qos: QosClass| self.candidates(critical, qos, &resized);
        let (best_effort, burstable, guaranteed) =
            (with_qos(QosClass::BestEffort), with_qos(QosClass::Burstable), with_qos(QosClass::Guaranteed));
        let all = best_effort.iter().chain(&burstable).chain(&guaranteed);
        let missing = without(&wants, all);
        if !missing.is_empty() {
            return Err(unexpected(&missing));
        }
        if self.has(Defect::PreemptionTakesAll) {
            let all = best_effort.iter().chain(&burstable).chain(&guaranteed);
            return Ok(all.map(|candidate| candidate.uid.clone()).collect());
        }
        let (best_effort, guaranteed) = if self.has(Defect::PreemptionByHighestQos) {
            (guaranteed, best_effort)
        } else {
            (best_effort, guaranteed)
        };
        let choice = match () {
            () if self.has(Defect::PreemptionTakesLargest) => Choice::NearestThenLargest,
            () if self.has(Defect::PreemptionTakesMoreCpu) => Choice::NearestThenMoreCpu,
            () if self.has(Defect::PreemptionTakesSmallest) => Choice::Smallest,
            () => Choice::NearestThenSmallest,
        };
        let before_guaranteed: &[_] =
            if self.has(Defect::PreemptionSparesBurstable) { &[] } else { &burstable };
        let without_guaranteed = without(&wants, best_effort.iter().chain(&guaranteed));
        let first = choose(guaranteed, without(&wants, best_effort.iter().chain(before_guaranteed)), choice)?;
        let missing = if self.has(Defect::PreemptionCountsSpared) {
            without_guaranteed
        } else {
            without(&wants, best_effort.iter().chain(&first))
        };
        let second = choose(burstable, missing, choice)?;
        let third = choose(best_effort, without(&wants, second.iter().chain(&first)), choice)?;
        let victims = third.iter().chain(&second).chain(&first);
        Ok(victims.map(|candidate| candidate.uid.clone()).collect())
    }
}

/// Rule by which the next pod is chosen.
#[derive(Clone, Copy)]
enum Choice {
    /// The one whose requests come closest to the missing amounts; of equally close ones the
    /// smallest. This takes as few pods as possible.
    NearestThenSmallest,
    /// The same, but the largest of equally close ones.
    NearestThenLargest,
    /// The same, but of equally close ones with the same memory request, the one with more CPU.
    NearestThenMoreCpu,
    /// The smallest.
    Smallest,
}

/// Selects pods until nothing is missing (`getPodsToPreemptByDistance`).
fn choose<'a>(
    mut pods: Vec<PreemptionCandidate<'a>>,
    mut wants: Wants,
    choice: Choice,
) -> Result<Vec<PreemptionCandidate<'a>>, Rejection> {
    let mut taken = Vec::new();
    while !wants.is_empty() {
        let distance = |candidate: &PreemptionCandidate| -> f64 {
            if matches!(choice, Choice::Smallest) {
                return 0.0;
            }
            wants
                .iter()
                .map(|(resource, wanted)| {
                    (wanted - requested_amount(candidate, resource)).max(0) as f64 / *wanted as f64
                })
                .map(|part| part * part)
                .sum()
        };
        let size = |candidate: &PreemptionCandidate| {
            let cpu = requested_amount(candidate, "cpu");
            let cpu = if matches!(choice, Choice::NearestThenMoreCpu) { -cpu } else { cpu };
            (requested_amount(candidate, "memory"), cpu)
        };
        let mut best: Option<(usize, f64)> = None;
        for (index, candidate) in pods.iter().enumerate() {
            let far = distance(candidate);
            let better = best.is_none_or(|(at, least)| {
                let is_preferred = match choice {
                    Choice::NearestThenLargest => size(candidate) >= size(&pods[at]),
                    Choice::NearestThenSmallest | Choice::NearestThenMoreCpu | Choice::Smallest => {
                        size(candidate) <= size(&pods[at])
                    }
                };
                far < least || far == least && is_preferred
            });
            if better {
                best = Some((index, far));
            }
        }
        let Some((index, _)) = best else { return Err(unexpected(&wants)) };
        let candidate = pods.swap_remove(index);
        wants = without(&wants, std::iter::once(&candidate));
        taken.push(candidate);
    }
    Ok(taken)
}

/// Returns the amounts that are missing after the removal of pods.
fn without<'a, 'b: 'a>(
    wants: &Wants,
    pods: impl Iterator<Item = &'a PreemptionCandidate<'b>> + Clone,
) -> Wants {
    let left = wants.iter().map(|(resource, wanted)| {
        (
            resource.clone(),
            wanted - pods.clone().map(|candidate| requested_amount(candidate, resource)).sum::<i64>(),
        )
    });
    left.filter(|(_, wanted)| *wanted > 0).collect()
}

/// Returns the request of a pod; each pod counts as one of the resource `pods`
/// (`GetResourceRequest`). Through 1.33 the requests of sidecars are not added to those of the
/// other containers, as they are in the admission's own sums.
fn requested_amount(candidate: &PreemptionCandidate<'_>, resource: &str) -> i64 {
    if resource == "pods" { 1 } else { request_of(candidate.pod, candidate.version, resource) }
}

/// Returns whether a critical pod preempts another one (`kubelettypes.Preemptable`): those that are
/// not critical, and critical pods of lower priority. A static pod without a priority in its
/// manifest cannot be compared by priority.
fn is_preemptable(critical: &Pod, other: &Pod) -> bool {
    !other.is_critical()
        || critical.spec.priority.zip(other.spec.priority).is_some_and(|(own, other)| own > other)
}

fn unexpected(wants: &Wants) -> Rejection {
    let list: String =
        wants.iter().map(|(resource, wanted)| format!("(res: {resource}, q: {wanted}), ")).collect();
    Rejection {
        reason: "UnexpectedAdmissionError".to_owned(),
        message: format!(
            "Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: [{list}]"
        ),
    }
}
