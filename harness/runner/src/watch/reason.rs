//! Why a pod stands where it stands in the order, in plain words.

use evictlab_rules::KubeletVersion;
use evictlab_rules::ranking::{Disks, Measure, Ranked, measure};
use evictlab_rules::threshold::{Resource, Signal};

use crate::explain::amount;

/// What comes of a pod that the kubelet has no statistics of.
const NO_STATISTICS: &str = "the kubelet has no statistics of it";

/// What a pod is ranked by, the figures first.
pub(super) fn reason(version: &KubeletVersion, signal: Signal, disks: Disks, ranked: &Ranked<'_>) -> String {
    let priority = format!("priority {}", ranked.pod.priority());
    let resource = signal.resource();
    if resource == Resource::Pids {
        let count = ranked.stats.and_then(|stats| stats.process_stats.as_ref()?.process_count);
        return match count {
            Some(count) => format!("{priority}, {}", amount(count, resource)),
            None => format!("{priority}, {NO_STATISTICS}, so that it goes before its equals"),
        };
    }
    match measure(version, signal, disks, ranked) {
        None => format!("{NO_STATISTICS} (no container runs), so that it goes before all others; {priority}"),
        Some(measure) if resource == Resource::Inodes => format!("{}, {priority}", inodes(&measure)),
        Some(measure) => format!("{}, {priority}", against_request(&measure, resource)),
    }
}

fn against_request(measure: &Measure, resource: Resource) -> String {
    let say = |value: i64| amount(value, resource);
    let (usage, request, excess) = (measure.usage.value(), measure.request.value(), measure.excess.value());
    match (request, measure.exceeds) {
        (0, false) => "uses nothing, requests nothing".to_owned(),
        (0, true) => {
            format!("over its request by {} (uses {}, requests nothing)", say(excess), say(usage))
        }
        (_, true) => {
            format!("over its request by {} (uses {}, requests {})", say(excess), say(usage), say(request))
        }
        (_, false) => {
            let spare = excess.saturating_neg();
            format!(
                "within its request, {} to spare (uses {}, requests {})",
                say(spare),
                say(usage),
                say(request)
            )
        }
    }
}

/// Nobody asks for inodes; the request of bytes is subtracted from them all the same.
fn inodes(measure: &Measure) -> String {
    let uses = format!("uses {}", amount(measure.usage.value(), Resource::Inodes));
    match measure.request.is_zero() {
        true => uses,
        false => {
            format!("{uses}, less its request of {} bytes of ephemeral-storage", measure.request.value())
        }
    }
}
