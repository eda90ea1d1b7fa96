//! Killing pods so that a critical one can start (`pkg/kubelet/preemption`).

use std::collections::BTreeSet;

use evictlab_rules::pod::{Pod, Qos};

use super::Kubelet;
use super::admit::{Rejection, Shortage, request};
use super::status::Reason;
use super::worker::Worker;
use crate::kubelet::recorder::About;
use crate::machine::{Machine, PodUid};
use crate::world::Ctx;

const MESSAGE: &str = "Preempted in order to admit critical pod";

/// A pod that could be killed, with its requests.
struct Candidate<'a> {
    uid: &'a PodUid,
    pod: &'a Pod,
}

/// What is still wanted.
type Wants = Vec<(String, i64)>;

impl Kubelet {
    /// Kills what must go for a critical pod, which starts when that has ended.
    pub(super) fn preempt(
        &mut self,
        worker: &Worker,
        shortages: &[Shortage],
        machine: &mut Machine,
        ctx: &mut Ctx,
    ) -> Result<BTreeSet<PodUid>, Rejection> {
        let wants = shortages
            .iter()
            .map(|short| (short.resource.clone(), short.requested - (short.capacity - short.used)));
        let victims = self.victims(&worker.manifest.pod, wants.collect())?;
        for victim in &victims {
            let Some(object) = self.pods.workers.get(victim).map(|worker| worker.object.clone()) else {
                continue;
            };
            self.tell(About::Pod(&object, None), "Warning", "Preempting", MESSAGE, None, ctx);
            let why = Reason {
                reason: "Preempting",
                message: MESSAGE.to_owned(),
                disruption: Some("Pod was preempted by Kubelet to accommodate a critical pod.".to_owned()),
            };
            self.kill_now(victim, why, None, machine, ctx);
            if let Some(short) = shortages.first() {
                self.eviction.metrics.preempted(&short.resource);
            }
        }
        Ok(victims)
    }

    fn victims(&self, critical: &Pod, wants: Wants) -> Result<BTreeSet<PodUid>, Rejection> {
        let of = |qos: Qos| -> Vec<Candidate> {
            let active = self.pods.workers.iter().filter(|(_, worker)| worker.is_active());
            active
                .map(|(uid, worker)| Candidate { uid, pod: &worker.manifest.pod })
                .filter(|candidate| is_preemptable(critical, candidate.pod) && candidate.pod.qos() == qos)
                .collect()
        };
        let (best_effort, burstable, guaranteed) =
            (of(Qos::BestEffort), of(Qos::Burstable), of(Qos::Guaranteed));
        let all = best_effort.iter().chain(&burstable).chain(&guaranteed);
        let missing = without(&wants, all);
        if !missing.is_empty() {
            return Err(unexpected(&missing));
        }
        let first = nearest(guaranteed, without(&wants, best_effort.iter().chain(&burstable)))?;
        let second = nearest(burstable, without(&wants, best_effort.iter().chain(&first)))?;
        let third = nearest(best_effort, without(&wants, second.iter().chain(&first)))?;
        let victims = third.iter().chain(&second).chain(&first);
        Ok(victims.map(|candidate| candidate.uid.clone()).collect())
    }
}

/// Takes the pods that come nearest to what is wanted, until nothing is.
fn nearest<'a>(mut pods: Vec<Candidate<'a>>, mut wants: Wants) -> Result<Vec<Candidate<'a>>, Rejection> {
    let mut taken = Vec::new();
    while !wants.is_empty() {
        let distance = |candidate: &Candidate| -> f64 {
            wants
                .iter()
                .map(|(resource, wanted)| {
                    (wanted - own(candidate.pod, resource)).max(0) as f64 / *wanted as f64
                })
                .map(|part| part * part)
                .sum()
        };
        let size = |candidate: &Candidate| (request(candidate.pod, "memory"), request(candidate.pod, "cpu"));
        let mut best: Option<(usize, f64)> = None;
        for (index, candidate) in pods.iter().enumerate() {
            let far = distance(candidate);
            let better = best.is_none_or(|(at, least)| {
                far < least || (far == least && size(candidate) <= size(&pods[at]))
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

/// What is still wanted when some pods are gone.
fn without<'a, 'b: 'a>(wants: &Wants, pods: impl Iterator<Item = &'a Candidate<'b>> + Clone) -> Wants {
    let left = wants.iter().map(|(resource, wanted)| {
        (resource.clone(), wanted - pods.clone().map(|candidate| own(candidate.pod, resource)).sum::<i64>())
    });
    left.filter(|(_, wanted)| *wanted > 0).collect()
}

/// Each pod takes one of the places for pods (`GetResourceRequest`).
fn own(pod: &Pod, resource: &str) -> i64 {
    if resource == "pods" { 1 } else { request(pod, resource) }
}

/// `kubelettypes.Preemptable`: a critical pod goes before all others, and before critical ones of less priority. A static pod whose manifest
/// states none has no priority that could be less.
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
