//! Events of a kubelet.

use super::recorder::PendingEvent;
use crate::machine::{Cgroup, PodUid};

/// Work of a kubelet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum KubeletEvent {
    /// The kubelet starts.
    Start,
    /// Work for a pod.
    Pods(PodEvent),
    /// Measurement.
    Stats(StatsEvent),
    /// Work of the eviction manager.
    Eviction(EvictionEvent),
    /// Update of the node's status.
    Status(StatusEvent),
    /// Delivery of an event.
    Recorder(Box<PendingEvent>),
}

/// Work for a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PodEvent {
    /// The pod worker syncs the pod.
    Sync(PodUid),
    /// The pod worker syncs the pod again after a failure, unless it has failed since.
    Retry(PodUid),
    /// The worker's current step ends; stale if the number is not the worker's serial.
    Step(PodUid, u64),
    /// The runtime is relisted (PLEG).
    Relist,
    /// The PLEG inspects a pod.
    Inspect(PodUid),
    /// The status is written to the API.
    Report(PodUid),
    /// A container's grace period may have ended.
    Stop(PodUid),
    /// All containers have stopped; stale if the number is not the worker's serial.
    Stopped(PodUid, u64),
    /// The caller with this number stops waiting for the pod's end.
    WaitTimedOut(PodUid, u64),
    /// The pod has been active for `activeDeadlineSeconds`.
    ActiveDeadline(PodUid),
    /// A kill that waited for the end of a sync starts.
    DeferredKill(PodUid),
    /// Housekeeping kills the containers of a pod that was rejected after a restart.
    KillRejected(PodUid),
    /// Volumes and control groups are removed.
    CleanUp(PodUid),
    /// The API object is deleted.
    Delete(PodUid),
    /// The manifests of static pods are read.
    Manifests,
    /// Resizes that the node had no room for are tried again.
    RetryResizes,
    /// The logs of running containers are rotated.
    RotateLogs,
    /// The mirror pod of a static pod is created if it is missing.
    Mirror(PodUid),
}

/// Measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StatsEvent {
    /// cAdvisor starts.
    Begin,
    /// cAdvisor measures a control group.
    Housekeeping(Cgroup),
    /// The runtime's snapshotter measures writable layers.
    Layers,
    /// The volume analyzer looks for new pods.
    Analyze,
    /// The volumes of a pod are measured.
    Volumes(PodUid),
}

/// Work of the eviction manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EvictionEvent {
    /// The loop synchronizes.
    Synchronize,
    /// The loop of a notifier synchronizes.
    Notified(usize),
    /// A pod's containers have ended, or the wait for them has timed out: once per call of `evict`.
    Stopped(PodUid),
    /// The loop checks whether evicted pods are cleaned up.
    Poll,
}

/// Update of the node's status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StatusEvent {
    /// Node status.
    Update,
    /// Node lease.
    Lease,
    /// Periodic deletion of unused images.
    CollectImages,
    /// Periodic detection of images.
    DetectImages,
}
