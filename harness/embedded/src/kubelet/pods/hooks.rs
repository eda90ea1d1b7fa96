//! Lifecycle hooks of containers (`pkg/kubelet/lifecycle/handlers.go`).

use std::time::Duration;

use super::spec::{Container, ContainerIndex};
use super::worker::{PostStart, Step, Stop, StopCause, StopOrder, Worker};
use crate::context::SimContext;
use crate::defect::Defect;
use crate::kubelet::event::PodEvent;
use crate::kubelet::state::Kubelet;
use crate::machine::{ContainerId, ExecId, ExecResult, Machine};
use crate::resource::EventBody;
use crate::sim::SimTime;

/// Duration of a hook that the model does not run.
const REQUEST: Duration = Duration::from_millis(50);
/// Error of a hook of a kind that the kubelet does not know (`handlerRunner.Run`).
const UNKNOWN_HANDLER: &str =
    "Cannot run handler: invalid handler: &LifecycleHandler{Exec:nil,HTTPGet:nil,TCPSocket:nil,}";

/// Hook of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hook {
    /// Runs a command in the container.
    Exec(Vec<String>),
    /// Waits.
    Sleep(Duration),
    /// A request to the container (`httpGet`, `tcpSocket`), which the model does not send: it
    /// succeeds after a moment.
    Request,
    /// A hook of a kind that the kubelet does not know.
    Unknown,
}

impl Hook {
    /// Reads a hook of a container, `postStart` or `preStop`.
    pub(super) fn read(container: &Container, name: &str) -> Option<Self> {
        let hook = container.lifecycle.get(name).filter(|hook| !hook.is_null())?;
        if let Some(seconds) = hook["sleep"]["seconds"].as_u64() {
            return Some(Self::Sleep(Duration::from_secs(seconds)));
        }
        let Some(command) = hook["exec"]["command"].as_array() else { return Some(Self::Request) };
        Some(Self::Exec(command.iter().filter_map(|word| word.as_str()).map(str::to_owned).collect()))
    }
}

/// Hook that was started.
enum StartedHook {
    /// A command that runs.
    Runs(ExecId),
    /// A wait until a time.
    Ends(SimTime),
    /// A command that could not be started.
    Failed(String),
}

impl StartedHook {
    fn start(hook: &Hook, container: &str, machine: &mut Machine, now: SimTime) -> Self {
        match hook {
            Hook::Exec(command) => match machine.exec(container, command, now) {
                Ok(exec) => Self::Runs(exec),
                Err(error) => Self::Failed(error.to_string()),
            },
            Hook::Sleep(duration) => Self::Ends(now + *duration),
            Hook::Request => Self::Ends(now + REQUEST),
            Hook::Unknown => Self::Failed(UNKNOWN_HANDLER.to_owned()),
        }
    }
}

impl Kubelet {
    /// Reads a hook as this kubelet runs it: before 1.29 it does not know hooks that sleep, and
    /// without their gate they end at once (`runSleepHandler`).
    fn hook(&self, container: &Container, name: &str) -> Option<Hook> {
        let hook = Hook::read(container, name)?;
        Some(match hook {
            Hook::Sleep(_) if !self.options.version.at_least(29) => Hook::Unknown,
            Hook::Sleep(_) if !self.config.settings.gates.sleep_hooks => Hook::Sleep(Duration::ZERO),
            hook => hook,
        })
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
        let hook = worker.manifest.spec.container(place).and_then(|spec| self.hook(spec, "preStop"));
        let Some(hook) = hook.filter(|_| !longest.is_zero()) else { return ctx.now };
        match StartedHook::start(&hook, container, machine, ctx.now) {
            StartedHook::Runs(exec) => {
                worker.pre_stops.insert(exec, (container.clone(), place));
                ctx.now + longest
            }
            StartedHook::Ends(at) => at.min(ctx.now + longest),
            StartedHook::Failed(_) => {
                self.record_failed_pre_stop(worker, place, ctx);
                ctx.now
            }
        }
    }

