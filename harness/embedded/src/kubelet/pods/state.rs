//! Pods of a kubelet.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use evictlab_rules::pod::Pod;
use serde_json::Value;

use super::runtime::{Record, Runtime, State};
use super::worker::{Stage, Worker};
use crate::machine::{ContainerId, PodUid};
use crate::sim::SimTime;

/// Period of PLEG relists (`genericPlegRelistPeriod`).
const RELIST: Duration = Duration::from_secs(1);
/// Time from the end of a container's processes until containerd has deleted its task, and with it
/// its statistics. A kubelet 1.36.2 named a container in a message 100 ms after it had ended.
const TASK_REMOVAL: Duration = Duration::from_millis(150);

/// Pod that the kubelet knows and that has not finished.
#[derive(Clone, Debug)]
pub(crate) struct ActivePod {
    /// Last object from the API.
    pub object: Arc<Value>,
    /// The same pod for the rules, with allocated resources.
    pub pod: Pod,
}

/// Running container.
#[derive(Clone, Debug)]
pub(crate) struct RunningContainer {
    /// Name in the pod.
    pub name: String,
    /// ID in the machine.
    pub id: ContainerId,
    /// Start time.
    pub started: SimTime,
}

/// Preemption that kills one pod after the other.
#[derive(Clone, Debug)]
pub(super) struct Preemption {
    /// Critical pod, which starts afterwards.
    pub(super) pod: PodUid,
    /// Resource that `kubelet_preemptions` counts.
    pub(super) resource: String,
    /// Pod that is being killed, and the number of the call that waits for its end.
    pub(super) now: (PodUid, u64),
    /// Pods to kill afterwards.
    pub(super) next: VecDeque<PodUid>,
}

/// Pods of a kubelet.
#[derive(Default)]
pub(crate) struct Pods {
    pub(super) runtime: Runtime,
    pub(super) workers: BTreeMap<PodUid, Worker>,
    /// Version of the store up to which changes were handled.
    pub(super) seen: u64,
    /// Time of the first relist; the others follow every second.
    pub(super) first_relist: SimTime,
    /// True if a relist is scheduled.
    pub(super) relist_scheduled: bool,
    /// True if a read of the manifests is scheduled.
    pub(super) read_scheduled: bool,
    /// Time of the next rotation of logs.
    pub(super) next_rotation: Option<SimTime>,
    /// Pods that the runtime knew when the kubelet started and that have not been admitted again,
    /// in the order of their creation.
    pub(super) readmission: Vec<PodUid>,
    /// Those of them that are not admitted yet, or rejected, while others are admitted: they do not
    /// count (`filterOutInactivePods`).
    pub(super) unadmitted: BTreeSet<PodUid>,
    /// Time of the next retry of pending resizes.
    pub(super) resize_retry: Option<SimTime>,
    /// Preemptions that wait for the end of a pod.
    pub(super) preemptions: Vec<Preemption>,
    /// Source of numbers that detect stale events; survives restarts.
    pub(super) serial: u64,
}

impl Pods {
    /// Returns the pods that may be evicted, by uid: known pods that are not terminal.
    pub(crate) fn active(&self) -> Vec<ActivePod> {
        let active = self.workers.values().filter(|worker| worker.is_active());
        active
            .map(|worker| ActivePod { object: worker.object.clone(), pod: worker.manifest.pod.clone() })
            .collect()
    }

    /// Returns the active pods that count for the admission of others, by uid.
    pub(super) fn admitted(&self) -> impl Iterator<Item = (&PodUid, &Worker)> {
        self.workers.iter().filter(|(uid, worker)| worker.is_active() && !self.unadmitted.contains(*uid))
    }

    /// Returns the images that containers of the runtime use, running and dead ones.
    pub(crate) fn images_in_use(&self) -> BTreeSet<&str> {
        self.runtime.images(|_| true)
    }

    /// Returns the images of running containers.
    pub(crate) fn images_of_running(&self) -> BTreeSet<&str> {
        self.runtime.images(Record::is_running)
    }

    /// Returns the running containers of a pod; an empty list while only its sandbox runs.
    pub(crate) fn running(&self, pod: &str) -> Vec<RunningContainer> {
        self.containers(pod, |state| matches!(state, State::Running { .. }))
    }

    /// Returns the containers of a pod of which containerd has statistics: those that run, and for
    /// a moment those that have ended.
    pub(crate) fn with_statistics(&self, pod: &str, now: SimTime) -> Vec<RunningContainer> {
        let is_listed = |state: &State| match state {
            State::Running { .. } => true,
            State::Exited { finished, .. } => now.since(*finished) < TASK_REMOVAL,
            State::Created => false,
        };
        self.containers(pod, is_listed)
    }

    /// Returns the IDs of the containers of a pod with a name that have started, running and dead
    /// ones.
    pub(crate) fn attempts<'a>(&'a self, pod: &str, name: &'a str) -> impl Iterator<Item = &'a str> {
        let records = self.runtime.pods.get(pod).into_iter().flat_map(|pod| &pod.containers);
        let started = records.filter(move |record| record.name == name && record.state != State::Created);
        started.map(|record| record.id.as_str())
    }

    fn containers(&self, pod: &str, is_wanted: impl Fn(&State) -> bool) -> Vec<RunningContainer> {
        let records = self.runtime.pods.get(pod).into_iter().flat_map(|pod| &pod.containers);
        let wanted = records.filter(|record| is_wanted(&record.state));
        wanted
            .filter_map(|record| match record.state {
                State::Running { started } | State::Exited { started, .. } => {
                    Some(RunningContainer { name: record.name.clone(), id: record.id.clone(), started })
                }
                State::Created => None,
            })
            .collect()
    }

    /// Returns the terminated containers of a pod, each name once.
    pub(crate) fn terminated(&self, pod: &str) -> Vec<RunningContainer> {
        let Some(pod) = self.runtime.pods.get(pod) else { return Vec::new() };
        let latest = |record: &&Record| pod.latest(&record.name).is_some_and(|latest| latest.id == record.id);
        let ended = pod.containers.iter().filter(latest).filter_map(|record| match record.state {
            State::Exited { started, .. } => {
                Some(RunningContainer { name: record.name.clone(), id: record.id.clone(), started })
            }
            _ => None,
        });
        ended.collect()
    }

    /// Returns whether the volumes and control groups of a pod were removed.
    pub(crate) fn is_cleaned_up(&self, pod: &str) -> bool {
        self.workers.get(pod).is_none_or(|worker| worker.stage == Stage::Finished)
    }

    pub(super) fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// Returns the time of the next relist.
    pub(super) fn next_relist(&self, now: SimTime) -> SimTime {
        if now < self.first_relist {
            return self.first_relist;
        }
        let past = now.since(self.first_relist).as_micros() as u64 / RELIST.as_micros() as u64;
        self.first_relist + Duration::from_micros((past + 1) * RELIST.as_micros() as u64)
    }
}
