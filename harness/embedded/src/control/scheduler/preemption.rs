//! Room for a pod by the end of pods of lower priority: `pkg/scheduler/framework/preemption` and its default plugin.

use std::cmp::Reverse;
use std::sync::Arc;

use evictlab_rules::KubeletVersion;
use serde_json::Value;

use super::super::events::{self, Recorder, Told, Weight};
use super::super::{generation, meta, node_of};
use super::filter::{Misfit, misfit};
use super::nodes::{Held, Nodes, Room, Wanted, nominated};
use super::{NAME, priority, unfit};
use crate::registry::condition::{self, Condition};
use crate::registry::{self, DeleteOptions, selector};
use crate::store::Kind;
use crate::world::Ctx;

const REASON: &str = "PreemptionByScheduler";

/// A node, and who has to go there.
#[derive(Clone, Debug)]
pub(super) struct Preemption {
    pub(super) node: String,
    victims: Vec<Arc<Value>>,
}

/// Looks for the node where the least has to go; says why there is none. `misfits` are in the order of the nodes, none of which fits.
pub(super) fn find(
    pod: &Value,
    wanted: &Wanted,
    nodes: &Nodes,
    misfits: &[Misfit],
    control_plane: &KubeletVersion,
    ctx: &Ctx,
) -> Result<Preemption, String> {
    const HOPELESS: &str = "Preemption is not helpful for scheduling";
    eligible(pod, nodes, misfits)?;
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut reasons: Vec<String> = Vec::new();
    for (room, misfit) in nodes.all.iter().zip(misfits) {
        if !misfit.resolvable {
            reasons.push(HOPELESS.to_owned());
            continue;
        }
        match Candidate::on(pod, wanted, room, control_plane, ctx) {
            Ok(candidate) => candidates.push(candidate),
            Err(why) => reasons.extend(why),
        }
    }
    let best = candidates.into_iter().min_by_key(Candidate::cost);
    best.map(|best| Preemption {
        node: best.room.name.clone(),
        victims: best.victims.iter().map(|held| held.pod.clone()).collect(),
    })
    .ok_or_else(|| unfit(nodes.all.len(), reasons.iter().map(String::as_str)))
}

/// Ends the victims, gracefully, and tells it. Pods of lower priority that were to go there must look anew.
pub(super) fn carry_out(pod: &Value, found: &Preemption, recorder: &mut Recorder, ctx: &mut Ctx) {
    let now = ctx.epoch().seconds(ctx.now);
    let scheduler = pod["spec"]["schedulerName"].as_str().unwrap_or(NAME);
    let why = format!("{scheduler}: preempting to accommodate a higher priority pod");
    for victim in &found.victims {
        let (namespace, name) = (meta(victim, "namespace"), meta(victim, "name"));
        let generation = generation(victim, ctx);
        ctx.store.update(Kind::Pod, namespace, name, |victim| {
            Condition::disruption(REASON, &why).set(victim, &now, generation);
        });
        if registry::delete(ctx, Kind::Pod, namespace, name, DeleteOptions::default()).is_ok() {
            let message = format!("Preempted by pod {} on node {}", meta(pod, "uid"), found.node);
            let told = Told { weight: Weight::Normal, reason: "Preempted", message: &message };
            recorder.tell_series(ctx, events::pod(victim), Some(events::pod(pod)), "Preempting", told);
        }
    }
    let lower: Vec<_> = ctx
        .store
        .list(Kind::Pod, None)
        .filter(|other| node_of(other).is_empty() && nominated(other) == found.node)
        .filter(|other| priority(other) < priority(pod))
        .cloned()
        .collect();
    for other in lower {
        ctx.store.update(Kind::Pod, meta(&other, "namespace"), meta(&other, "name"), |other| {
            if let Some(status) = other["status"].as_object_mut() {
                status.shift_remove("nominatedNodeName");
            }
        });
    }
}

