//! The kernel's notices of memory: `pkg/kubelet/eviction/memory_threshold_notifier_others.go`. Only cgroup v1 has them, and only with
//! `kernelMemcgNotification`.

use std::time::Duration;

use evictlab_rules::pod::{MemoryStats, Sample};
use evictlab_rules::quantity::Quantity;
use evictlab_rules::threshold::{Signal, Threshold};
use rand::RngExt;

use super::lane::{Lane, Work};
use super::{EvictionEvent, Kubelet, lines};
use crate::kubelet::log::Level;
use crate::machine::{Cgroup, Machine};
use crate::options::CgroupVersion;
use crate::time::Time;
use crate::world::Ctx;

/// A notice of one memory threshold. Its lane is its place plus one.
#[derive(Clone, Debug)]
pub(super) struct Notifier {
    threshold: Threshold,
    group: Cgroup,
    /// The usage of which the kernel tells, in bytes.
    mark: u64,
    /// It was told while the lane was busy.
    told: bool,
}

/// How often the notifiers are armed anew (`notifierRefreshInterval`).
const REFRESH: Duration = Duration::from_secs(10);

impl Notifier {
    fn name(&self) -> &'static str {
        match (self.threshold.grace.is_some(), self.threshold.signal) {
            (true, _) => "soft memory eviction threshold",
            (false, Signal::AllocatableMemoryAvailable) => "hard allocatable memory eviction threshold",
            (false, _) => "hard memory eviction threshold",
        }
    }

    /// The usage at which the working set reaches what the threshold leaves: capacity − threshold + inactive cache.
    fn mark(&self, memory: &MemoryStats, usage: u64) -> Option<u64> {
        let capacity = memory.capacity()?;
        let threshold = self.threshold.amount.of(Some(&Quantity::from_bytes(capacity)))?.value();
        let inactive = i64::try_from(usage).ok()? - memory.working_set_bytes?;
        u64::try_from(capacity - threshold + inactive).ok()
    }
}

impl Kubelet {
    /// One for each threshold on memory, each with a lane of its own.
    pub(super) fn start_notifiers(&mut self) {
        let settings = &self.config.settings;
        if !settings.memcg_notification || self.identity.cgroup != CgroupVersion::V1 {
            return;
        }
        let notifier = |threshold: &Threshold| {
            let group = match threshold.signal {
                Signal::MemoryAvailable => Cgroup::Root,
                Signal::AllocatableMemoryAvailable => Cgroup::Pods,
                _ => return None,
            };
            Some(Notifier { threshold: threshold.clone(), group, mark: u64::MAX, told: false })
        };
        self.eviction.notifiers = settings.thresholds.iter().filter_map(notifier).collect();
        self.eviction.lanes.extend(self.eviction.notifiers.iter().map(|_| Lane::default()));
    }

    /// Arms the notifiers for what a Summary shows, no more often than every ten seconds.
    pub(super) fn arm_notifiers(&mut self, sample: &Sample, machine: &mut Machine, ctx: &Ctx) {
        if self.eviction.armed.is_some_and(|armed| ctx.now.since(armed) <= REFRESH) {
            return;
        }
        self.eviction.armed = Some(ctx.now);
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
            if let Some(mark) = memory.and_then(|memory| notifier.mark(memory, usage)) {
                notifier.mark = mark;
                machine.arm(&format!("memory {place}"), notifier.group.clone(), mark);
            }
        }
    }

    /// The kernel tells that a group's usage grew over a mark.
    pub(in crate::kubelet) fn eviction_crossed(
        &mut self,
        group: &Cgroup,
        mark: u64,
        _at: Time,
        _machine: &mut Machine,
        ctx: &mut Ctx,
    ) {
        let told = |notifier: &Notifier| notifier.group == *group && notifier.mark == mark;
        let told: Vec<usize> = (0..self.eviction.notifiers.len())
            .filter(|place| told(&self.eviction.notifiers[*place]))
            .collect();
        for place in told {
            let lane = &self.eviction.lanes[place + 1];
            let busy = lane.due.is_some() || !matches!(lane.work, Work::Resting);
            match busy {
                true => self.eviction.notifiers[place].told = true,
                false => self.notified(place, ctx),
            }
        }
    }

    /// A notifier's lane has nothing more to do. The kernel has told it again if usage has crossed the mark meanwhile, in either
    /// direction: by now it may have fallen under it.
    pub(super) fn notifier_done(&mut self, lane: usize, machine: &Machine, ctx: &mut Ctx) {
        let killed = std::mem::take(&mut self.eviction.lanes[lane].killed);
        let Some(notifier) = self.eviction.notifiers.get_mut(lane - 1) else { return };
        let usage = machine.memory(&notifier.group).map_or(0, |memory| memory.usage);
        let told = std::mem::take(&mut notifier.told);
        if told || killed && usage < notifier.mark {
            self.notified(lane - 1, ctx);
        }
    }

    /// A notifier logs that it was told, and looks once a Summary is made.
    fn notified(&mut self, place: usize, ctx: &mut Ctx) {
        let message = format!("eviction manager: {} crossed", self.eviction.notifiers[place].name());
        self.eviction_line(Level::Info, lines::crossed(&self.identity.version), &message, "", ctx);
        let summary = Duration::from_micros(ctx.rng.random_range(8_000..35_000));
        self.lane_due(place + 1, ctx.now + summary, EvictionEvent::Notified(place + 1), ctx);
    }
}
