//! `agnhost stress`: allocates memory in steps and keeps CPUs busy.

use std::time::Duration;

use evictlab_stress::agnhost::StressOptions;

use crate::machine::calibration;
use crate::machine::ids::Pid;
use crate::machine::kernel::{Kernel, Program};
use crate::machine::open_file::STDERR;
use crate::machine::step::{Footprint, SIGHUP, SIGINT, SIGTERM, SignalAction, SignalNumber, StepOutcome};
use crate::sim::SimTime;

/// The shortest interval in which small steps are counted.
const MIN_INTERVAL: Duration = Duration::from_millis(10);
/// The interval in which CPU time is counted.
const CPU_INTERVAL: Duration = Duration::from_secs(1);

/// The image that the program comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StressVariant {
    /// `/agnhost stress`
    Agnhost,
    /// `/stress stress` of evictlab's image, which reads the same flags.
    Evictlab,
}

/// `agnhost stress` and its state.
pub(super) struct AgnhostStress {
    variant: StressVariant,
    options: StressOptions,
    /// Number of steps; `None` for steps of 0 bytes, which never end.
    steps: Option<u64>,
    steps_done: u64,
    started_at: Option<SimTime>,
    is_done_printed: bool,
    cpu_counted_until: SimTime,
}

impl AgnhostStress {
    pub(super) fn new(variant: StressVariant, options: StressOptions) -> Self {
        let steps = options.steps();
        Self {
            variant,
            options,
            steps,
            steps_done: 0,
            started_at: None,
            is_done_printed: false,
            cpu_counted_until: SimTime::ZERO,
        }
    }

    /// Runs again at `next`, or earlier to count CPU time.
    fn wait_until(&self, next: Option<SimTime>, kernel: &Kernel) -> StepOutcome {
        let count_at = (self.options.cpus > 0).then(|| kernel.now + CPU_INTERVAL);
        next.into_iter().chain(count_at).min().map_or(StepOutcome::Wait, StepOutcome::RunAt)
    }

    fn count_cpu(&mut self, pid: Pid, kernel: &mut Kernel) {
        if self.options.cpus > 0 {
            let elapsed = kernel.now.since(self.cpu_counted_until);
            kernel.account_cpu(pid, elapsed * u32::try_from(self.options.cpus).unwrap_or(u32::MAX));
            self.cpu_counted_until = kernel.now;
        }
    }

    /// Prints a line, for agnhost with klog's header; `line` is its line in main.go.
    fn print(&self, line: u32, text: &str, pid: Pid, kernel: &mut Kernel) {
        let text = match self.variant {
            StressVariant::Agnhost => {
                let pid = kernel.processes.get(&pid).map_or(0, |process| process.ns_pid);
                let at = kernel.epoch.at(kernel.now).strftime("%m%d %H:%M:%S%.6f");
                format!("I{at} {pid:>7} main.go:{line}] {text}\n")
            }
            StressVariant::Evictlab => format!("{text}\n"),
        };
        kernel.print(pid, STDERR, &text);
    }
}

impl Program for AgnhostStress {
    fn name(&self) -> String {
        match self.variant {
            StressVariant::Agnhost => "agnhost".to_owned(),
            StressVariant::Evictlab => "stress".to_owned(),
        }
    }

    fn footprint(&self) -> Footprint {
        match self.variant {
            StressVariant::Agnhost => {
                Footprint { tasks: calibration::GO_THREADS + self.options.cpus, ..Footprint::AGNHOST }
            }
            StressVariant::Evictlab => {
                Footprint { tasks: 1 + self.options.cpus, ..Footprint::EVICTLAB_STRESS }
            }
        }
    }

    fn signal_action(&self, signal: SignalNumber, is_init: bool) -> SignalAction {
        match (self.variant, signal) {
            (StressVariant::Evictlab, SIGINT | SIGTERM) => SignalAction::Exit(2),
            // Go's runtime raises the signal again, and exits with 2 if it survives that
            // (runtime/signal_unix.go).
            (_, SIGHUP | SIGINT | SIGTERM) if is_init => SignalAction::Exit(2),
            _ => SignalAction::default_for(signal, is_init),
        }
    }

    fn step(&mut self, pid: Pid, kernel: &mut Kernel) -> StepOutcome {
        let started_at = match self.started_at {
            Some(started_at) => started_at,
            None => {
                self.print(26, &self.options.start_message(), pid, kernel);
                self.cpu_counted_until = kernel.now;
                *self.started_at.insert(kernel.now)
            }
        };
        self.count_cpu(pid, kernel);
        let Some(steps) = self.steps else { return self.wait_until(None, kernel) };
        let fill = calibration::at_rate(self.options.step_bytes(), calibration::FILL_RATE);
        let interval = fill + self.options.pause;
        // The first step is complete after `fill`, each further one `interval` later.
        let complete_at =
            |step: u64| started_at + fill + interval.saturating_mul(u32::try_from(step).unwrap_or(u32::MAX));
        if self.steps_done < steps && kernel.now >= complete_at(self.steps_done) {
            let elapsed = kernel.now.since(started_at + fill).as_nanos();
            let due = elapsed.checked_div(interval.as_nanos()).unwrap_or(u128::MAX).saturating_add(1);
            let due = u64::try_from(due).unwrap_or(u64::MAX).min(steps);
            let count = due - self.steps_done;
            self.steps_done = due;
            kernel.account_cpu(pid, fill * u32::try_from(count).unwrap_or(u32::MAX));
            let bytes = self.options.step_bytes().saturating_mul(count);
            if kernel.allocate_memory(pid, bytes, bytes / calibration::PAGE_TABLE_RATIO).is_err() {
                return StepOutcome::Wait;
            }
        }
        if self.steps_done < steps {
            // Small steps are counted together, the last one at its own time.
            let next = complete_at(self.steps_done).max(kernel.now + MIN_INTERVAL);
            return self.wait_until(Some(next.min(complete_at(steps - 1))), kernel);
        }
        if !self.is_done_printed {
            let end = if steps == 0 { started_at } else { complete_at(steps - 1) + self.options.pause };
            if kernel.now < end {
                return self.wait_until(Some(end), kernel);
            }
            self.is_done_printed = true;
            self.print(29, &self.options.done_message(), pid, kernel);
        }
        self.wait_until(None, kernel)
    }
}
