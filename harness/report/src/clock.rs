//! The clock of a run: wall-clock time or simulated time.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Start of simulated time: 2026-01-01T00:00:00Z.
const MODEL_START: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// Time source of a run. It advances with Tokio's clock: in a runtime with a paused clock it shows
/// simulated time, which is the same in every run. Cheap to copy.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Timestamp,
    began: Instant,
    model: bool,
}

impl Clock {
    /// Returns a clock that shows wall-clock time.
    pub fn wall() -> Self {
        Self { origin: Timestamp::now(), began: Instant::now(), model: false }
    }

    /// Returns a clock that shows simulated time, which starts now at 2026-01-01T00:00:00Z. Call it
    /// within the runtime whose clock is paused.
    pub fn model() -> Self {
        Self { origin: MODEL_START, began: Instant::now(), model: true }
    }

    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        let since = SignedDuration::try_from(self.began.elapsed()).unwrap_or(SignedDuration::MAX);
        self.origin.saturating_add(since).unwrap_or(Timestamp::MAX)
    }

    /// Returns the start time.
    pub fn origin(&self) -> Timestamp {
        self.origin
    }

    /// Returns whether the clock shows simulated time, which only the model's own thread can read.
    pub fn is_model(&self) -> bool {
        self.model
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn simulated_time_is_deterministic() {
        let clock = Clock::model();
        tokio::time::sleep(Duration::from_millis(1500)).await;
        assert_eq!(clock.now().to_string(), "2026-01-01T00:00:01.5Z");
    }
}
