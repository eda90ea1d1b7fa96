//! Workers: the kubelet's state of a pod.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use evictlab_rules::KubeletVersion;
use evictlab_rules::message::EVICTED_REASON;
use serde_json::Value;

use super::backoff::Backoff;
use super::runtime::{RuntimePod, RuntimeSnapshot};
use super::spec::{ContainerIndex, Manifest};
use crate::defect::{Defect, Defects};
use crate::machine::{ContainerId, ExecId, PodUid};
use crate::resource::{ObjectExt, PodStatus};
use crate::sim::SimTime;

/// Message of a pod that was active for longer than `activeDeadlineSeconds`.
pub(super) const DEADLINE_EXCEEDED: &str = "Pod was active on the node longer than the specified deadline";

/// Worker of a pod.
pub(super) struct Worker {
    /// Last object from the API.
    pub object: Arc<Value>,
    /// Status in the last object from the API.
    pub reported: PodStatus,
    /// The pod with the resources that were allocated to it.
    pub manifest: Manifest,
    pub stage: Stage,
    /// Cached status; `None` before the first sync.
    pub status: Option<PodStatus>,
    /// True if a write of the status is scheduled.
    pub reporting: bool,
    /// Number of the current step: events with older numbers are stale.
    pub serial: u64,
    /// Steps in order; the first is in progress.
    pub steps: VecDeque<Step>,
    /// True if a step failed, so that the sync is retried.
    pub failed: bool,
    pub restarts: BTreeMap<String, Backoff>,
    pub pulls: BTreeMap<String, Backoff>,
    /// Reasons why containers were not started (reason cache).
    pub reasons: BTreeMap<String, Waiting>,
    /// Containers that are being stopped.
    pub stopping: Option<Stopping>,
    /// Kill that waits for the end of a sync.
    pub deferred_kill: Option<DeferredKill>,
    /// Commands of `preStop` hooks that run, also those that the kubelet no longer waits for.
    pub pre_stops: BTreeMap<ExecId, (ContainerId, ContainerIndex)>,
    /// Containers that a resize restarts at the next sync.
    pub resize_restarts: Vec<ContainerIndex>,
    /// True if the pod was evicted before anything else ended it: its dead containers are removed
    /// at once.
    pub evicted: bool,
    /// Numbers of the callers that wait for the pod's end.
    pub callers: Vec<u64>,
    /// True while pods are killed for this one, which starts afterwards.
    pub preempts: bool,
    /// Pods with the same name, which this one follows when they have ended.
    pub waits_for: BTreeSet<PodUid>,
    /// True if the API object was deleted.
    pub removed: bool,
    /// True if the runtime has changed since the last relist.
    pub runtime_changed: bool,
    /// Time of the next sync, if the last one failed.
    pub retry_due: Option<SimTime>,
    /// State of the pod in the runtime at the last inspection.
    pub inspected: RuntimeSnapshot,
    /// Resize of the spec that is not part of `manifest`.
    pub pending_resize: Option<PendingResize>,
    /// Number of failed attempts to mount a volume.
    pub unmounted: u32,
}

/// Stage of a pod's life.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Stage {
    /// Containers are kept in line with the spec.
    Syncing,
    /// The pod was rejected after a restart of the kubelet, and its containers run until the next
    /// housekeeping.
    Rejected,
    /// The pod is being killed.
    Terminating,
    /// No container runs; volumes and control groups still exist.
    Terminated,
    /// Only the API object is left.
    Finished,
}

/// Reason why a container waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub reason: &'static str,
    pub message: String,
}

/// Resize that the node has no room for: the condition `PodResizePending`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PendingResize {
    pub reason: &'static str,
    pub message: String,
}

