//! Computation of a pod's phase.

use super::builder::StatusBuilder;
use crate::kubelet::pods::runtime::Record;
use crate::kubelet::pods::spec::{Container, Spec};
use crate::resource::Phase;
use crate::resource::pod_status::ContainerStatus;

/// Numbers of containers by state.
#[derive(Clone, Copy, Debug, Default)]
struct ContainerCounts {
    /// Plain init containers without an exit code.
    pending: usize,
    /// Sidecars that have not started.
    pending_sidecars: usize,
    /// Plain init containers that failed and are not restarted.
    failed: usize,
    running: usize,
    waiting: usize,
    stopped: usize,
    /// Stopped containers that are not restarted.
    ended: usize,
    succeeded: usize,
}

impl ContainerCounts {
    fn add_init(&mut self, spec: &Spec, container: &Container, status: &ContainerStatus) {
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
            Some(end) => {
                let has_failed = end.exit_code != 0 && !restarts(spec, container, end.exit_code);
                self.failed += usize::from(has_failed);
            }
        }
    }

    fn add_regular(&mut self, spec: &Spec, container: Option<&Container>, status: &ContainerStatus) {
        let code = status.exit_code();
        let last = code.or_else(|| status.last_terminated().map(|end| end.exit_code));
        match last {
            _ if status.is_running() => self.running += 1,
            None => self.waiting += 1,
            Some(last) => {
                let is_restarted = container.is_some_and(|container| restarts(spec, container, last));
                self.stopped += 1;
                self.ended += usize::from(!is_restarted);
                self.succeeded += usize::from(code == Some(0));
            }
        }
    }
}

fn restarts(spec: &Spec, container: &Container, code: i64) -> bool {
    spec.restarts(container, i32::try_from(code).unwrap_or(i32::MAX))
}

impl StatusBuilder<'_> {
    /// Computes the phase from the container statuses (`getPhase`).
    pub(super) fn phase(&self, init: &[ContainerStatus], regular: &[ContainerStatus], ended: bool) -> Phase {
        let spec = &self.manifest().spec;
        let mut counts = ContainerCounts::default();
        for (container, status) in spec.init_containers.iter().zip(init) {
            counts.add_init(spec, container, status);
        }
        for status in regular {
            let container = spec.containers.iter().find(|container| container.name == status.name);
            counts.add_regular(spec, container, status);
        }
        if counts.failed > 0 {
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
        match () {
            () if !ended && counts.ended < counts.stopped => Phase::Running,
            () if all_succeeded => Phase::Succeeded,
            () => Phase::Failed,
        }
    }
}
