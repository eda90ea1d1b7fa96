//! Container statuses (`convertToAPIContainerStatuses`, and `UpdatePodStatus` of the prober).

use k8s_openapi::api::core::v1::{
    ContainerStateRunning, ContainerUser, LinuxContainerUser, VolumeMountStatus,
};

use super::builder::StatusBuilder;
use crate::kubelet::images::lookup;
use crate::kubelet::pods::runtime::{Record, State};
use crate::kubelet::pods::spec::{Container, ContainerIndex, Group};
use crate::resource::pod_status::{ContainerState, ContainerStatus, TerminatedState};

impl StatusBuilder<'_> {
    /// Returns the statuses of a list of containers, in the order of the spec.
    pub(super) fn containers(&self, group: Group, old: &[ContainerStatus]) -> Vec<ContainerStatus> {
        let containers = self.manifest().spec.group(group).iter().enumerate();
        containers
            .map(|(index, container)| {
                let old = old.iter().find(|status| status.name == container.name);
                self.container(ContainerIndex { group, index }, container, old)
            })
            .collect()
    }

    fn container(
        &self,
        place: ContainerIndex,
        container: &Container,
        old: Option<&ContainerStatus>,
    ) -> ContainerStatus {
        let mut records = self
            .runtime
            .into_iter()
            .flat_map(|runtime| runtime.containers.iter().rev())
            .filter(|record| record.name == container.name);
        let latest = records.next();
        let mut status = match latest {
            Some(latest) => ContainerStatus {
                last_state: records.next().map(|before| self.state(before)).unwrap_or_default(),
                ..self.live(container, latest)
            },
            None => self.missing(container, old),
        };
        self.set_waiting(place, container, latest, &mut status);
        set_ready(place.group, container, &mut status);
        status
    }

    /// Returns the status of a container that the runtime knows.
    fn live(&self, container: &Container, record: &Record) -> ContainerStatus {
        let mut status = ContainerStatus {
            name: container.name.clone(),
            state: self.state(record),
            restart_count: record.attempt,
            image: container.image.clone(),
            image_id: lookup::id(&container.image),
            container_id: Some(format!("containerd://{}", record.id)),
            volume_mounts: self.mounts(container),
            ..ContainerStatus::default()
        };
        // `InPlacePodVerticalScaling` and `SupplementalGroupsPolicy`, on by default since 1.33.
        if self.version.at_least(33) {
            let requests = container.resources.requests.clone();
            status.allocated_resources = requests.filter(|requests| !requests.is_empty());
            status.resources = Some(container.resources.clone());
            let linux = LinuxContainerUser { uid: 0, gid: 0, supplemental_groups: Some(vec![0]) };
            status.user = Some(ContainerUser { linux: Some(linux) });
        }
        status
    }

    /// Returns the status of a container that the runtime does not know: not created yet, or
    /// removed.
    fn missing(&self, container: &Container, old: Option<&ContainerStatus>) -> ContainerStatus {
        if let Some(old) = old.filter(|old| old.is_terminated()) {
            return old.clone();
        }
        let has_init = !self.manifest().spec.init_containers.is_empty();
        let reason = if has_init { "PodInitializing" } else { "ContainerCreating" };
        let mut status = ContainerStatus {
            name: container.name.clone(),
            state: ContainerState::waiting(Some(reason), None),
            last_state: old.map(|old| old.last_state.clone()).unwrap_or_default(),
            restart_count: old.map_or(0, |old| old.restart_count),
            image: container.image.clone(),
            volume_mounts: self.mounts(container),
            ..ContainerStatus::default()
        };
        let ran = old.is_some_and(ContainerStatus::is_running);
        if ran && status.last_terminated().is_none() {
            status.last_state = ContainerState::terminated(TerminatedState::unknown(
                "The container could not be located when the pod was deleted.  The container used to be Running",
            ));
            if !self.worker.is_deleted() {
                status.restart_count += 1;
            }
        }
        status
    }

    fn state(&self, record: &Record) -> ContainerState {
        let time = |time| Some(self.epoch.meta_time(time));
        match &record.state {
            State::Created => ContainerState::waiting(None, None),
            State::Running { started } => {
                let running = ContainerStateRunning { started_at: time(*started) };
                ContainerState { running: Some(running), ..ContainerState::default() }
            }
            State::Exited { started, finished, code, oom, message } => {
                let reason = if *oom {
                    "OOMKilled"
                } else if *code == 0 {
                    "Completed"
                } else {
                    "Error"
                };
                ContainerState::terminated(TerminatedState {
                    exit_code: i64::from(*code),
                    reason: Some(reason.to_owned()),
                    message: message.as_deref().map(|message| self.limited(message)),
                    started_at: time(*started),
                    finished_at: time(*finished),
                    container_id: Some(format!("containerd://{}", record.id)),
                    ..TerminatedState::default()
                })
            }
        }
    }

    /// Shortens a termination message to the container's share of what a pod may report
    /// (`normalizeStatus` of `pkg/kubelet/status/status_manager.go`).
    fn limited(&self, message: &str) -> String {
        const OF_POD: usize = 12 * 1024;
        let spec = &self.manifest().spec;
        let groups = [&spec.init_containers, &spec.containers, &spec.ephemeral_containers];
        let containers: usize = groups.into_iter().map(Vec::len).sum();
        let length = message.len().min(OF_POD / containers.max(1));
        String::from_utf8_lossy(&message.as_bytes()[..length]).into_owned()
    }

    /// Sets the state `waiting` if the container could not be started.
    fn set_waiting(
        &self,
        place: ContainerIndex,
        container: &Container,
        latest: Option<&Record>,
        status: &mut ContainerStatus,
    ) {
        let done = place.group == Group::Init && latest.is_some_and(|latest| latest.exit_code() == Some(0));
        let done = done && !container.is_sidecar();
        if done || !self.worker.should_start(self.runtime, place) {
            return;
        }
        let Some(reason) = self.worker.reasons.get(&container.name) else { return };
        let waiting = ContainerState::waiting(Some(reason.reason), Some(&reason.message));
        let before = std::mem::replace(&mut status.state, waiting);
        if before.terminated.is_some() {
            status.last_state = before;
        }
    }

    /// Returns the volume mounts (`RecursiveReadOnlyMounts`, on by default since 1.31).
    fn mounts(&self, container: &Container) -> Vec<VolumeMountStatus> {
        if !self.version.at_least(31) {
            return Vec::new();
        }
        let mounts = container.volume_mounts.iter().map(|mount| VolumeMountStatus {
            name: mount.name.clone(),
            mount_path: mount.mount_path.clone(),
            read_only: mount.read_only.filter(|read_only| *read_only),
            recursive_read_only: mount
                .read_only
                .filter(|read_only| *read_only)
                .map(|_| "Disabled".to_owned()),
        });
        mounts.collect()
    }
}

/// Sets `ready` and `started`. Probes are not modelled: running containers are ready.
fn set_ready(group: Group, container: &Container, status: &mut ContainerStatus) {
    let running = status.is_running();
    match group {
        Group::Ephemeral => return,
        Group::Init if !container.is_sidecar() => status.ready = status.exit_code() == Some(0),
        Group::Regular | Group::Init => status.ready = running,
    }
    status.started = Some(running);
}