/// Step of a worker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    /// Creates the sandbox.
    Sandbox,
    /// Looks up the image of a container, and pulls it if needed.
    Image(ContainerIndex),
    /// The same for a container that a resize restarts, without a back-off.
    Restart(ContainerIndex),
    /// Waits for a pull that started at a time.
    Pull(ContainerIndex, SimTime),
    /// Creates a container.
    Create(ContainerIndex),
    /// Starts a container.
    Start(ContainerIndex),
}

/// Reason in the status of a pod that the kubelet ends.
#[derive(Clone, Debug)]
pub(super) struct Reason {
    pub reason: Cow<'static, str>,
    pub message: String,
    /// Message of the condition `DisruptionTarget`, if the pod gets it.
    pub disruption: Option<String>,
}

impl Reason {
    /// Returns the reason of a pod that was active for longer than `activeDeadlineSeconds`.
    pub(super) fn deadline_exceeded(defects: &Defects) -> Self {
        let is_eviction = defects.has(Defect::ActiveDeadlineIsEviction);
        Self {
            reason: if is_eviction { EVICTED_REASON } else { "DeadlineExceeded" }.into(),
            message: DEADLINE_EXCEEDED.to_owned(),
            disruption: None,
        }
    }
}

/// Kill of a pod that waits for the end of a sync.
#[derive(Clone, Debug)]
pub(super) struct DeferredKill {
    pub reason: Option<Reason>,
    /// Grace period that replaces the pod's own, in seconds.
    pub grace: Option<i64>,
}

/// Containers that are being stopped.
#[derive(Clone, Debug)]
pub(super) struct Stopping {
    pub began: SimTime,
    pub grace: Duration,
    pub containers: BTreeMap<ContainerId, Stop>,
    pub cause: StopCause,
}

/// Order to stop containers.
#[derive(Clone, Copy, Debug)]
pub(super) struct StopOrder {
    pub grace: Duration,
    pub cause: StopCause,
}

/// Reason why containers are stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopCause {
    /// The whole pod is killed.
    Pod,
    /// The pod was rejected after a restart of the kubelet.
    Rejected,
    /// The regular containers have ended, and the sidecars follow.
    Sidecars,
    /// A resize restarts containers.
    Resize,
}

impl StopCause {
    /// Returns the message of the event about a container.
    pub(super) fn message(self, container: &str) -> String {
        match self {
            Self::Pod | Self::Rejected | Self::Sidecars => format!("Stopping container {container}"),
            Self::Resize => format!("Container {container} resize requires restart"),
        }
    }

    /// Returns whether sidecars are stopped after the containers that need them.
    pub(super) fn is_ordered(self) -> bool {
        matches!(self, Self::Pod | Self::Sidecars)
    }
}

/// Progress of stopping a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The `preStop` hook runs until a time.
    Hook(SimTime),
    /// Waits for the exit of others, at most until a time.
    Turn(SimTime),
    /// SIGTERM was sent; SIGKILL follows at a time.
    Signalled(SimTime),
}

impl Worker {
    pub(super) fn new(object: Arc<Value>, manifest: Manifest) -> Self {
        Self {
            reported: PodStatus::of(&object),
            object,
            manifest,
            stage: Stage::Syncing,
            status: None,
            reporting: false,
            serial: 0,
            steps: VecDeque::new(),
            failed: false,
            restarts: BTreeMap::new(),
            pulls: BTreeMap::new(),
            reasons: BTreeMap::new(),
            stopping: None,
            deferred_kill: None,
            pre_stops: BTreeMap::new(),
            resize_restarts: Vec::new(),
            evicted: false,
            callers: Vec::new(),
            preempts: false,
            waits_for: BTreeSet::new(),
            removed: false,
            runtime_changed: false,
            retry_due: None,
            inspected: RuntimeSnapshot::default(),
            pending_resize: None,
            unmounted: 0,
        }
    }

