//! The eviction manager: its loop, the kernel's notices of memory (cgroup v1), and what it does to pods. What it decides is in
//! [`manager`].
//!
//! The loop and each notifier are lanes: each looks on its own and then waits until what it has killed has ended, while the others go on.
//! That is how one pod comes to be evicted twice (`managerImpl.Start`).

mod admission;
mod lane;
mod lines;
pub mod manager;
mod metrics;
mod notifier;
mod reclaim;

use std::time::Duration;

use evictlab_rules::pod::Sample;
use rand::seq::SliceRandom;
use serde_json::json;

use self::lane::{Job, Lane};
use self::lines::Line;
use self::manager::{Candidate, Look, Manager, Plan, Settings, Starved, Victim};
pub use self::metrics::Metrics;
use super::log::Level;
use super::pods::Active;
use super::recorder::About;
use super::{Kubelet, KubeletEvent};
use crate::agenda::Due;
use crate::machine::{Machine, PodUid};
use crate::node::NodeEvent;
use crate::time::Time;
use crate::world::Ctx;

/// Something that the eviction manager has to do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EvictionEvent {
    /// The loop looks.
    Look,
    /// A notifier's lane looks.
    Notified(usize),
    /// A pod's containers have ended, or were waited for in vain: once for each call of `evict`.
    Stopped(PodUid),
    /// The loop looks whether what it evicted is gone.
    Poll,
}

/// What the eviction manager remembers.
#[derive(Clone, Debug, Default)]
pub struct Eviction {
    manager: Option<Manager>,
    /// The loop, then the notifiers.
    lanes: Vec<Lane>,
    notifiers: Vec<notifier::Notifier>,
    /// When the notifiers were armed.
    armed: Option<Time>,
    /// What it has counted.
    pub metrics: Metrics,
}

/// How long the loop sleeps after a look that evicted nobody (`evictionMonitoringPeriod`).
const PERIOD: Duration = Duration::from_secs(10);
/// How often the loop looks whether evicted pods are gone (`podCleanupPollFreq`).
const POLL: Duration = Duration::from_secs(1);
/// How long it waits for that (`podCleanupTimeout`).
const PATIENCE: Duration = Duration::from_secs(30);
/// When the manager begins: after cAdvisor has measured for the first time.
const WARM_UP: Duration = Duration::from_millis(250);
/// The loop's lane.
const LOOP: usize = 0;

impl Kubelet {
    pub(super) fn eviction_start(&mut self, _machine: &mut Machine, ctx: &mut Ctx) {
        let settings = &self.config.settings;
        let manager = Manager::new(
            self.identity.version.clone(),
            Settings {
                thresholds: settings.thresholds.clone(),
                transition: settings.transition,
                max_pod_grace: settings.max_pod_grace,
                local_storage: settings.local_storage,
                disks: evictlab_rules::ranking::Disks::Single,
            },
        );
        self.eviction.manager = Some(manager);
        self.eviction.lanes = vec![Lane::default()];
        self.start_notifiers();
        if self.identity.version.at_least(31) {
            let place = if self.identity.version.at_least(35) { 194 } else { 189 };
            self.eviction_line(Level::Info, place, "Eviction manager: starting control loop", "", ctx);
        }
        self.lane_due(LOOP, ctx.now + WARM_UP, EvictionEvent::Look, ctx);
    }

    pub(super) fn eviction_on(&mut self, event: EvictionEvent, machine: &mut Machine, ctx: &mut Ctx) {
        match event {
            EvictionEvent::Look => {
                if self.takes_turn(LOOP, ctx.now) {
                    self.eviction_look(LOOP, machine, ctx);
                }
            }
            EvictionEvent::Notified(lane) => {
                if self.takes_turn(lane, ctx.now) {
                    self.eviction_look(lane, machine, ctx);
                }
            }
            EvictionEvent::Stopped(uid) => self.lane_stopped(&uid, machine, ctx),
            EvictionEvent::Poll => self.lane_poll(machine, ctx),
        }
    }

    /// One `synchronize` of a lane.
    fn eviction_look(&mut self, lane: usize, machine: &mut Machine, ctx: &mut Ctx) {
        let jobs = self.synchronize(machine, ctx);
        self.lane_work(lane, jobs, machine, ctx);
    }

    /// Looks at a fresh Summary, frees what can be freed, and says whom to evict.
    fn synchronize(&mut self, machine: &mut Machine, ctx: &mut Ctx) -> Vec<Job> {
        let Some(mut manager) = self.eviction.manager.take() else { return Vec::new() };
        let jobs =
            if manager.has_work() { self.eviction_decide(&mut manager, machine, ctx) } else { Vec::new() };
        self.eviction.manager = Some(manager);
        jobs
    }

    fn eviction_decide(&mut self, manager: &mut Manager, machine: &mut Machine, ctx: &mut Ctx) -> Vec<Job> {
        if let Some(conflict) = manager.learn_disks() {
            self.eviction_say(Line::Containerfs, &format!("err={conflict:?}"), ctx);
        }
        let Some(sample) = self.fresh_sample(machine, ctx) else { return Vec::new() };
        self.arm_notifiers(&sample, machine, ctx);
        let mut active = self.pods.active();
        // The pod manager answers from a map.
        active.shuffle(ctx.rng);
        let candidates = candidates(&active);
        match manager.look(ctx.now, &sample, &candidates, ctx.rng) {
            Look::Idle => Vec::new(),
            Look::Limits(victims) => jobs(victims, &active),
            Look::Starved(starved) => {
                let plan = self.eviction_reclaim(manager, &starved, &sample, &active, machine, ctx);
                jobs(plan.and_then(|plan| plan.victim), &active)
            }
        }
    }

