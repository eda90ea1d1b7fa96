//! Disk that a node has left above its eviction thresholds.

use std::time::Duration;

use evictlab_rules::quantity::MIB;
use evictlab_rules::summary::NodeStats;
use evictlab_rules::threshold::{Observation, Resource, Signal, ThresholdConfig, parse_threshold_config};
use serde::Deserialize;
use serde_json::Value;

use super::proxy::KubeletProxy;

/// Interval of checks of the disk.
const INTERVAL: Duration = Duration::from_secs(5);
/// Time limit of each request of a check.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Minimum distance of a disk to its thresholds, in bytes: the amount that a pull at 100 MB/s may
/// add until the next check has ended.
const MIN_ROOM: u64 = 1024 * MIB;

/// Waits until a node has less than [`MIN_ROOM`] of disk left above its thresholds. Returns what is
/// left, in bytes. A check that fails is repeated.
pub(crate) async fn wait_until_disk_is_short(proxy: KubeletProxy<'_>) -> u64 {
    let proxy = proxy.with_timeout(TIMEOUT);
    loop {
        tokio::time::sleep(INTERVAL).await;
        let (Ok(configz), Ok(sample)) = (proxy.configz().await, proxy.sample().await) else { continue };
        if let Some(room) = disk_room(&configz, &sample.node).filter(|room| *room < MIN_ROOM) {
            return room;
        }
    }
}

/// Returns the least distance of a file system to its thresholds, in bytes; without a threshold,
/// what is available. `None` if the kubelet reports none.
fn disk_room(configz: &Value, node: &NodeStats) -> Option<u64> {
    let config = ThresholdConfig::deserialize(configz).unwrap_or_default();
    // A kubelet does not start with thresholds that it cannot parse.
    let thresholds = parse_threshold_config(&config).unwrap_or_default();
    let room = |signal: Signal| {
        let seen = Observation::from_node_stats(signal, node)?;
        let of_signal = thresholds.iter().filter(|threshold| threshold.signal == signal);
        let reserved = of_signal.filter_map(|threshold| threshold.value.resolve(seen.capacity.as_ref()));
        let reserved = reserved.map(|amount| amount.value()).max().unwrap_or(0);
        Some(u64::try_from(seen.available.value().saturating_sub(reserved)).unwrap_or(0))
    };
    let of_disk = Signal::ALL.into_iter().filter(|signal| signal.resource() == Resource::EphemeralStorage);
    of_disk.filter_map(room).min()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn room_of_the_disk_is_the_least_distance_to_a_threshold() {
        let fs = |mib: u64| json!({"availableBytes": mib * MIB, "capacityBytes": 10_000 * MIB});
        let node = json!({"fs": fs(3000), "runtime": {"imageFs": fs(5000)}});
        let node: NodeStats = serde_json::from_value(node).unwrap();
        let rows = [
            (json!({}), Some(3000)),
            (json!({"evictionHard": {"nodefs.available": "1000Mi"}}), Some(2000)),
            (
                json!({"evictionHard": {"nodefs.available": "1000Mi", "imagefs.available": "4500Mi"}}),
                Some(500),
            ),
            (json!({"evictionHard": {"nodefs.available": "4000Mi"}}), Some(0)),
        ];
        for (configz, expected) in rows {
            let room = disk_room(&configz, &node);
            assert_eq!(room.map(|bytes| bytes / MIB), expected, "{configz}");
        }
        assert_eq!(disk_room(&json!({}), &NodeStats::default()), None);
    }
}
