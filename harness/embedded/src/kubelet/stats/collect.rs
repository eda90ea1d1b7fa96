//! Collection of measurements.

use std::time::Duration;

use rand::RngExt;

use super::group::Group;
use super::state::jittered;
use crate::context::SimContext;
use crate::defect::Defect;
use crate::kubelet::config::Housekeeping;
use crate::kubelet::event::{KubeletEvent, StatsEvent};
use crate::kubelet::state::Kubelet;
use crate::machine::{Cgroup, Machine};
use crate::sim::SimTime;

/// Delay of cAdvisor's first measurement after the start.
const WARM_UP: Duration = Duration::from_millis(200);
/// Age of statistics with [`Defect::SummaryIsStale`].
const STALE: Duration = Duration::from_secs(30);
/// containerd's `stats_collect_period`.
const LAYERS: Duration = Duration::from_secs(10);

impl Kubelet {
    pub(in crate::kubelet) fn stats_start(&mut self, ctx: &mut SimContext) {
        let begin = ctx.now + WARM_UP;
        self.stats.begin_due = Some(begin);
        self.stats_at(begin, StatsEvent::Begin, ctx);
        // The snapshotter does not restart with the kubelet, so its phase is random.
        let layers = ctx.now + WARM_UP + LAYERS.mul_f64(ctx.rng.random_range(0.0..1.0));
        self.stats.layers_due = Some(layers);
        self.stats_at(layers, StatsEvent::Layers, ctx);
        if self.config.settings.volume_period.is_some() {
            self.stats.analyze_due = Some(begin);
            self.stats_at(begin, StatsEvent::Analyze, ctx);
        }
    }

    pub(in crate::kubelet) fn handle_stats_event(
        &mut self,
        event: StatsEvent,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) {
        let now = Some(ctx.now);
        match event {
            StatsEvent::Begin if self.stats.begin_due == now => self.stats_begin(machine, ctx),
            StatsEvent::Housekeeping(group) => {
                if self.stats.groups.get(&group).is_some_and(|known| known.next == ctx.now) {
                    self.stats_measure(&group, machine, ctx);
                }
            }
            StatsEvent::Layers if self.stats.layers_due == now => {
                self.measure_layers(machine, ctx.now);
                self.stats.layers_due = Some(ctx.now + LAYERS);
                self.stats_at(ctx.now + LAYERS, StatsEvent::Layers, ctx);
            }
            StatsEvent::Analyze if self.stats.analyze_due == now => self.analyze_volumes(machine, ctx),
            StatsEvent::Volumes(pod) => self.measure_volumes(&pod, machine, ctx),
            StatsEvent::Begin | StatsEvent::Layers | StatsEvent::Analyze => {}
        }
    }

    /// Registers the new cgroup of a pod or container with cAdvisor, and measures it. Does nothing
    /// if it is registered.
    pub(in crate::kubelet) fn stats_appeared(
        &mut self,
        group: Cgroup,
        machine: &Machine,
        ctx: &mut SimContext,
    ) {
        if self.stats.begun && !self.stats.groups.contains_key(&group) {
            let mut new = Group::new(ctx.now, self.housekeeping_interval());
            new.measure(&group, machine.memory(&group).unwrap_or_default(), machine, ctx.now);
            self.stats.groups.insert(group.clone(), new);
            self.stats_next(&group, machine, ctx);
        }
    }

    /// Registers all existing cgroups.
    pub(in crate::kubelet) fn stats_begin(&mut self, machine: &Machine, ctx: &mut SimContext) {
        self.stats.begun = true;
        self.stats.begin_due = None;
        let mut all = vec![Cgroup::Root, Cgroup::Pods];
        for pod in self.pods.active() {
            let uid = pod.pod.metadata.uid;
            let containers =
                self.pods.running(&uid).into_iter().map(|container| Cgroup::Container(container.id));
            all.extend(containers);
            all.push(Cgroup::Pod(uid));
        }
        for group in all {
            self.stats_appeared(group, machine, ctx);
        }
        // The last measurement of the snapshotter is still available.
        self.measure_layers(machine, ctx.now);
    }

    /// Measures a cgroup and schedules the next measurement. Forgets a cgroup that was removed.
    pub(super) fn stats_measure(&mut self, group: &Cgroup, machine: &Machine, ctx: &mut SimContext) {
        let is_stale =
            self.has(Defect::SummaryIsStale) && matches!(group, Cgroup::Container(_) | Cgroup::Pod(_));
        let Some(known) = self.stats.groups.get_mut(group) else { return };
        let is_recent = known.last.is_some_and(|last| ctx.now.since(last.at) < STALE);
        match machine.memory(group) {
            Some(_) if is_stale && is_recent => {}
            Some(memory) => known.measure(group, memory, machine, ctx.now),
            None => {
                self.stats.groups.remove(group);
                return;
            }
        }
        self.stats_next(group, machine, ctx);
    }

    fn stats_next(&mut self, group: &Cgroup, machine: &Machine, ctx: &mut SimContext) {
        let Some(known) = self.stats.groups.get_mut(group) else { return };
        known.next = ctx.now + jittered(known.interval, ctx.rng);
        let next = known.next;
        if *group == Cgroup::Root {
            self.measure_filesystems(machine);
        }
        self.stats_at(next, StatsEvent::Housekeeping(group.clone()), ctx);
    }

    /// Measures the file systems, as cAdvisor does with the root cgroup.
    fn measure_filesystems(&mut self, machine: &Machine) {
        let (images, whole) = (&self.status.images, machine.filesystem());
        self.stats.images_filesystem = machine.images_filesystem().map(|layers| images.include(layers));
        self.stats.filesystem = match self.stats.images_filesystem {
            Some(_) => images.exclude(whole),
            None => images.adjust(whole),
        };
    }

    pub(super) fn measure_layers(&mut self, machine: &Machine, now: SimTime) {
        self.stats.layers_at = Some(now);
        let containers = self.stats.groups.keys().filter_map(|group| match group {
            Cgroup::Container(id) => Some((id.clone(), machine.layer(id))),
            _ => None,
        });
        self.stats.layers = containers.collect();
    }

    /// Returns the interval of cAdvisor's flag `--housekeeping-interval`.
    fn housekeeping_interval(&self) -> Duration {
        Duration::from_secs(match self.config.housekeeping {
            Housekeeping::Default => 10,
            Housekeeping::Fast => 1,
        })
    }

    pub(super) fn stats_at(&mut self, time: SimTime, event: StatsEvent, ctx: &mut SimContext) {
        self.schedule(time, KubeletEvent::Stats(event), ctx);
    }
}
