//! A lane: whoever looks, kills, and waits for the end of what it has killed.

use std::collections::VecDeque;
use std::time::Duration;

use super::lines::Line;
use super::manager::Victim;
use super::{EvictionEvent, LOOP, PATIENCE, PERIOD, POLL, name, names};
use crate::kubelet::Kubelet;
use crate::kubelet::pods::Active;
use crate::machine::Machine;
use crate::time::Time;
use crate::world::Ctx;

/// A pod that is to be evicted.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub pod: Active,
    pub victim: Victim,
}

/// What a lane does.
#[derive(Clone, Debug, Default)]
pub(super) enum Work {
    /// It sleeps, or is about to look.
    #[default]
    Resting,
    /// It waits until a pod's containers have ended.
    Killing(Box<Killing>),
    /// It waits until pods are gone.
    CleaningUp { pods: Vec<Active>, until: Time },
}

/// A pod after the other.
#[derive(Clone, Debug)]
pub(super) struct Killing {
    now: Job,
    since: Time,
    next: VecDeque<Job>,
    done: Vec<Active>,
}

/// A lane and when it is due.
#[derive(Clone, Debug, Default)]
pub(super) struct Lane {
    pub work: Work,
    pub due: Option<Time>,
    /// It has evicted somebody since it looked.
    pub killed: bool,
}

/// The least that `killPodNow` waits.
const LEAST_WAIT: Duration = Duration::from_secs(10);

impl Kubelet {
    /// Evicts one pod after the other, or rests.
    pub(super) fn lane_work(&mut self, lane: usize, jobs: Vec<Job>, machine: &mut Machine, ctx: &mut Ctx) {
        self.lane_next(lane, jobs.into(), Vec::new(), machine, ctx);
    }

    fn lane_next(
        &mut self,
        lane: usize,
        mut jobs: VecDeque<Job>,
        done: Vec<Active>,
        machine: &mut Machine,
        ctx: &mut Ctx,
    ) {
        match jobs.pop_front() {
            Some(job) => {
                self.begin_eviction(&job, machine, ctx);
                let killing = Killing { now: job, since: ctx.now, next: jobs, done };
                self.lane_set(lane, Work::Killing(Box::new(killing)));
            }
            None => self.lane_finish(lane, done, machine, ctx),
        }
    }

    /// A pod's containers have ended, or were waited for in vain; the eviction counts all the same. It is told once for each lane that
    /// waits, in the order in which they began.
    pub(super) fn lane_stopped(&mut self, uid: &str, machine: &mut Machine, ctx: &mut Ctx) {
        let waiting = self.eviction.lanes.iter().enumerate().filter_map(|(lane, one)| match &one.work {
            Work::Killing(killing) if killing.now.pod.pod.metadata.uid == uid => {
                Some((killing.since, lane, killing))
            }
            _ => None,
        });
        let Some((since, lane, killing)) = waiting.min_by_key(|(since, lane, _)| (*since, *lane)) else {
            return;
        };
        let pair = format!("pod={:?}", name(&killing.now.pod));
        // `killPodNow` waits for one and a half times the grace, but no less than ten seconds.
        let grace = u64::try_from(killing.now.victim.grace).unwrap_or(0);
        let patience = Duration::from_secs(grace + grace / 2).max(LEAST_WAIT);
        if ctx.now.since(since) < patience {
            self.eviction_say(Line::Evicted, &pair, ctx);
        } else {
            self.eviction_say(Line::Failed, &format!("err=\"timeout waiting to kill pod\" {pair}"), ctx);
        }
        self.lane_killed(lane, machine, ctx);
    }

    fn lane_killed(&mut self, lane: usize, machine: &mut Machine, ctx: &mut Ctx) {
        let Work::Killing(killing) = std::mem::take(&mut self.eviction.lanes[lane].work) else { return };
        let Killing { now, next, mut done, .. } = *killing;
        self.eviction.lanes[lane].killed = true;
        self.eviction.metrics.evicted(now.victim.signal);
        done.push(now.pod);
        self.lane_next(lane, next, done, machine, ctx);
    }

    /// A look is over, with these pods evicted.
    fn lane_finish(&mut self, lane: usize, evicted: Vec<Active>, machine: &mut Machine, ctx: &mut Ctx) {
        if lane != LOOP {
            return self.notifier_done(lane, machine, ctx);
        }
        if evicted.is_empty() {
            return self.lane_due(LOOP, ctx.now + PERIOD, EvictionEvent::Look, ctx);
        }
        self.eviction_say(Line::Waiting, &format!("pods={}", names(evicted.iter())), ctx);
        self.lane_set(LOOP, Work::CleaningUp { pods: evicted, until: ctx.now + PATIENCE });
        self.lane_due(LOOP, ctx.now + POLL, EvictionEvent::Poll, ctx);
    }

    /// Looks whether evicted pods are gone. The loop looks again at once when they are, or when it has waited long enough.
    pub(super) fn lane_poll(&mut self, machine: &mut Machine, ctx: &mut Ctx) {
        if !self.takes_turn(LOOP, ctx.now) {
            return;
        }
        let Work::CleaningUp { pods, until } = &self.eviction.lanes[LOOP].work else { return };
        let gone = pods.iter().all(|pod| self.pods.is_cleaned_up(&pod.pod.metadata.uid));
        let line = match (gone, ctx.now >= *until) {
            (true, _) => Line::CleanedUp,
            (false, true) => Line::TimedOut,
            (false, false) => return self.lane_due(LOOP, ctx.now + POLL, EvictionEvent::Poll, ctx),
        };
        self.eviction_say(line, &format!("pods={}", names(pods.iter())), ctx);
        self.lane_set(LOOP, Work::Resting);
        self.eviction_look(LOOP, machine, ctx);
    }

    pub(super) fn lane_set(&mut self, lane: usize, work: Work) {
        if let Some(lane) = self.eviction.lanes.get_mut(lane) {
            lane.work = work;
        }
    }
}
