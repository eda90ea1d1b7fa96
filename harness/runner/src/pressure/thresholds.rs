//! Eviction thresholds and reservations for a case with pressure, relative to the node's status.

use evictlab_case::{Pressure, PressureSignal, QuantityText};
use evictlab_rules::quantity::MIB;

use crate::pressure::signal_status::SignalStatus;

/// Returns the amount that a ramp takes beyond the threshold, in bytes, inodes or process IDs.
pub(crate) fn overshoot(signal: PressureSignal) -> u64 {
    match signal {
        PressureSignal::MemoryAvailable => 96 * MIB,
        // The kubelet deletes unused images before it evicts pods; the overshoot exceeds what that
        // frees. The same applies to the inodes of those images.
        PressureSignal::NodefsAvailable | PressureSignal::ImagefsAvailable => 2048 * MIB,
        PressureSignal::NodefsInodesFree | PressureSignal::ImagefsInodesFree => 12_000,
        // Other cases that run on the host start and end some hundred processes meanwhile.
        PressureSignal::PidAvailable => 600,
    }
}

/// Returns the threshold that lies the case's distance below the available amount, as a quantity or
/// a percentage; `None` if less than the distance is available.
pub fn eviction_threshold(pressure: &Pressure, node: SignalStatus) -> Option<String> {
    threshold_below(pressure, node, pressure.distance())
}

/// Returns the hard threshold beside a soft one, in the same notation; `None` if the case states no
/// `hard-distance` or less than that is available.
pub fn hard_eviction_threshold(pressure: &Pressure, node: SignalStatus) -> Option<String> {
    threshold_below(pressure, node, stated_amount(pressure.hard_distance.as_ref())?)
}

/// Returns the `kubeReserved` quantity that leaves pods the case's distance and no more; `None` if
/// less than the distance is available.
pub fn kube_reservation(pressure: &Pressure, node: SignalStatus) -> Option<String> {
    let reserved = node.capacity.checked_sub(node.used_by_pods + pressure.distance())?;
    let unit = unit(pressure);
    (reserved >= unit).then(|| format_in_unit(reserved, unit))
}

/// Returns the hard threshold beside a reservation, as a percentage of the node's memory; `None` if
/// the case states none.
pub(crate) fn threshold_beside_reservation(pressure: &Pressure, node: SignalStatus) -> Option<String> {
    pressure.as_percentage.then(|| percentage(amount_beside_reservation(pressure), node.capacity))
}

/// Returns the amount of a hard threshold beside a reservation: nine tenths of the case's distance.
/// The rest stays allocatable.
pub(crate) fn amount_beside_reservation(pressure: &Pressure) -> u64 {
    pressure.distance() / 10 * 9
}

/// Formats an amount of the case's signal: a quantity in `Mi`, or a plain number.
pub fn format_amount(pressure: &Pressure, amount: u64) -> String {
    format_in_unit(amount, unit(pressure))
}

/// Formats an amount as a quantity, in `Mi` if that is its unit.
pub(crate) fn format_in_unit(amount: u64, unit: u64) -> String {
    format!("{}{}", amount / unit, if unit == MIB { "Mi" } else { "" })
}

/// Returns the smallest step of a signal: 1 MiB, one inode or one process id.
pub(crate) fn unit(pressure: &Pressure) -> u64 {
    if pressure.signal.is_bytes() { MIB } else { 1 }
}

/// Returns a quantity of a case file as an unsigned number.
pub(crate) fn stated_amount(quantity: Option<&QuantityText>) -> Option<u64> {
    quantity.map(|text| text.amount())
}

fn threshold_below(pressure: &Pressure, node: SignalStatus, distance: u64) -> Option<String> {
    let threshold = node.available.checked_sub(distance)?;
    let unit = unit(pressure);
    if threshold < unit {
        return None;
    }
    if !pressure.as_percentage {
        return Some(format_in_unit(threshold, unit));
    }
    Some(percentage(threshold, node.capacity))
}

/// Returns an amount as a percentage of the capacity, rounded down to three decimals, so that a
/// threshold is never above the intended one.
pub(crate) fn percentage(amount: u64, capacity: u64) -> String {
    let share = u128::from(amount) * 100_000 / u128::from(capacity.max(amount).max(1));
    format!("{}.{:03}%", share / 1000, share % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pressure(yaml: &str) -> Pressure {
        serde_saphyr::from_str(yaml).unwrap()
    }

    #[test]
    fn thresholds_lie_below_the_available_amount() {
        let of = |yaml: &str, available: u64| {
            let node = SignalStatus { available, capacity: 25_000 * MIB, used_by_pods: 300 * MIB };
            let pressure = pressure(yaml);
            [eviction_threshold(&pressure, node), hard_eviction_threshold(&pressure, node)]
        };
        let some = |text: &str| Some(text.to_owned());
        for (case, available, soft_or_hard, hard) in [
            ("signal: memory.available", 24_000 * MIB + 5, some("23680Mi"), None),
            ("{signal: memory.available, distance: 1Gi}", 2048 * MIB, some("1024Mi"), None),
            ("{signal: memory.available, distance: 1Gi}", 1024 * MIB, None, None),
            ("{signal: memory.available, as-percentage: true}", 24_000 * MIB, some("94.720%"), None),
            ("{signal: pid.available, as-percentage: true}", 1001, some("0.000%"), None),
            (
                "{signal: memory.available, distance: 100Mi, soft-grace: 1s, hard-distance: 1Gi}",
                2048 * MIB,
                some("1948Mi"),
                some("1024Mi"),
            ),
        ] {
            assert_eq!(of(case, available), [soft_or_hard, hard], "{case}");
        }
    }

    #[test]
    fn kube_reservation_leaves_pods_the_distance() {
        let reserved = pressure("{signal: memory.available, by: kube-reserved, distance: 200Mi}");
        let node = SignalStatus { available: 24_000 * MIB, capacity: 25_000 * MIB, used_by_pods: 300 * MIB };
        assert_eq!(kube_reservation(&reserved, node), Some("24500Mi".to_owned()));
        assert_eq!(threshold_beside_reservation(&reserved, node), None);
        let percentage =
            pressure("{signal: memory.available, by: kube-reserved, distance: 200Mi, as-percentage: true}");
        assert_eq!(threshold_beside_reservation(&percentage, node), Some("0.720%".to_owned()));
        assert_eq!(kube_reservation(&reserved, SignalStatus { capacity: 500 * MIB, ..node }), None);
    }
}
