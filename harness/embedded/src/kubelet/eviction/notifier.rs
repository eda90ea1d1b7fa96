//! Memory notifiers: `pkg/kubelet/eviction/memory_threshold_notifier_others.go`. Only cgroup v1
//! with `kernelMemcgNotification` has them.

use std::time::Duration;

use evictlab_rules::summary::Sample;
use evictlab_rules::threshold::{Signal, Threshold};
use rand::RngExt;

use super::state::{Notifier, SyncLoop, Work};
use crate::context::SimContext;
use crate::defect::Defect;
use crate::kubelet::event::EvictionEvent;
use crate::kubelet::log::Level;
use crate::kubelet::state::Kubelet;
use crate::machine::{Cgroup, Machine};
use crate::options::CgroupVersion;

/// Period in which the notifiers are re-armed (`notifierRefreshInterval`).
const REFRESH: Duration = Duration::from_secs(10);

impl Kubelet {
    /// Creates a notifier with its own loop for each memory threshold.
    pub(super) fn start_notifiers(&mut self) {
        let settings = &self.config.settings;
        let is_v1 = self.options.cgroup == CgroupVersion::V1;
        if !settings.memcg_notification || !is_v1 || self.has(Defect::NotifierMissing) {
            return;
        }
        let notifier = |threshold: &Threshold| {
            let group = match threshold.signal {
                Signal::MemoryAvailable => Cgroup::Root,
                Signal::AllocatableMemoryAvailable => Cgroup::Pods,
                _ => return None,
            };
            Some(Notifier { threshold: threshold.clone(), group, mark: u64::MAX, pending: 0 })
        };
        self.eviction.notifiers = settings.thresholds.iter().filter_map(notifier).collect();
        self.eviction.loops.extend(self.eviction.notifiers.iter().map(|_| SyncLoop::default()));
    }

    /// Re-arms the notifiers after a Summary, at most every 10 s.
    pub(super) fn arm_notifiers(&mut self, sample: &Sample, machine: &mut Machine, ctx: &SimContext) {
        if self.eviction.armed.is_some_and(|armed| ctx.now.since(armed) <= REFRESH) {
            return;
        }
        self.eviction.armed = Some(ctx.now);
        let ignores_threshold = self.has(Defect::NotifierIgnoresThreshold);
        for (place, notifier) in self.eviction.notifiers.iter_mut().enumerate() {
            let memory = match notifier.group {
                Cgroup::Root => sample.node.memory.as_ref(),
                _ => sample
                    .node
                    .system_containers
                    .iter()
                    .find(|group| group.name == "pods")
                    .and_then(|pods| pods.memory.as_ref()),
            };
            let usage = machine.memory(&notifier.group).map_or(0, |memory| memory.usage);
            let mark = if ignores_threshold {
                memory.and_then(|memory| u64::try_from(memory.capacity()?).ok())
            } else {
                memory.and_then(|memory| notifier.mark(memory, usage))
            };
            if let Some(mark) = mark {
                notifier.mark = mark;
                // A new `eventfd` does not have the events of the old one.
                notifier.pending = notifier.pending.min(1);
                machine.set_memory_threshold(&format!("memory {place}"), notifier.group.clone(), mark);
            }
        }
    }

    /// Handles a notification of the kernel: the usage of a group has crossed a mark, in either
    /// direction (`NewCgroupNotifier` in threshold_notifier_linux.go).
    pub(in crate::kubelet) fn eviction_crossed(&mut self, group: &Cgroup, mark: u64, ctx: &mut SimContext) {
        let is_crossed = |notifier: &Notifier| notifier.group == *group && notifier.mark == mark;
        let crossed: Vec<usize> = (0..self.eviction.notifiers.len())
            .filter(|place| is_crossed(&self.eviction.notifiers[*place]))
            .collect();
        for place in crossed {
            let sync_loop = &self.eviction.loops[place + 1];
            let busy = sync_loop.due.is_some() || !matches!(sync_loop.work, Work::Resting);
            if busy {
                let pending = &mut self.eviction.notifiers[place].pending;
                *pending = (*pending + 1).min(2);
            } else {
                self.notified(place, ctx)
            }
        }
    }

    /// Handles the end of a notifier's pass. Notifications that arrived meanwhile follow, one pass
    /// each.
    pub(super) fn notifier_done(&mut self, index: usize, ctx: &mut SimContext) {
        let Some(notifier) = self.eviction.notifiers.get_mut(index - 1) else { return };
        if notifier.pending > 0 {
            notifier.pending -= 1;
            self.notified(index - 1, ctx);
        }
    }

    /// Logs a notification, and schedules a pass.
    fn notified(&mut self, place: usize, ctx: &mut SimContext) {
        let message = format!("eviction manager: {} crossed", self.eviction.notifiers[place].name());
        self.write_log(Level::Info, "eviction_manager.go:191", &message, "", ctx);
        let summary = Duration::from_micros(ctx.rng.random_range(8_000..35_000));
        self.schedule_loop(place + 1, ctx.now + summary, EvictionEvent::Notified(place + 1), ctx);
    }
}
