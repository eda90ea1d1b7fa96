//! `sleep`

use std::time::Duration;

use super::super::kernel::Kernel;
use super::Turn;
use crate::time::Time;

/// Waits for a time, or for ever.
pub(in super::super) struct Sleep {
    /// None: for ever.
    length: Option<Duration>,
    until: Option<Time>,
}

impl Sleep {
    /// What the arguments add up to; none if one of them is no time.
    pub fn of(arguments: &[String]) -> Option<Self> {
        let mut whole = Duration::ZERO;
        let mut endless = arguments.is_empty();
        for argument in arguments {
            if argument == "infinity" || argument == "inf" {
                endless = true;
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
            whole += Duration::try_from_secs_f64(number * seconds).ok()?;
        }
        Some(Self { length: (!endless).then_some(whole), until: None })
    }

    pub fn step(&mut self, kernel: &Kernel) -> Turn {
        let Some(length) = self.length else { return Turn::Wait };
        let until = *self.until.get_or_insert(kernel.now + length);
        if kernel.now >= until { Turn::Exit(0) } else { Turn::At(until) }
    }
}
