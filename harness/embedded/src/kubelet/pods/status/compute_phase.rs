//! Computation of a pod's phase.

use super::builder::StatusBuilder;
use crate::kubelet::pods::runtime::Record;
use crate::kubelet::pods::spec::{Container, RestartPolicy};
use crate::resource::Phase;
use crate::resource::pod_status::ContainerStatus;

/// Numbers of containers by state.
#[derive(Clone, Copy, Debug, Default)]
struct ContainerCounts {
    /// Plain init containers without an exit code.
    pending: usize,
    /// Sidecars that have not started.
    pending_sidecars: usize,
    /// Plain init containers that failed.
    failed: usize,
    running: usize,
    waiting: usize,
    stopped: usize,
    succeeded: usize,
}

impl ContainerCounts {
    fn add_init(&mut self, container: &Container, status: &ContainerStatus) {
        if container.is_sidecar() {
            if status.is_running() {
                self.pending_sidecars += usize::from(status.started != Some(true));
                self.running += 1;
            } else if status.is_waiting() && status.last_terminated().is_none() {
                self.pending_sidecars += 1;
                self.waiting += 1;
            }
            return;
        }
        let waiting_after = || status.last_terminated().filter(|_| status.is_waiting());
        match status.state.terminated.as_ref().or_else(waiting_after) {
            None => self.pending += 1,
            Some(end) => self.failed += usize::from(end.exit_code != 0),
        }
    }

    fn add_regular(&mut self, status: &ContainerStatus) {
        if status.is_running() {
            self.running += 1;
        } else if let Some(code) = status.exit_code() {
            self.stopped += 1;
            self.succeeded += usize::from(code == 0);
        } else if status.last_terminated().is_some() {
            self.stopped += 1;
        } else {
            self.waiting += 1;
        }
    }
}

impl StatusBuilder<'_> {
    /// Computes the phase from the container statuses (`getPhase`).
    pub(super) fn phase(&self, init: &[ContainerStatus], regular: &[ContainerStatus], ended: bool) -> Phase {
        let spec = &self.manifest().spec;
        let mut counts = ContainerCounts::default();
        for (container, status) in spec.init_containers.iter().zip(init) {
            counts.add_init(container, status);
        }
        for status in regular {
            counts.add_regular(status);
        }
        if counts.failed > 0 && spec.restart_policy == RestartPolicy::Never {
            return Phase::Failed;
        }
        let has_started = self.runtime.is_some_and(|runtime| {
            spec.containers.iter().any(|container| {
                let latest = runtime.latest(&container.name);
                latest.is_some_and(|latest: &Record| latest.is_running() || latest.exit_code().is_some())
            })
        });
        if counts.pending > 0 || (counts.pending_sidecars > 0 && !has_started) || counts.waiting > 0 {
            return Phase::Pending;
        }
        if counts.running > 0 {
            return Phase::Running;
        }
        if counts.stopped == 0 {
            return Phase::Pending;
        }
        let all_succeeded = counts.stopped == counts.succeeded;
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
