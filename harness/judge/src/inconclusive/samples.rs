//! Samples by time.

use evictlab_rules::message::EvictionMessage;
use evictlab_rules::summary::Sample;
use evictlab_rules::threshold::Resource;
use jiff::{SignedDuration, Timestamp};

use crate::case_evidence::{CaseEvidence, PodEvidence};

/// Returns the last Summary that was made before a time.
pub(super) fn last_sample_before<'a>(at: Timestamp, evidence: &'a CaseEvidence<'_>) -> Option<&'a Sample> {
    evidence.samples.iter().rfind(|sample| sampled_at(sample).is_some_and(|sampled_at| sampled_at <= at))
}

/// Returns the end of the second in which the Summary was made, so that a Summary of the event's
/// own second counts as later.
pub(super) fn sampled_at(sample: &Sample) -> Option<Timestamp> {
    sample.node.rlimit.as_ref()?.time?.checked_add(SignedDuration::from_secs(1)).ok()
}

/// Returns the resource for which the kubelet evicted a pod, if its message states one.
pub(super) fn pressure_resource(pod: &PodEvidence<'_>) -> Option<Resource> {
    let message: EvictionMessage = pod.message()?.parse().ok()?;
    Some(message.node_pressure()?.resource)
}
