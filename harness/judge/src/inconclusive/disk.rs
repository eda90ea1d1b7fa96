//! Evictions for a disk, and the use of disks.

use evictlab_rules::summary::{FsStats, Sample};
use evictlab_rules::threshold::Resource;
use jiff::Timestamp;

use crate::case_evidence::{CaseEvidence, PodEvidence};
use crate::check::Expectation;
use crate::inconclusive::samples::pressure_resource;

/// Returns the pods that were evicted for bytes or inodes, with the times of their evictions.
pub(super) fn disk_evictions<'a>(
    evidence: &'a CaseEvidence<'_>,
) -> impl Iterator<Item = (Timestamp, &'a PodEvidence<'a>)> {
    let is_for_disk = |pod: &&PodEvidence<'_>| pressure_resource(pod).is_some_and(Resource::is_on_disk);
    evidence.pods.iter().filter(is_for_disk).filter_map(|pod| Some((pod.evicted_at()?, pod)))
}

/// Returns whether the case expects the eviction of a pod.
pub(super) fn is_expected_victim(expectation: &Expectation<'_>, pod: &PodEvidence<'_>) -> bool {
    expectation.evicted().iter().any(|name| name.as_str() == pod.name)
}

/// Returns the bytes, or inodes, of all files of a pod.
pub(super) fn disk_usage(sample: &Sample, pod: &PodEvidence<'_>, resource: Resource) -> Option<i64> {
    let files = sample.pod(&pod.pod.metadata.uid)?.ephemeral_storage.as_ref()?;
    match resource {
        Resource::Inodes => files.inodes_used,
        Resource::EphemeralStorage => files.used_bytes,
        Resource::Memory | Resource::Pids => None,
    }
}

/// Free bytes, or inodes, of the node's file systems.
pub(super) struct FreeDisk {
    pub(super) nodefs: Option<i64>,
    pub(super) imagefs: Option<i64>,
}

impl FreeDisk {
    pub(super) fn of(sample: &Sample, resource: Resource) -> Self {
        let free = |fs: &FsStats| match resource {
            Resource::Inodes => fs.inodes_free,
            Resource::EphemeralStorage => fs.available_bytes,
            Resource::Memory | Resource::Pids => None,
        };
        let imagefs = sample.node.runtime.as_ref().and_then(|runtime| runtime.image_fs.as_ref());
        Self { nodefs: sample.node.fs.as_ref().and_then(free), imagefs: imagefs.and_then(free) }
    }
}
