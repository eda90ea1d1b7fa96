//! Pod conditions (`pkg/kubelet/status/generate.go`).

use super::super::worker::PendingResize;
use super::builder::{DISRUPTION, StatusBuilder, is_own};
use crate::resource::pod_status::{ConditionStatus, ContainerStatus, PodCondition};
use crate::resource::{Phase, PodStatus};

/// Status, reason and message of a condition.
struct Finding {
    holds: bool,
    reason: Option<&'static str>,
    message: Option<String>,
}

impl Finding {
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
        old: &PodStatus,
        init: &[ContainerStatus],
        regular: &[ContainerStatus],
        phase: Phase,
    ) -> Vec<PodCondition> {
        let reported = &self.worker.reported.conditions;
        let mut conditions: Vec<_> =
            reported.iter().filter(|condition| !is_own(condition)).cloned().collect();
        if let Some(disruption) = old.condition(DISRUPTION) {
            disruption.clone().put(&mut conditions);
        }
        if let Some(PendingResize { reason, message }) = &self.worker.pending_resize {
            let pending = Finding { holds: true, reason: Some(reason), message: Some(message.clone()) };
            conditions.push(self.condition("PodResizePending", pending));
        }
        // `PodReadyToStartContainersCondition`, on by default since 1.29.
        if self.version.at_least(29) {
            let ready = self.runtime.is_some_and(|runtime| runtime.is_ready());
            let sandbox = Finding { holds: ready, reason: None, message: None };
            conditions.push(self.condition("PodReadyToStartContainers", sandbox));
        }
        conditions.push(self.condition("Initialized", self.initialized(old, init, regular, phase)));
        for kind in ["Ready", "ContainersReady"] {
            conditions.push(self.condition(kind, self.containers_ready(init, regular, phase)));
        }
        conditions.push(self.condition("PodScheduled", Finding::TRUE));
        conditions
    }

    fn condition(&self, kind: &str, finding: Finding) -> PodCondition {
        PodCondition {
            kind: kind.to_owned(),
            observed_generation: self.worker.generation(self.version),
            status: finding.holds.into(),
            reason: finding.reason.map(str::to_owned),
            message: finding.message.filter(|message| !message.is_empty()),
            ..PodCondition::default()
        }
    }

    fn initialized(
        &self,
        old: &PodStatus,
        init: &[ContainerStatus],
        regular: &[ContainerStatus],
        phase: Phase,
    ) -> Finding {
        if phase == Phase::Succeeded {
            return Finding { holds: true, reason: Some("PodCompleted"), message: None };
        }
        let has_started = regular.iter().any(|status| status.is_running() || status.is_terminated());
        // Kubelets 1.27 and 1.28 do not check whether a regular container has started: they have no
        // sidecars to restart.
        if has_started && self.version.at_least(29) {
            return Finding::TRUE;
        }
        let open: Vec<&str> = self
            .manifest()
            .spec
            .init_containers
            .iter()
            .zip(init)
            .filter(
                |(container, status)| {
                    if container.is_sidecar() { status.started != Some(true) } else { !status.ready }
                },
            )
            .map(|(container, _)| container.name.as_str())
            .collect();
        if open.is_empty() {
            return Finding::TRUE;
        }
        // `RestartAllContainersOnContainerExits`, on by default since 1.36: `Initialized` stays
        // true.
        if self.version.at_least(36)
            && old.condition("Initialized").is_some_and(|before| before.status == ConditionStatus::True)
        {
            return Finding::TRUE;
        }
        Finding::no(
            "ContainersNotInitialized",
            format!("containers with incomplete status: [{}]", open.join(" ")),
        )
    }

    fn containers_ready(
        &self,
        init: &[ContainerStatus],
        regular: &[ContainerStatus],
        phase: Phase,
    ) -> Finding {
        match phase {
            Phase::Succeeded => return Finding::no("PodCompleted", String::new()),
            Phase::Failed => return Finding::no("PodFailed", String::new()),
            _ => {}
        }
        let spec = &self.manifest().spec;
        let sidecars = spec.init_containers.iter().zip(init).filter(|(container, _)| container.is_sidecar());
        let open: Vec<&str> = sidecars
            .chain(spec.containers.iter().zip(regular))
            .filter(|(_, status)| !status.ready)
            .map(|(container, _)| container.name.as_str())
            .collect();
        if open.is_empty() {
            return Finding::TRUE;
        }
        Finding::no("ContainersNotReady", format!("containers with unready status: [{}]", open.join(" ")))
    }
}
