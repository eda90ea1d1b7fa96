//! Container statuses (`convertToAPIContainerStatuses`, and `UpdatePodStatus` of the prober).

use serde_json::{Value, json};

use super::builder::StatusBuilder;
use crate::kubelet::pods::images;
use crate::kubelet::pods::runtime::{Record, State};
use crate::kubelet::pods::spec::{Container, Group, Place};
use crate::resource::container_status::exit_code;
use crate::resource::{ContainerStatusExt, ObjectExt};

impl StatusBuilder<'_> {
    /// Returns the statuses of a list of containers, in the order of the spec.
    pub(super) fn containers(&self, group: Group, old: &Value, statuses: &str) -> Vec<Value> {
        let containers = self.manifest().spec.group(group).iter().enumerate();
        containers
            .map(|(index, container)| {
                self.container(
                    group,
                    index,
                    container,
                    old.items(statuses).find(|status| status["name"] == container.name),
                )
            })
            .collect()
    }

    fn container(&self, group: Group, index: usize, container: &Container, old: Option<&Value>) -> Value {
        let mut records = self
            .runtime
            .into_iter()
            .flat_map(|runtime| runtime.containers.iter().rev())
            .filter(|record| record.name == container.name);
        let latest = records.next();
        let mut status = match latest {
            Some(latest) => {
                let mut status = self.live(container, latest);
                if let Some(before) = records.next() {
                    status["lastState"] = self.state(before);
                }
                status
            }
            None => self.missing(container, old),
        };
        self.waiting(group, index, container, latest, &mut status);
        self.ready(group, container, &mut status);
        status
    }

    /// Returns the status of a container that the runtime knows.
    fn live(&self, container: &Container, record: &Record) -> Value {
        let mut status = json!({
            "name": container.name,
            "state": self.state(record),
            "lastState": {},
            "ready": false,
            "restartCount": record.attempt,
            "image": container.image,
            "imageID": images::id(&container.image),
            "containerID": format!("containerd://{}", record.id),
        });
        // `InPlacePodVerticalScaling`, on by default since 1.33.
        if self.version.at_least(33) {
            let requests = &container.resources["requests"];
            if requests.as_object().is_some_and(|requests| !requests.is_empty()) {
                status["allocatedResources"] = requests.clone();
            }
            let resources = &container.resources;
            status["resources"] = if resources.is_null() { json!({}) } else { resources.clone() };
        }
        self.mounts(container, &mut status);
        // `SupplementalGroupsPolicy`, on by default since 1.33.
        if self.version.at_least(33) {
            status["user"] = json!({"linux": {"uid": 0, "gid": 0, "supplementalGroups": [0]}});
        }
        status
    }

    /// Returns the status of a container that the runtime does not know: not created yet, or
    /// removed.
    fn missing(&self, container: &Container, old: Option<&Value>) -> Value {
        if let Some(old) = old.filter(|old| old.terminated().is_some()) {
            return old.clone();
        }
        let has_init = !self.manifest().spec.init_containers.is_empty();
        let reason = if has_init { "PodInitializing" } else { "ContainerCreating" };
        let mut status = json!({
            "name": container.name,
            "state": {"waiting": {"reason": reason}},
            "lastState": old.map_or_else(|| json!({}), |old| old["lastState"].clone()),
            "ready": false,
            "restartCount": old.map_or(json!(0), |old| old["restartCount"].clone()),
            "image": container.image,
            "imageID": "",
        });
        self.mounts(container, &mut status);
        let ran = old.is_some_and(|old| old.is_running());
        if ran && status.last_terminated().is_none() {
            status["lastState"] = json!({"terminated": unknown_end(
                "The container could not be located when the pod was deleted.  The container used to be Running",
            )});
            if !self.worker.is_deleted() {
                status["restartCount"] = json!(status["restartCount"].as_u64().unwrap_or_default() + 1);
            }
        }
        status
    }

    fn state(&self, record: &Record) -> Value {
        match &record.state {
            State::Created => json!({"waiting": {}}),
            State::Running { started } => json!({"running": {"startedAt": self.epoch.seconds(*started)}}),
            State::Exited { started, finished, code, oom } => json!({"terminated": {
                "containerID": format!("containerd://{}", record.id),
                "exitCode": code,
                "finishedAt": self.epoch.seconds(*finished),
                "reason": if *oom { "OOMKilled" } else if *code == 0 { "Completed" } else { "Error" },
                "startedAt": self.epoch.seconds(*started),
            }}),
        }
    }

    /// Sets the state `waiting` if the container could not be started.
    fn waiting(
        &self,
        group: Group,
        index: usize,
        container: &Container,
        latest: Option<&Record>,
        status: &mut Value,
    ) {
        let done = group == Group::Init && latest.is_some_and(|latest| latest.exit_code() == Some(0));
        let done = done && !container.is_sidecar();
        if done || !self.worker.should_start(self.runtime, Place { group, index }) {
            return;
        }
        let Some(reason) = self.worker.reasons.get(&container.name) else { return };
        if status.terminated().is_some() {
            status["lastState"] = status["state"].take();
        }
        status["state"] = json!({"waiting": {"reason": reason.reason, "message": reason.message}});
    }

    /// Sets `ready` and `started`. Probes are not modelled: running containers are ready.
    fn ready(&self, group: Group, container: &Container, status: &mut Value) {
        let running = status.is_running();
        match group {
            Group::Ephemeral => return,
            Group::Regular => status["ready"] = json!(running),
            Group::Init if container.is_sidecar() => status["ready"] = json!(running),
            Group::Init => status["ready"] = json!(exit_code(status.terminated()) == Some(0)),
        }
        status["started"] = json!(running);
    }

    /// Adds the volume mounts (`RecursiveReadOnlyMounts`, on by default since 1.31).
    fn mounts(&self, container: &Container, status: &mut Value) {
        if !self.version.at_least(31) || container.volume_mounts.is_empty() {
            return;
        }
        let mounts = container.volume_mounts.iter().map(|mount| {
            let mut mounted = json!({"name": mount.name, "mountPath": mount.mount_path});
            if mount.read_only {
                mounted["readOnly"] = json!(true);
                mounted["recursiveReadOnly"] = json!("Disabled");
            }
            mounted
        });
        status["volumeMounts"] = mounts.collect();
    }
}

/// Message of a container whose end is unknown when its pod has ended.
pub(super) const LOST: &str = "The container could not be located when the pod was terminated";

/// Returns the end of a container that the runtime has lost.
pub(super) fn unknown_end(message: &str) -> Value {
    json!({
        "exitCode": 137,
        "finishedAt": null,
        "message": message,
        "reason": "ContainerStatusUnknown",
        "startedAt": null,
    })
}
