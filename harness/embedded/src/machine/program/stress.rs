//! `agnhost stress`, and vish's `stress` from which it is forked: memory in steps, and CPU.

use std::time::Duration;

use evictlab_rules::quantity::Quantity;

use super::super::cost;
use super::super::kernel::Kernel;
use super::super::process::Pid;
use super::argument::{duration, print_duration};
use super::{Footprint, Program, Turn};
use crate::time::Time;

/// How often memory that grows in small steps is counted.
const COUNT: Duration = Duration::from_millis(10);
/// How often CPU time is counted.
const BURN: Duration = Duration::from_secs(1);

/// What the arguments say.
pub(in super::super) struct Stress {
    agnhost: bool,
    total: String,
    step: String,
    pause: Duration,
    cpus: u64,
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
    pub fn of(agnhost: bool, arguments: &[String]) -> Program {
        match Self::parse(agnhost, arguments) {
            Ok(stress) => Program::Stress(Box::new(stress)),
            Err((text, code)) => {
                Program::Say { name: if agnhost { "agnhost" } else { "stress" }, text, stderr: true, code }
            }
        }
    }

    /// Whether all flags are those of vish's program.
    pub fn is_vishs(arguments: &[String]) -> bool {
        let known =
            ["mem-total", "mem-alloc-size", "mem-alloc-sleep", "cpus", "logtostderr", "alsologtostderr"];
        let name = |word: &str| word.trim_start_matches('-').split('=').next().unwrap_or_default().to_owned();
        arguments.iter().filter(|word| word.starts_with('-')).all(|word| known.contains(&name(word).as_str()))
    }

    fn parse(agnhost: bool, arguments: &[String]) -> Result<Self, (String, i32)> {
        let mut stress = Self {
            agnhost,
            total: "0".to_owned(),
            step: "4Ki".to_owned(),
            pause: Duration::from_millis(1),
            cpus: 0,
            size: 0,
            steps: None,
            done: 0,
            began: None,
            said: false,
            burned: Time::ZERO,
        };
        // Cobra tells what was wrong, then how the command is used, and the root command exits with 1.
        let wrong = |what: String| (format!("Error: {what}\nUsage:\n  app stress [flags]\n"), 1);
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            // pflag knows two dashes; the flag package, which vish's takes, one or two.
            let flag = match argument.strip_prefix("--") {
                Some(flag) => flag,
                None if !agnhost && argument.starts_with('-') => &argument[1..],
                None if argument.starts_with('-') => {
                    let short = argument.chars().nth(1).unwrap_or('-');
                    return Err(wrong(format!("unknown shorthand flag: '{short}' in {argument}")));
                }
                None => return Err(wrong(format!("unknown command \"{argument}\" for \"app stress\""))),
            };
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                None => match (flag, rest.next()) {
                    ("mem-total" | "mem-alloc-size" | "mem-alloc-sleep" | "cpus", Some(value)) => {
                        (flag, value.clone())
                    }
                    ("logtostderr" | "alsologtostderr", _) if !agnhost => continue,
                    ("mem-total" | "mem-alloc-size" | "mem-alloc-sleep" | "cpus", None) => {
                        return Err(wrong(format!("flag needs an argument: --{flag}")));
                    }
                    _ => return Err(wrong(format!("unknown flag: --{flag}"))),
                },
            };
            match name {
                "mem-total" => stress.total = value,
                "mem-alloc-size" => stress.step = value,
                "mem-alloc-sleep" => {
                    stress.pause = duration(&value).ok_or_else(|| {
                        wrong(format!(
                            "invalid argument \"{value}\" for \"--mem-alloc-sleep\" flag: time: invalid duration \"{value}\""
                        ))
                    })?;
                }
                "cpus" => {
                    stress.cpus = value.parse().map_err(|_| {
                        wrong(format!(
                            "invalid argument \"{value}\" for \"--cpus\" flag: strconv.ParseInt: parsing \"{value}\": invalid syntax"
                        ))
                    })?;
                }
                _ => return Err(wrong(format!("unknown flag: --{name}"))),
            }
        }
        // resource.MustParse panics, and a Go program that panics exits with 2.
        let quantity = |text: &str| {
            text.parse::<Quantity>().map_err(|_| {
                let why = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
                (format!("panic: cannot parse '{text}': {why}\n\ngoroutine 1 [running]:\n"), 2)
            })
        };
        let (total, step) = (quantity(&stress.total)?, quantity(&stress.step)?);
        (stress.total, stress.step) = (total.canonical(), step.canonical());
        let (total, step) = (total.value(), step.value());
        if step < 0 && total >= step {
            return Err(("panic: runtime error: makeslice: len out of range\n".to_owned(), 2));
        }
        stress.size = step.max(0) as u64;
        // i × step ≤ total for i from 1 on; with steps of nothing there is no end to it.
        stress.steps = match (total, step) {
            (..0, _) => Some(0),
            (_, 0) => None,
            (total, step) => Some((total / step).max(0) as u64),
        };
        Ok(stress)
    }

    pub fn name(&self) -> &'static str {
        if self.agnhost { "agnhost" } else { "stress" }
    }

    pub fn footprint(&self) -> Footprint {
        Footprint { threads: cost::GO_THREADS + self.cpus, ..Footprint::AGNHOST }
    }

    /// How long it takes to fill a step, and how long a step takes with its pause.
    fn pace(&self) -> (Duration, Duration) {
        let fill = cost::at_rate(self.size, cost::FILL_RATE);
        (fill, fill + self.pause)
    }

    pub fn step(&mut self, me: Pid, kernel: &mut Kernel) -> Turn {
        let began = match self.began {
            Some(began) => began,
            None => {
                let text = format!(
                    "Allocating {:?} memory, in {:?} chunks, with a {} sleep between allocations",
                    self.total,
                    self.step,
                    print_duration(self.pause)
                );
                kernel.klog(me, "main.go:26", &text);
                self.burned = kernel.now;
                *self.began.insert(kernel.now)
            }
        };
        self.burn(me, kernel);
        let burning = (self.cpus > 0).then(|| kernel.now + BURN);
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
            let end = if steps == 0 { began } else { filled(steps - 1) + self.pause };
            if kernel.now < end {
                return waits(Some(end));
            }
            self.said = true;
            kernel.klog(me, "main.go:29", &format!("Allocated {:?} memory", self.total));
        }
        waits(None)
    }

    fn burn(&mut self, me: Pid, kernel: &mut Kernel) {
        if self.cpus > 0 {
            let since = kernel.now.since(self.burned);
            kernel.spend(me, since * u32::try_from(self.cpus).unwrap_or(u32::MAX));
            self.burned = kernel.now;
        }
    }
}
