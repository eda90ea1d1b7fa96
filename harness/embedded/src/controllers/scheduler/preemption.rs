//! Preemption of pods with lower priority (`pkg/scheduler/framework/preemption` and its default
//! plugin).

use std::cmp::Reverse;
use std::sync::Arc;

use k8s_openapi::api::policy::v1::PodDisruptionBudgetStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::Value;

use super::filter::{FilterFailure, filter, unavailable};
use super::nodes::{NAME, NodeInfo, PendingPod, PodInfo};
use crate::apiserver::{self, DeleteOptions, control_plane_version};
use crate::context::SimContext;
use crate::controllers::context::{ControllerContext, observed_generation};
use crate::controllers::recorder::{self, EventObjects};
use crate::resource::pod_status::{ConditionStatus, PodCondition};
use crate::resource::{EventBody, Kind, ObjectExt, PodStatus, label_selector};

const REASON: &str = "PreemptionByScheduler";

/// Node with the pods to preempt.
#[derive(Clone, Debug)]
pub(super) struct Preemption {
    pub(super) node: String,
    victims: Vec<Arc<Value>>,
}

/// Finds the node where preemption costs least, or returns the message why preemption does not
/// help. `failures` are in the order of the nodes.
pub(super) fn find(
    pod: &PendingPod,
    nodes: &[NodeInfo],
    failures: &[FilterFailure],
    ctx: &SimContext,
) -> Result<Preemption, String> {
    const NOT_HELPFUL: &str = "Preemption is not helpful for scheduling";
    eligible(pod.object, nodes, failures)?;
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut reasons: Vec<String> = Vec::new();
    for (node_info, failure) in nodes.iter().zip(failures) {
        if !failure.resolvable {
            reasons.push(NOT_HELPFUL.to_owned());
            continue;
        }
        match Candidate::on_node(pod, node_info, ctx) {
            Ok(candidate) => candidates.push(candidate),
            Err(why) => reasons.extend(why),
        }
    }
    let best = candidates.into_iter().min_by_key(Candidate::cost);
    best.map(|best| Preemption {
        node: best.node_info.name.clone(),
        victims: best.victims.iter().map(|pod_info| pod_info.pod.clone()).collect(),
    })
    .ok_or_else(|| unavailable(nodes.len(), reasons.iter().map(String::as_str)))
}

/// Deletes the victims gracefully. Pods of lower priority lose their nomination to the node.
pub(super) fn preempt(pod: &Value, found: &Preemption, ctx: &mut ControllerContext) {
    let now = ctx.epoch().meta_time(ctx.now);
    let why = format!("{NAME}: preempting to accommodate a higher priority pod");
    for victim in &found.victims {
        let (namespace, name) = (victim.namespace(), victim.name());
        let generation = observed_generation(victim, ctx);
        ctx.store.update(Kind::Pod, namespace, name, |victim| {
            PodCondition::disruption(REASON, &why).observing(generation).set(victim, now.clone());
        });
        if apiserver::delete(ctx, Kind::Pod, namespace, name, DeleteOptions::default()).is_ok() {
            let message = format!("Preempted by pod {} on node {}", pod.uid(), found.node);
            let event = EventBody::normal("Preempted", &message);
            let objects = EventObjects {
                object: recorder::object_reference(Kind::Pod, victim),
                cause: Some(recorder::object_reference(Kind::Pod, pod)),
            };
            ctx.record_series(objects, "Preempting", event);
        }
    }
    let lower: Vec<_> = ctx
        .store
        .list(Kind::Pod, None)
        .filter(|other| other.node_name().is_empty() && other.nominated_node() == found.node)
        .filter(|other| other.priority() < pod.priority())
        .cloned()
        .collect();
    for other in lower {
        ctx.store.update(Kind::Pod, other.namespace(), other.name(), |other| {
            other.status_mut().remove("nominatedNodeName");
        });
    }
}

/// Returns the reason why a pod may not preempt: its policy, or an earlier preemption in progress.
fn eligible(pod: &Value, nodes: &[NodeInfo], failures: &[FilterFailure]) -> Result<(), String> {
    if pod.spec().text("preemptionPolicy") == "Never" {
        return Err("not eligible due to preemptionPolicy=Never.".to_owned());
    }
    let chosen = nodes.iter().zip(failures).find(|(node_info, _)| node_info.name == pod.nominated_node());
    let ending = |pod_info: &PodInfo| {
        pod_info.pod.priority() < pod.priority()
            && pod_info.pod.is_deleting()
            && PodStatus::of(&pod_info.pod).condition("DisruptionTarget").is_some_and(|condition| {
                condition.status == ConditionStatus::True && condition.reason.as_deref() == Some(REASON)
            })
    };
    match chosen {
        Some((node_info, failure)) if failure.resolvable && node_info.pods.iter().any(ending) => {
            Err("not eligible due to a terminating pod on the nominated node.".to_owned())
        }
        _ => Ok(()),
    }
}

/// Victims of a preemption on a node.
struct Candidate<'a> {
    node_info: &'a NodeInfo,
    /// Victims, most important first.
    victims: Vec<PodInfo>,
    /// Number of victims whose removal violates a disruption budget.
    violations: usize,
}

