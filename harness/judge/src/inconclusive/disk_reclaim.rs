//! Disks that were freed without an eviction, or later than the kubelet expected.

use evictlab_rules::quantity::{MIB, Quantity};
use evictlab_rules::summary::Sample;
use evictlab_rules::threshold::{Observation, Threshold};

use crate::case_evidence::{CaseEvidence, PodEvidence};
use crate::check::Expectation;
use crate::inconclusive::disk::{FreeDisk, disk_evictions, is_expected_victim};
use crate::inconclusive::samples::{last_sample_before, pressure_resource};
use crate::verdict::{Inconclusive, InconclusiveReason};
use evictlab_case::Case;

/// Finds a pod that the kubelet evicted for a disk before the data of the expected victim were
/// deleted: its statistics showed no more free bytes and inodes than at the first eviction. The
/// runtime deletes data in the background, and the kubelet does not wait for it.
pub(super) fn reclaim_pending(
    expectation: &Expectation<'_>,
    evidence: &CaseEvidence<'_>,
) -> Option<Inconclusive> {
    let is_expected = |pod: &PodEvidence<'_>| is_expected_victim(expectation, pod);
    let (first_at, first) =
        disk_evictions(evidence).min_by_key(|(at, _)| *at).filter(|(_, pod)| is_expected(pod))?;
    let (at, other) = disk_evictions(evidence)
        .filter(|(at, pod)| *at > first_at && !is_expected(pod))
        .min_by_key(|(at, _)| *at)?;
    let resource = pressure_resource(first)?;
    let free_at = |at| last_sample_before(at, evidence).map(|sample| FreeDisk::of(sample, resource));
    let (earlier, later) = (free_at(first_at)?, free_at(at)?);
    if later.nodefs > earlier.nodefs || later.imagefs > earlier.imagefs {
        return None;
    }
    let why =
        format!("the data of {} were not deleted yet when the kubelet evicted {}", first.name, other.name);
    Some(Inconclusive::new(InconclusiveReason::ReclaimPending, why))
}

/// Returns the greatest decrease of the bytes that images and writable layers take.
fn freed_imagefs_bytes(samples: &[Sample]) -> i64 {
    let used = |sample: &Sample| sample.node.runtime.as_ref()?.image_fs.as_ref()?.used_bytes;
    let mut most = 0;
    let mut freed = 0;
    for used in samples.iter().filter_map(used) {
        most = used.max(most);
        freed = freed.max(most - used);
    }
    freed
}

/// Finds a pressure on a disk that ended before any pod was evicted: the kubelet has deleted unused
/// images or dead containers, or something else has freed the disk. Without an eviction, the data
/// of pods remain, and the pressure lasts; the pressure also lasts while less than the minimum
/// reclaim is available beyond a threshold that was crossed.
pub(super) fn pressure_ended(
    case: &Case,
    expectation: &Expectation<'_>,
    evidence: &CaseEvidence<'_>,
) -> Option<Inconclusive> {
    let signal = case.pressure.as_ref()?.signal.eviction_signal();
    let has_eviction = !evidence.evictions.is_empty() || evidence.pods.iter().any(PodEvidence::was_evicted);
    if !signal.resource().is_on_disk() || expectation.evicted().is_empty() || has_eviction {
        return None;
    }
    let observations: Vec<Observation> = evidence
        .samples
        .iter()
        .filter_map(|sample| Observation::from_node_stats(signal, &sample.node))
        .collect();
    let last = observations.last()?;
    let lasts = |threshold: &Threshold| {
        let was_crossed = observations.iter().any(|observed| threshold.is_met(observed, false));
        threshold.is_met(last, was_crossed)
    };
    let mut thresholds = evidence.thresholds.iter().filter(|threshold| threshold.signal == signal);
    if thresholds.any(lasts) {
        return None;
    }
    let ended =
        format!("the pressure on {signal} ended before any eviction: at last it was {}", last.available);
    let freed = freed_imagefs_bytes(&evidence.samples);
    if freed < MIB as i64 {
        return Some(Inconclusive::new(InconclusiveReason::ThresholdNotReached, ended));
    }
    let why = format!("{ended}; images or dead containers of {} were deleted", Quantity::from_bytes(freed));
    Some(Inconclusive::new(InconclusiveReason::ReclaimSufficed, why))
}
