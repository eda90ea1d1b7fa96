//! Statistics of files that were older than the usage for which the kubelet evicted.

use evictlab_rules::quantity::Quantity;
use evictlab_rules::summary::Sample;

use crate::case_evidence::{CaseEvidence, PodEvidence};
use crate::check::Expectation;
use crate::inconclusive::disk::{FreeDisk, disk_evictions, disk_usage, is_expected_victim};
use crate::inconclusive::samples::{last_sample_before, pressure_resource};
use crate::verdict::{Inconclusive, InconclusiveReason};

/// Finds an expected victim that was ranked by old file statistics. Another pod was evicted first;
/// before the eviction its usage was larger than the victim's, afterwards smaller, and the node had
/// used space that no pod's statistics showed. The kubelet measures each pod's files at another
/// time, later on a busy host.
pub(super) fn stale_disk_ranking(
    expectation: &Expectation<'_>,
    evidence: &CaseEvidence<'_>,
) -> Option<Inconclusive> {
    let is_expected = |pod: &PodEvidence<'_>| is_expected_victim(expectation, pod);
    let (at, first) =
        disk_evictions(evidence).min_by_key(|(at, _)| *at).filter(|(_, pod)| !is_expected(pod))?;
    let resource = pressure_resource(first)?;
    let before = last_sample_before(at, evidence)?;
    let ranked = disk_usage(before, first, resource)?;
    let start = evidence.samples.first()?;
    let free = |sample: &Sample| FreeDisk::of(sample, resource).nodefs;
    let pods = |sample: &Sample| {
        evidence.pods.iter().filter_map(|pod| disk_usage(sample, pod, resource)).sum::<i64>()
    };
    let unmeasured = (free(start)? - free(before)?) - (pods(before) - pods(start));
    if unmeasured <= ranked {
        return None;
    }
    evidence.pods.iter().filter(|pod| is_expected(pod)).find_map(|pod| {
        let measured = disk_usage(before, pod, resource).unwrap_or(0);
        let later = evidence.samples.iter().filter_map(|sample| disk_usage(sample, pod, resource)).max()?;
        if measured > ranked || later <= ranked {
            return None;
        }
        let format_amount = |amount: i64| {
            if resource.is_bytes() { Quantity::from_bytes(amount).to_string() } else { amount.to_string() }
        };
        let why = format!(
            "the kubelet's statistics of {} were stale: the kubelet ranked it by {}, and {} were used that it had not \
             measured yet; later {}",
            pod.name,
            format_amount(measured),
            format_amount(unmeasured),
            format_amount(later)
        );
        Some(Inconclusive::new(InconclusiveReason::StaleStatistics, why))
    })
}
