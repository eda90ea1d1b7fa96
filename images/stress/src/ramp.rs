//! The amount of a resource, and the rate at which it is consumed.

use std::time::Duration;

/// Steps with pauses between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ramp {
    /// The amount of all steps; `None` for steps without an end.
    pub total: Option<u64>,
    /// The amount of a step, at least 1.
    pub step: u64,
    /// The time between two steps.
    pub pause: Duration,
    /// The time before the first step.
    pub delay: Duration,
}

impl Ramp {
    /// Returns the amount of the next step; `None` if `consumed` is the total. The last step is the
    /// remainder.
    pub fn next_step(&self, consumed: u64) -> Option<u64> {
        let left = self.total.map_or(u64::MAX, |total| total.saturating_sub(consumed));
        (left > 0).then(|| self.step.min(left))
    }

    /// Returns whether `consumed` is the total.
    pub fn is_complete(&self, consumed: u64) -> bool {
        self.next_step(consumed).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(total: Option<u64>, step: u64, most: usize) -> Vec<u64> {
        let ramp = Ramp { total, step, pause: Duration::ZERO, delay: Duration::ZERO };
        let mut consumed = 0;
        std::iter::from_fn(|| ramp.next_step(consumed).inspect(|step| consumed += step)).take(most).collect()
    }

    #[test]
    fn last_step_is_the_remainder() {
        for (total, step, expected) in [
            (Some(10), 4, &[4, 4, 2][..]),
            (Some(8), 4, &[4, 4]),
            (Some(3), 4, &[3]),
            (Some(0), 4, &[]),
            (None, 4, &[4, 4, 4, 4]),
        ] {
            assert_eq!(steps(total, step, 4), expected, "{total:?} by {step}");
        }
    }
}