    /// Starts the `postStart` hook of a container, if it has one. Later steps wait for its end
    /// (`startContainer` of `pkg/kubelet/kuberuntime/kuberuntime_container.go`).
    pub(super) fn start_post_start(
        &self,
        worker: &mut Worker,
        (container, place): (&ContainerId, ContainerIndex),
        machine: &mut Machine,
        now: SimTime,
    ) {
        let Some(spec) = worker.manifest.spec.container(place) else { return };
        let Some(hook) = self.hook(spec, "postStart") else { return };
        worker.post_start = Some(match StartedHook::start(&hook, container, machine, now) {
            StartedHook::Runs(exec) => PostStart::Runs(exec),
            StartedHook::Ends(at) => PostStart::Ends(at),
            StartedHook::Failed(error) => PostStart::Failed(error),
        });
        worker.steps.push_front(Step::PostStart(place));
    }

    /// Handles the end of a `postStart` hook. A container whose hook failed is killed, and is
    /// started again by a retry of the sync if its policy allows that.
    pub(super) fn finish_post_start(
        &mut self,
        worker: &mut Worker,
        place: ContainerIndex,
        machine: &mut Machine,
        ctx: &mut SimContext,
    ) {
        let Some(PostStart::Failed(error)) = worker.post_start.take() else { return };
        let Some(container) = worker.manifest.spec.container(place) else { return };
        let name = container.name.clone();
        let message = match Hook::read(container, "postStart") {
            Some(Hook::Exec(command)) => format!(
                "Exec lifecycle hook ([{}]) for Container {name:?} in Pod {:?} failed - error: {error}",
                command.join(" "),
                worker.manifest.format()
            ),
            _ => error,
        };
        self.record_container_event(
            worker,
            place,
            EventBody::warning("FailedPostStartHook", "PostStartHook failed"),
            ctx,
        );
        self.hold(worker, place, "PostStartHookError", message);
        let runtime = self.pods.runtime.pods.get(&worker.manifest.uid);
        let Some(id) = runtime.and_then(|runtime| runtime.latest(&name)).map(|latest| latest.id.clone())
        else {
            return;
        };
        let order = StopOrder { grace: worker.manifest.spec.grace(), cause: StopCause::PostStartHook };
        self.stop_containers(worker, vec![(id, name)], order, machine, ctx);
    }

    /// Handles the end of a command in a container, if it belongs to a hook of a running kubelet.
    pub(super) fn exec_exited(&mut self, exec: ExecId, machine: &mut Machine, ctx: &mut SimContext) {
        let belongs = |worker: &Worker| {
            worker.post_start == Some(PostStart::Runs(exec)) || worker.pre_stops.contains_key(&exec)
        };
        let mut workers = self.pods.workers.iter().filter(|_| self.running);
        let Some(owner) = workers.find(|(_, worker)| belongs(worker)).map(|(uid, _)| uid.clone()) else {
            return;
        };
        let Some(result) = machine.take_exec(exec) else { return };
        self.with_worker(&owner, |kubelet, worker| {
            if let Some((container, place)) = worker.pre_stops.remove(&exec) {
                if result.code != 0 {
                    kubelet.record_failed_pre_stop(worker, place, ctx);
                }
                let stops = worker.stopping.as_mut().map(|stopping| &mut stopping.containers);
                if let Some(stop @ Stop::Hook(_)) = stops.and_then(|stops| stops.get_mut(&container)) {
                    *stop = Stop::Hook(ctx.now);
                    kubelet.continue_stopping(worker, machine, ctx);
                }
                return;
            }
            worker.post_start = Some(match result.code {
                0 => PostStart::Ends(ctx.now),
                _ => PostStart::Failed(failure(worker, &result)),
            });
            kubelet.schedule_pod(ctx.now, PodEvent::Step(owner.clone(), worker.serial), ctx);
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

/// Returns the error of a `postStart` command, with its output.
fn failure(worker: &Worker, result: &ExecResult) -> String {
    let hook = match worker.steps.front() {
        Some(Step::PostStart(place)) => worker.manifest.spec.container(*place),
        _ => None,
    };
    let command = match hook.and_then(|container| Hook::read(container, "postStart")) {
        Some(Hook::Exec(command)) => command.join(" "),
        _ => String::new(),
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (code, stdout, stderr) = (result.code, text(&result.stdout), text(&result.stderr));
    format!("command '{command}' exited with {code}: {stderr}, message: {:?}", stdout + &stderr)
}
