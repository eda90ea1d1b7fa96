//! How much is taken, and how fast.

use std::time::Duration;

/// Steps with pauses between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pace {
    /// All that is taken; none: there is no end.
    pub total: Option<u64>,
    /// What is taken at once, never nothing.
    pub step: u64,
    /// Between two steps.
    pub pause: Duration,
    /// Before the first.
    pub delay: Duration,
}

impl Pace {
    /// What the next step takes when so much was taken before; none when that is all. The last step takes what is left.
    pub fn next(&self, taken: u64) -> Option<u64> {
        let left = self.total.map_or(u64::MAX, |total| total.saturating_sub(taken));
        (left > 0).then(|| self.step.min(left))
    }

    /// Whether so much is all.
    pub fn is_all(&self, taken: u64) -> bool {
        self.next(taken).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(total: Option<u64>, step: u64, most: usize) -> Vec<u64> {
        let pace = Pace { total, step, pause: Duration::ZERO, delay: Duration::ZERO };
        let mut taken = 0;
        std::iter::from_fn(|| pace.next(taken).inspect(|step| taken += step)).take(most).collect()
    }

    #[test]
    fn the_last_step_takes_what_is_left() {
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
