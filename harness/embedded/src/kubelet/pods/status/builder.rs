//! Pod statuses: computed from the containers, cached by the kubelet, written to the API.

use evictlab_rules::KubeletVersion;
use serde_json::{Value, json};

use super::containers::{LOST, unknown_end};
use crate::context::SimContext;
use crate::kubelet::pods::mirror;
use crate::kubelet::pods::phase::Phase;
use crate::kubelet::pods::runtime::RuntimePod;
use crate::kubelet::pods::spec::{Group, Manifest};
use crate::kubelet::pods::worker::Worker;
use crate::resource::container_status::exit_code;
use crate::resource::{ContainerStatusExt, Kind, ObjectExt, condition};
use crate::sim::{Epoch, Time};

/// Conditions that only the kubelet sets; `DisruptionTarget` is shared with other components.
pub(super) const OWN: [&str; 6] = [
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
    "AllContainersRestarting",
];
pub(super) const DISRUPTION: &str = "DisruptionTarget";

/// Input of a pod status.
pub(in crate::kubelet::pods) struct StatusBuilder<'a> {
    pub worker: &'a Worker,
    pub runtime: Option<&'a RuntimePod>,
    pub version: &'a KubeletVersion,
    pub host: &'a str,
    pub now: Time,
    pub epoch: Epoch,
}

/// Reason in the status of a pod that the kubelet ends.
#[derive(Clone, Debug)]
pub(in crate::kubelet::pods) struct Reason {
    pub reason: &'static str,
    pub message: String,
    /// Message of the condition `DisruptionTarget`, if the pod gets it.
    pub disruption: Option<String>,
}

impl StatusBuilder<'_> {
    pub(super) fn manifest(&self) -> &Manifest {
        &self.worker.manifest
    }

    /// Computes the status (`generateAPIPodStatus`). `ended` means that no container runs or will
    /// run.
    pub fn status(&self, ended: bool) -> Value {
        let old = self.worker.known_status();
        let api = &self.worker.object["status"];
        let init = self.containers(Group::Init, old, "initContainerStatuses");
        let regular = self.containers(Group::Regular, old, "containerStatuses");
        let ephemeral = self.containers(Group::Ephemeral, old, "ephemeralContainerStatuses");

        let was = Phase::read(old);
        let api_phase = Phase::read(api);
        let mut phase = self.phase(&init, &regular, ended);
        if !phase.is_terminal() {
            // A terminal phase does not change.
            phase = [was, api_phase].into_iter().flatten().find(|phase| phase.is_terminal()).unwrap_or(phase);
        }
        let (mut reason, mut message) = (Value::Null, Value::Null);
        if Some(phase) == was {
            let kept = |field: &str| {
                let known = &old[field];
                if known.is_null() { api[field].clone() } else { known.clone() }
            };
            (reason, message) = (kept("reason"), kept("message"));
        }
        if let Some(deadline) = self.past_deadline(old) {
            phase = Phase::Failed;
            (reason, message) = (json!(deadline.reason), json!(deadline.message));
        }
        if let Some(api_phase) = api_phase.filter(|api_phase| api_phase.is_terminal()) {
            phase = api_phase;
        }

        let mut status = json!({"phase": phase.name()});
        if self.version.at_least(34) && !self.worker.object["metadata"]["generation"].is_null() {
            // `PodObservedGenerationTracking`, on by default since 1.34.
            status["observedGeneration"] = self.worker.object["metadata"]["generation"].clone();
        }
        status["conditions"] = json!(self.conditions(old, &init, &regular, phase));
        for (field, value) in [("message", message), ("reason", reason)] {
            if !value.is_null() {
                status[field] = value;
            }
        }
        self.set_addresses(old, &mut status);
        for (field, mut list) in [
            ("initContainerStatuses", init),
            ("containerStatuses", regular),
            ("ephemeralContainerStatuses", ephemeral),
        ] {
            if field != "initContainerStatuses" {
                list.sort_by(|one, other| one["name"].as_str().cmp(&other["name"].as_str()));
            }
            if !list.is_empty() {
                status[field] = json!(list);
            }
        }
        status["qosClass"] = json!(self.manifest().pod.qos_class());
        if self.version.at_least(36) {
            self.pod_resources(&mut status);
        }
        status
    }

    /// Sets the addresses of host and pod.
    fn set_addresses(&self, old: &Value, status: &mut Value) {
        status["hostIP"] = json!(self.host);
        if self.version.at_least(29) {
            // `PodHostIPs`, on by default since 1.29.
            status["hostIPs"] = json!([{"ip": self.host}]);
        }
        if let Some(sandbox) = self.runtime.and_then(|runtime| runtime.sandbox.as_ref()) {
            status["podIP"] = json!(sandbox.ip);
            status["podIPs"] = json!([{"ip": sandbox.ip}]);
        } else if !old["podIP"].is_null() {
            status["podIP"] = old["podIP"].clone();
            status["podIPs"] = old["podIPs"].clone();
        } else if self.manifest().spec.host_network {
            status["podIP"] = json!(self.host);
            status["podIPs"] = json!([{"ip": self.host}]);
        }
    }

    /// Returns the reason if the pod has exceeded its `activeDeadlineSeconds`.
    fn past_deadline(&self, old: &Value) -> Option<Reason> {
        let seconds = self.manifest().spec.active_deadline_seconds?;
        let started: jiff::Timestamp = old["startTime"].as_str()?.parse().ok()?;
        let since = self.epoch.at(self.now).duration_since(started);
        (since.as_secs() >= i64::try_from(seconds).unwrap_or(i64::MAX)).then(|| Reason {
            reason: "DeadlineExceeded",
            message: "Pod was active on the node longer than the specified deadline".to_owned(),
            disruption: None,
        })
    }

    /// Copies the times of unchanged conditions from the cached status. Returns whether the status
    /// differs from the cached one.
    pub fn keep(&self, status: &mut Value) -> bool {
        let old = self.worker.known_status();
        let now = self.epoch.seconds(self.now);
        for condition in status.items_mut("conditions") {
            let before = condition::find(old, condition.text("type"));
            let before = before.filter(|before| before["status"] == condition["status"]);
            condition["lastTransitionTime"] =
                before.map_or_else(|| json!(now), |before| before["lastTransitionTime"].clone());
        }
        let started = &old["startTime"];
        status["startTime"] = if started.is_null() { json!(now) } else { started.clone() };
        self.worker.status.as_ref() != Some(status)
    }

    /// Completes the status of a pod whose containers are gone (`TerminatePod`): containers without
    /// a known end have failed.
    pub fn finish(&self) -> Value {
        let mut status = self.worker.known_status().clone();
        let lost = json!({"terminated": unknown_end(LOST)});
        let is_open = |container: &Value| container.terminated().is_none();
        if self.had_initialized() {
            for container in status.items_mut("containerStatuses").filter(|container| is_open(container)) {
                container["state"] = lost.clone();
            }
        }
        let begun = status.items("initContainerStatuses").rposition(has_begun).map_or(1, |last| last + 1);
        let begun = status.items_mut("initContainerStatuses").take(begun);
        for container in begun.filter(|container| is_open(container)) {
            container["state"] = lost.clone();
        }
        if Phase::read(&status).is_none_or(|phase| !phase.is_terminal()) {
            status["phase"] = json!(Phase::Failed.name());
        }
        status
    }

    /// Returns whether the regular containers may have run, according to the API's status
    /// (`hasPodInitialized`).
    fn had_initialized(&self) -> bool {
        let spec = &self.manifest().spec;
        let current = &self.worker.object["status"];
        let Some(last) = spec.init_containers.last() else { return true };
        if current.items("containerStatuses").any(has_begun) {
            return true;
        }
        current.items("initContainerStatuses").next_back().is_some_and(|status| {
            if last.is_sidecar() {
                status.is_running() && status["started"] == true
            } else {
                [status.terminated(), status.last_terminated()].map(exit_code).contains(&Some(0))
            }
        })
    }
}

