//! Slowdown of the ramps on a node whose statistics lag behind.

/// Maximum factor: beyond it, a ramp takes minutes and the host is unfit.
const MAX_SLOWDOWN: u32 = 8;
/// Number of consecutive ramps that the statistics follow before the factor decreases.
const RAMPS_BEFORE_DECREASE: u32 = 3;

/// Factor on the duration of ramps. It doubles after a ramp that was faster than the node's
/// statistics, up to 8, and halves after every third ramp that was not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slowdown {
    factor: u32,
    /// Ramps that the statistics followed since the last change of the factor.
    followed: u32,
}

impl Slowdown {
    pub(crate) const NONE: Self = Self { factor: 1, followed: 0 };

    pub(crate) fn factor(self) -> u32 {
        self.factor
    }

    /// Records a ramp that was faster than the node's statistics.
    pub(crate) fn increase(&mut self) {
        *self = Self { factor: (self.factor * 2).min(MAX_SLOWDOWN), followed: 0 };
    }

    /// Records a ramp that the statistics followed.
    pub(crate) fn record_followed_ramp(&mut self) {
        self.followed += 1;
        if self.followed == RAMPS_BEFORE_DECREASE {
            *self = Self { factor: (self.factor / 2).max(1), followed: 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_factor_has_a_limit_and_decreases_again() {
        let mut slowdown = Slowdown::NONE;
        for expected in [2, 4, 8, 8, 8] {
            slowdown.increase();
            assert_eq!(slowdown.factor(), expected);
        }
        let factors: Vec<u32> = (0..10)
            .map(|_| {
                slowdown.record_followed_ramp();
                slowdown.factor()
            })
            .collect();
        assert_eq!(factors, [8, 8, 4, 4, 4, 2, 2, 2, 1, 1]);
        slowdown.increase();
        assert_eq!(slowdown.factor(), 2);
    }

    #[test]
    fn only_consecutive_ramps_count() {
        let mut slowdown = Slowdown::NONE;
        slowdown.increase();
        slowdown.record_followed_ramp();
        slowdown.record_followed_ramp();
        slowdown.increase();
        slowdown.record_followed_ramp();
        assert_eq!(slowdown.factor(), 4);
    }
}
