//! `sleep`

use std::time::Duration;

use super::super::ids::Pid;
use super::super::kernel::{Kernel, Program};
use super::super::step::StepOutcome;
use crate::sim::Time;

/// `sleep`
pub(super) struct Sleep {
    /// `None` for an infinite sleep.
    length: Option<Duration>,
    until: Option<Time>,
}

impl Sleep {
    /// Returns a sleep for the sum of the arguments; `None` if one of them is not a time.
    pub(super) fn from_arguments(arguments: &[String]) -> Option<Self> {
        let mut sum = Duration::ZERO;
        let mut is_infinite = arguments.is_empty();
        for argument in arguments {
            if argument == "infinity" || argument == "inf" {
                is_infinite = true;
                continue;
            }
            let (number, unit) = match argument.char_indices().next_back()? {
                (at, unit) if unit.is_ascii_alphabetic() => (&argument[..at], Some(unit)),
                _ => (argument.as_str(), None),
            };
            let seconds = match unit {
                None | Some('s') => 1.0,
                Some('m') => 60.0,
                Some('h') => 3600.0,
                Some('d') => 86400.0,
                Some(_) => return None,
            };
            let number: f64 = number.parse().ok()?;
            sum += Duration::try_from_secs_f64(number * seconds).ok()?;
        }
        Some(Self { length: (!is_infinite).then_some(sum), until: None })
    }
}

impl Program for Sleep {
    fn name(&self) -> String {
        "sleep".to_owned()
    }

    fn step(&mut self, _: Pid, kernel: &mut Kernel) -> StepOutcome {
        let Some(length) = self.length else { return StepOutcome::Wait };
        let until = *self.until.get_or_insert(kernel.now + length);
        if kernel.now >= until { StepOutcome::Exit(0) } else { StepOutcome::RunAt(until) }
    }
}
