//! The evidence on one Evicted event.

use jiff::Timestamp;

use crate::pod::Pod;
use crate::summary::Sample;
use crate::threshold::Threshold;
use crate::{EvictedEvent, KubeletVersion};

/// Everything that is known about one Evicted event.
#[derive(Clone, Copy, Debug)]
pub struct EventEvidence<'a> {
    /// Version of the kubelet that evicted the pod.
    pub version: &'a KubeletVersion,
    /// Evicted pod.
    pub pod: &'a Pod,
    /// Event to check.
    pub event: &'a EvictedEvent,
    /// All Evicted events of the pod, including `event`.
    pub events: &'a [EvictedEvent],
    /// `status.message`, if `status.reason` is `Evicted`.
    pub status: Option<&'a str>,
    /// Message of the kubelet's `DisruptionTarget` condition.
    pub condition: Option<&'a str>,
    /// Time of the pod's first ExceededGracePeriod event.
    pub exceeded_grace: Option<Timestamp>,
    /// Thresholds that the kubelet is configured with; empty if unknown.
    pub thresholds: &'a [Threshold],
    /// Summaries from the time around the event.
    pub samples: &'a [Sample],
}
