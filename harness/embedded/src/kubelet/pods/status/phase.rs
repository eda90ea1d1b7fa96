//! A pod's phase.

use serde_json::Value;

use super::View;
use crate::kubelet::pods::runtime::Record;
use crate::kubelet::pods::spec::RestartPolicy;

/// `status.phase`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Phase {
    Pending,
    Running,
    Succeeded,
    Failed,
}

impl Phase {
    /// The phase of a status; none for one that has none, or `Unknown`.
    pub fn read(status: &Value) -> Option<Self> {
        let name = status["phase"].as_str()?;
        [Self::Pending, Self::Running, Self::Succeeded, Self::Failed]
            .into_iter()
            .find(|phase| phase.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }

    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

impl View<'_> {
    /// The phase that the containers' statuses make (`getPhase`).
    pub(super) fn phase(&self, init: &[Value], regular: &[Value], ended: bool) -> Phase {
        let spec = &self.manifest().spec;
        let state = |status: &Value, of: &str| !status["state"][of].is_null();
        let ended_before = |status: &Value| !status["lastState"]["terminated"].is_null();
        let (mut pending, mut pending_sidecars, mut failed) = (0, 0, 0);
        let (mut running, mut waiting, mut stopped, mut succeeded) = (0, 0, 0, 0);
        for (container, status) in spec.init_containers.iter().zip(init) {
            if container.is_sidecar() {
                if state(status, "running") {
                    pending_sidecars += usize::from(status["started"] != true);
                    running += 1;
                } else if state(status, "waiting") && !ended_before(status) {
                    pending_sidecars += 1;
                    waiting += 1;
                }
                continue;
            }
            let code = if state(status, "terminated") {
                Some(&status["state"]["terminated"]["exitCode"])
            } else if state(status, "waiting") && ended_before(status) {
                Some(&status["lastState"]["terminated"]["exitCode"])
            } else {
                None
            };
            match code {
                None => pending += 1,
                Some(code) => failed += usize::from(*code != 0),
            }
        }
        for status in regular {
            if state(status, "running") {
                running += 1;
            } else if state(status, "terminated") {
                stopped += 1;
                succeeded += usize::from(status["state"]["terminated"]["exitCode"] == 0);
            } else if ended_before(status) {
                stopped += 1;
            } else {
                waiting += 1;
            }
        }
        if failed > 0 && spec.restart_policy == RestartPolicy::Never {
            return Phase::Failed;
        }
        let has_started = self.runtime.is_some_and(|runtime| {
            spec.containers.iter().any(|container| {
                let latest = runtime.latest(&container.name);
                latest.is_some_and(|latest: &Record| latest.is_running() || latest.exit_code().is_some())
            })
        });
        if pending > 0 || (pending_sidecars > 0 && !has_started) || waiting > 0 {
            return Phase::Pending;
        }
        if running > 0 {
            return Phase::Running;
        }
        if stopped == 0 {
            return Phase::Pending;
        }
        let all_succeeded = stopped == succeeded;
        match spec.restart_policy {
            _ if ended && all_succeeded => Phase::Succeeded,
            _ if ended => Phase::Failed,
            RestartPolicy::Always => Phase::Running,
            _ if all_succeeded => Phase::Succeeded,
            RestartPolicy::Never => Phase::Failed,
            RestartPolicy::OnFailure => Phase::Running,
        }
    }
}
