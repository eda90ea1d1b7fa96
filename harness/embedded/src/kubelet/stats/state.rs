//! The last measurements of a kubelet, which its statistics report until the next ones.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::RngExt;

use super::group::Group;
use crate::machine::{Cgroup, ContainerId, DiskUse, Filesystem, PodUid};
use crate::sim::{Rng, SimTime};

/// Last measurements.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stats {
    pub(super) groups: BTreeMap<Cgroup, Group>,
    /// nodefs at the node's last measurement.
    pub(super) filesystem: Filesystem,
    /// File system of images at the node's last measurement, if it is another one.
    pub(super) images_filesystem: Option<Filesystem>,
    pub(super) layers: BTreeMap<ContainerId, DiskUse>,
    pub(super) layers_at: Option<SimTime>,
    pub(super) volumes: BTreeMap<PodUid, PodVolumes>,
    /// Due times: events at other times were scheduled before a restart of the kubelet.
    pub(super) layers_due: Option<SimTime>,
    pub(super) analyze_due: Option<SimTime>,
    pub(super) begin_due: Option<SimTime>,
    pub(super) begun: bool,
}

/// Last measurement of a pod's volumes.
#[derive(Clone, Debug)]
pub(super) struct PodVolumes {
    pub at: SimTime,
    pub next: SimTime,
    pub all: Vec<VolumeUse>,
}

/// Measurement of a volume.
#[derive(Clone, Debug)]
pub(super) struct VolumeUse {
    pub name: String,
    pub used: DiskUse,
    /// Size of a tmpfs in bytes; `None` for a volume on disk.
    pub memory: Option<u64>,
    /// True if the volume counts as the pod's ephemeral storage: an emptyDir on disk, a ConfigMap,
    /// or a git repository.
    pub ephemeral: bool,
}

/// `wait.Jitter` with a factor of 1.
pub(super) fn jittered(interval: Duration, rng: &mut Rng) -> Duration {
    interval.mul_f64(1.0 + rng.random_range(0.0..1.0))
}
