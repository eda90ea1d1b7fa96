//! Pod conditions (`pkg/kubelet/status/generate.go`).

use serde_json::{Value, json};

use super::builder::{DISRUPTION, OWN, StatusBuilder};
use crate::kubelet::pods::phase::Phase;
use crate::resource::{ContainerStatusExt, ObjectExt, condition};

/// Status, reason and message of a condition.
struct ConditionStatus {
    holds: bool,
    reason: Option<&'static str>,
    message: Option<String>,
}

impl ConditionStatus {
    const TRUE: Self = Self { holds: true, reason: None, message: None };

    fn no(reason: &'static str, message: String) -> Self {
        Self { holds: false, reason: Some(reason), message: Some(message) }
    }
}

impl StatusBuilder<'_> {
    /// Returns the conditions: those of other components first, then the kubelet's own, in its
    /// order.
    pub(super) fn conditions(
        &self,
        old: &Value,
        init: &[Value],
        regular: &[Value],
        phase: Phase,
    ) -> Vec<Value> {
        let reported = self.worker.object["status"]["conditions"].as_array();
        let is_own = |condition: &Value| OWN.iter().any(|own| condition["type"] == *own);
        let mut conditions: Vec<Value> =
            reported.into_iter().flatten().filter(|condition| !is_own(condition)).cloned().collect();
        if let Some(disruption) = condition::find(old, DISRUPTION) {
            match conditions.iter_mut().find(|condition| condition["type"] == DISRUPTION) {
                Some(condition) => *condition = disruption.clone(),
                None => conditions.push(disruption.clone()),
            }
        }
        // `PodReadyToStartContainersCondition`, on by default since 1.29.
        if self.version.at_least(29) {
            let ready = self.runtime.is_some_and(|runtime| runtime.is_ready());
            let status = ConditionStatus { holds: ready, reason: None, message: None };
            conditions.push(self.condition("PodReadyToStartContainers", status));
        }
        conditions.push(self.condition("Initialized", self.initialized(old, init, regular, phase)));
        let mut ready = self.containers_ready(init, regular, phase);
        if ready.holds
            && let Some(gates) = self.unready_gates(&conditions)
        {
            ready = ConditionStatus::no("ReadinessGatesNotReady", gates);
        }
        conditions.push(self.condition("Ready", ready));
        conditions.push(self.condition("ContainersReady", self.containers_ready(init, regular, phase)));
        conditions.push(self.condition("PodScheduled", ConditionStatus::TRUE));
        conditions
    }

    fn condition(&self, kind: &str, status: ConditionStatus) -> Value {
        let mut condition = json!({"type": kind});
        let generation = &self.worker.object["metadata"]["generation"];
        if self.version.at_least(34) && !generation.is_null() {
            condition["observedGeneration"] = generation.clone();
        }
        condition["status"] = json!(if status.holds { "True" } else { "False" });
        condition["lastProbeTime"] = Value::Null;
        condition["lastTransitionTime"] = Value::Null;
        if let Some(reason) = status.reason {
            condition["reason"] = json!(reason);
        }
        if let Some(message) = status.message.filter(|message| !message.is_empty()) {
            condition["message"] = json!(message);
        }
        condition
    }

    fn initialized(&self, old: &Value, init: &[Value], regular: &[Value], phase: Phase) -> ConditionStatus {
        if phase == Phase::Succeeded {
            return ConditionStatus { holds: true, reason: Some("PodCompleted"), message: None };
        }
        let has_started = regular.iter().any(|status| status.is_running() || status.terminated().is_some());
        // Kubelets 1.27 and 1.28 do not check whether a regular container has started: they have no
        // sidecars to restart.
        if has_started && self.version.at_least(29) {
            return ConditionStatus::TRUE;
        }
        let open: Vec<&str> = self
            .manifest()
            .spec
            .init_containers
            .iter()
            .zip(init)
            .filter(|(container, status)| {
                status[if container.is_sidecar() { "started" } else { "ready" }] != true
            })
            .map(|(container, _)| container.name.as_str())
            .collect();
        if open.is_empty() {
            return ConditionStatus::TRUE;
        }
        // `RestartAllContainersOnContainerExits`, on by default since 1.36: `Initialized` stays
        // true.
        if self.version.at_least(36)
            && condition::find(old, "Initialized").is_some_and(|before| before["status"] == "True")
        {
            return ConditionStatus::TRUE;
        }
        ConditionStatus::no(
            "ContainersNotInitialized",
            format!("containers with incomplete status: [{}]", open.join(" ")),
        )
    }

    fn containers_ready(&self, init: &[Value], regular: &[Value], phase: Phase) -> ConditionStatus {
        match phase {
            Phase::Succeeded => return ConditionStatus::no("PodCompleted", String::new()),
            Phase::Failed => return ConditionStatus::no("PodFailed", String::new()),
            _ => {}
        }
        let spec = &self.manifest().spec;
        let sidecars = spec.init_containers.iter().zip(init).filter(|(container, _)| container.is_sidecar());
        let open: Vec<&str> = sidecars
            .chain(spec.containers.iter().zip(regular))
            .filter(|(_, status)| status["ready"] != true)
            .map(|(container, _)| container.name.as_str())
            .collect();
        if open.is_empty() {
            return ConditionStatus::TRUE;
        }
        ConditionStatus::no(
            "ContainersNotReady",
            format!("containers with unready status: [{}]", open.join(" ")),
        )
    }

    fn unready_gates(&self, conditions: &[Value]) -> Option<String> {
        let gates = self.worker.object["spec"]["readinessGates"].as_array()?;
        let mut messages = Vec::new();
        for gate in gates.iter().filter_map(|gate| gate["conditionType"].as_str()) {
            match conditions.iter().find(|condition| condition["type"] == *gate) {
                None => messages
                    .push(format!("corresponding condition of pod readiness gate {gate:?} does not exist.")),
                Some(condition) if condition["status"] != "True" => messages.push(format!(
                    "the status of pod readiness gate {gate:?} is not \"True\", but {}",
                    condition.text("status")
                )),
                Some(_) => {}
            }
        }
        (!messages.is_empty()).then(|| messages.join(", "))
    }
}
