//! `preStop` hooks of containers (`pkg/kubelet/lifecycle/handlers.go`). `postStart` hooks are not
//! implemented.

use std::time::Duration;

use super::spec::{Container, ContainerIndex};
use super::worker::{Stop, Worker};
use crate::context::SimContext;
use crate::defect::Defect;
use crate::kubelet::state::Kubelet;
use crate::machine::{ContainerId, ExecId, Machine};
use crate::resource::EventBody;
use crate::sim::SimTime;

/// `preStop` hook of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Hook {
    /// Runs a command in the container.
    Exec(Vec<String>),
    /// Waits.
    Sleep(Duration),
    /// A hook that fails: of a kind that the kubelet does not know, or a request to the container
    /// (`httpGet`, `tcpSocket`), which the model does not send.
    Unknown,
}

/// Returns whether a container has a `preStop` hook.
pub(super) fn has_pre_stop(container: &Container) -> bool {
    container.lifecycle.get("preStop").is_some_and(|hook| !hook.is_null())
}

impl Kubelet {
    /// Reads the `preStop` hook as this kubelet runs it: before 1.29 it does not know hooks that
    /// sleep, and without their gate they end at once (`runSleepHandler`).
    fn pre_stop(&self, container: &Container) -> Option<Hook> {
        if !has_pre_stop(container) {
            return None;
        }
        let hook = &container.lifecycle["preStop"];
        if let Some(seconds) = hook["sleep"]["seconds"].as_u64() {
            return Some(match () {
                () if !self.options.version.at_least(29) => Hook::Unknown,
                () if !self.config.settings.gates.sleep_hooks => Hook::Sleep(Duration::ZERO),
                () => Hook::Sleep(Duration::from_secs(seconds)),
            });
        }
        let Some(command) = hook["exec"]["command"].as_array() else { return Some(Hook::Unknown) };
        Some(Hook::Exec(command.iter().filter_map(|word| word.as_str()).map(str::to_owned).collect()))
    }

    /// Starts the `preStop` hook of a container, and returns when the kubelet stops waiting for the
    /// hook unless the hook ends earlier: at most after `longest` (`executePreStopHook` of
    /// `pkg/kubelet/kuberuntime/kuberuntime_container.go`).
    pub(super) fn start_pre_stop(
        &mut self,
        worker: &mut Worker,
        (container, place): (&ContainerId, ContainerIndex),
        longest: Duration,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) -> SimTime {
        let hook = worker.manifest.spec.container(place).and_then(|spec| self.pre_stop(spec));
        let Some(hook) = hook.filter(|_| !longest.is_zero()) else { return ctx.now };
        let exec = match hook {
            Hook::Sleep(duration) => return ctx.now + duration.min(longest),
            Hook::Exec(command) => machine.exec(container, &command, ctx.now).ok(),
            Hook::Unknown => None,
        };
        match exec {
            Some(exec) => {
                worker.pre_stops.insert(exec, (container.clone(), place));
                ctx.now + longest
            }
            None => {
                self.record_failed_pre_stop(worker, place, ctx);
                ctx.now
            }
        }
    }

    /// Handles the end of a command in a container, if it belongs to a hook of a running kubelet.
    pub(super) fn exec_exited(&mut self, exec: ExecId, machine: &mut Machine, ctx: &mut SimContext) {
        let mut workers = self.pods.workers.iter().filter(|_| self.running);
        let owner = workers.find(|(_, worker)| worker.pre_stops.contains_key(&exec));
        let Some(owner) = owner.map(|(uid, _)| uid.clone()) else { return };
        let Some(result) = machine.take_exec(exec) else { return };
        self.with_worker(&owner, |kubelet, worker| {
            let Some((container, place)) = worker.pre_stops.remove(&exec) else { return };
            if result.code != 0 {
                kubelet.record_failed_pre_stop(worker, place, ctx);
            }
            let stops = worker.stopping.as_mut().map(|stopping| &mut stopping.containers);
            if let Some(stop @ Stop::Hook(_)) = stops.and_then(|stops| stops.get_mut(&container)) {
                *stop = Stop::Hook(ctx.now);
                kubelet.continue_stopping(worker, machine, ctx);
            }
        });
    }

    fn record_failed_pre_stop(&mut self, worker: &Worker, place: ContainerIndex, ctx: &mut SimContext) {
        if self.has(Defect::FailedHookWithoutEvent) {
            return;
        }
        let event = EventBody::warning("FailedPreStopHook", "PreStopHook failed");
        self.record_container_event(worker, place, event, ctx);
    }
}
