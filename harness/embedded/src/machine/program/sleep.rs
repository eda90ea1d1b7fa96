//! `sleep`: waits for the sum of its operands.
//!
//! An operand is a decimal number with an optional unit: `s`, `m`, `h` or `d`, seconds by default.
//! With the operand `infinity` or `inf`, `sleep` does not end.

use std::time::Duration;

use crate::machine::ids::Pid;
use crate::machine::kernel::{Kernel, Program};
use crate::machine::step::StepOutcome;
use crate::sim::SimTime;

/// `sleep` and its state.
pub(super) struct Sleep {
    /// `None` for an infinite sleep.
    length: Option<Duration>,
    until: Option<SimTime>,
}

/// The arguments of `sleep` are wrong. The texts are those of busybox.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SleepError {
    /// There are no arguments.
    #[error("Usage: sleep [N]...")]
    MissingOperand,
    /// An argument is not a length of time.
    #[error("sleep: invalid number '{0}'")]
    InvalidNumber(String),
}

impl Sleep {
    /// Returns a sleep for the sum of the arguments.
    ///
    /// # Errors
    /// No arguments, or an argument that is not a length of time.
    pub(super) fn from_arguments(arguments: &[String]) -> Result<Self, SleepError> {
        if arguments.is_empty() {
            return Err(SleepError::MissingOperand);
        }
        let mut sum = Duration::ZERO;
        let mut is_infinite = false;
        for argument in arguments {
            if argument == "infinity" || argument == "inf" {
                is_infinite = true;
                continue;
            }
            let length = parse_length(argument).ok_or_else(|| SleepError::InvalidNumber(argument.clone()))?;
            sum = sum.saturating_add(length);
        }
        Ok(Self { length: (!is_infinite).then_some(sum), until: None })
    }
}

/// Parses a number with an optional unit, and limits it to [`Duration::MAX`]. Returns `None` if it
/// is not a length of time.
fn parse_length(argument: &str) -> Option<Duration> {
    let (number, unit) = match argument.char_indices().next_back()? {
        (at, unit) if unit.is_ascii_alphabetic() => (&argument[..at], Some(unit)),
        _ => (argument, None),
    };
    let seconds = match unit {
        None | Some('s') => 1.0,
        Some('m') => 60.0,
        Some('h') => 3600.0,
        Some('d') => 86400.0,
        Some(_) => return None,
    };
    let seconds = number.parse::<f64>().ok()? * seconds;
    (seconds >= 0.0).then(|| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error_texts::row;

    fn length(arguments: &[&str]) -> Result<Option<Duration>, SleepError> {
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        Sleep::from_arguments(&arguments).map(|sleep| sleep.length)
    }

    #[test]
    fn sums_the_operands() {
        assert_eq!(length(&["1.5", "2m", "1h"]), Ok(Some(Duration::from_millis(3_721_500))));
        assert_eq!(length(&["1", "infinity"]), Ok(None));
        assert_eq!(length(&["1e19", "1e19"]), Ok(Some(Duration::MAX)));
        assert_eq!(length(&["1e30"]), Ok(Some(Duration::MAX)));
    }

    #[test]
    fn names_the_wrong_operand() {
        for wrong in ["1x", "-1", "nan", "m", ""] {
            assert_eq!(length(&["1", wrong, "2"]), Err(SleepError::InvalidNumber(wrong.to_owned())));
        }
        assert_eq!(length(&[]), Err(SleepError::MissingOperand));
    }

    #[test]
    fn error_texts() {
        let rows = [row(SleepError::MissingOperand), row(SleepError::InvalidNumber("1x".to_owned()))];
        insta::assert_snapshot!(rows.concat());
    }
}
