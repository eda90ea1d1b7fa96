//! Sync loops: evaluate, kill, and wait for the end of killed pods.

use std::collections::VecDeque;
use std::time::Duration;

use super::log_message::{LogMessage, name, names};
use super::state::{Killing, PlannedEviction, SYNC_LOOP, Work};
use crate::context::SimContext;
use crate::defect::Defect;
use crate::kubelet::event::EvictionEvent;
use crate::kubelet::pods::ActivePod;
use crate::kubelet::state::Kubelet;
use crate::machine::Machine;

/// Pause after a pass without evictions (`evictionMonitoringPeriod`).
const PERIOD: Duration = Duration::from_secs(10);
/// Period of checks whether evicted pods are cleaned up (`podCleanupPollFreq`).
const CLEANUP_POLL: Duration = Duration::from_secs(1);
/// Timeout of that wait (`podCleanupTimeout`).
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(30);
/// Minimum wait of `killPodNow`.
const MIN_KILL_WAIT: Duration = Duration::from_secs(10);

impl Kubelet {
    /// Evicts one pod after another, or ends the pass.
    pub(super) fn evict_all(
        &mut self,
        index: usize,
        evictions: Vec<PlannedEviction>,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) {
        self.evict_next(index, evictions.into(), Vec::new(), machine, ctx);
    }

    fn evict_next(
        &mut self,
        index: usize,
        mut evictions: VecDeque<PlannedEviction>,
        done: Vec<ActivePod>,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) {
        match evictions.pop_front() {
            Some(job) => {
                self.begin_eviction(&job, machine, ctx);
                let killing = Killing { now: job, since: ctx.now, next: evictions, done };
                self.set_loop_state(index, Work::Killing(Box::new(killing)));
            }
            None => self.finish_loop(index, done, ctx),
        }
    }

    /// Handles the end of a pod's containers, or the timeout of the wait for it; the pod counts as
    /// evicted either way. Called once for each waiting loop, in the order in which they started to
    /// wait.
    pub(super) fn pod_stopped(&mut self, uid: &str, machine: &mut Machine, ctx: &mut SimContext) {
        let waiting = self.eviction.loops.iter().enumerate().filter_map(|(index, one)| match &one.work {
            Work::Killing(killing) if killing.now.pod.pod.metadata.uid == uid => {
                Some((killing.since, index, killing))
            }
            _ => None,
        });
        let Some((since, index, killing)) = waiting.min_by_key(|(since, index, _)| (*since, *index)) else {
            return;
        };
        let pair = format!("pod={:?}", name(&killing.now.pod));
        // `killPodNow` waits for 1.5 times the grace period, but at least 10 s.
        let grace = u64::try_from(killing.now.victim.grace).unwrap_or(0);
        let patience = Duration::from_secs(grace + grace / 2).max(MIN_KILL_WAIT);
        let in_time = ctx.now.since(since) < patience;
        if in_time {
            self.log_eviction(LogMessage::Evicted, &pair, ctx);
        } else {
            self.log_eviction(
                LogMessage::Failed,
                &format!("err=\"timeout waiting to kill pod\" {pair}"),
                ctx,
            );
        }
        self.pod_killed(index, in_time, machine, ctx);
    }

    fn pod_killed(&mut self, index: usize, in_time: bool, machine: &mut Machine, ctx: &mut SimContext) {
        let Work::Killing(killing) = std::mem::take(&mut self.eviction.loops[index].work) else { return };
        let Killing { now, next, mut done, .. } = *killing;
        if self.has(Defect::EvictedEventAfterKill) {
            self.record_evicted(&now, ctx);
        }
        let times = match () {
            () if self.has(Defect::MetricMissing) => 0,
            () if self.has(Defect::MetricOmitsTimedOut) && !in_time => 0,
            () if self.has(Defect::MetricOmitsSoft) && now.victim.is_soft => 0,
            () if self.has(Defect::MetricDoubled) => 2,
            () => 1,
        };
        for _ in 0..times {
            self.eviction.metrics.count_eviction(now.victim.signal);
        }
        done.push(now.pod);
        self.evict_next(index, next, done, machine, ctx);
    }

    /// Ends a pass with its evicted pods.
    fn finish_loop(&mut self, index: usize, evicted: Vec<ActivePod>, ctx: &mut SimContext) {
        if index != SYNC_LOOP {
            return self.notifier_done(index, ctx);
        }
        if evicted.is_empty() {
            let is_rare = self.has(Defect::LoopRareWithNotifications) && !self.eviction.notifiers.is_empty();
            let period = match () {
                () if is_rare => PERIOD * 30,
                () if self.has(Defect::LoopEveryThirtySeconds) => PERIOD * 3,
                () => PERIOD,
            };
            return self.schedule_loop(SYNC_LOOP, ctx.now + period, EvictionEvent::Synchronize, ctx);
        }
        if self.has(Defect::LoopSkipsCleanup) {
            return self.schedule_loop(SYNC_LOOP, ctx.now, EvictionEvent::Synchronize, ctx);
        }
        self.log_eviction(LogMessage::Waiting, &format!("pods={}", names(evicted.iter())), ctx);
        self.set_loop_state(SYNC_LOOP, Work::CleaningUp { pods: evicted, until: ctx.now + CLEANUP_TIMEOUT });
        self.schedule_loop(SYNC_LOOP, ctx.now + CLEANUP_POLL, EvictionEvent::Poll, ctx);
    }

    /// Checks whether evicted pods are cleaned up. If they are, or after the timeout, the next pass
    /// starts at once.
    pub(super) fn poll_cleanup(&mut self, machine: &mut Machine, ctx: &mut SimContext) {
        if !self.take_due(SYNC_LOOP, ctx.now) {
            return;
        }
        let Work::CleaningUp { pods, until } = &self.eviction.loops[SYNC_LOOP].work else { return };
        let cleaned_up = pods.iter().all(|pod| self.pods.is_cleaned_up(&pod.pod.metadata.uid));
        let line = match (cleaned_up, ctx.now >= *until) {
            (true, _) => LogMessage::CleanedUp,
            (false, true) => LogMessage::TimedOut,
            (false, false) => {
                return self.schedule_loop(SYNC_LOOP, ctx.now + CLEANUP_POLL, EvictionEvent::Poll, ctx);
            }
        };
        self.log_eviction(line, &format!("pods={}", names(pods.iter())), ctx);
        self.set_loop_state(SYNC_LOOP, Work::Resting);
        if self.has(Defect::LoopWaitsAfterEviction) {
            return self.schedule_loop(SYNC_LOOP, ctx.now + PERIOD, EvictionEvent::Synchronize, ctx);
        }
        self.synchronize_loop(SYNC_LOOP, machine, ctx);
    }

    pub(super) fn set_loop_state(&mut self, index: usize, work: Work) {
        if let Some(sync_loop) = self.eviction.loops.get_mut(index) {
            sync_loop.work = work;
        }
    }
}
