//! Container runtime: sandboxes and containers. Keeps running while the kubelet is stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::{Discriminant, discriminant};

use rand::RngExt;

use super::spec::Container;
use crate::machine::{ContainerId, PodUid};
use crate::sim::{Rng, SimTime};

/// State of the runtime.
#[derive(Default)]
pub(super) struct Runtime {
    pub pods: BTreeMap<PodUid, RuntimePod>,
    owners: BTreeMap<ContainerId, PodUid>,
    addresses: u32,
}

/// Pod in the runtime.
#[derive(Clone, Debug, Default)]
pub(super) struct RuntimePod {
    pub sandbox: Option<Sandbox>,
    /// Containers in the order of their creation.
    pub containers: Vec<Record>,
}

/// Sandbox of a pod.
#[derive(Clone, Debug)]
pub(super) struct Sandbox {
    pub ip: String,
    pub ready: bool,
}

/// Container, running or dead.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub id: ContainerId,
    pub name: String,
    /// Name of the image.
    pub image: String,
    /// Number of earlier containers with this name.
    pub attempt: u64,
    pub state: State,
}

/// The state of a pod that a relist compares (`generateEvents` of `pkg/kubelet/pleg/generic.go`):
/// whether its sandbox is ready, and its containers with their kinds of state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RuntimeSnapshot {
    has_sandbox: bool,
    containers: Vec<(ContainerId, Discriminant<State>)>,
}

/// State of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Created,
    Running {
        started: SimTime,
    },
    Exited {
        started: SimTime,
        finished: SimTime,
        code: i32,
        oom: bool,
        /// Content that the container wrote to `/dev/termination-log`.
        message: Option<String>,
    },
}

impl Runtime {
    /// Returns the pod of a container.
    pub(super) fn owner(&self, container: &str) -> Option<&PodUid> {
        self.owners.get(container)
    }

    /// Returns what a relist sees of a pod.
    pub(super) fn snapshot(&self, pod: &str) -> RuntimeSnapshot {
        let Some(pod) = self.pods.get(pod) else { return RuntimeSnapshot::default() };
        RuntimeSnapshot {
            has_sandbox: pod.sandbox.as_ref().is_some_and(|sandbox| sandbox.ready),
            containers: pod.containers.iter().map(|one| (one.id.clone(), discriminant(&one.state))).collect(),
        }
    }

    /// Returns a container.
    pub(super) fn record_mut(&mut self, container: &str) -> Option<&mut Record> {
        let owner = self.owners.get(container)?;
        self.pods.get_mut(owner)?.containers.iter_mut().find(|record| record.id == container)
    }

    /// Returns the next address of the node's range, whose prefix is such as `10.244.1.`.
    pub(super) fn address(&mut self, range: &str) -> String {
        self.addresses = self.addresses % 252 + 1;
        format!("{range}{}", self.addresses + 1)
    }

    /// Returns the images of containers in the selected states.
    pub(super) fn images(&self, selects: impl Fn(&Record) -> bool) -> BTreeSet<&str> {
        let containers = self.pods.values().flat_map(|pod| &pod.containers);
        containers.filter(|record| selects(record)).map(|record| record.image.as_str()).collect()
    }

    /// Creates a container that does not run yet.
    pub(super) fn create(
        &mut self,
        pod: &str,
        container: &Container,
        attempt: u64,
        rng: &mut Rng,
    ) -> ContainerId {
        let bytes: [u8; 32] = rng.random();
        let id: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        self.owners.insert(id.clone(), pod.to_owned());
        let Container { name, image, .. } = container.clone();
        let record = Record { id: id.clone(), name, image, attempt, state: State::Created };
        self.pods.entry(pod.to_owned()).or_default().containers.push(record);
        id
    }

    /// Removes the dead containers of a pod except for the last `keep` per name, and returns their
    /// IDs.
    pub(super) fn forget_dead(&mut self, pod: &str, keep: usize) -> Vec<ContainerId> {
        let Some(pod) = self.pods.get_mut(pod) else { return Vec::new() };
        let mut kept: BTreeMap<&str, usize> = BTreeMap::new();
        let mut forgotten = Vec::new();
        for record in pod.containers.iter().rev() {
            if matches!(record.state, State::Exited { .. }) {
                let kept = kept.entry(&record.name).or_default();
                if *kept >= keep {
                    forgotten.push(record.id.clone());
                } else {
                    *kept += 1;
                }
            }
        }
        pod.containers.retain(|record| !forgotten.contains(&record.id));
        for id in &forgotten {
            self.owners.remove(id);
        }
        forgotten
    }

    /// Removes a pod, and returns the IDs of its containers.
    pub(super) fn forget(&mut self, pod: &str) -> Vec<ContainerId> {
        let containers = self.pods.remove(pod).map(|pod| pod.containers).unwrap_or_default();
        let ids: Vec<_> = containers.into_iter().map(|record| record.id).collect();
        for id in &ids {
            self.owners.remove(id);
        }
        ids
    }
}

impl RuntimePod {
    /// Returns the newest container with a name.
    pub(super) fn latest(&self, name: &str) -> Option<&Record> {
        self.containers.iter().rev().find(|record| record.name == name)
    }

    /// Returns the running containers in the order of their creation.
    pub(super) fn running(&self) -> impl DoubleEndedIterator<Item = &Record> {
        self.containers.iter().filter(|record| matches!(record.state, State::Running { .. }))
    }

    /// Returns whether the sandbox runs and has a network.
    pub(super) fn is_ready(&self) -> bool {
        self.sandbox.as_ref().is_some_and(|sandbox| sandbox.ready)
    }
}

impl Record {
    /// Returns the exit code of a container that has exited.
    pub(super) fn exit_code(&self) -> Option<i32> {
        match self.state {
            State::Exited { code, .. } => Some(code),
            _ => None,
        }
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self.state, State::Running { .. })
    }
}
