//! [`Threshold`] and the order in which the kubelet acts on met thresholds.

use std::time::Duration;

use super::{Observation, Resource, Signal, ThresholdValue};

/// An eviction threshold, met while less than `value` is available.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// Signal that the threshold applies to.
    pub signal: Signal,
    /// Least amount that must be available.
    pub value: ThresholdValue,
    /// Grace period of a soft threshold: the kubelet acts once the threshold has been met for this
    /// long. `None` for a hard threshold.
    pub grace: Option<Duration>,
    /// Minimum reclaim: the amount above `value` that must be available before pressure ends.
    pub min_reclaim: Option<ThresholdValue>,
}

impl Threshold {
    /// Returns a hard threshold without minimum reclaim.
    pub fn hard(signal: Signal, value: ThresholdValue) -> Self {
        Self { signal, value, grace: None, min_reclaim: None }
    }

    /// Returns whether less than the threshold is available; exactly the threshold is enough.
    ///
    /// `with_min_reclaim` adds the minimum reclaim to the threshold, as the kubelet does once it
    /// has reported pressure. Source: `thresholdsMet` in `helpers.go`.
    pub fn is_met(&self, observation: &Observation, with_min_reclaim: bool) -> bool {
        let capacity = observation.capacity.as_ref();
        let Some(mut needed) = self.value.resolve(capacity) else { return false };
        if let Some(reclaim) = self.min_reclaim.as_ref().filter(|_| with_min_reclaim)
            && let Some(reclaim) = reclaim.resolve(capacity)
        {
            needed = needed + &reclaim;
        }
        needed > observation.available
    }
}

/// Moves memory thresholds to the front, where the kubelet picks the resource to reclaim
/// (`byEvictionPriority`), in reverse order: Go's insertion sort moves each of them before the
/// earlier ones. All others keep their order, which is that of a map in the kubelet.
pub fn sort_by_eviction_priority(thresholds: &mut [Threshold]) {
    let is_other = |threshold: &Threshold| threshold.signal.resource() != Resource::Memory;
    thresholds.sort_by_key(is_other);
    let memory = thresholds.partition_point(|threshold| !is_other(threshold));
    thresholds[..memory].reverse();
}
