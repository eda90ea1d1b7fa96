//! Room of a node: the memory and disk that are left above its eviction thresholds.

use evictlab_case::PressureSignal;
use serde_json::Value;

use crate::pressure::plan::nearest_threshold;
use crate::pressure::signal_status::available;
use crate::skip_reason::{LimitedResource, SkipReason};

/// Amounts of memory and local ephemeral storage, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amounts {
    /// Memory.
    pub memory: u64,
    /// Local ephemeral storage.
    pub disk: u64,
}

/// Memory and disk that pods can take before a node comes under pressure, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeRoom {
    /// Memory.
    pub memory: u64,
    /// Disk: that of nodefs or imagefs, whichever has less.
    pub disk: u64,
}

impl NodeRoom {
    /// Reads the room from the kubelet's `configz` and a Summary: the distance to the nearest
    /// threshold, or without one the available amount.
    ///
    /// # Errors
    /// The Summary does not report the memory or nodefs.
    pub(crate) fn of(configz: &Value, summary: &Value) -> Result<Self, SkipReason> {
        let of_signal = |signal: PressureSignal| {
            let left = available(summary, signal).ok_or(SkipReason::NoStatistics(signal))?;
            Ok(nearest_threshold(signal, configz, summary)?.unwrap_or(left).min(left))
        };
        let nodefs = of_signal(PressureSignal::NodefsAvailable)?;
        // Not reported until the runtime has measured it.
        let imagefs = of_signal(PressureSignal::ImagefsAvailable).unwrap_or(nodefs);
        Ok(Self { memory: of_signal(PressureSignal::MemoryAvailable)?, disk: nodefs.min(imagefs) })
    }

    /// Checks that the node has room for the limits of pods, and for a margin in bytes.
    ///
    /// # Errors
    /// [`SkipReason::LimitsOverRoom`].
    pub(crate) fn check(self, limits: Amounts, margin: u64) -> Result<(), SkipReason> {
        let resources = [
            (LimitedResource::Memory, limits.memory, self.memory),
            (LimitedResource::Disk, limits.disk, self.disk),
        ];
        let is_over = |(_, limits, room): &(LimitedResource, u64, u64)| {
            *limits > 0 && *limits > room.saturating_sub(margin)
        };
        match resources.into_iter().find(is_over) {
            Some((resource, limits, room)) => Err(SkipReason::LimitsOverRoom { resource, limits, room }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use evictlab_rules::quantity::MIB;
    use serde_json::json;

    use super::*;

    #[test]
    fn room_is_the_distance_to_the_nearest_threshold() {
        let fs = |available: u64| json!({"availableBytes": available * MIB, "capacityBytes": 10_000 * MIB});
        let summary = |images: u64| {
            json!({"node": {
                "memory": {"availableBytes": 1000 * MIB, "workingSetBytes": 1000 * MIB},
                "fs": fs(3000),
                "runtime": {"imageFs": fs(images)},
            }})
        };
        let hard = json!({"evictionHard": {"memory.available": "100Mi", "nodefs.available": "12.5%", "imagefs.available": "25%"}});
        let soft = json!({"evictionSoft": {"memory.available": "37.5%"}, "evictionSoftGracePeriod": {"memory.available": "1m"}});
        let rows = [(&hard, 5000, (900, 1750)), (&hard, 2600, (900, 100)), (&soft, 5000, (250, 3000))];
        for (configz, images, (memory, disk)) in rows {
            let room = NodeRoom { memory: memory * MIB, disk: disk * MIB };
            assert_eq!(NodeRoom::of(configz, &summary(images)), Ok(room), "{configz}");
        }
        let room = NodeRoom { memory: 300 * MIB, disk: 200 * MIB };
        let check = |memory: u64, disk: u64| {
            room.check(Amounts { memory: memory * MIB, disk: disk * MIB }, 100 * MIB)
        };
        assert_eq!(check(200, 100), Ok(()));
        assert!(check(201, 0).is_err() && check(0, 101).is_err());
        assert_eq!(
            NodeRoom { memory: 0, disk: 0 }.check(Amounts::default(), MIB),
            Ok(()),
            "the case has no pods"
        );
        assert!(NodeRoom::of(&hard, &json!({"node": {}})).is_err());
    }
}
