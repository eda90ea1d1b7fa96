//! Reasons for the rank of a pod.

use evictlab_rules::KubeletVersion;
use evictlab_rules::ranking::{RankedPod, RequestComparison, compare_with_request, process_count};
use evictlab_rules::threshold::{FsLayout, Resource, Signal};

use evictlab_explain::amount;

/// Reason for a pod without statistics.
const NO_STATISTICS: &str = "no statistics";

/// Describes the values by which a pod is ranked.
pub(super) fn rank_reason(
    version: &KubeletVersion,
    signal: Signal,
    layout: FsLayout,
    ranked: &RankedPod<'_>,
) -> String {
    let priority = format!("priority {}", ranked.pod.priority());
    let resource = signal.resource();
    if resource == Resource::Pids {
        return match process_count(ranked) {
            Some(count) => format!("{priority}, {}", amount(count, resource)),
            None => format!("{priority}, {NO_STATISTICS}: ranked before pods of equal priority"),
        };
    }
    match compare_with_request(version, signal, layout, ranked) {
        None => format!("{NO_STATISTICS} (no container runs): ranked first; {priority}"),
        Some(measure) if resource == Resource::Inodes => format!("{}, {priority}", inodes(&measure)),
        Some(measure) => format!("{}, {priority}", against_request(&measure, resource)),
    }
}

/// Describes the order of the pods for a signal.
pub(super) fn ranking_order(signal: Signal) -> &'static str {
    match signal.resource() {
        Resource::Memory => {
            "order: pods that exceed their request of memory, then lower priority, then the larger excess"
        }
        Resource::EphemeralStorage => {
            "order: pods that exceed their request of ephemeral-storage, then lower priority, then the larger excess"
        }
        Resource::Inodes => "order: pods that use inodes, then lower priority, then more inodes",
        Resource::Pids => "order: lower priority, then more processes",
    }
}

fn against_request(measure: &RequestComparison, resource: Resource) -> String {
    let format = |value: i64| amount(value, resource);
    let (usage, request, excess) = (measure.usage.value(), measure.request.value(), measure.excess.value());
    match (request, measure.exceeds) {
        (0, false) => "uses nothing, requests nothing".to_owned(),
        (0, true) => {
            format!("exceeds its request by {} (uses {}, requests nothing)", format(excess), format(usage))
        }
        (_, true) => {
            format!(
                "exceeds its request by {} (uses {}, requests {})",
                format(excess),
                format(usage),
                format(request)
            )
        }
        (_, false) => {
            let spare = excess.saturating_neg();
            format!(
                "below its request by {} (uses {}, requests {})",
                format(spare),
                format(usage),
                format(request)
            )
        }
    }
}

/// Inodes have no requests, but the kubelet subtracts the request in bytes from the inode count.
fn inodes(measure: &RequestComparison) -> String {
    let uses = format!("uses {}", amount(measure.usage.value(), Resource::Inodes));
    if measure.request.is_zero() {
        uses
    } else {
        format!("{uses}, minus its request of {} bytes of ephemeral-storage", measure.request.value())
    }
}
