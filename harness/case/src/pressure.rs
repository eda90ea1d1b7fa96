//! The pressure of a case.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::pressure_pod::PressurePod;
use crate::pressure_signal::PressureSignal;
use crate::values::{DurationText, QuantityText};

/// Environment variables that evictlab sets in the containers of a case with pressure: the size of
/// a step, the pause after it and the total in the notation of agnhost's `stress`, the number of
/// steps, and the same three as plain numbers.
pub const GROWTH_VARIABLES: [&str; 7] =
    ["STEP", "PAUSE", "TOTAL", "STEPS", "STEP_BYTES", "PAUSE_SECONDS", "TOTAL_BYTES"];

/// Pressure on one eviction signal of the node.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Pressure {
    /// Eviction signal.
    pub signal: PressureSignal,
    /// Setting that creates the pressure.
    #[serde(default)]
    pub by: PressureMechanism,
    /// A pod that grows past the threshold, in addition to `pods`. Without it, a container of
    /// `pods` does, by the variables of the pressure.
    #[serde(default)]
    pub pod: Option<PressurePod>,
    /// Distance of the threshold below the available amount; with `kube-reserved`, the amount that
    /// pods may use in addition to their present usage. The default is 320Mi for memory, 512Mi of a
    /// disk, 20,000 inodes, 1,000 process IDs.
    #[serde(default)]
    pub distance: Option<QuantityText>,
    /// Distance of an additional hard threshold, for a case with a soft one. The growing container
    /// crosses it, too.
    #[serde(default)]
    pub hard_distance: Option<QuantityText>,
    /// Thresholds of other signals, each by its distance below the available amount, also beside a
    /// reservation. They are hard, or have the same `soft-grace`. Pods of the case cross them.
    #[serde(default)]
    pub also: BTreeMap<PressureSignal, QuantityText>,
    /// State the threshold, and the quantity that `kubelet-config` has in `evictionMinimumReclaim`
    /// for its signal, as percentages of the capacity. With `kube-reserved`, a hard threshold
    /// of nine tenths of `distance` as a percentage of the node's memory, which also applies to the
    /// memory of the pods.
    #[serde(default)]
    pub as_percentage: bool,
    /// Usage of all other containers of the case. The growing container uses that much less, so
    /// that the pressure ends once the others are evicted.
    #[serde(default)]
    pub others: Option<QuantityText>,
    /// Minimum time from the start of the pods until the threshold is crossed; longer on slow
    /// nodes.
    #[serde(default)]
    pub ramp: Option<DurationText>,
    /// Grace period; makes the threshold a soft one.
    #[serde(default)]
    pub soft_grace: Option<DurationText>,
}

/// Setting that creates node pressure.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PressureMechanism {
    /// An eviction threshold close below the available amount.
    #[default]
    Threshold,
    /// A reservation (`kubeReserved`) of everything else: of memory or process IDs, which limits
    /// the cgroup of all pods, or of nodefs. Its signal has no threshold, unless `as-percentage` is
    /// set.
    KubeReserved,
}

impl Pressure {
    /// Returns the signals that have a threshold: `signal`, and those of `also`.
    pub fn signals(&self) -> impl Iterator<Item = PressureSignal> {
        std::iter::once(self.signal).chain(self.also.keys().copied())
    }

    /// Returns the distance of the first threshold, stated or by default, in bytes, inodes or
    /// process IDs.
    pub fn distance(&self) -> u64 {
        self.distance.as_ref().map_or(self.signal.default_distance(), QuantityText::amount)
    }

    /// Returns the distance of the last threshold: the hard one beside a soft one, if stated.
    pub fn last_distance(&self) -> u64 {
        self.hard_distance.as_ref().map_or(self.distance(), QuantityText::amount)
    }

    /// Returns whether a threshold is on a file system.
    pub fn is_on_disk(&self) -> bool {
        self.signals().any(PressureSignal::is_on_disk)
    }
}
