//! `agnhost stress`, and vish's `stress` from which it is forked: memory in steps, and CPU.

use std::time::Duration;

use evictlab_stress::agnhost::{self, Complaint, Steps};

use super::super::cost;
use super::super::kernel::Kernel;
use super::super::process::Pid;
use super::{Footprint, Program, Turn};
use crate::time::Time;

/// How often memory that grows in small steps is counted.
const COUNT: Duration = Duration::from_millis(10);
/// How often CPU time is counted.
const BURN: Duration = Duration::from_secs(1);

/// Whose `stress` it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Whose {
    /// agnhost's.
    Agnhost,
    /// vish's, from which agnhost's is forked: it knows flags with one dash, too, and klog's.
    Vish,
    /// That of evictlab's own image.
    Evictlab,
}

/// What the arguments say.
pub(in super::super) struct Stress {
    whose: Whose,
    order: agnhost::Stress,
    /// Bytes of a step.
    size: u64,
    /// How many steps there are; none: without an end.
    steps: Option<u64>,
    /// How many are done.
    done: u64,
    began: Option<Time>,
    said: bool,
    burned: Time,
}

impl Stress {
    /// The program; another one that complains if the arguments are wrong.
    pub fn of(whose: Whose, arguments: &[String]) -> Program {
        let read = match whose {
            Whose::Vish => agnhost::read(vishs(arguments)),
            Whose::Agnhost | Whose::Evictlab => agnhost::read(arguments),
        };
        match read {
            Ok(order) => Program::Stress(Box::new(Self::new(whose, order))),
            Err(Complaint { text, code }) => Program::Say { name: whose.program(), text, stderr: true, code },
        }
    }

    pub fn new(whose: Whose, order: agnhost::Stress) -> Self {
        let size = order.size();
        let steps = match order.steps() {
            Steps::Of(steps) => Some(steps),
            Steps::Endless => None,
        };
        Self { whose, order, size, steps, done: 0, began: None, said: false, burned: Time::ZERO }
    }

    /// Whether all flags are those of vish's program.
    pub fn is_vishs(arguments: &[String]) -> bool {
        let known =
            ["mem-total", "mem-alloc-size", "mem-alloc-sleep", "cpus", "logtostderr", "alsologtostderr"];
        let name = |word: &str| word.trim_start_matches('-').split('=').next().unwrap_or_default().to_owned();
        arguments.iter().filter(|word| word.starts_with('-')).all(|word| known.contains(&name(word).as_str()))
    }

    pub fn whose(&self) -> Whose {
        self.whose
    }

    pub fn footprint(&self) -> Footprint {
        match self.whose {
            Whose::Agnhost | Whose::Vish => {
                Footprint { threads: cost::GO_THREADS + self.order.cpus, ..Footprint::AGNHOST }
            }
            Whose::Evictlab => Footprint { threads: 1 + self.order.cpus, ..Footprint::OURS },
        }
    }

    /// Says a line as klog does, or as it is.
    fn say(&self, place: &str, text: &str, me: Pid, kernel: &mut Kernel) {
        match self.whose {
            Whose::Agnhost | Whose::Vish => kernel.klog(me, place, text),
            Whose::Evictlab => kernel.say(me, 2, &format!("{text}\n")),
        }
    }

    /// How long it takes to fill a step, and how long a step takes with its pause.
    fn pace(&self) -> (Duration, Duration) {
        let fill = cost::at_rate(self.size, cost::FILL_RATE);
        (fill, fill + self.order.pause)
    }

    pub fn step(&mut self, me: Pid, kernel: &mut Kernel) -> Turn {
        let began = match self.began {
            Some(began) => began,
            None => {
                self.say("main.go:26", &self.order.begins(), me, kernel);
                self.burned = kernel.now;
                *self.began.insert(kernel.now)
            }
        };
        self.burn(me, kernel);
        let burning = (self.order.cpus > 0).then(|| kernel.now + BURN);
        let waits = |next: Option<Time>| match (next, burning) {
            (Some(next), Some(burn)) => Turn::At(next.min(burn)),
            (Some(at), None) | (None, Some(at)) => Turn::At(at),
            (None, None) => Turn::Wait,
        };
        let Some(steps) = self.steps else { return waits(None) };
        let (fill, each) = self.pace();
        // The first step is filled after `fill`, each further one `each` later.
        let filled = |step: u64| began + fill + each * u32::try_from(step).unwrap_or(u32::MAX);
        if self.done < steps && kernel.now >= filled(self.done) {
            let since = kernel.now.since(began + fill);
            let due = (since.as_nanos().checked_div(each.as_nanos()).unwrap_or(u128::MAX)).saturating_add(1);
            let due = u64::try_from(due).unwrap_or(u64::MAX).min(steps);
            let bytes = self.size.saturating_mul(due - self.done);
            kernel.spend(me, fill * u32::try_from(due - self.done).unwrap_or(u32::MAX));
            self.done = due;
            if kernel.allocate(me, bytes, bytes / cost::PAGE_TABLES).is_err() {
                return Turn::Wait;
            }
        }
        if self.done < steps {
            // Small steps are counted together, the last one at its time.
            let last = filled(steps - 1);
            return waits(Some(filled(self.done).max(kernel.now + COUNT).min(last)));
        }
        if !self.said {
            let end = if steps == 0 { began } else { filled(steps - 1) + self.order.pause };
            if kernel.now < end {
                return waits(Some(end));
            }
            self.said = true;
            self.say("main.go:29", &self.order.has_all(), me, kernel);
        }
        waits(None)
    }

    fn burn(&mut self, me: Pid, kernel: &mut Kernel) {
        if self.order.cpus > 0 {
            let since = kernel.now.since(self.burned);
            kernel.spend(me, since * u32::try_from(self.order.cpus).unwrap_or(u32::MAX));
            self.burned = kernel.now;
        }
    }
}

impl Whose {
    /// What the kernel calls the program.
    pub fn program(self) -> &'static str {
        match self {
            Self::Agnhost => "agnhost",
            Self::Vish | Self::Evictlab => "stress",
        }
    }
}

/// The arguments of vish's program as agnhost's takes them.
fn vishs(arguments: &[String]) -> Vec<String> {
    let words = arguments.iter().filter(|word| !word.trim_start_matches('-').ends_with("logtostderr"));
    let flag = |word: &String| match word.starts_with("--") {
        false if word.starts_with('-') => format!("-{word}"),
        _ => word.clone(),
    };
    words.map(flag).collect()
}
