//! Volume statistics: `pkg/kubelet/server/stats/fs_resource_analyzer.go`.

use std::time::Duration;

use serde_json::Value;

use super::state::{PodVolumes, VolumeUse, jittered};
use crate::context::SimContext;
use crate::defect::Defect;
use crate::kubelet::event::StatsEvent;
use crate::kubelet::state::Kubelet;
use crate::machine::{DiskUse, Machine};
use crate::resource::ObjectExt;

/// Size of a projected service account volume.
const PROJECTED: DiskUse = DiskUse { bytes: 12_288, inodes: 9 };

impl Kubelet {
    /// Measures the volumes of new pods, once per period of the analyzer.
    pub(super) fn analyze_volumes(&mut self, machine: &Machine, ctx: &mut SimContext) {
        let Some(period) = self.config.settings.volume_period else { return };
        let uids: Vec<_> = self.pods.active().into_iter().map(|pod| pod.pod.metadata.uid).collect();
        self.stats.volumes.retain(|uid, _| uids.contains(uid));
        for uid in uids {
            if !self.stats.volumes.contains_key(&uid) {
                let new = PodVolumes { at: ctx.now, next: ctx.now, all: Vec::new() };
                self.stats.volumes.insert(uid.clone(), new);
                self.measure_volumes(&uid, machine, ctx);
            }
        }
        self.stats.analyze_due = Some(ctx.now + period);
        self.stats_at(ctx.now + period, StatsEvent::Analyze, ctx);
    }

    /// Measures the volumes of a pod, and schedules the next measurement.
    pub(super) fn measure_volumes(&mut self, uid: &str, machine: &Machine, ctx: &mut SimContext) {
        let period = self.config.settings.volume_period.unwrap_or(Duration::from_secs(60));
        let Some(known) = self.stats.volumes.get_mut(uid).filter(|known| known.next == ctx.now) else {
            return;
        };
        let Some(pod) = self.pods.active().into_iter().find(|pod| pod.pod.metadata.uid == uid) else {
            return;
        };
        let volumes = pod.object.spec().items("volumes");
        known.all = volumes.filter_map(|volume| measured(uid, volume, machine)).collect();
        known.at = ctx.now;
        known.next = ctx.now + jittered(period, ctx.rng);
        let next = known.next;
        if self.has(Defect::SummaryVolumesMeasuredOnce) {
            return;
        }
        self.stats_at(next, StatsEvent::Volumes(uid.to_owned()), ctx);
    }
}

/// Returns the size of a volume, or `None` if the kubelet does not measure it.
fn measured(uid: &str, volume: &Value, machine: &Machine) -> Option<VolumeUse> {
    let name = volume.text("name").to_owned();
    let is = |source: &str| volume.get(source).is_some();
    if is("emptyDir") {
        let memory = (volume["emptyDir"].text("medium") == "Memory")
            .then(|| machine.tmpfs_size(uid, &name).unwrap_or_else(|| machine.memory_total()));
        let used = machine.volume(uid, &name);
        return Some(VolumeUse { name, used, memory, ephemeral: memory.is_none() });
    }
    let disk = is("configMap") || is("gitRepo");
    let memory = is("projected") || is("secret") || is("downwardAPI");
    let memory = memory.then(|| machine.memory_total());
    (disk || memory.is_some()).then_some(VolumeUse { name, used: PROJECTED, memory, ephemeral: disk })
}
