//! What the kubelet has in memory of a pod.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::backoff::Backoff;
use super::runtime::RuntimePod;
use super::spec::{Manifest, Place, RestartPolicy};
use super::status::Phase;
use crate::machine::{ContainerId, PodUid};
use crate::time::Time;

/// A pod's worker.
pub(super) struct Worker {
    /// As the API had it last.
    pub object: Arc<Value>,
    pub manifest: Manifest,
    pub stage: Stage,
    /// The status that the kubelet holds for true; none before the first.
    pub status: Option<Value>,
    /// A patch of the status is on its way.
    pub reporting: bool,
    /// Something is due for it that changes while it waits: older numbers are stale.
    pub serial: u64,
    /// What the worker does one after another; the first is under way.
    pub steps: VecDeque<Step>,
    /// Another look is wanted when the steps are done.
    pub dirty: bool,
    /// A step failed: there is to be another try.
    pub failed: bool,
    pub restarts: BTreeMap<String, Backoff>,
    pub pulls: BTreeMap<String, Backoff>,
    /// Why a container was not started (the kubelet's reason cache).
    pub reasons: BTreeMap<String, Waiting>,
    /// What is stopped just now.
    pub stopping: Option<Stopping>,
    /// Killed by the kubelet for want of something: what dies of it is removed at once.
    pub evicted: bool,
    /// Who waits for its end, by number.
    pub callers: Vec<u64>,
    /// Pods that are killed for it: it starts when they have ended.
    pub after: BTreeSet<PodUid>,
    /// It is no longer in the API.
    pub gone: bool,
    /// The runtime has news of it that the kubelet has not seen.
    pub news: bool,
    /// How often a volume of it could not be mounted.
    pub unmounted: u32,
}

/// How far a pod's life has come.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Stage {
    /// Its containers are kept as they should be.
    Syncing,
    /// It is being killed.
    Terminating,
    /// Nothing of it runs; volumes and control groups are still there.
    Terminated,
    /// Nothing of it is left but its object.
    Finished,
}

/// Why a container waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub reason: &'static str,
    pub message: String,
}

/// One thing that the worker does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    /// The sandbox is made.
    Sandbox,
    /// A container's image is looked for, and pulled if need be.
    Image(Place),
    /// The image is being pulled since a moment.
    Pull(Place, Time),
    /// A container is created.
    Create(Place),
    /// It is started.
    Start(Place),
}

/// Containers on their way down.
#[derive(Clone, Debug)]
pub(super) struct Stopping {
    pub began: Time,
    pub grace: Duration,
    pub containers: BTreeMap<ContainerId, Stop>,
    /// The whole pod is killed, not only its sidecars.
    pub pod: bool,
}

/// How far the stopping of a container has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Its hook runs until a moment.
    Hook(Time),
    /// It waits for others to end first, no longer than until a moment.
    Turn(Time),
    /// It got SIGTERM; SIGKILL follows.
    Signalled(Time),
}

impl Worker {
    pub fn new(object: Arc<Value>, manifest: Manifest) -> Self {
        Self {
            object,
            manifest,
            stage: Stage::Syncing,
            status: None,
            reporting: false,
            serial: 0,
            steps: VecDeque::new(),
            dirty: false,
            failed: false,
            restarts: BTreeMap::new(),
            pulls: BTreeMap::new(),
            reasons: BTreeMap::new(),
            stopping: None,
            evicted: false,
            callers: Vec::new(),
            after: BTreeSet::new(),
            gone: false,
            news: false,
            unmounted: 0,
        }
    }

    /// How long the next try to mount its volumes waits: half a second after the first failure, then twice as long each time
    /// (pkg/util/goroutinemap/exponentialbackoff).
    pub fn mount_delay(&self) -> Duration {
        const FIRST: Duration = Duration::from_millis(500);
        const LONGEST: Duration = Duration::from_secs(122);
        let Some(doubled) = self.unmounted.checked_sub(1) else { return Duration::ZERO };
        (FIRST * 2u32.pow(doubled.min(8))).min(LONGEST)
    }

    /// Whether containers of it could run (`CouldHaveRunningContainers`).
    pub fn could_run(&self) -> bool {
        matches!(self.stage, Stage::Syncing | Stage::Terminating)
    }

    /// The status that the kubelet holds for true, or else the API's.
    pub fn known_status(&self) -> &Value {
        self.status.as_ref().unwrap_or(&self.object["status"])
    }

    /// Whether it counts: neither over, nor only over by its phase (`filterOutInactivePods`).
    pub fn is_active(&self) -> bool {
        let ended = |status: &Value| Phase::read(status).is_some_and(Phase::is_terminal);
        match self.stage {
            Stage::Terminating => true,
            Stage::Syncing => !ended(&self.object["status"]) && !ended(self.known_status()),
            Stage::Terminated | Stage::Finished => false,
        }
    }

    /// Whether a container that has ended is to start again, or one that never ran is to start (`ShouldContainerBeRestarted`).
    pub fn should_start(&self, runtime: Option<&RuntimePod>, place: Place) -> bool {
        let spec = &self.manifest.spec;
        let Some(container) = spec.container(place).filter(|_| !self.is_deleted()) else { return false };
        let Some(latest) = runtime.and_then(|runtime| runtime.latest(&container.name)) else { return true };
        match latest.exit_code() {
            None => !latest.is_running(),
            Some(_) if spec.is_sidecar(place) => true,
            Some(code) => match spec.restart_policy {
                RestartPolicy::Always => true,
                RestartPolicy::OnFailure => code != 0,
                RestartPolicy::Never => false,
            },
        }
    }

    /// Whether it is to be deleted.
    pub fn is_deleted(&self) -> bool {
        self.gone || !self.object["metadata"]["deletionTimestamp"].is_null()
    }
}
