//! What the kubelet measures, how old it is when it is used, and the Summary that is made of it.
//!
//! Every figure has its own age (`pkg/kubelet/stats/cri_stats_provider.go`, cAdvisor):
//!
//! | figure | measured |
//! | --- | --- |
//! | node, the group above all pods | by housekeeping, and anew for each look of the eviction manager |
//! | a pod, a container | by housekeeping: when it appears, then every interval × 1 to 2, less often while nothing changes |
//! | a container that cAdvisor has seen once only, or that is dead still | by the runtime, when the Summary is asked for |
//! | writable layers | by the runtime's snapshotter, every 10 s |
//! | logs, process ids | when the Summary is asked for |
//! | volumes | every `volumeStatsAggPeriod` × 1 to 2, the first time when the analyzer comes by |

mod build;
mod group;
mod summary;
mod volumes;

use std::collections::BTreeMap;
use std::time::Duration;

use rand::RngExt;

pub use summary::{Stamp, Summary};

use self::group::Group;
use self::volumes::PodVolumes;
use super::{Kubelet, KubeletEvent};
use crate::agenda::Due;
use crate::machine::{Cgroup, ContainerId, DiskUse, Filesystem, Machine, PodUid};
use crate::node::NodeEvent;
use crate::time::Time;
use crate::world::{Ctx, Rng};

/// A measurement that is due.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StatsEvent {
    /// cAdvisor begins.
    Begin,
    /// cAdvisor looks at a group.
    Housekeeping(Cgroup),
    /// The runtime's snapshotter measures writable layers.
    Layers,
    /// The volumes of new pods begin to be measured.
    Analyze,
    /// The volumes of a pod are measured.
    Volumes(PodUid),
}

/// The last measurements.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    groups: BTreeMap<Cgroup, Group>,
    /// The file system as the node's last measurement saw it.
    filesystem: Filesystem,
    layers: BTreeMap<ContainerId, DiskUse>,
    layers_at: Option<Time>,
    volumes: BTreeMap<PodUid, PodVolumes>,
    /// When these are due: what comes at another time was asked for by a kubelet before this one.
    layers_due: Option<Time>,
    analyze_due: Option<Time>,
    begin_due: Option<Time>,
    begun: bool,
}

/// How long the kubelet runs before cAdvisor has measured for the first time.
const WARM_UP: Duration = Duration::from_millis(200);
/// containerd's `stats_collect_period`.
const LAYERS: Duration = Duration::from_secs(10);

impl Kubelet {
    pub(super) fn stats_start(&mut self, _machine: &mut Machine, ctx: &mut Ctx) {
        let begin = ctx.now + WARM_UP;
        self.stats.begin_due = Some(begin);
        self.stats_at(begin, StatsEvent::Begin, ctx);
        // The runtime and its snapshotter do not begin anew with the kubelet; where in their turn they are is chance.
        let layers = ctx.now + WARM_UP + LAYERS.mul_f64(ctx.rng.random_range(0.0..1.0));
        self.stats.layers_due = Some(layers);
        self.stats_at(layers, StatsEvent::Layers, ctx);
        if self.config.settings.volume_period.is_some() {
            self.stats.analyze_due = Some(begin);
            self.stats_at(begin, StatsEvent::Analyze, ctx);
        }
    }

    pub(super) fn stats_on(&mut self, event: StatsEvent, machine: &mut Machine, ctx: &mut Ctx) {
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

    /// cAdvisor notices a group of a pod or a container that was just made, and measures it. Nothing is done for one that it knows.
    pub(super) fn stats_appeared(&mut self, group: Cgroup, machine: &Machine, ctx: &mut Ctx) {
        if self.stats.begun && !self.stats.groups.contains_key(&group) {
            let mut new = Group::new(ctx.now, self.housekeeping_interval());
            new.measure(&group, machine.memory(&group).unwrap_or_default(), machine, ctx.now);
            self.stats.groups.insert(group.clone(), new);
            self.stats_next(&group, machine, ctx);
        }
    }

    /// All groups that are there are noticed.
    fn stats_begin(&mut self, machine: &Machine, ctx: &mut Ctx) {
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
        // What the snapshotter had measured is still there.
        self.measure_layers(machine, ctx.now);
    }

    /// Measures a group and says when it is measured next. A group that is gone is forgotten.
    fn stats_measure(&mut self, group: &Cgroup, machine: &Machine, ctx: &mut Ctx) {
        let Some(known) = self.stats.groups.get_mut(group) else { return };
        match machine.memory(group) {
            Some(memory) => known.measure(group, memory, machine, ctx.now),
            None => {
                self.stats.groups.remove(group);
                return;
            }
        }
        self.stats_next(group, machine, ctx);
    }

    fn stats_next(&mut self, group: &Cgroup, machine: &Machine, ctx: &mut Ctx) {
        let Some(known) = self.stats.groups.get_mut(group) else { return };
        known.next = ctx.now + jittered(known.interval, ctx.rng);
        let next = known.next;
        if *group == Cgroup::Root {
            self.stats.filesystem = self.status.images.without_freed(machine.filesystem());
        }
        self.stats_at(next, StatsEvent::Housekeeping(group.clone()), ctx);
    }

    fn measure_layers(&mut self, machine: &Machine, now: Time) {
        self.stats.layers_at = Some(now);
        let containers = self.stats.groups.keys().filter_map(|group| match group {
            Cgroup::Container(id) => Some((id.clone(), machine.layer(id))),
            _ => None,
        });
        self.stats.layers = containers.collect();
    }

    /// The interval of cAdvisor's flag `--housekeeping-interval`.
    fn housekeeping_interval(&self) -> Duration {
        Duration::from_secs(if self.config.fast_housekeeping { 1 } else { 10 })
    }

    fn stats_at(&self, time: Time, event: StatsEvent, ctx: &mut Ctx) {
        let node = self.identity.node.clone();
        ctx.agenda.at(time, Due::Node(node, NodeEvent::Kubelet(KubeletEvent::Stats(event))));
    }
}

/// `wait.Jitter` with a factor of 1.
fn jittered(interval: Duration, rng: &mut Rng) -> Duration {
    interval.mul_f64(1.0 + rng.random_range(0.0..1.0))
}