impl<'a> Candidate<'a> {
    /// Returns the fewest pods of lower priority whose removal makes the pod fit, or the reasons
    /// why it does not fit without any of them.
    fn on_node(pod: &PendingPod, node_info: &'a NodeInfo, ctx: &SimContext) -> Result<Self, Vec<String>> {
        let control_plane = control_plane_version(ctx);
        let mut left = node_info.clone();
        let lower = |pod_info: &PodInfo| {
            pod_info.pod.priority() < pod.object.priority() && !pod_info.pod.node_name().is_empty()
        };
        let (mut lower, stay): (Vec<_>, Vec<_>) = left.pods.into_iter().partition(lower);
        left.pods = stay;
        if lower.is_empty() {
            return Err(vec!["No preemption victims found for incoming pod".to_owned()]);
        }
        if let Some(failure) = filter(pod, &left, &control_plane) {
            return Err(failure.reasons);
        }
        lower.sort_by_cached_key(|pod_info| importance(&pod_info.pod));
        let (violating, free) = split_by_budget(lower, ctx);
        let mut victims = Vec::new();
        let mut violations = 0;
        // The most important pods are reprieved first.
        for (pod_info, violates) in violating
            .into_iter()
            .map(|pod_info| (pod_info, true))
            .chain(free.into_iter().map(|pod_info| (pod_info, false)))
        {
            left.pods.push(pod_info);
            if filter(pod, &left, &control_plane).is_some()
                && let Some(pod_info) = left.pods.pop()
            {
                victims.push(pod_info);
                violations += usize::from(violates);
            }
        }
        victims.sort_by_cached_key(|pod_info| importance(&pod_info.pod));
        Ok(Self { node_info, victims, violations })
    }

    /// Returns a key that orders candidates, best first (`pickOneNodeForPreemption`): violated
    /// budgets, highest priority, sum of priorities, number of victims, start time of the most
    /// important victim.
    fn cost(&self) -> (usize, i64, i64, usize, Reverse<Option<StartTime>>) {
        // Makes priorities positive, so that fewer victims have a smaller sum.
        const OFFSET: i64 = i32::MAX as i64 + 1;
        let priorities = self.victims.iter().map(|pod_info| pod_info.pod.priority());
        let highest = priorities.clone().max().unwrap_or(i64::MIN);
        let important = self.victims.iter().filter(|pod_info| pod_info.pod.priority() == highest);
        let earliest = important.map(|pod_info| StartTime::of(&pod_info.pod)).min();
        let sum = priorities.map(|priority| priority + OFFSET).sum();
        (self.violations, highest, sum, self.victims.len(), Reverse(earliest))
    }
}

/// Disruption budget. `status.disruptions_allowed` counts down with each victim.
struct Budget<'a> {
    namespace: &'a str,
    selector: LabelSelector,
    status: PodDisruptionBudgetStatus,
}

impl<'a> Budget<'a> {
    /// Reads a budget. A budget without a selector, or with an empty one, protects no pods from the
    /// scheduler.
    fn read(object: &'a Value) -> Option<Self> {
        let selector = label_selector::of(object)?;
        let is_empty = selector.match_labels.iter().flatten().next().is_none()
            && selector.match_expressions.iter().flatten().next().is_none();
        (!is_empty).then(|| Self { namespace: object.namespace(), selector, status: object.read("status") })
    }

    /// Counts the removal of a pod. Returns whether the budget does not allow the removal.
    fn is_violated_by(&mut self, pod: &Value) -> bool {
        // The API server has already counted an evicted pod.
        let is_counted =
            self.status.disrupted_pods.as_ref().is_some_and(|pods| pods.contains_key(pod.name()));
        if self.namespace != pod.namespace()
            || is_counted
            || !label_selector::matches(Some(&self.selector), pod.labels())
        {
            return false;
        }
        self.status.disruptions_allowed -= 1;
        self.status.disruptions_allowed < 0
    }
}

/// Splits pods, most important first, into those whose removal violates a disruption budget and the
/// others (`filterPodsWithPDBViolation`).
pub(super) fn split_by_budget(pods: Vec<PodInfo>, ctx: &SimContext) -> (Vec<PodInfo>, Vec<PodInfo>) {
    let all = ctx.store.list(Kind::PodDisruptionBudget, None);
    let mut budgets: Vec<_> = all.filter_map(|object| Budget::read(object)).collect();
    pods.into_iter().partition(|pod_info| {
        let pod = &pod_info.pod;
        let has_labels = pod.labels().as_object().is_some_and(|labels| !labels.is_empty());
        let mut is_violation = false;
        for budget in budgets.iter_mut().filter(|_| has_labels) {
            is_violation |= budget.is_violated_by(pod);
        }
        is_violation
    })
}

/// Returns a key that orders pods by importance, most important first: priority, then start time.
fn importance(pod: &Value) -> (Reverse<i64>, StartTime, String) {
    (Reverse(pod.priority()), StartTime::of(pod), pod.name().to_owned())
}

/// Start time of a pod. A pod that has not started is younger than all others, as the scheduler
/// uses the current time for it (`GetPodStartTime`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum StartTime {
    Started(String),
    NotStarted,
}

impl StartTime {
    fn of(pod: &Value) -> Self {
        match pod.status().text("startTime") {
            "" => Self::NotStarted,
            time => Self::Started(time.to_owned()),
        }
    }
}