/// Returns whether a container runs, has ended, or ran before.
fn has_begun(status: &Value) -> bool {
    !status.is_waiting() || status.last_terminated().is_some()
}

/// Sets the reason why the kubelet ends a pod.
pub(in crate::kubelet::pods) fn end(
    status: &mut Value,
    reason: &Reason,
    object: &Value,
    version: &KubeletVersion,
) {
    status["phase"] = json!(Phase::Failed.name());
    status["reason"] = json!(reason.reason);
    status["message"] = json!(reason.message);
    let Some(message) = &reason.disruption else { return };
    let mut condition = json!({
        "type": DISRUPTION,
        "status": "True",
        "reason": "TerminationByKubelet",
        "message": message,
        "lastProbeTime": null,
        "lastTransitionTime": null,
    });
    if version.at_least(34) && !object["metadata"]["generation"].is_null() {
        condition["observedGeneration"] = object["metadata"]["generation"].clone();
    }
    condition::put(status, condition);
}

/// Writes a status to the API (`mergePodStatus` and the patch). A terminal phase is held back while
/// containers may run, and `DisruptionTarget` with it, unless `early_disruption` is set. Returns
/// whether the object exists.
pub(in crate::kubelet::pods) fn report(
    worker: &Worker,
    early_disruption: bool,
    ctx: &mut SimContext,
) -> bool {
    let Some(status) = &worker.status else { return true };
    let Manifest { namespace, name, uid, .. } = &worker.manifest;
    let Some(object) = ctx.store.get(Kind::Pod, namespace, name) else { return false };
    if object["metadata"]["uid"] != **uid && mirror::of(object) != Some(uid) {
        return false;
    }
    let could_run = worker.could_run();
    let reports_disruption = early_disruption || !could_run;
    let now = ctx.epoch().seconds(ctx.now);
    let merged = merge(&object["status"], status, (could_run, reports_disruption), &now);
    ctx.store.update(Kind::Pod, namespace, name, |object| object["status"] = merged);
    true
}

fn merge(current: &Value, new: &Value, (could_run, reports_disruption): (bool, bool), now: &str) -> Value {
    let terminal = |status: &Value| Phase::read(status).is_some_and(Phase::is_terminal);
    let ends = !terminal(current) && terminal(new);
    let mut merged = new.clone();
    let is_own = |condition: &Value| OWN.iter().any(|own| condition["type"] == *own);
    let mut conditions: Vec<Value> =
        current.items("conditions").filter(|condition| !is_own(condition)).cloned().collect();
    for mut condition in new.items("conditions").cloned() {
        if is_own(&condition) {
            conditions.push(condition);
        } else if condition["type"] == DISRUPTION && ends && reports_disruption {
            let before = conditions.iter().position(|before| before["type"] == DISRUPTION);
            if before.is_none_or(|before| conditions[before]["status"] != condition["status"]) {
                condition["lastTransitionTime"] = json!(now);
            }
            match before {
                Some(before) => conditions[before] = condition,
                None => conditions.push(condition),
            }
        }
    }
    // The status of a rejected pod has no conditions.
    if !conditions.is_empty() {
        merged["conditions"] = json!(conditions);
    }
    if ends && could_run {
        for field in ["phase", "reason", "message"] {
            merged.set_or_remove(field, current.get(field));
        }
    }
    if !current["nominatedNodeName"].is_null() {
        merged["nominatedNodeName"] = current["nominatedNodeName"].clone();
    }
    merged
}