    /// Returns the delay before the next mount attempt: 500 ms after the first failure, doubled
    /// each time (pkg/util/goroutinemap/exponentialbackoff).
    pub(super) fn mount_delay(&self) -> Duration {
        const FIRST: Duration = Duration::from_millis(500);
        const LONGEST: Duration = Duration::from_secs(122);
        let Some(doubled) = self.unmounted.checked_sub(1) else { return Duration::ZERO };
        (FIRST * 2u32.pow(doubled.min(8))).min(LONGEST)
    }

    /// Replaces the object with a newer one, and returns the old one.
    pub(super) fn replace_object(&mut self, object: Arc<Value>) -> Arc<Value> {
        self.reported = PodStatus::of(&object);
        std::mem::replace(&mut self.object, object)
    }

    /// Returns whether the worker is in a sync, which a kill does not interrupt: it only ends the
    /// wait for volumes, here with the start of the sandbox (`SyncPod` of `pkg/kubelet/kubelet.go`,
    /// kubernetes/kubernetes#113606).
    pub(super) fn is_in_sync(&self) -> bool {
        let runs_step = self.steps.front().is_some_and(|step| *step != Step::Sandbox);
        runs_step || self.stopping.is_some() || self.deferred_kill.is_some()
    }

    /// Adds a kill that waits for the end of the sync. The last reason counts
    /// (`acknowledgeTerminating` of `pkg/kubelet/pod_workers.go`), and the shortest grace period.
    pub(super) fn defer_kill(&mut self, kill: DeferredKill) {
        let DeferredKill { reason, grace } = kill;
        let (earlier, shortest) = match self.deferred_kill.take() {
            Some(before) => (before.reason, before.grace),
            None => (None, None),
        };
        let grace = [grace, shortest].into_iter().flatten().min();
        self.deferred_kill = Some(DeferredKill { reason: reason.or(earlier), grace });
    }

    /// Returns whether containers may run (`CouldHaveRunningContainers`).
    pub(super) fn could_run(&self) -> bool {
        matches!(self.stage, Stage::Syncing | Stage::Rejected | Stage::Terminating)
    }

    /// Returns the cached status, or else the API's.
    pub(super) fn known_status(&self) -> &PodStatus {
        self.status.as_ref().unwrap_or(&self.reported)
    }

    /// Returns whether the pod is active: still an object, even if its containers run, and not
    /// terminal (`GetActivePods`, pkg/kubelet/kubelet_pods.go).
    pub(super) fn is_active(&self) -> bool {
        match self.stage {
            _ if self.removed => false,
            Stage::Terminating => true,
            Stage::Syncing => !self.reported.is_terminal() && !self.known_status().is_terminal(),
            Stage::Rejected | Stage::Terminated | Stage::Finished => false,
        }
    }

    /// Returns whether a container should start, or start again after its exit
    /// (`ShouldContainerBeRestarted`).
    pub(super) fn should_start(&self, runtime: Option<&RuntimePod>, place: ContainerIndex) -> bool {
        let spec = &self.manifest.spec;
        let Some(container) = spec.container(place).filter(|_| !self.is_deleted()) else { return false };
        let Some(latest) = runtime.and_then(|runtime| runtime.latest(&container.name)) else { return true };
        match latest.exit_code() {
            None => !latest.is_running(),
            Some(_) if spec.is_sidecar(place) => true,
            Some(code) => spec.restarts(container, code),
        }
    }

    /// Returns the generation that the kubelet reports as observed
    /// (`PodObservedGenerationTracking`, on by default since 1.34).
    pub(super) fn generation(&self, version: &KubeletVersion) -> Option<i64> {
        self.object.generation().filter(|_| version.at_least(34))
    }

    /// Returns whether the pod is being deleted.
    pub(super) fn is_deleted(&self) -> bool {
        self.removed || self.object.is_deleting()
    }

    /// Returns whether the kubelet deletes the API object when the pod has finished.
    pub(super) fn ends_with_deletion(&self, defects: &Defects) -> bool {
        self.is_deleted() || self.evicted && defects.has(Defect::StatusDeletesPod)
    }
}