    /// Frees what can be freed; if that is not enough, says whom to evict.
    fn eviction_reclaim(
        &mut self,
        manager: &Manager,
        starved: &Starved,
        sample: &Sample,
        active: &[Active],
        machine: &mut Machine,
        ctx: &mut Ctx,
    ) -> Option<Plan> {
        let resource = starved.resource();
        let pair = format!("resourceName=\"{resource}\"");
        self.eviction_say(Line::Reclaiming, &pair, ctx);
        let message = format!("Attempting to reclaim {resource}");
        self.tell(About::Node, "Warning", "EvictionThresholdMet", &message, None, ctx);
        let ways = manager.node_level_reclaim(starved);
        if !ways.is_empty() {
            self.eviction_free(ways, machine, ctx);
            let sample = self.fresh_sample(machine, ctx);
            if sample.is_some_and(|sample| manager.relieved(&sample)) {
                self.eviction_say(Line::Relieved, &pair, ctx);
                return None;
            }
        }
        self.eviction_say(Line::MustEvict, &pair, ctx);
        if active.is_empty() {
            self.eviction_say(Line::NoPods, "", ctx);
            return None;
        }
        let plan = manager.plan(starved, sample, &candidates(active));
        let names = names(plan.ranked.iter().filter_map(|at| active.get(*at)));
        self.eviction_say(Line::Ranked, &format!("pods={names}"), ctx);
        self.eviction.metrics.aged(starved, ctx.epoch().at(ctx.now));
        for at in &plan.critical {
            if let Some(pod) = active.get(*at) {
                self.eviction_say(Line::Critical, &format!("pod={:?}", name(pod)), ctx);
            }
        }
        if plan.victim.is_none() {
            self.eviction_say(Line::Unable, "", ctx);
        }
        Some(plan)
    }

    fn fresh_sample(&mut self, machine: &Machine, ctx: &mut Ctx) -> Option<Sample> {
        match self.summary(true, machine, ctx) {
            Ok(summary) => Some(summary.sample()),
            Err(error) => {
                self.eviction_say(Line::NoSummary, &format!("err={error:?}"), ctx);
                None
            }
        }
    }

    /// Tells that a pod is evicted and begins to kill it (`evictPod`).
    fn begin_eviction(&mut self, job: &Job, machine: &mut Machine, ctx: &mut Ctx) {
        let Victim { message, annotations, grace, disruption, .. } = &job.victim;
        let about = About::Pod(&job.pod.object, None);
        self.tell(about, "Warning", "Evicted", message, annotations.as_ref().map(|all| json!(all)), ctx);
        let why = super::pods::Eviction {
            message: message.clone(),
            disruption: *disruption,
            grace: Some(Duration::from_secs(u64::try_from(*grace).unwrap_or(0))),
        };
        self.evict(&job.pod.pod.metadata.uid, why, machine, ctx);
    }

    fn eviction_say(&mut self, line: Line, pairs: &str, ctx: &Ctx) {
        let place = line.place(&self.identity.version);
        self.eviction_line(line.level(), place, line.message(), pairs, ctx);
    }

    fn eviction_line(&mut self, level: Level, place: u16, message: &str, pairs: &str, ctx: &Ctx) {
        self.say(level, format_args!("eviction_manager.go:{place}"), message, pairs, ctx);
    }

    /// Has a lane take its turn at a time.
    fn lane_due(&mut self, lane: usize, time: Time, event: EvictionEvent, ctx: &mut Ctx) {
        if let Some(lane) = self.eviction.lanes.get_mut(lane) {
            lane.due = Some(time);
        }
        let node = self.identity.node.clone();
        ctx.agenda.at(time, Due::Node(node, NodeEvent::Kubelet(KubeletEvent::Eviction(event))));
    }

    /// Whether it is this lane's turn; a turn that a kubelet before this one had asked for is not.
    fn takes_turn(&mut self, lane: usize, now: Time) -> bool {
        let lane = self.eviction.lanes.get_mut(lane);
        lane.is_some_and(|lane| lane.due.take_if(|due| *due == now).is_some())
    }
}

fn candidates(active: &[Active]) -> Vec<Candidate<'_>> {
    let own = |active: &Active| active.object["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
    active.iter().map(|active| Candidate { pod: &active.pod, grace: own(active) }).collect()
}

fn jobs(victims: impl IntoIterator<Item = Victim>, active: &[Active]) -> Vec<Job> {
    let job = |victim: Victim| Some(Job { pod: active.get(victim.at)?.clone(), victim });
    victims.into_iter().filter_map(job).collect()
}

/// `namespace/name`.
fn name(pod: &Active) -> String {
    let metadata = &pod.pod.metadata;
    format!("{}/{}", metadata.namespace, metadata.name)
}

/// As klog writes a slice of objects.
fn names<'a>(pods: impl Iterator<Item = &'a Active>) -> String {
    json!(pods.map(name).collect::<Vec<_>>()).to_string()
}