/// Why a pod may not preempt: it does not want to, or others are ending for it already.
fn eligible(pod: &Value, nodes: &Nodes, misfits: &[Misfit]) -> Result<(), String> {
    if pod["spec"]["preemptionPolicy"] == "Never" {
        return Err("not eligible due to preemptionPolicy=Never.".to_owned());
    }
    let chosen = nodes.all.iter().zip(misfits).find(|(room, _)| room.name == nominated(pod));
    let ending = |held: &Held| {
        priority(&held.pod) < priority(pod)
            && held.pod["metadata"]["deletionTimestamp"].is_string()
            && condition::find(&held.pod, "DisruptionTarget")
                .is_some_and(|condition| condition["status"] == "True" && condition["reason"] == REASON)
    };
    match chosen {
        Some((room, misfit)) if misfit.resolvable && room.pods.iter().any(ending) => {
            Err("not eligible due to a terminating pod on the nominated node.".to_owned())
        }
        _ => Ok(()),
    }
}

/// What preemption on one node would cost.
struct Candidate<'a> {
    room: &'a Room,
    /// Most important first.
    victims: Vec<Held>,
    /// How many of them a disruption budget protects.
    violations: usize,
}

impl<'a> Candidate<'a> {
    /// The fewest pods of lower priority without which the pod fits; else why it does not even fit without all of them.
    fn on(
        pod: &Value,
        wanted: &Wanted,
        room: &'a Room,
        control_plane: &KubeletVersion,
        ctx: &Ctx,
    ) -> Result<Self, Vec<String>> {
        let mut left = room.clone();
        let lower = |held: &Held| priority(&held.pod) < priority(pod) && !node_of(&held.pod).is_empty();
        let (mut lower, stay): (Vec<_>, Vec<_>) = left.pods.into_iter().partition(lower);
        left.pods = stay;
        if lower.is_empty() {
            return Err(vec!["No preemption victims found for incoming pod".to_owned()]);
        }
        if let Some(misfit) = misfit(pod, wanted, &left, control_plane) {
            return Err(misfit.reasons);
        }
        lower.sort_by_cached_key(|held| importance(&held.pod));
        let (protected, free): (Vec<_>, Vec<_>) =
            lower.into_iter().partition(|held| is_protected(&held.pod, ctx));
        let mut victims = Vec::new();
        let mut violations = 0;
        // The most important are spared first.
        for (held, protected) in
            protected.into_iter().map(|held| (held, true)).chain(free.into_iter().map(|held| (held, false)))
        {
            left.pods.push(held);
            if misfit(pod, wanted, &left, control_plane).is_some()
                && let Some(held) = left.pods.pop()
            {
                victims.push(held);
                violations += usize::from(protected);
            }
        }
        victims.sort_by_cached_key(|held| importance(&held.pod));
        Ok(Self { room, victims, violations })
    }

    /// The least is the best (`pickOneNodeForPreemption`): violated budgets, the highest priority, the sum of priorities, how many, and how
    /// long the most important of them has run.
    fn cost(&self) -> (usize, i64, i64, usize, Reverse<String>) {
        // So that fewer are better even among negative priorities.
        const OFFSET: i64 = i32::MAX as i64 + 1;
        let priorities = self.victims.iter().map(|held| priority(&held.pod));
        let highest = priorities.clone().max().unwrap_or(i64::MIN);
        let important = self.victims.iter().filter(|held| priority(&held.pod) == highest);
        let earliest = important.map(|held| started(&held.pod).to_owned()).min().unwrap_or_default();
        let sum = priorities.map(|priority| priority + OFFSET).sum();
        (self.violations, highest, sum, self.victims.len(), Reverse(earliest))
    }
}

/// Whether a disruption budget allows no disruption of a pod.
fn is_protected(pod: &Value, ctx: &Ctx) -> bool {
    let mut budgets = ctx.store.list(Kind::PodDisruptionBudget, Some(meta(pod, "namespace")));
    budgets.any(|budget| {
        budget["status"]["disruptionsAllowed"].as_i64().unwrap_or(0) <= 0
            && selector::matches(&budget["spec"]["selector"], &pod["metadata"]["labels"])
    })
}

/// The order of importance: priority, then who has run longer; the least is the most important.
fn importance(pod: &Value) -> (Reverse<i64>, String, String) {
    (Reverse(priority(pod)), started(pod).to_owned(), meta(pod, "name").to_owned())
}

/// Since when a pod runs.
fn started(pod: &Value) -> &str {
    pod["status"]["startTime"].as_str().unwrap_or_default()
}
