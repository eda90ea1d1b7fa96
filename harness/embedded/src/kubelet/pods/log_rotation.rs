//! Rotation of container logs: `pkg/kubelet/logs/container_log_manager.go`.

use crate::context::SimContext;
use crate::defect::Defect;
use crate::kubelet::event::PodEvent;
use crate::kubelet::state::Kubelet;
use crate::machine::Machine;

impl Kubelet {
    /// Rotates the logs of running containers now, and periodically. Does nothing if rotation is
    /// disabled.
    pub(super) fn start_log_rotation(&mut self, machine: &mut Machine, ctx: &mut SimContext) {
        self.pods.next_rotation = Some(ctx.now);
        self.rotate_logs(machine, ctx);
    }

    /// Rotates the logs that are due. An event that was scheduled before a restart of the kubelet
    /// does nothing.
    pub(super) fn rotate_logs(&mut self, machine: &mut Machine, ctx: &mut SimContext) {
        let settings = &self.config.settings;
        let (Some(max_size), true) = (settings.log_max_size, self.pods.next_rotation == Some(ctx.now)) else {
            return;
        };
        let next = ctx.now + settings.log_monitor_interval;
        let max_files =
            if self.has(Defect::LogFilesAccumulate) { usize::MAX } else { settings.log_max_files };
        if !self.has(Defect::LogsAreNotRotated) {
            for pod in self.pods.runtime.pods.values() {
                for container in pod.running() {
                    machine.rotate_log(&container.id, max_size, max_files);
                }
            }
        }
        self.pods.next_rotation = Some(next);
        self.schedule_pod(next, PodEvent::RotateLogs, ctx);
    }
}
